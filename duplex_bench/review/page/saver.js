// Sends edits one after the other. What is not yet stored stays in this browser until it is, whatever happens.
import * as api from "./api.js";

const RETRY_MS = 2000;

export function applyOps(state, operations) {
  // Returns the inverse, so that applying it brings the state back.
  const inverse = [];
  for (const one of operations) {
    if (one.op === "add") {
      state.regions.set(one.region.region_id, { ...one.region });
      inverse.unshift({ op: "remove", region_id: one.region.region_id });
    } else if (one.op === "flag") {
      inverse.unshift({ op: "flag", flag: one.flag, verdict: state.flags[one.flag] ?? "open" });
      if (one.verdict === "open") delete state.flags[one.flag];
      else state.flags[one.flag] = one.verdict;
    } else {
      const id = one.op === "change" ? one.region.region_id : one.region_id;
      const before = state.regions.get(id);
      if (!before) continue;
      if (one.op === "change") {
        state.regions.set(id, { ...one.region });
        inverse.unshift({ op: "change", region: before });
      } else {
        state.regions.delete(id);
        inverse.unshift({ op: "add", region: before });
      }
    }
  }
  return inverse;
}

export class Saver {
  constructor(copy, { changed, conflict, refused, signedOut }) {
    this.hooks = { changed, conflict, refused, signedOut };
    this.key = `review:pending:${copy.session_id}:${copy.copy_id}`;
    this.pending = JSON.parse(localStorage.getItem(this.key) ?? "[]").map((edit) => ({ ...edit, restored: true }));
    this.trouble = null;
    this.busy = null;
    this.stopped = false;
    this.take(copy);
  }

  take(copy) {
    this.copy = copy;
    this.state = { regions: new Map(copy.regions.map((one) => [one.region_id, one])), flags: { ...copy.flags } };
    for (const edit of this.pending) applyOps(this.state, edit.operations);
  }

  add(action, operations) {
    const inverse = applyOps(this.state, operations);
    this.pending.push({ edit_id: api.newId(), action, operations, made_on: this.copy.version });
    this.keep();
    this.send();
    return inverse;
  }

  keep() {
    if (this.pending.length) localStorage.setItem(this.key, JSON.stringify(this.pending));
    else localStorage.removeItem(this.key);
    this.hooks.changed();
  }

  send() {
    if (!this.busy && this.pending.length && !this.stopped) {
      this.busy = this.run().finally(() => { this.busy = null; });
    }
    return this.busy ?? Promise.resolve();
  }

  async run() {
    while (this.pending.length && !this.stopped) {
      const edit = this.pending[0];
      // An edit from before a reload was made on the version of then: the server says whether that still holds.
      const version = edit.restored ? edit.made_on : this.copy.version;
      try {
        const body = { edit_id: edit.edit_id, version, action: edit.action, operations: edit.operations };
        const copy = await api.post(`copies/${this.copy.copy_id}/edits`, body);
        this.pending.shift();
        for (const one of this.pending) if (one.restored) one.made_on = copy.version;
        this.copy = copy;
        this.trouble = null;
        this.keep();
      } catch (error) {
        if (error.retry) {
          this.trouble = error.message;
          this.hooks.changed();
          await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
        } else if (error.status === 401) {
          this.trouble = "signed out";
          await this.hooks.signedOut();
        } else if (error.status === 409) {
          await this.settle();
        } else {
          this.pending.shift();
          this.take(await api.get(`copies/${this.copy.copy_id}`));
          this.keep();
          this.hooks.refused(edit, error.message);
        }
      }
    }
  }

  async settle() {
    const since = this.pending[0].restored ? this.pending[0].made_on : this.copy.version;
    const [copy, theirs] = await Promise.all([
      api.get(`copies/${this.copy.copy_id}`),
      api.get(`copies/${this.copy.copy_id}/history?after_version=${since}`),
    ]);
    const mine = [...this.pending];
    const putOnTop = await this.hooks.conflict(theirs, mine, this.copy);
    if (!putOnTop) this.pending = this.pending.slice(mine.length);
    for (const edit of this.pending) Object.assign(edit, { restored: false, onTop: true });
    this.take(copy);
    this.keep();
  }

  async refresh() {
    // Takes in what others did to this copy, when nothing of ours is under way.
    if (this.pending.length || this.busy) return null;
    const before = this.copy.version;
    const copy = await api.get(`copies/${this.copy.copy_id}`);
    if (this.pending.length || this.busy) return null;
    if (copy.version === before && copy.status === this.copy.status) return null;
    this.take(copy);
    this.hooks.changed();
    return copy.version > before ? api.get(`copies/${this.copy.copy_id}/history?after_version=${before}`) : [];
  }

  stop() { this.stopped = true; }
}
