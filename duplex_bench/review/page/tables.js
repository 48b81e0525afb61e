import * as api from "./api.js";
import { el, main } from "./dom.js";

const TABLES = [
  ["engine-agreement", "People and engine", "Approved copies against the engine's labels, as Table 6 of the conversation paper. Changed: dropped, or a boundary moved by more than 100 ms."],
  ["pair-agreement", "Person and person, by label", "F1 of every two submitted copies of a session, at two tolerances on both boundaries."],
  ["frame-kappa", "Person and person, by time", "Cohen's kappa of turn, backchannel or neither, in 10 ms frames of both sides."],
  ["window-agreement", "Window check", "Agreement and Cohen's kappa of every two people over windows that both checked. Empty kappa: both said the same throughout."],
  ["windows", "Verdicts", "The last verdict of everyone on every window, and what they add up to."],
  ["accepted-scores", "Scores on accepted windows", "Every system over all its scored windows, and over those that two people accepted and nobody rejected. Split: people disagree. Open: fewer than two verdicts."],
  ["listener-metrics", "Listeners as metrics", "What listeners would have done, scored as systems are: shares as means, seconds as medians. People differ: share of pairs of people on one window who do not say the same."],
  ["listeners", "Listener task", "What every listener would have done, and when: seconds after the boundary."],
];

const cell = (value) => (value === null || value === undefined ? "" : typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : String(value));

export async function showTables() {
  const parts = await Promise.all(TABLES.map(async ([name, title, note]) => {
    const rows = await api.get(`tables/${name}`);
    const columns = rows.length ? Object.keys(rows[0]) : [];
    return el("section", {}, el("h2", {}, title, " ", el("a", { class: "small", href: `/api/tables/${name}?form=csv`, download: `${name}.csv` }, "CSV")), el("p", { class: "quiet" }, note),
      rows.length ? el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, columns.map((one) => el("th", { class: rows.some((row) => typeof row[one] === "number") && "number" }, one.replaceAll("_", " "))))),
        el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((one) => el("td", { class: typeof row[one] === "number" ? "number" : "" }, cell(row[one])))))))) : el("p", {}, "Nothing yet."));
  }));
  main().replaceChildren(el("h1", {}, "Agreement"), ...parts);
}
