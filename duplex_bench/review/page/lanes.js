// The label lanes under the waveforms: drawing, and moving labels by mouse or pen.
import { clock, el } from "./dom.js";

export const KINDS = ["turn", "pause", "backchannel", "overlap", "failed_take"];
export const KIND_NAMES = { turn: "Turn", pause: "Pause", backchannel: "Backchannel", overlap: "Overlap", failed_take: "Failed take" };
export const SIDES = ["left", "right"];
const EDGE_PX = 7;
const SHORTEST_S = 0.01;
const round = (value) => Math.round(value * 10000) / 10000;

export class Lanes {
  constructor(player, hooks) {
    this.player = player;
    this.hooks = hooks;
    this.rows = new Map();
    this.drag = null;
    this.names = el("div", { class: "names" });
    this.track = el("div", { class: "track" });
    for (const side of SIDES) {
      for (const kind of ["words", ...KINDS]) {
        const row = el("div", { class: `lane ${side} ${kind}`, "data-side": side, "data-kind": kind });
        this.rows.set(`${side} ${kind}`, row);
        this.track.append(row);
        this.names.append(el("div", { class: `name ${side} ${kind}` }, kind === "words" ? `${side === "left" ? "Left" : "Right"} words` : KIND_NAMES[kind]));
      }
    }
    this.track.addEventListener("pointerdown", (event) => this.down(event));
    this.track.addEventListener("pointermove", (event) => this.move(event));
    this.track.addEventListener("pointerup", (event) => this.up(event));
    this.track.addEventListener("pointercancel", () => { this.drag = null; this.hooks.redraw(); });
    this.track.addEventListener("dblclick", (event) => {
      const id = event.target.closest(".region")?.dataset.id;
      if (id) this.hooks.playRegion(id);
    });
  }

  draw(regions, words, selected, flagged) {
    const [first, last] = this.player.visible;
    const lists = new Map([...this.rows.keys()].map((key) => [key, []]));
    const place = (node, start, stop) => {
      const left = this.player.x(start);
      node.style.left = `${left}px`;
      node.style.width = `${Math.max(2, this.player.x(stop) - left)}px`;
      return node;
    };
    for (const region of regions) {
      const one = this.drag?.now?.region_id === region.region_id ? this.drag.now : region;
      if (one.end_s < first || one.start_s > last) continue;
      const wide = (one.end_s - one.start_s) * this.player.pps;
      const node = el("div", {
        class: `region ${one.kind}${one.region_id === selected ? " selected" : ""}${flagged.has(one.region_id) ? " flagged" : ""}`,
        "data-id": one.region_id, title: `${one.speaker} ${KIND_NAMES[one.kind]}, ${clock(one.start_s)} to ${clock(one.end_s)} (${(one.end_s - one.start_s).toFixed(3)} s)`,
      }, wide > 60 ? `${(one.end_s - one.start_s).toFixed(2)} s` : "");
      lists.get(`${one.speaker} ${one.kind}`).push(place(node, one.start_s, one.end_s));
    }
    if (this.drag?.fresh) {
      const one = this.drag.fresh;
      lists.get(`${one.speaker} ${one.kind}`).push(place(el("div", { class: "region fresh" }), one.start_s, one.end_s));
    }
    const readable = this.player.pps > 35;
    for (const side of SIDES) {
      for (const word of words[side]) {
        if (word.end_s < first || word.start_s > last) continue;
        const node = el("div", { class: `word${word.gap_filled ? " filled" : ""}`, title: `${word.text} ${clock(word.start_s)}` }, readable ? word.text : "");
        lists.get(`${side} words`).push(place(node, word.start_s, word.end_s));
      }
    }
    for (const [key, nodes] of lists) this.rows.get(key).replaceChildren(...nodes);
  }

  position(event) {
    return this.player.at(event.clientX - this.track.getBoundingClientRect().left);
  }

  down(event) {
    if (event.button !== 0) return;
    const lane = event.target.closest(".lane");
    const at = this.position(event);
    const node = event.target.closest(".region");
    if (!node) {
      this.drag = { kind: "new", from: at, x: event.clientX, side: lane.dataset.side, lane: lane.dataset.kind };
    } else {
      const region = this.hooks.region(node.dataset.id);
      const wasSelected = this.hooks.selected() === region.region_id;
      const box = node.getBoundingClientRect();
      const edge = Math.min(EDGE_PX, box.width / 3);
      const part = event.clientX - box.left < edge ? "start" : box.right - event.clientX < edge ? "end" : "whole";
      this.hooks.select(region.region_id);
      // Moving a whole label is rare and easily done by accident: it takes a selected label.
      this.drag = { kind: part === "whole" && !wasSelected ? "none" : part, region, from: at, x: event.clientX };
    }
    if (!this.hooks.editable() && this.drag.kind !== "new") this.drag.kind = "none";
    this.track.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  move(event) {
    const drag = this.drag;
    if (!drag) return this.hover(event);
    if (Math.abs(event.clientX - drag.x) < 3 && !drag.moved) return null;
    drag.moved = true;
    const at = this.position(event);
    if (drag.kind === "new") {
      if (drag.lane === "words" || !this.hooks.editable()) return null;
      const [low, high] = this.hooks.room(drag.side, drag.lane, drag.from, null);
      const [start_s, end_s] = [Math.max(low, Math.min(drag.from, at)), Math.min(high, Math.max(drag.from, at))].map(round);
      drag.fresh = { speaker: drag.side, kind: drag.lane, start_s, end_s };
    } else if (drag.kind !== "none") {
      const one = drag.region;
      const [low, high] = this.hooks.room(one.speaker, one.kind, (one.start_s + one.end_s) / 2, one.region_id);
      const now = { ...one };
      if (drag.kind === "start") now.start_s = round(Math.min(Math.max(at, low), one.end_s - SHORTEST_S));
      else if (drag.kind === "end") now.end_s = round(Math.max(Math.min(at, high), one.start_s + SHORTEST_S));
      else {
        const by = Math.min(Math.max(at - drag.from, low - one.start_s), high - one.end_s);
        now.start_s = round(one.start_s + by);
        now.end_s = round(one.end_s + by);
      }
      drag.now = now;
      this.hooks.tell(drag.kind === "end" ? now.end_s : now.start_s);
    }
    this.hooks.redraw();
    return null;
  }

  hover(event) {
    const node = event.target.closest(".region");
    if (!node) return;
    const box = node.getBoundingClientRect();
    const edge = Math.min(EDGE_PX, box.width / 3);
    const onEdge = event.clientX - box.left < edge || box.right - event.clientX < edge;
    node.style.cursor = onEdge && this.hooks.editable() ? "ew-resize" : "pointer";
  }

  up(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (drag.fresh && drag.fresh.end_s - drag.fresh.start_s >= SHORTEST_S) this.hooks.create(drag.fresh);
    else if (drag.now) this.hooks.change(drag.kind === "whole" ? "move" : "drag boundary", drag.now);
    else if (drag.kind === "new") {
      this.hooks.select(null);
      this.player.seek(this.position(event));
    }
    this.hooks.redraw();
  }
}
