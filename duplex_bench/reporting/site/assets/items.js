// The list of runs: filters kept in the address, rows drawn a page at a time.
"use strict";
(function () {
  const { load, el, number, words } = window.duplexReport;
  const PAGE = 150;
  const form = document.getElementById("filters");
  const body = document.querySelector("#runs tbody");
  const more = document.getElementById("more");
  const count = document.getElementById("count");
  let rows = [];
  let listing = null;
  let shown = 0;
  let matching = [];

  const badness = (metric, value) => (metric.direction === "lower" ? value : -value);
  const failing = (metric, value) => value === (metric.direction === "lower" ? 1 : 0);

  function options(select, pairs) {
    select.replaceChildren(el("option", { value: "" }, "any"), ...pairs.map(([value, text]) => el("option", { value }, text)));
  }

  function matches(row, f) {
    if (f.track && row.item.track !== f.track) return false;
    if (f.condition && row.item.condition !== f.condition) return false;
    if (f.system && row.system !== f.system) return false;
    if (f.outcome && row.outcome !== f.outcome) return false;
    if (f.q && !`${row.item.title} ${row.item.id} ${row.item.cluster}`.toLowerCase().includes(f.q.toLowerCase())) return false;
    if (!f.metric && !f.verdict) return true;
    return row.scores.some(([name, value]) => {
      if (f.metric && name !== f.metric) return false;
      const metric = listing.metrics[name];
      if (f.verdict === "missing") return value === null;
      if (!f.verdict) return true;
      if (value === null) return false;
      if (metric.statistic !== "rate") return Boolean(f.metric);
      return failing(metric, value) === (f.verdict === "fail");
    });
  }

  function refresh() {
    const f = Object.fromEntries(new FormData(form));
    matching = rows.filter((row) => matches(row, f));
    const metric = listing.metrics[f.metric];
    if (metric && metric.statistic !== "rate" && (f.verdict === "fail" || f.verdict === "pass")) {
      const worst = (row) => Math.max(...row.scores.filter(([n, v]) => n === f.metric && v !== null).map(([, v]) => badness(metric, v)));
      matching.sort((a, b) => (worst(b) - worst(a)) * (f.verdict === "fail" ? 1 : -1));
    }
    count.textContent = `${matching.length} of ${rows.length} runs`;
    body.replaceChildren();
    shown = 0;
    draw(f);
    const kept = new URLSearchParams(Object.entries(f).filter(([, value]) => value));
    history.replaceState(null, "", `#${kept}`);
  }

  function draw(f) {
    const part = document.createDocumentFragment();
    for (const row of matching.slice(shown, shown + PAGE)) part.append(drawn(row, f));
    body.append(part);
    shown = Math.min(shown + PAGE, matching.length);
    more.hidden = shown >= matching.length;
  }

  const address = (row, at) => `play.html#item=${encodeURIComponent(row.item.id)}&system=${encodeURIComponent(row.system)}` + (at === null ? "" : `&t=${at.toFixed(3)}`);

  function drawn(row, f) {
    const by = new Map();
    for (const score of row.scores) {
      if (f.metric ? score[0] === f.metric : listing.metrics[score[0]].headline) by.set(score[0], [...(by.get(score[0]) || []), score]);
    }
    const chips = [...by].flatMap(([name, scores]) => (f.metric || scores.length === 1 ? scores.map((one) => chip(row, name, [one])) : [chip(row, name, scores)]));
    return el("tr", {},
      el("td", {}, el("a", { href: address(row, null), title: row.item.id }, row.item.title)),
      el("td", {}, words(row.item.condition)),
      el("td", {}, listing.systems[row.system] || row.system, row.repeat ? ` (repeat ${row.repeat})` : null),
      el("td", {}, words(row.outcome)),
      el("td", {}, el("div", { class: "chips" }, ...chips)));
  }

  // One window of a metric, or several of a run taken together: it opens at the first one that went badly.
  function chip(row, name, scores) {
    const metric = listing.metrics[name];
    const known = scores.filter(([, value]) => value !== null);
    const bad = metric.statistic === "rate" ? known.find(([, value]) => failing(metric, value)) : null;
    const [, value, reason, at] = bad || known[0] || scores[0];
    let text;
    if (!known.length) text = "no score";
    else if (scores.length > 1 && metric.statistic === "rate") text = `${known.filter(([, v]) => v === 1).length} of ${known.length}`;
    else if (metric.statistic === "rate") text = value === 1 ? "yes" : value === 0 ? "no" : number(value);
    else text = number(value, metric.unit) + (scores.length > 1 ? `, ${known.length} windows` : "");
    return el("a", { class: "chip" + (known.length ? "" : " chip-missing"), href: address(row, at), title: reason || "open at this second" }, `${metric.title} `, el("b", {}, text));
  }

  // Metric, value, reason and second of each score stand one after the other, names as numbers.
  function unpacked(flat, names) {
    const scores = [];
    for (let n = 0; n < flat.length; n += 4) scores.push([names[flat[n]], flat[n + 1], flat[n + 2] === null ? null : names[flat[n + 2]], flat[n + 3]]);
    return scores;
  }

  Promise.all([load("items"), load("runs")]).then(([data, { names, runs }]) => {
    listing = data;
    rows = runs.map(([item, system, repeat, outcome, flat]) => {
      const row = { item: data.items[item], system: names[system], repeat, outcome: names[outcome] };
      let scores = null;
      Object.defineProperty(row, "scores", { get: () => (scores = scores || unpacked(flat, names)) });
      return row;
    });
    const distinct = (values) => [...new Set(values)].sort().map((value) => [value, words(value)]);
    const used = new Set(rows.map((row) => row.system));
    options(form.elements.track, distinct(data.items.map((item) => item.track)));
    options(form.elements.condition, distinct(data.items.map((item) => item.condition)));
    options(form.elements.system, Object.entries(data.systems).filter(([name]) => used.has(name)));
    options(form.elements.metric, Object.entries(data.metrics).map(([name, metric]) => [name, metric.title]));
    options(form.elements.outcome, distinct(rows.map((row) => row.outcome)));
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) if (form.elements[name]) form.elements[name].value = value;
    form.addEventListener("input", refresh);
    form.addEventListener("submit", (event) => event.preventDefault());
    more.addEventListener("click", () => draw(Object.fromEntries(new FormData(form))));
    refresh();
  });
})();
