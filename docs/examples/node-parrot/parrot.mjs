// A system in another language: it speaks the session contract over a Unix socket (docs/session-contract.md).
// It repeats what it heard when the user has been silent for half a second.
import net from "node:net";
import { renameSync } from "node:fs";
import { parseArgs } from "node:util";

// It is started as `node parrot.mjs -m ... --factory ... --settings JSON --socket PATH`; only two of these matter here.
const { values: options } = parseArgs({
  options: { settings: { type: "string", default: "{}" }, socket: { type: "string" } },
  strict: false,
});
const settings = { end_units: 6, ...JSON.parse(options.settings) };

const UNIT = 1920; // 80 ms at 24 kHz
const LOUD = 0.01; // RMS, of full scale
const SPEC = {
  in_rate_hz: 24000, out_rate_hz: 24000, unit_in_samples: UNIT, unit_out_samples: null, lockstep: false,
  prime_units: 0, flush_units: 0, model_shift_units: 0, context_s: null, capabilities: ["seedable"],
};

class Unsupported extends Error {}

class Session {
  units = 0;
  quiet = 0;
  responses = 0;
  playsUntil = 0;
  turn = [];

  constructor(request) {
    if (request.prompt.text !== null || request.prompt.voice !== null) throw new Unsupported("no prompt can be taken");
    if (request.history.length) throw new Unsupported("no history can be taken");
    if (Object.keys(request.sampling).length) throw new Unsupported("there is nothing to sample");
  }

  step(unit) {
    if (unit.length !== UNIT) throw new Unsupported(`a unit has ${UNIT} samples, got ${unit.length}`);
    if (!unit.every(Number.isFinite)) throw new Unsupported("a unit holds NaN or infinity");
    const number = this.units++;
    const rms = Math.sqrt(unit.reduce((sum, sample) => sum + sample * sample, 0) / UNIT);
    if (rms >= LOUD) {
      this.turn.push(unit);
      this.quiet = 0;
      if (this.units >= this.playsUntil) return [];
      this.playsUntil = 0;
      return [{ kind: "flush", unit: number }, { kind: "state", unit: number, state: "listen" }];
    }
    this.quiet++;
    if (!this.turn.length || this.quiet !== settings.end_units) return [];
    const audio = new Float32Array(this.turn.length * UNIT);
    this.turn.forEach((part, index) => audio.set(part, index * UNIT));
    this.playsUntil = this.units + this.turn.length;
    this.turn = [];
    const said = { unit: number, response_id: `r${++this.responses}` };
    return [
      { ...said, kind: "state", state: "speak" },
      { ...said, kind: "text", text: "what you said" },
      { ...said, kind: "audio", pcm: audio },
    ];
  }
}

let session = null;

function answer(header, arrays) {
  if (header.kind === "hello") return [{ kind: "spec", spec: SPEC, pid: process.pid }];
  if (header.kind === "open") {
    session = new Session(header.request);
    return [{ kind: "opened" }];
  }
  if (header.kind === "step" || header.kind === "close") {
    if (!session) throw new Unsupported(`${header.kind} before open`);
  }
  if (header.kind === "step") {
    const pcm = [];
    const outs = session.step(arrays[0]).map((out) => {
      const empty = { pcm: null, text: null, state: null, response_id: null, model_time_s: null, available_s: null };
      return { ...empty, cost_ms: 0, ...out, pcm: out.pcm ? pcm.push(out.pcm) - 1 : null };
    });
    return [{ kind: "outs", outs }, pcm];
  }
  if (header.kind === "close") {
    const stats = { units: session.units, empty_steps: 0, context_used_s: null, warnings: [], extra: {} };
    session = null;
    return [{ kind: "closed", stats }];
  }
  if (header.kind === "shutdown") return [{ kind: "bye" }];
  throw new Error(`unknown message ${header.kind}`);
}

// A message: "DXB1", two big-endian lengths, a JSON header, then the arrays as little-endian float32.
function encode(header, arrays = []) {
  const lengths = arrays.map((array) => array.length);
  const head = Buffer.from(JSON.stringify({ ...header, version: 1, arrays: lengths }));
  const payload = Buffer.concat(arrays.map((array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength)));
  const prefix = Buffer.alloc(12);
  prefix.write("DXB1");
  prefix.writeUInt32BE(head.length, 4);
  prefix.writeUInt32BE(payload.length, 8);
  return Buffer.concat([prefix, head, payload]);
}

function decode(data) {
  if (data.length < 12) return null;
  const [headLength, payloadLength] = [data.readUInt32BE(4), data.readUInt32BE(8)];
  const end = 12 + headLength + payloadLength;
  if (data.length < end) return null;
  const header = JSON.parse(data.subarray(12, 12 + headLength).toString());
  let offset = 12 + headLength;
  const arrays = header.arrays.map((length) => {
    const bytes = Uint8Array.from(data.subarray(offset, (offset += 4 * length)));
    return new Float32Array(bytes.buffer); // a copy: aligned, and ours
  });
  return { header, arrays, end };
}

const server = net.createServer((connection) => {
  let data = Buffer.alloc(0);
  connection.on("error", () => {});
  connection.on("data", (chunk) => {
    data = Buffer.concat([data, chunk]);
    for (let message = decode(data); message; message = decode(data)) {
      data = data.subarray(message.end);
      try {
        connection.write(encode(...answer(message.header, message.arrays)));
      } catch (error) {
        const unsupported = error instanceof Unsupported;
        connection.write(encode({ kind: "error", type: error.name, message: error.message, unsupported }));
      }
      if (message.header.kind === "shutdown") process.exit(0);
    }
  });
});
// The path appears when it can be connected to; the program ends when its standard input does, as its parent did.
server.listen(`${options.socket}.new`, () => renameSync(`${options.socket}.new`, options.socket));
process.stdin.on("end", () => process.exit(0)).resume();
