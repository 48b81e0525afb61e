import * as api from "./api.js";
import { el, main, notice, typing } from "./dom.js";

const WAIT_S = 5;

export async function showListener() {
  const { left, done } = await api.get("listening");
  const total = left.length + done;
  const media = new Audio();
  let phase = "ready";
  let endedAt = null;
  let moment = null;
  let timer = null;
  let answered = done;
  const stage = el("div", { class: "card stage" });

  const say = (...children) => stage.replaceChildren(...children);
  const progress = () => el("p", { class: "quiet" }, `${answered} of ${total} answered.`);

  function ready() {
    phase = "ready";
    if (!left.length) { say(el("h2", {}, "All done. Thank you."), progress()); return; }
    moment = null; endedAt = null;
    media.src = `/api/listening/${encodeURIComponent(left[0])}/audio.wav`;
    say(progress(), el("h2", {}, "Press space to listen."), el("p", {}, "Someone is talking. Press space again at the very moment when you would begin to speak. If you would keep silent, do nothing."),
      el("button", { class: "primary listen", onclick: press }, "Listen (space)"));
  }

  async function play() {
    phase = "playing";
    say(progress(), el("h2", {}, "Listening…"), el("p", {}, "Press space when you would speak."), el("button", { class: "primary now", onclick: press }, "I would speak now (space)"));
    await media.play();
  }

  media.addEventListener("ended", () => {
    if (phase !== "playing") return;
    endedAt = performance.now();
    timer = setTimeout(() => ask(null), WAIT_S * 1000);
  });

  function press() {
    if (phase === "ready" && left.length) return play();
    if (phase !== "playing") return null;
    // Before the end of the sound the moment is negative: the boundary is where the sound ends.
    moment = endedAt === null ? media.currentTime - media.duration : (performance.now() - endedAt) / 1000;
    return ask(moment);
  }

  function ask(at) {
    phase = "asking";
    clearTimeout(timer);
    media.pause();
    const words = el("input", { maxlength: 500, "aria-label": "What would you say?", placeholder: "What would you say? (a few words)" });
    const form = el("form", { class: "bar" }, at !== null && words, el("button", { class: "primary store" }, "Next (Enter)"), el("button", { type: "button", onclick: ready }, "Again: I slipped"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await api.post(`listening/${encodeURIComponent(left[0])}`, { would_speak: at !== null, after_boundary_s: at === null ? null : Math.round(at * 1000) / 1000, words: words.value });
      } catch (error) { notice(`Not stored: ${error.message} Press again.`, "error"); return; }
      left.shift();
      answered += 1;
      ready();
    });
    say(progress(), el("h2", {}, at === null ? "You would keep silent." : "You would speak there."), form);
    (at === null ? form.querySelector("button") : words).focus();
  }

  const keys = (event) => { if (event.key === " " && !typing(event)) { event.preventDefault(); event.target.blur?.(); press(); } };
  document.addEventListener("keydown", keys);
  main().replaceChildren(el("h1", {}, "Listener task"), el("p", { class: "quiet" }, "You hear a conversation up to a moment, and nothing after it. Say what you would do as the other person: speak, or keep silent. There is no right answer; answer at once. Use headphones without Bluetooth, which delays sound."), stage);
  ready();
  return () => { document.removeEventListener("keydown", keys); clearTimeout(timer); media.pause(); media.removeAttribute("src"); };
}
