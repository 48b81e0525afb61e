import * as api from "./api.js";
import { clock, el, main, notice, typing } from "./dom.js";

const REASONS = ["the turn is over here", "the other person speaks or backchannels", "the boundary is off by more than 0.1 s", "noise or broken audio", "the reply does not belong to this turn"];
const KINDS = { pause: "pause: does the speaker hold the floor here, and is the shaded stretch silent on both sides?", turn_end: "turn end: is the turn over at the line, and does the shaded reply answer it?" };

export async function showWindows() {
  const windows = await api.get("windows");
  if (!windows.length) {
    main().replaceChildren(el("h1", {}, "Window check"), el("p", {}, "No windows are selected yet. Run the conversation track first."));
    return () => {};
  }
  let at = Math.max(0, windows.findIndex((one) => !one.verdict));
  let surfer = null;
  let boundary = 0;
  const count = el("p", { class: "quiet" });
  const question = el("h2", {});
  const wave = el("div", { class: "wave" });
  const shade = el("div", { class: "shade" });
  const line = el("div", { class: "boundary" });
  const cursor = el("div", { class: "cursor" });
  const reason = el("select", { "aria-label": "Reason" }, el("option", { value: "" }, "Why? Choose a reason"), REASONS.map((one) => el("option", {}, one)), el("option", { value: "other" }, "other (write it)"));
  const other = el("input", { placeholder: "Reason in your words", hidden: true, maxlength: 500 });
  const verdict = el("p", { class: "verdict" });

  const place = () => {
    if (!surfer) return;
    const one = windows[at];
    const pps = surfer.getWrapper().scrollWidth / surfer.getDuration();
    line.style.left = `${boundary * pps}px`;
    shade.style.left = `${boundary * pps}px`;
    shade.style.width = `${Math.max(0, one.end_s - one.start_s) * pps}px`;
    cursor.style.transform = `translateX(${surfer.getCurrentTime() * pps}px)`;
  };

  async function show() {
    const one = windows[at];
    const done = windows.filter((each) => each.verdict).length;
    count.textContent = `${done} of ${windows.length} checked. This is window ${at + 1}. Your verdicts are logged with your name; nobody sees them but an administrator.`;
    question.textContent = `${one.speaker} · ${KINDS[one.kind] ?? one.kind}`;
    verdict.textContent = one.verdict ? `You said: ${one.verdict.accepted ? "accepted" : `rejected (${one.verdict.reason})`}. A new verdict replaces it; both stay in the log.` : "";
    reason.value = ""; other.value = ""; other.hidden = true;
    surfer?.destroy();
    surfer = null;
    const response = await fetch(`/api/windows/${encodeURIComponent(one.point_id)}/audio.wav`);
    if (!response.ok) throw new Error((await response.json()).error);
    boundary = Number(response.headers.get("X-Boundary-S"));
    const blob = await response.blob();
    if (windows[at] !== one) return;
    surfer = WaveSurfer.create({ container: wave, cursorWidth: 0, splitChannels: [{ height: 90, waveColor: "#46586e", progressColor: "#46586e" }, { height: 90, waveColor: "#b8440a", progressColor: "#b8440a" }] });
    surfer.on("timeupdate", place);
    surfer.on("redraw", place);
    await surfer.loadBlob(blob);
    surfer.setTime(Math.max(0, boundary - 4));
    place();
  }

  async function judge(accepted) {
    const why = accepted ? "" : reason.value === "other" ? other.value.trim() : reason.value;
    if (!accepted && !why) { notice("Choose a reason for the rejection first.", "warn"); reason.focus(); return; }
    try {
      await api.post(`windows/${encodeURIComponent(windows[at].point_id)}/check`, { accepted, reason: why });
    } catch (error) { notice(`Not stored: ${error.message} Press again.`, "error"); return; }
    windows[at].verdict = { accepted, reason: why };
    go(1);
  }

  const go = (by) => {
    const next = at + by;
    if (next >= windows.length) { notice("That was the last window. Thank you."); show(); return; }
    at = Math.max(0, next);
    show();
  };
  reason.addEventListener("change", () => { other.hidden = reason.value !== "other"; if (!other.hidden) other.focus(); });
  const play = () => { if (surfer.isPlaying()) surfer.pause(); else surfer.play(); };
  const context = () => { surfer.setTime(Math.max(0, boundary - 4)); surfer.play(); };
  const keys = (event) => {
    if (typing(event) || event.ctrlKey || event.metaKey || !surfer) return;
    const action = { " ": play, Enter: context, a: () => judge(true), r: () => judge(false), ArrowRight: () => go(1), ArrowLeft: () => go(-1) }[event.key];
    if (action) { event.preventDefault(); event.target.blur?.(); action(); }
  };
  document.addEventListener("keydown", keys);
  main().replaceChildren(el("h1", {}, "Window check"), count, el("div", { class: "card" }, question,
    el("div", { class: "stack" }, wave, shade, line, cursor),
    el("p", { class: "small quiet" }, "Dark: left. Red: right. The line is the boundary; the shaded stretch is the pause or the reply."),
    el("div", { class: "bar" },
      el("button", { onclick: play }, "Play (space)"), el("button", { onclick: context }, "From before (Enter)"),
      el("button", { class: "primary accept", onclick: () => judge(true) }, "Accept (A)"),
      el("span", { class: "group" }, reason, other, el("button", { class: "reject", onclick: () => judge(false) }, "Reject (R)")),
      el("button", { onclick: () => go(-1) }, "← Back"), el("button", { onclick: () => go(1) }, "Skip →")), verdict));
  await show();
  return () => { document.removeEventListener("keydown", keys); surfer?.destroy(); };
}
