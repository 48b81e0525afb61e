import { dialog, el } from "./dom.js";

const KEYS = [
  ["Listen", [["Space", "play, pause"], ["Shift Space", "play the selected label"], ["← →", "1 s back, on (with Shift: 0.05 s)"], [", .", "slower, faster"], ["L R", "hear only left, only right"]]],
  ["Look", [["+ −", "zoom in, out (or Ctrl and wheel)"], ["↑ ↓", "taller, flatter waveforms"], ["0", "whole session"], ["F", "zoom to the selected label"], ["G", "spectrogram"], ["Wheel", "move along"]]],
  ["Flags", [["N P", "next, previous open flag"], ["K", "keep the flagged label as it is"]]],
  ["Labels", [["Tab", "next label (with Shift: previous)"], ["1 … 5", "turn, pause, backchannel, overlap, failed take"], ["[ ]", "start, end of the label to the cursor"], ["S", "split at the cursor"], ["M", "merge with the next of its kind"], ["X", "to the other side"], ["Delete", "remove"], ["Ctrl Z, Ctrl Y", "undo, redo"], ["Esc", "select nothing"]]],
];
const LABELS = [
  ["Turn", "One person's say, from its first sound to its last. It runs on across that person's own pauses."],
  ["Pause", "A silence inside a turn after which the same person goes on. It lies within the turn."],
  ["Backchannel", "A short sound of listening (“mhm”, “yeah”) while the other person has the floor. It takes nothing."],
  ["Overlap", "Both talk at once, and not as a backchannel. It is put on the side of whoever came second."],
  ["Failed take", "A try to take the floor that is given up: the other goes on talking."],
];

export function showHelp(page) {
  const words = {
    windows: ["Listen to the line and its surroundings. Accept if the label is right within a tenth of a second and the shaded stretch is what it should be; else choose a reason and reject. Answer alone: a second person checks the same windows, and the two are compared."],
    listening: ["You hear up to a moment and nothing after it. Press space at the moment when you, as the other person, would begin to speak. If you would keep silent, wait five seconds. Then write a few words of what you would say."],
    tables: ["Only administrators see this page. Every table can be taken away as CSV."],
  }[page] ?? ["Correct the labels of a conversation by ear and eye. Open a session: above are the two people's waveforms, below them lanes with their labels. Go from flag to flag (N): each marks a label that is doubtful. Listen, then keep it (K) or correct it. Then go through the whole session once, and press Submit; an administrator approves it or gives it back with a note.",
    "Drag a label's edge to move it. Drag a selected label to move the whole of it. Drag over an empty lane to make a label. Click into the waveform or a lane to put the cursor there; double-click a label to hear it.",
    "Every change is stored when you make it, and can be undone. If the connection is lost, your edits wait in this browser and are sent when it is back. If someone else changed the same copy, you see what they did and choose; nothing is overwritten.",
    "There are two more tasks, each with its own help. Window check: is a moment that is scored labelled right? Listener task: what would you do at it? The list of sessions says how many such windows each has. “Work together” opens one copy that everybody edits; all else you do alone."];
  const editing = !["windows", "listening", "tables"].includes(page);
  dialog("Help", el("div", { class: "scroll help" }, words.map((one) => el("p", {}, one)),
    editing && el("h3", {}, "Labels"), editing && el("dl", {}, LABELS.flatMap(([name, what]) => [el("dt", {}, name), el("dd", {}, what)])),
    editing && el("h3", {}, "Keys"), editing && el("div", { class: "keys" }, KEYS.map(([title, rows]) => el("div", {}, el("h4", {}, title), el("dl", {}, rows.flatMap(([key, what]) => [el("dt", {}, key.split(" ").map((one) => el("kbd", {}, one))), el("dd", {}, what)])))))), [["Close", null, "primary"]]);
}
