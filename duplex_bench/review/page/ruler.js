// The time axis: labels as dense as they can be read at any zoom.
import { el } from "./dom.js";

const STEPS_S = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600];
const LABEL_PX = 74;

export class Ruler {
  constructor(player) {
    this.player = player;
    this.node = el("div", { class: "ruler", "aria-hidden": "true" });
    this.drawn = "";
  }

  draw() {
    const { player } = this;
    const [first, last] = player.visible;
    const state = `${first} ${last} ${player.pps}`;
    if (state === this.drawn) return;
    this.drawn = state;
    const step = STEPS_S.find((one) => one * player.pps >= LABEL_PX) ?? STEPS_S.at(-1);
    const digits = step < 0.1 ? 2 : step < 1 ? 1 : 0;
    const ticks = [];
    for (let n = Math.floor(first / step); n * step <= last; n += 1) {
      const at = n * step;
      const minutes = Math.floor(at / 60 + 1e-9);
      const seconds = Math.abs(at - 60 * minutes).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
      const tick = el("span", { class: "tick" }, `${minutes}:${seconds}`);
      tick.style.left = `${player.x(at)}px`;
      ticks.push(tick);
      for (let part = 1; part < 5; part += 1) {
        const small = el("span", { class: "tick minor" });
        small.style.left = `${player.x(at + (part * step) / 5)}px`;
        ticks.push(small);
      }
    }
    this.node.replaceChildren(...ticks);
  }
}
