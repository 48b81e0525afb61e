import * as api from "./api.js";
import { signIn } from "./app.js";
import { clock, dialog, download, el, main, notice, typing } from "./dom.js";
import { KIND_NAMES, KINDS, Lanes, SIDES } from "./lanes.js";
import { Panel } from "./panel.js";
import { Player } from "./player.js";
import { Ruler } from "./ruler.js";
import { Saver } from "./saver.js";
import { Spectrogram } from "./spectrogram.js";

const COLOURS = ["#46586e", "#b8440a"];
const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 2];
const POLL_MS = 5000;

export function told(operation) {
  const one = operation.region;
  if (operation.op === "add") return `added ${one.speaker} ${KIND_NAMES[one.kind]} at ${clock(one.start_s)}`;
  if (operation.op === "change") return `set ${one.speaker} ${KIND_NAMES[one.kind]} to ${clock(one.start_s)}–${clock(one.end_s)}`;
  if (operation.op === "remove") return "removed a label";
  return `flag: ${operation.verdict}`;
}

class Editor {
  constructor(me, material, copy) {
    Object.assign(this, { me, material, selected: null, undone: [], done: [], flagAt: -1, copy });
    this.saver = new Saver(copy, {
      changed: () => this.redraw(),
      conflict: (theirs, mine) => this.conflict(theirs, mine),
      refused: (edit, message) => {
        this.done.pop();
        notice(`Not stored: ${message}`, "error");
        // What does not fit on top of another person's edits goes into a file, so that it is not lost.
        if (edit.onTop) this.saveAsFile([edit]);
        this.redraw();
      },
      signedOut: () => this.signedOut(),
    });
    this.flagRegion = new Map(material.flags.map((flag) => [flag.key, material.engine.find((one) =>
      one.speaker === flag.speaker && one.kind === flag.kind && Math.abs(one.start_s - flag.start_s) < 0.002)?.region_id]));
  }

  get regions() { return [...this.saver.state.regions.values()].sort((a, b) => a.start_s - b.start_s || a.end_s - b.end_s); }
  get flags() { return this.saver.state.flags; }
  get editable() { return this.saver.copy.editable && (this.me.administrator || this.saver.copy.status !== "submitted"); }
  region(id) { return this.saver.state.regions.get(id); }

  async start() {
    const wave = el("div", { class: "wave" });
    this.player = new Player(this.material.session_id, this.material.duration_s, wave);
    this.lanes = new Lanes(this.player, {
      region: (id) => this.region(id), selected: () => this.selected, select: (id) => this.select(id),
      editable: () => this.editable, redraw: () => this.redraw(), tell: (at) => { this.readout.textContent = clock(at); },
      room: (...where) => this.room(...where), create: (one) => this.create(one),
      change: (action, region) => this.commit(action, [{ op: "change", region }]),
      playRegion: (id) => { const one = this.region(id); this.player.play(one.start_s, one.end_s); },
    });
    this.spectrogram = new Spectrogram(this.player, this.material.session_id);
    this.ruler = new Ruler(this.player);
    this.panel = new Panel(this);
    this.cursor = el("div", { class: "cursor" });
    this.marker = el("div", { class: "highlight" });
    this.track = el("div", { class: "stack" }, wave, this.ruler.node, this.spectrogram.node, this.lanes.track, this.marker, this.cursor);
    const sides = SIDES.map((side, channel) => el("div", { class: `side ${side}` }, el("strong", {}, side === "left" ? "Left" : "Right"),
      el("span", {},
        el("button", { class: "small solo", "data-side": side, title: `Hear only this side (${side === "left" ? "L" : "R"})`, onclick: () => this.solo(channel) }, "Solo"),
        el("button", { class: "small mute", "data-side": side, title: "Silence this side", onclick: () => this.mute(channel) }, "Mute"))));
    main().replaceChildren(el("div", { class: "editor" },
      el("div", { class: "work" }, this.bar(),
        el("div", { class: "grid" }, el("div", { class: "left-column" }, el("div", { class: "sides" }, sides), el("div", { class: "ruler-space" }), this.spectrogram.names, this.lanes.names), this.track)),
      this.panel.node));
    document.body.className = "wide";
    await this.player.load(COLOURS);
    this.player.surfer.on("scroll", () => this.redraw());
    this.player.surfer.on("zoom", () => this.redraw());
    this.player.surfer.on("redraw", () => this.redraw());
    this.track.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.keys = (event) => this.key(event);
    document.addEventListener("keydown", this.keys);
    this.player.zoom(Math.max(60, this.player.width / this.material.duration_s), 0);
    this.player.surfer.setScroll(0);
    this.frame();
    this.poll = setInterval(() => this.refresh(), POLL_MS);
    this.saver.send();
    this.redraw();
  }

  stop() {
    cancelAnimationFrame(this.animation);
    clearInterval(this.poll);
    document.removeEventListener("keydown", this.keys);
    this.saver.stop();
    this.player.destroy();
  }

  bar() {
    this.readout = el("output", { class: "readout", title: "Position" }, "0:00.00");
    this.playButton = el("button", { class: "primary play", title: "Play or pause (space)", onclick: () => this.player.toggle() }, "Play");
    this.speedSelect = el("select", { "aria-label": "Speed", title: "Speed (, and .)", onchange: (event) => { this.player.speed = Number(event.target.value); event.target.blur(); } },
      SPEEDS.map((speed) => el("option", { value: speed, selected: speed === 1 }, `${speed}×`)));
    this.saved = el("span", { class: "saved", role: "status" });
    this.undoButton = el("button", { title: "Undo (Ctrl+Z)", onclick: () => this.undo() }, "Undo");
    this.redoButton = el("button", { title: "Redo (Ctrl+Y)", onclick: () => this.redo() }, "Redo");
    return el("div", { class: "bar" }, this.playButton, this.readout, this.speedSelect,
      el("span", { class: "group" }, el("button", { title: "Zoom out (−)", onclick: () => this.player.zoom(this.player.pps / 1.5) }, "−"),
        el("button", { title: "Zoom in (+)", onclick: () => this.player.zoom(this.player.pps * 1.5) }, "+"),
        el("button", { title: "Whole session (0)", onclick: () => this.player.zoom(0) }, "All"),
        el("button", { title: "Zoom to the selected label (F)", onclick: () => this.fit() }, "Fit")),
      el("button", { class: "spectrogram-button", title: "Spectrogram (G)", onclick: () => this.toggleSpectrogram() }, "Spectrogram"),
      el("span", { class: "group" }, this.undoButton, this.redoButton), this.saved);
  }

  frame() {
    this.player.tick();
    const x = this.player.x(this.player.time);
    this.cursor.style.transform = `translateX(${x}px)`;
    this.cursor.hidden = x < 0 || x > this.player.width;
    if (!this.lanes.drag) this.readout.textContent = clock(this.player.time);
    const label = this.player.playing ? "Pause" : "Play";
    if (this.playButton.textContent !== label) this.playButton.textContent = label;
    this.animation = requestAnimationFrame(() => this.frame());
  }

  redraw() {
    if (this.drawing || !this.player?.surfer) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = null;
      if (this.selected && !this.region(this.selected)) this.selected = null;
      const open = this.material.flags.filter((flag) => !this.flags[flag.key]).map((flag) => this.flagRegion.get(flag.key));
      this.lanes.draw(this.regions, this.material.words, this.selected, new Set(open));
      this.ruler.draw();
      this.spectrogram.draw();
      this.panel.draw();
      const chosen = this.region(this.selected);
      this.marker.hidden = !chosen;
      if (chosen) {
        this.marker.style.left = `${this.player.x(chosen.start_s)}px`;
        this.marker.style.width = `${(chosen.end_s - chosen.start_s) * this.player.pps}px`;
      }
      for (const [channel, side] of SIDES.entries()) {
        document.querySelector(`.solo[data-side=${side}]`).setAttribute("aria-pressed", this.player.solo === channel);
        document.querySelector(`.mute[data-side=${side}]`).setAttribute("aria-pressed", this.player.muted[channel]);
      }
      const waiting = this.saver.pending.length;
      this.saved.className = `saved ${this.saver.trouble ? "wrong" : ""}`;
      this.saved.textContent = this.saver.trouble ? `Not stored yet (${waiting} waiting): ${this.saver.trouble} Trying again; nothing is lost.`
        : waiting ? "Storing…" : this.editable ? `Stored · version ${this.saver.copy.version}` : "Read only";
      this.undoButton.disabled = !this.done.length || !this.editable;
      this.redoButton.disabled = !this.undone.length || !this.editable;
    });
  }

  select(id) { this.selected = id; this.redraw(); }

  room(speaker, kind, at, except) {
    let [low, high] = [0, this.material.duration_s];
    for (const one of this.regions) {
      if (one.speaker !== speaker || one.kind !== kind || one.region_id === except) continue;
      if (one.end_s <= at + 1e-9) low = Math.max(low, one.end_s);
      else if (one.start_s >= at - 1e-9) high = Math.min(high, one.start_s);
    }
    return [low, high];
  }

  commit(action, operations) {
    if (!this.editable) { notice("This copy cannot be changed now; see its state on the right.", "warn"); return; }
    const touched = new Set(operations.map((one) => one.region_id ?? one.region?.region_id));
    for (const flag of this.material.flags) {
      const id = this.flagRegion.get(flag.key);
      if (id && touched.has(id) && !this.flags[flag.key]) operations.push({ op: "flag", flag: flag.key, verdict: "changed" });
    }
    this.done.push({ action, inverse: this.saver.add(action, operations), operations });
    this.undone = [];
    this.redraw();
  }

  undo() {
    const last = this.done.pop();
    if (!last || !this.editable) return;
    this.saver.add("undo", last.inverse);
    this.undone.push(last);
  }

  redo() {
    const last = this.undone.pop();
    if (!last || !this.editable) return;
    this.done.push({ ...last, inverse: this.saver.add("redo", last.operations) });
  }

  create(one) {
    const region = { region_id: `n${api.newId().slice(0, 12)}`, ...one };
    this.commit("add", [{ op: "add", region }]);
    this.select(region.region_id);
  }

  remove() { if (this.region(this.selected)) this.commit("remove", [{ op: "remove", region_id: this.selected }]); }
  change(action, values) {
    const one = this.region(this.selected);
    if (one) this.commit(action, [{ op: "change", region: { ...one, ...values } }]);
  }

  split() {
    const at = Math.round(this.player.time * 10000) / 10000;
    const one = this.region(this.selected);
    if (!one) return notice("Select a label to split.", "warn");
    if (at < one.start_s + 0.01 || at > one.end_s - 0.01) return notice("Put the cursor inside the selected label, then split.", "warn");
    const second = { ...one, region_id: `n${api.newId().slice(0, 12)}`, start_s: at };
    this.commit("split", [{ op: "change", region: { ...one, end_s: at } }, { op: "add", region: second }]);
    return null;
  }

  merge() {
    const one = this.region(this.selected);
    if (!one) return notice("Select the first of two labels to merge.", "warn");
    const next = this.regions.find((other) => other.speaker === one.speaker && other.kind === one.kind && other.start_s >= one.end_s - 1e-6 && other !== one);
    if (!next) return notice(`No later ${KIND_NAMES[one.kind]} on this side to merge with.`, "warn");
    this.commit("merge", [{ op: "remove", region_id: next.region_id }, { op: "change", region: { ...one, end_s: next.end_s } }]);
    return null;
  }

  step(by) {
    const all = this.regions;
    const at = all.findIndex((one) => one.region_id === this.selected);
    const start = this.player.time;
    const next = at >= 0 ? all[at + by] : by > 0 ? all.find((one) => one.start_s >= start) : all.findLast((one) => one.start_s < start);
    if (!next) return;
    this.select(next.region_id);
    this.player.reveal(next.start_s, next.end_s);
    this.player.seek(next.start_s);
  }

  goToFlag(index) {
    const flag = this.material.flags[index];
    if (!flag) return;
    this.flagAt = index;
    const id = this.flagRegion.get(flag.key);
    this.select(this.region(id) ? id : null);
    this.player.show(Math.max(0, flag.start_s - 2), Math.min(this.material.duration_s, flag.end_s + 2), 0);
    this.player.seek(Math.max(0, flag.start_s - 1));
    this.redraw();
  }

  nextFlag(by) {
    const flags = this.material.flags;
    if (!flags.length) return notice("This session has no flags. Go through it from start to end: Tab goes from label to label.");
    for (let i = this.flagAt + by; i >= 0 && i < flags.length; i += by) if (!this.flags[flags[i].key]) return this.goToFlag(i);
    return notice(by > 0 ? "No open flag after this one." : "No open flag before this one.");
  }

  keepFlag() {
    const flag = this.material.flags[this.flagAt];
    if (!flag) return notice("Go to a flag first (N).", "warn");
    this.commit("keep flagged label", [{ op: "flag", flag: flag.key, verdict: "kept" }]);
    return this.nextFlag(1);
  }

  fit() {
    const one = this.region(this.selected);
    if (one) {
      this.player.show(one.start_s, one.end_s);
      this.player.seek(one.start_s);
    } else notice("Select a label first.", "warn");
  }

  solo(channel) { this.player.setSolo(channel); this.redraw(); }
  mute(channel) { this.player.setMuted(channel); this.redraw(); }
  toggleSpectrogram() { this.spectrogram.toggle(); this.redraw(); }
  changeSpeed(by) {
    const at = SPEEDS.indexOf(this.player.speed) + by;
    if (SPEEDS[at]) { this.player.speed = SPEEDS[at]; this.speedSelect.value = String(SPEEDS[at]); }
  }

  wheel(event) {
    event.preventDefault();
    const box = this.track.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) this.player.zoom(this.player.pps * Math.exp(-event.deltaY / 300), this.player.at(event.clientX - box.left));
    else this.player.surfer.setScroll(this.player.scroll + event.deltaX + event.deltaY);
  }

  key(event) {
    if (typing(event)) return;
    const control = event.ctrlKey || event.metaKey;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const time = this.player.time;
    const chosen = this.region(this.selected);
    const actions = control ? {
      z: () => (event.shiftKey ? this.redo() : this.undo()), y: () => this.redo(),
    } : {
      " ": () => (event.shiftKey && chosen ? this.player.play(chosen.start_s, chosen.end_s) : this.player.toggle()),
      ArrowLeft: () => this.player.seek(time - (event.shiftKey ? 0.05 : 1)), ArrowRight: () => this.player.seek(time + (event.shiftKey ? 0.05 : 1)),
      ArrowUp: () => this.player.stretch(1.5), ArrowDown: () => this.player.stretch(1 / 1.5),
      Tab: () => this.step(event.shiftKey ? -1 : 1), Home: () => this.player.seek(0), Escape: () => this.select(null),
      n: () => this.nextFlag(1), p: () => this.nextFlag(-1), k: () => this.keepFlag(),
      s: () => this.split(), m: () => this.merge(), Delete: () => this.remove(), Backspace: () => this.remove(),
      x: () => chosen && this.change("change speaker", { speaker: chosen.speaker === "left" ? "right" : "left" }),
      "[": () => this.change("set start", { start_s: Math.round(time * 10000) / 10000 }), "]": () => this.change("set end", { end_s: Math.round(time * 10000) / 10000 }),
      "+": () => this.player.zoom(this.player.pps * 1.5), "=": () => this.player.zoom(this.player.pps * 1.5), "-": () => this.player.zoom(this.player.pps / 1.5),
      0: () => this.player.zoom(0), f: () => this.fit(), g: () => this.toggleSpectrogram(), l: () => this.solo(0), r: () => this.solo(1),
      ",": () => this.changeSpeed(-1), ".": () => this.changeSpeed(1),
      ...Object.fromEntries(KINDS.map((kind, i) => [String(i + 1), () => chosen && this.change("relabel", { kind })])),
    };
    // Tab leaves the editor as everywhere else once nothing is selected and a control has the focus.
    if (key === "Tab" && !chosen && event.target !== document.body) return;
    if (key === " " && event.target.tagName === "BUTTON") event.target.blur();
    if (actions[key]) { event.preventDefault(); actions[key](); }
  }

  async refresh() {
    try {
      const theirs = await this.saver.refresh();
      if (theirs?.length) {
        this.done = []; this.undone = [];
        notice(`${[...new Set(theirs.map((one) => one.person))].join(", ")} changed this copy (${theirs.length} edits); you see the newest.`);
      }
    } catch (error) { if (error.status === 401) await this.signedOut(); }
  }

  async signedOut() {
    notice("You were signed out (the server was started again). Sign in; your edits wait in this browser.", "warn");
    this.stop();
    await signIn((await api.get("me")).needs_token);
    location.reload();
  }

  saveAsFile(edits) {
    download(`${this.material.session_id}-edits-not-stored.json`, JSON.stringify(edits, null, 1), "application/json");
  }

  async conflict(theirs, mine) {
    const list = (edits, who) => el("ul", {}, edits.map((edit) => el("li", {}, el("strong", {}, who(edit)), ` ${edit.action}: ${edit.operations.slice(0, 3).map(told).join("; ")}`)));
    this.done = []; this.undone = [];
    const answer = await dialog("Someone else changed this copy", [
      el("p", {}, "Nothing is lost. Look at what changed, and say what should become of your edits."),
      el("h3", {}, "Their edits, stored"), list(theirs, (edit) => edit.person),
      el("h3", {}, "Yours, waiting"), list(mine, () => "you"),
    ], [["Put mine on top of theirs", "on top", "primary"], ["Keep theirs; save mine as a file", "file"]]);
    if (answer !== "on top") this.saveAsFile(mine);
    return answer === "on top";
  }
}

export async function showEditor(me, sessionId, whose) {
  const material = await api.get(`session?${api.query({ session_id: sessionId })}`);
  const copy = /^\d+$/.test(whose ?? "") ? await api.get(`copies/${whose}`)
    : await api.post("copies", { session_id: sessionId, whose: whose === "together" ? "together" : "mine" });
  const editor = new Editor(me, material, copy);
  await editor.start();
  window.editor = editor;
  return () => editor.stop();
}
