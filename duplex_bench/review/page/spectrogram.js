// Spectrograms of what is in view, drawn by the server, so that an hour costs no more than a minute.
import * as api from "./api.js";
import { el } from "./dom.js";
import { SIDES } from "./lanes.js";

const HEIGHT_PX = 96;
const LONGEST_S = 120;

export class Spectrogram {
  constructor(player, sessionId) {
    Object.assign(this, { player, sessionId, shown: false, wanted: "" });
    this.pictures = SIDES.map((side) => el("img", { alt: `Spectrogram, ${side}`, height: HEIGHT_PX, draggable: "false" }));
    this.told = el("p", { class: "quiet" }, "Zoom in to see the spectrogram.");
    this.node = el("div", { class: "spectrogram", hidden: true }, this.told, this.pictures.map((one) => el("div", { class: "picture" }, one)));
    this.names = el("div", { class: "spectrogram-names", hidden: true }, SIDES.map((side) => el("div", {}, `${side[0].toUpperCase()}${side.slice(1)} · 0–8 kHz`)));
  }

  toggle() {
    this.shown = !this.shown;
    this.node.hidden = this.names.hidden = !this.shown;
    this.wanted = "";
  }

  draw() {
    if (!this.shown) return;
    const [start, stop] = this.player.visible;
    const tooLong = stop - start > LONGEST_S;
    this.told.hidden = !tooLong;
    this.told.textContent = "Zoom in to see the spectrogram.";
    for (const one of this.pictures) one.hidden = tooLong;
    // Until the new picture is there the old one moves along.
    for (const one of this.pictures) {
      if (!one.span) continue;
      one.style.left = `${this.player.x(one.span[0])}px`;
      one.style.width = `${(one.span[1] - one.span[0]) * this.player.pps}px`;
    }
    const wanted = `${start.toFixed(3)} ${stop.toFixed(3)}`;
    if (tooLong || wanted === this.wanted) return;
    this.wanted = wanted;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetch(start, stop), 120);
  }

  fetch(start, stop) {
    const width = Math.round(Math.min(4000, this.player.width));
    for (const [channel, picture] of this.pictures.entries()) {
      const next = new Image();
      next.onload = () => {
        picture.src = next.src;
        picture.span = [start, stop];
        picture.style.left = `${this.player.x(start)}px`;
        picture.style.width = `${(stop - start) * this.player.pps}px`;
      };
      next.onerror = () => {
        this.told.hidden = false;
        this.told.textContent = "The spectrogram could not be drawn. Switch it off and on (G) to try again.";
      };
      next.src = `/api/session/spectrogram.png?${api.query({ session_id: this.sessionId, channel, start_s: start, stop_s: stop, width, height: HEIGHT_PX })}`;
    }
  }
}
