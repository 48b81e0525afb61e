// The player: one item, every system's run of it, both channels, scored windows, words and events on one time axis.
"use strict";
(function () {
  const { load, el, number, words } = window.duplexReport;
  const host = document.getElementById("player");
  const SVG = "http://www.w3.org/2000/svg";
  const ZOOMS = [0, 20, 40, 80, 160, 320]; // pixels a second; 0 fits the window
  const LEAD_S = 1.0; // heard before a window begins, when playing it whole

  let listing = null;
  let item = null;
  let run = null;
  let zoom = null;
  let other = null; // the run that is drawn below, to compare
  let view = {};
  let selected = null;

  const params = () => new URLSearchParams(location.hash.slice(1));

  function setAddress(t) {
    const next = new URLSearchParams({ item: item.id, system: run.system });
    if (run.repeat) next.set("repeat", run.repeat);
    if (other) next.set("with", other.system);
    if (t !== null && t !== undefined) next.set("t", t.toFixed(3));
    history.replaceState(null, "", `#${next}`);
  }

  function fail(message) {
    host.replaceChildren(el("p", { class: "note", role: "alert" }, message));
    host.removeAttribute("aria-busy");
  }

  async function open() {
    listing = await load("items");
    const asked = params();
    const entry = asked.get("item") ? listing.items.find((one) => one.id === asked.get("item")) : listing.items[0];
    if (!entry) return fail(asked.get("item") ? `This report has no item ${asked.get("item")}.` : "This report has no items.");
    item = await load(`item:${entry.id}`, `data/${entry.file}.js`);
    document.title = `${item.title} | ${document.title.split(" | ").pop()}`;
    const place = listing.items.indexOf(entry);
    for (const [id, step] of [["previous-item", -1], ["next-item", 1]]) {
      const button = document.getElementById(id);
      if (!button) continue; // a page of one item has no neighbours
      const other = listing.items[place + step];
      button.disabled = !other;
      button.onclick = () => { location.hash = new URLSearchParams({ item: other.id, ...(run ? { system: run.system } : {}) }); };
    }
    if (!item.runs.length) return fail("No system has run this item.");
    run = item.runs.find((one) => one.system === asked.get("system") && String(one.repeat) === (asked.get("repeat") || String(one.repeat))) || item.runs[0];
    other = item.runs.find((one) => one !== run && one.system === asked.get("with")) || null;
    const t = asked.has("t") ? Number(asked.get("t")) : 0;
    draw(Number.isFinite(t) ? t : 0);
    return undefined;
  }

  const duration = () => Math.max(run.duration, other ? other.duration : 0, item.live_s, 0.1);
  const percent = (s) => `${(100 * s) / duration()}%`;
  // What the turn types of a scene stand for; only those that this scene has.
  const TURN_TYPES = {
    T: "a request to the assistant", N1: "a request to another person", N2: "a statement among people",
    N3: "talk that mentions the assistant or a request without asking it", N4Q: "a question to the assistant that a person then answers",
    N4R: "the answer of that person",
  };

  function letters() {
    const told = ((item.attributes || {}).turn_types || "").split(" ").concat(item.windows.map((w) => w.labels.turn_type));
    const here = Object.keys(TURN_TYPES).filter((kind) => told.includes(kind));
    return here.length ? el("p", { class: "letters" }, here.map((kind) => `${kind}: ${TURN_TYPES[kind]}`).join("; "), ".") : null;
  }

  const windowName = (w) => [words(w.kind), w.labels.turn_type, w.labels.speaker].filter(Boolean).join(" ");

  function wave(encoded, className) {
    const svg = document.createElementNS(SVG, "svg");
    const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
    const pairs = new Int8Array(bytes.buffer);
    const n = pairs.length / 2;
    const total = duration() * item.per_s;
    svg.setAttribute("viewBox", `0 -127 ${total} 254`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    svg.classList.add(className);
    let loudest = 1;
    for (const value of pairs) loudest = Math.max(loudest, Math.abs(value));
    const gain = Math.min(112 / loudest, 6); // quiet recordings are drawn larger, silence is not blown up
    const up = [];
    const down = [];
    for (let i = 0; i < n; i += 1) {
      up.push(`${i} ${(-pairs[2 * i + 1] * gain - 0.7).toFixed(1)}`);
      down.push(`${i} ${(-pairs[2 * i] * gain + 0.7).toFixed(1)}`);
    }
    const path = document.createElementNS(SVG, "path");
    if (n) path.setAttribute("d", `M${up.join("L")}L${down.reverse().join("L")}Z`);
    svg.append(path);
    return svg;
  }

  function mark(className, start, end, text, title) {
    const node = el("span", { class: `mark ${className}`, title: title || text }, text);
    node.style.left = percent(start);
    if (end !== null) node.style.width = `max(2px, ${percent(Math.max(end - start, 0))})`;
    return node;
  }

  // Text is drawn where it fits, else left to the title of its mark: nothing runs into its neighbour.
  const pen = document.createElement("canvas").getContext("2d");
  function textWidth(text) {
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width + 8;
  }
  const perSecond = () => view.lanes.clientWidth / duration();

  // Words that are too narrow to be read are drawn together, as the phrase they make.
  function phrases(list) {
    const scale = perSecond();
    const found = [];
    for (const [text, start, end, aligned] of list) {
      if (start === null) continue;
      const last = found[found.length - 1];
      const crowded = last && (start - last.start) * scale < textWidth(last.texts.join(" "));
      if (crowded && start - last.end < 0.7) {
        last.texts.push(text);
        last.end = Math.max(last.end, end);
        last.aligned = last.aligned && aligned;
      } else found.push({ texts: [text], start, end, aligned });
    }
    return found.map(({ texts, start, end, aligned }) => {
      const node = mark(aligned ? "word" : "word unaligned", start, end, texts.join(" "),
        `${texts.join(" ")}, ${number(start, "s")} to ${number(end, "s")}${aligned ? "" : ", times are coarse"}`);
      if ((end - start) * scale < 14) node.textContent = "";
      return node;
    });
  }

  // A tick for every event; its name where the one before leaves room.
  function eventMarks(events) {
    const scale = perSecond();
    let free = -Infinity;
    return [...events].sort((a, b) => a.t - b.t).map((event) => {
      const name = event.kind === "state" && event.text ? event.text : words(event.kind);
      const shown = event.t * scale >= free;
      if (shown) free = event.t * scale + textWidth(name);
      return mark("event", event.t, null, shown ? name : "", `${name} at ${number(event.t, "s")} ${event.text}`);
    });
  }

  // A window that is an instant may have its name where the next window has not begun.
  const until = (w) => (w.end > w.start ? w.end : Math.min(duration(), ...item.windows.filter((one) => one.start > w.start).map((one) => one.start)));

  function shortName(w) {
    const room = (until(w) - w.start) * perSecond() - 10;
    return [windowName(w), w.labels.turn_type, words(w.kind)].find((name) => name && textWidth(name) <= room) || "";
  }

  // What came out of one run: waveform, speech by the gate, words, events.
  function runLanes(one, side) {
    const system = el("div", { class: "lane wave" }, el("span", { class: "lane-name" }, `${side}${one.title}, as a listener heard it`));
    if (one.peaks) system.prepend(wave(one.peaks, side ? "wave-system" : "wave-other"));
    const gates = el("div", { class: "lane marks", title: "speech by the energy gate" }, ...(one.gate || []).map(([start, end]) => mark("gate", start, end, "", `above the gate, ${number(start, "s")} to ${number(end, "s")}`)));
    const spoken = el("div", { class: "lane marks" }, ...phrases(one.words));
    const events = one.events.length ? [el("div", { class: "lane marks" }, ...eventMarks(one.events))] : [];
    return [system, gates, spoken, ...events];
  }

  function axis() {
    const lane = el("div", { class: "axis", "aria-hidden": "true" });
    const pixels = view.lanes.clientWidth / duration();
    const step = [0.5, 1, 2, 5, 10, 30, 60].find((s) => s * pixels >= 56) || 120;
    for (let s = 0; s < duration(); s += step) {
      const tick = el("span", {}, step < 1 ? `${s.toFixed(1)} s` : `${s} s`);
      tick.style.left = percent(s);
      lane.append(tick);
    }
    return lane;
  }

  function draw(t) {
    const audio = run.media ? el("audio", { src: run.media, preload: "auto" }) : null;
    view = { audio, lanes: el("div", { class: "lanes" }), playhead: el("div", { class: "playhead" }) };
    view.clock = el("span", { class: "clock" });
    view.toggle = el("button", { type: "button", id: "toggle", disabled: !audio, onclick: toggle }, "Play");
    view.scroller = el("div", { class: "timeline", tabindex: "0", role: "region", "aria-label": "Timeline of both channels" }, view.lanes);
    const tabs = el("div", { class: "tabs", role: "group", "aria-label": "System" }, ...item.runs.map((one) =>
      el("button", { type: "button", "aria-pressed": String(one === run), onclick: () => choose(one) },
        one.title + (one.repeat ? `, repeat ${one.repeat}` : ""),
        one.outcome === "completed" ? null : el("span", { class: "outcome" }, words(one.outcome)))));
    const compare = el("label", { class: "compare" }, "Compare with ", el("select", { "aria-label": "Compare with", onchange: (event) => { other = item.runs[Number(event.target.value)] || null; const at = now(); setAddress(at); draw(at); document.querySelector(".compare select").focus(); } },
      el("option", { value: "" }, "nothing"),
      ...item.runs.map((one, n) => (one === run ? null : el("option", { value: String(n), selected: one === other }, one.title + (one.repeat ? `, repeat ${one.repeat}` : ""))))));
    const controls = el("div", { class: "controls" }, view.toggle, view.clock,
      el("span", { class: "group" },
        el("button", { type: "button", onclick: () => step(-1) }, "Previous window"),
        el("button", { type: "button", onclick: () => step(1) }, "Next window")),
      el("span", { class: "group" },
        el("button", { type: "button", "aria-label": "Zoom out", onclick: () => rescale(-1) }, "\u2212"),
        el("button", { type: "button", "aria-label": "Zoom in", onclick: () => rescale(1) }, "+")),
      item.runs.length > 1 ? compare : null,
      run.media ? el("a", { href: run.media, download: "" }, "Recording (FLAC)") : el("span", { class: "reason" }, "No recording: there is nothing to hear."));
    host.replaceChildren(
      el("div", { class: "player-head" }, el("h1", {}, item.title)),
      el("p", { class: "quiet" }, `${words(item.track)}, ${words(item.condition)}, ${number(item.live_s, "s")} of input. ` + (run.alone ? "What a listener heard from the system, without a waveform: of this many runs only examples and a draw play both sides." : item.heard === null ? "What a listener heard from the system; what it heard itself is not in this build." : "Left: what the system heard. Right: what a listener heard from it.")),
      item.gold ? el("p", {}, "Gold answer: ", el("b", {}, item.gold)) : el("span", {}),
      tabs, controls, view.scroller,
      el("p", { class: "keys" }, el("kbd", {}, "space"), " play, ", el("kbd", {}, "\u2190"), " ", el("kbd", {}, "\u2192"), " one second, ", el("kbd", {}, "["), " ", el("kbd", {}, "]"), " windows, ", el("kbd", {}, "1"), "\u2013", el("kbd", {}, "9"), " systems, ", el("kbd", {}, "+"), " ", el("kbd", {}, "\u2212"), " zoom"),
      letters() || "",
      audio || "", scores(), lineage());
    host.removeAttribute("aria-busy");
    if (audio) {
      audio.addEventListener("play", () => { view.toggle.textContent = "Pause"; requestAnimationFrame(tick); });
      audio.addEventListener("pause", () => { view.toggle.textContent = "Play"; place(); });
      audio.addEventListener("timeupdate", place);
      audio.addEventListener("seeked", place);
      audio.addEventListener("error", () => view.clock.replaceChildren("recording cannot be played here"));
    }
    lanes();
    seek(t, { reveal: true });
    select(item.windows.find((w) => t >= w.start - 0.001 && t <= w.end + 0.001 && params().has("t")) || null);
  }

  function lanes() {
    if (zoom === null) zoom = duration() * 20 > view.scroller.clientWidth ? 2 : 0;
    view.lanes.style.width = ZOOMS[zoom] ? `${Math.max(ZOOMS[zoom] * duration(), view.scroller.clientWidth - 2)}px` : "100%";
    const heard = el("div", { class: "lane wave" }, el("span", { class: "lane-name" }, item.heard === null ? "what the system heard is not in this build" : `${run.alone ? "" : "left: "}what the system heard`));
    if (item.heard) heard.prepend(wave(item.heard, "wave-heard"));
    const turns = el("div", { class: "lane marks" }, ...item.turns.filter((turn) => turn[4] && turn[2] >= 0 && turn[2] < duration())
      .map(([who, text, start, end]) => mark("turn", start, end, `${who === "user" ? "" : `${who}: `}${text}`, `${who}, ${number(start, "s")}: ${text}`)));
    const windows = el("div", { class: "lane windows", role: "group", "aria-label": "Scored windows" });
    const bands = [];
    for (const w of item.windows) {
      const button = el("button", { type: "button", class: "window", "data-window": w.id, title: `${windowName(w)}, ${number(w.start, "s")} to ${number(w.end, "s")}`, onclick: (event) => { event.stopPropagation(); go(w); } }, shortName(w));
      button.setAttribute("aria-label", button.title);
      const band = el("div", { class: "band" });
      for (const node of [button, band]) { node.style.left = percent(w.start); node.style.width = percent(w.end - w.start); }
      if (w.end <= w.start && button.textContent) button.style.width = "auto";
      windows.append(button);
      for (const [name, at] of Object.entries(w.marks)) {
        const tick = el("span", { class: "tick", title: `${words(name)} ${number(at, "s")}` });
        tick.style.left = percent(at);
        windows.append(tick);
      }
      bands.push(band);
    }
    view.lanes.replaceChildren();
    view.lanes.append(...bands, axis(), windows, heard, turns, ...runLanes(run, item.heard === null || run.alone ? " " : "right: "), ...(other ? runLanes(other, "") : []), view.playhead);
    view.lanes.onclick = (event) => {
      const box = view.lanes.getBoundingClientRect();
      seek(((event.clientX - box.left) / box.width) * duration());
    };
    select(selected);
    place();
  }

  function toggle() {
    if (!view.audio) return;
    if (view.audio.paused) view.audio.play().catch(() => {}); else view.audio.pause();
  }

  const now = () => (view.audio ? view.audio.currentTime : view.at || 0);

  function seek(t, { reveal = false } = {}) {
    const at = Math.min(Math.max(t, 0), duration());
    view.at = at;
    if (view.audio) view.audio.currentTime = at;
    setAddress(at);
    place(at);
    if (reveal) view.scroller.scrollLeft = (at / duration()) * view.lanes.clientWidth - view.scroller.clientWidth * 0.3;
  }

  function go(w, at) {
    select(w);
    seek(at === undefined ? w.start : at, { reveal: true });
    if (view.audio) view.audio.play().catch(() => {});
  }

  function step(direction) {
    const ordered = [...item.windows].sort((a, b) => a.start - b.start);
    if (!ordered.length) return;
    const t = now();
    const next = direction > 0
      ? ordered.find((w) => w.start > t + 0.01)
      : ordered.findLast((w) => w.start < t - (view.audio && !view.audio.paused ? LEAD_S : 0.01));
    go(next || (direction > 0 ? ordered[0] : ordered[ordered.length - 1]));
  }

  function rescale(direction) {
    zoom = Math.min(Math.max(zoom + direction, 0), ZOOMS.length - 1);
    lanes();
    view.scroller.scrollLeft = (now() / duration()) * view.lanes.clientWidth - view.scroller.clientWidth * 0.3;
  }

  function choose(next) {
    const playing = view.audio && !view.audio.paused;
    const t = now();
    if (view.audio) view.audio.pause();
    if (other === next) other = run;
    run = next;
    draw(t);
    if (playing && view.audio) view.audio.play().catch(() => {});
  }

  function place(at) {
    const t = typeof at === "number" ? at : now();
    view.playhead.style.left = percent(t);
    view.clock.replaceChildren(number(t, "s"), el("span", {}, ` of ${number(duration(), "s")}`));
  }

  function tick() {
    if (!view.audio || view.audio.paused) return;
    place();
    const x = (now() / duration()) * view.lanes.clientWidth;
    const [from, to] = [view.scroller.scrollLeft, view.scroller.scrollLeft + view.scroller.clientWidth];
    if (x < from || x > to - 40) view.scroller.scrollLeft = x - 60;
    requestAnimationFrame(tick);
  }

  function select(w) {
    selected = w;
    host.querySelectorAll("[data-window]").forEach((node) => {
      const current = Boolean(w) && node.dataset.window === w.id;
      if (node.classList.contains("window")) { if (current) node.setAttribute("aria-current", "true"); else node.removeAttribute("aria-current"); }
      else node.classList.toggle("current", current);
    });
  }

  function definitions(entries) {
    return el("dl", {}, ...entries.filter(([, value]) => value !== null && value !== undefined && value !== "")
      .flatMap(([name, value]) => [el("dt", {}, words(name)), el("dd", {}, typeof value === "number" ? number(value, name.endsWith("_s") ? "s" : "") : String(value))]));
  }

  function shownValue(score) {
    if (!score) return el("span", { class: "number missing" }, "no such score");
    if (score.value === null) return el("span", { class: "number missing" }, `no score: ${score.reason}`);
    if (score.statistic !== "rate") return el("span", { class: "number" }, number(score.value, score.unit));
    const judged = score.direction === "higher" || score.direction === "lower";
    const good = score.value === (score.direction === "lower" ? 0 : 1);
    return el("span", { class: `number ${judged ? (good ? "pass" : "fail") : ""}` }, score.value === 1 ? "yes" : score.value === 0 ? "no" : number(score.value), judged ? (good ? " (good)" : " (bad)") : null);
  }

  function scoreLine(score) {
    const shown = el("span", {}, shownValue(score));
    if (other) {
      const theirs = other.scores.find((one) => one.window === score.window && one.metric === score.metric);
      shown.append(el("span", { class: "theirs" }, `${other.title}: `, shownValue(theirs)));
    }
    const verdicts = score.judgements.map((j) => el("div", {}, el("b", {}, `${words(j.rubric)} v${j.rubric_version}: ${j.verdict === null ? "no verdict" : words(j.verdict)}`),
      ` by ${j.judge}`, definitions([["reason", j.reason], ["raw response", j.raw]])));
    const more = el("details", {}, el("summary", {}, "numbers, judge, lineage"),
      definitions(Object.entries(score.details)), ...verdicts,
      definitions([["measurement", score.id], ["metric", `${score.metric} v${score.version}`], ["window", score.window], ["item", item.id], ["rollout", run.key], ["trace", `duplex-bench trace ${score.id}`]]));
    return el("div", { class: "score", "data-window": score.window },
      el("button", { type: "button", class: "link", "data-seek": score.at, onclick: () => go(item.windows.find((w) => w.id === score.window) || null, score.at ?? 0) }, score.title), shown, more);
  }

  function scores() {
    const section = el("section", { class: "scores" }, el("h2", {}, "Scored windows ", el("small", {}, `${run.title}${other ? ` beside ${other.title}` : ""}; a click plays from that second`)));
    const by = new Map();
    for (const score of run.scores) by.set(score.window, [...(by.get(score.window) || []), score]);
    const known = new Map(item.windows.map((w) => [w.id, w]));
    for (const [id, list] of by) {
      const w = known.get(id);
      section.append(el("div", { class: "score-group" },
        el("h3", {}, w ? windowName(w) : id, w ? el("small", {}, `${number(w.start, "s")} to ${number(w.end, "s")}`, w.labels.addressee ? `, to ${w.labels.addressee}` : "", w.labels.text ? el("q", {}, w.labels.text) : "") : null),
        ...list.map(scoreLine)));
    }
    if (!by.size) section.append(el("p", { class: "reason" }, run.reason ? `No scores: ${words(run.outcome)}, ${run.reason}` : "No scores for this run."));
    return section;
  }

  function lineage() {
    const heard = item.turns.length ? [el("h3", {}, "What was said"), el("dl", { class: "said" }, ...item.turns.flatMap(([who, text, start]) => [el("dt", {}, `${who} ${number(start, "s")}`), el("dd", {}, text)]))] : [];
    return el("section", {}, el("h2", {}, "Transcript and lineage"),
      ...heard,
      el("h3", {}, `What ${run.title} said`), el("p", {}, run.text || el("span", { class: "quiet" }, "no words")),
      item.reply ? el("div", {}, el("h3", {}, "What the person said"), el("p", {}, item.reply)) : "",
      el("h3", {}, "Way back"),
      el("details", { class: "digests" }, el("summary", {}, "item, stimulus, rollout, audio and event digests"),
        definitions([["item", item.id], ["title", item.title], ["cluster", item.cluster], ["stimulus", item.stimulus], ["source audio", item.source], ["rollout", run.key], ["outcome", words(run.outcome)], ["outcome reason", run.reason],
          ["listener audio", run.audio], ["event log", run.eventlog], ["recogniser", run.engine], ["compute_s", run.compute_s], ["licence", item.licence], ["language", item.language], ...Object.entries(item.attributes)])));
  }

  document.addEventListener("keydown", (event) => {
    if (!run || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const onButton = /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName);
    const keys = { ArrowLeft: () => seek(now() - 1, { reveal: false }), ArrowRight: () => seek(now() + 1), "[": () => step(-1), "]": () => step(1), "+": () => rescale(1), "=": () => rescale(1), "-": () => rescale(-1) };
    if (event.key === " " && !onButton) toggle();
    else if (keys[event.key]) keys[event.key]();
    else if (/^[1-9]$/.test(event.key) && item.runs[Number(event.key) - 1]) choose(item.runs[Number(event.key) - 1]);
    else return;
    event.preventDefault();
  });
  window.addEventListener("hashchange", open);
  window.addEventListener("resize", () => { if (run) lanes(); });
  open().catch((error) => fail(`The item cannot be shown: ${error.message}.`));
})();
