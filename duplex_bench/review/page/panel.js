// The column beside the waveforms: what is selected, flags, decisions, files, history.
import * as api from "./api.js";
import { clock, dialog, download, el, notice } from "./dom.js";
import { told } from "./editor.js";
import { KIND_NAMES, KINDS, SIDES } from "./lanes.js";

const FLAG_NAMES = { gap_fill_turn: "half its words are by machine", short_lexical_turn: "very short turn", projection_keeps_floor: "speaker may go on", projection_hands_over: "may be a turn" };
const FORMATS = [[".TextGrid", "Praat TextGrid"], [".rttm", "RTTM"], [".txt", "Audacity labels"], [".json", "JSON"]];

export class Panel {
  constructor(editor) {
    this.editor = editor;
    this.title = el("div", { class: "copy-title" });
    this.selection = el("section", { class: "selection" });
    this.flags = el("section", { class: "flags" });
    this.decision = el("section", { class: "decision" });
    this.node = el("aside", { class: "panel" }, this.title, this.selection, this.flags, this.decision, this.files());
    this.drawn = {};
  }

  // Parts are made anew only when what they show has changed, so that buttons keep the focus.
  part(name, state, make) {
    const key = JSON.stringify(state);
    if (this.drawn[name] === key) return;
    this.drawn[name] = key;
    this[name].replaceChildren(...make().filter(Boolean));
  }

  draw() {
    const { editor } = this;
    const copy = editor.saver.copy;
    const chosen = editor.region(editor.selected);
    this.part("title", [copy.owner, copy.status], () => [
      el("strong", {}, editor.material.session_id),
      el("div", {}, copy.owner === editor.me.name ? "your copy" : copy.owner === "together" ? "the joint copy" : `copy of ${copy.owner}`, " ", el("span", { class: `chip ${copy.status}` }, copy.status))]);
    this.part("selection", [chosen ?? null, editor.editable], () => this.drawSelection(chosen));
    this.part("flags", [editor.flags, editor.flagAt], () => this.drawFlags());
    this.part("decision", [copy.status, copy.version === 0, copy.editable, copy.decisions, editor.saver.pending.length > 0], () => this.drawDecision(copy));
  }

  drawSelection(one) {
    const { editor } = this;
    if (!one) return [el("h2", {}, "Selected label"), el("p", { class: "quiet" }, editor.editable ? "None. Click a label, or drag over an empty lane to make one." : "None. Click a label to see it.")];
    const time = (name, label) => {
      const input = el("input", { type: "number", step: 0.01, min: 0, value: one[name].toFixed(3), "aria-label": label, disabled: !editor.editable });
      input.addEventListener("change", () => editor.change(label.toLowerCase(), { [name]: Number(input.value) }));
      input.addEventListener("keydown", (event) => { if (event.key === "Enter") input.blur(); });
      return el("label", {}, label, input);
    };
    const options = (values, names, current) => values.map((value) => el("option", { value, selected: value === current }, names[value] ?? value));
    return [el("h2", {}, "Selected label"),
      el("div", { class: "fields" },
        el("label", {}, "Side", el("select", { disabled: !editor.editable, onchange: (event) => editor.change("change speaker", { speaker: event.target.value }) }, options(SIDES, { left: "Left", right: "Right" }, one.speaker))),
        el("label", {}, "Kind", el("select", { class: "kind", disabled: !editor.editable, onchange: (event) => { event.target.blur(); editor.change("relabel", { kind: event.target.value }); } }, options(KINDS, KIND_NAMES, one.kind))),
        time("start_s", "Start"), time("end_s", "End")),
      el("p", { class: "small quiet" }, `${(one.end_s - one.start_s).toFixed(3)} s`),
      el("div", { class: "buttons" },
        el("button", { title: "Shift+space", onclick: () => editor.player.play(one.start_s, one.end_s) }, "Play it"),
        editor.editable && [
          el("button", { class: "split", title: "Split at the cursor (S)", onclick: () => editor.split() }, "Split"),
          el("button", { class: "merge", title: "Merge with the next of its kind (M)", onclick: () => editor.merge() }, "Merge"),
          el("button", { class: "remove", title: "Remove (Delete)", onclick: () => editor.remove() }, "Remove")])];
  }

  drawFlags() {
    const { editor } = this;
    const flags = editor.material.flags;
    const open = flags.filter((flag) => !editor.flags[flag.key]).length;
    if (!flags.length) return [el("h2", {}, "Flags"), el("p", { class: "quiet" }, editor.me.blind && !editor.me.administrator ? "Hidden: this review is blind." : "None in this session. Go through it from start to end."), ...this.flagsNote()];
    return [el("h2", {}, `Flags: ${open} of ${flags.length} open`),
      el("div", { class: "buttons" }, el("button", { title: "Next open flag (N)", onclick: () => editor.nextFlag(1) }, "Next (N)"), el("button", { title: "This label is right as it is (K)", onclick: () => editor.keepFlag() }, "Keep as is (K)")),
      el("ol", { class: "queue" }, flags.map((flag, index) => {
        const verdict = editor.flags[flag.key];
        return el("li", { class: `${index === editor.flagAt ? "current" : ""} ${verdict ?? "open"}` },
          el("button", { class: "plain", title: flag.reason, onclick: () => editor.goToFlag(index) },
            el("span", { class: "time" }, clock(flag.start_s)), ` ${flag.speaker}: ${FLAG_NAMES[flag.flag] ?? flag.flag.replaceAll("_", " ")}`),
          verdict && el("span", { class: "small" }, verdict === "kept" ? "kept" : "changed"));
      })), ...this.flagsNote()];
  }

  // What kind of doubt nobody could look for here.
  flagsNote() {
    const note = this.editor.material.flags_note;
    return note ? [el("p", { class: "quiet small" }, note)] : [];
  }

  drawDecision(copy) {
    const { editor } = this;
    const mine = copy.owner === editor.me.name || copy.owner === "together";
    const button = (label, decision, style, note) => el("button", { class: style, onclick: () => this.decide(decision, note) }, label);
    const last = copy.decisions.at(-1);
    return [el("h2", {}, "Decision"),
      last && el("p", { class: "small" }, `${last.person}: ${last.status}${last.note ? ` – “${last.note}”` : ""}`),
      copy.status === "draft" && el("p", { class: "small quiet" }, "A draft changes nothing outside this page. Submit it when the whole session is right."),
      copy.status === "approved" && el("p", { class: "small quiet" }, "In force: the next run uses these labels and recomputes what hangs on them."),
      el("div", { class: "buttons" },
        mine && ["draft", "returned"].includes(copy.status) && button("Submit for approval", "submit", "primary submit"),
        mine && copy.status === "submitted" && button("Withdraw", "withdraw", ""),
        editor.me.administrator && copy.status === "submitted" && button("Approve", "approve", "primary approve"),
        editor.me.administrator && ["submitted", "approved", "superseded"].includes(copy.status) && button("Return…", "return", "return", true))];
  }

  async decide(decision, withNote) {
    const { editor } = this;
    let note = "";
    if (withNote) {
      const field = el("textarea", { rows: 4, "aria-label": "What should be done" });
      note = await dialog("Return this copy", [el("p", {}, "Say what should be done; the annotator sees it."), field], [["Return", () => field.value, "primary"], ["Cancel", null]]);
      if (note === null) return;
    }
    try {
      await editor.saver.send();
      const copy = await api.post(`copies/${editor.saver.copy.copy_id}/decisions`, { version: editor.saver.copy.version, decision, note });
      editor.saver.take(copy);
      editor.redraw();
      notice({ submit: "Submitted. An administrator will look at it.", withdraw: "Withdrawn: it is a draft again.", approve: "Approved: these labels are in force for the next run.", return: "Returned." }[decision]);
    } catch (error) {
      notice(error.message, "error");
      await editor.refresh();
    }
  }

  files() {
    const { editor } = this;
    const format = el("select", { "aria-label": "File format" }, FORMATS.map(([suffix, name]) => el("option", { value: suffix }, name)));
    const input = el("input", { type: "file", accept: FORMATS.map(([suffix]) => suffix).join(","), hidden: true });
    input.addEventListener("change", () => input.files[0] && this.take(input));
    return el("details", { class: "files" }, el("summary", {}, "Files and history"),
      el("div", { class: "buttons" }, format,
        el("button", { onclick: async () => { const name = editor.material.session_id + "-" + editor.saver.copy.owner + format.value; download(name, await api.text(`copies/${editor.saver.copy.copy_id}/export?${api.query({ suffix: format.value })}`)); } }, "Export"),
        el("button", { onclick: () => input.click() }, "Import…"), input,
        el("button", { onclick: () => this.history() }, "History")),
      el("p", { class: "small quiet" }, "Import replaces all labels of this copy, as one step that can be undone."));
  }

  async take(input) {
    const { editor } = this;
    const file = input.files[0];
    try {
      await editor.saver.send();
      const before = editor.regions.map((region) => ({ op: "add", region }));
      const copy = await api.post(`copies/${editor.saver.copy.copy_id}/import`, { edit_id: api.newId(), version: editor.saver.copy.version, name: file.name, text: await file.text() });
      editor.saver.take(copy);
      const now = editor.regions;
      editor.done.push({ action: "import", inverse: [...now.map((one) => ({ op: "remove", region_id: one.region_id })), ...before], operations: [...before.map((one) => ({ op: "remove", region_id: one.region.region_id })), ...now.map((region) => ({ op: "add", region }))] });
      editor.redraw();
      notice(`${now.length} labels from ${file.name}.`);
    } catch (error) { notice(error.message, "error"); }
    input.value = "";
  }

  async history() {
    const rows = await api.get(`copies/${this.editor.saver.copy.copy_id}/history`);
    await dialog("History", el("div", { class: "scroll" }, rows.length ? el("table", {}, el("tbody", {}, rows.reverse().map((row) =>
      el("tr", {}, el("td", { class: "number" }, String(row.version)), el("td", {}, row.person), el("td", { class: "small quiet" }, new Date(row.at).toLocaleString()), el("td", {}, row.action), el("td", { class: "small" }, `${row.operations.slice(0, 3).map(told).join("; ")}${row.operations.length > 3 ? " …" : ""}`))))) : el("p", { class: "quiet" }, "No edits yet.")), [["Close", null]]);
  }
}
