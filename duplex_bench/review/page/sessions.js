import * as api from "./api.js";
import { clock, el, main } from "./dom.js";

const STATUS = { draft: "draft", submitted: "submitted", returned: "returned", approved: "approved", superseded: "superseded" };

export async function showSessions(me) {
  const sessions = await api.get("sessions");
  const done = sessions.filter((one) => one.copies.some((copy) => copy.status === "approved")).length;
  const rows = sessions.map((one) => {
    const mine = one.copies.find((copy) => copy.owner === me.name);
    const others = one.copies.filter((copy) => copy !== mine);
    const open = (whose) => `#/session/${encodeURIComponent(one.session_id)}/${whose}`;
    return el("tr", {},
      el("td", {}, el("a", { href: open("mine") }, one.session_id), el("div", { class: "small quiet" }, one.licence)),
      el("td", { class: "number" }, clock(one.duration_s)),
      el("td", { class: "number" }, me.blind && !me.administrator ? "–" : `${mine ? mine.n_flags_done : 0} of ${one.n_flags}`),
      el("td", { class: "number" }, String(one.n_windows)),
      el("td", {}, mine ? el("span", { class: `chip ${mine.status}` }, STATUS[mine.status]) : el("span", { class: "quiet" }, "not begun")),
      el("td", {}, others.map((copy) => el("a", { class: `chip ${copy.status}`, href: open(copy.copy_id) }, `${copy.owner}: ${STATUS[copy.status]}`)),
        !me.blind && !others.some((copy) => copy.owner === "together") && el("a", { class: "small", href: open("together"), title: "One copy that everybody edits, beside the copies that people have of their own" }, "work together")),
      el("td", {}, el("a", { class: "button", href: open("mine") }, mine ? "Go on" : "Begin")));
  });
  main().replaceChildren(
    el("h1", {}, "Sessions"),
    el("p", { class: "quiet" }, `${sessions.length} ${sessions.length === 1 ? "session" : "sessions"}, ${done} approved. Open one: it makes a copy of the ${me.blind && !me.administrator ? "empty" : "engine's"} labels that is yours; every change is stored at once.`),
    el("table", {}, el("thead", {}, el("tr", {}, ["Session", "Length", "Flags looked at", "Windows", "Yours", "Others", ""].map((head, i) => el("th", { class: i > 0 && i < 4 && "number" }, head)))), el("tbody", {}, rows)));
}
