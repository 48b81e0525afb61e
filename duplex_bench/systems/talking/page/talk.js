const RATE = 24000;
const SYSTEM = 0;
const SHOWN_S = 20;
const find = (id) => document.getElementById(id);
const buttons = { talk: find("talk"), stop: find("stop") };
let current = null;

// What a listener with a loudspeaker hears: a chunk starts when it comes or when the one before has ended.
class Player {
  constructor(context, pan, levels) {
    this.context = context;
    this.levels = levels;
    this.panner = new StereoPannerNode(context, { pan });
    this.panner.connect(context.destination);
    this.playing = new Set();
    this.end = 0;
  }

  push(pcm) {
    const buffer = this.context.createBuffer(1, pcm.length, RATE);
    const channel = buffer.getChannelData(0);
    for (let i = 0; i < pcm.length; i++) channel[i] = pcm[i] / 32768;
    const source = new AudioBufferSourceNode(this.context, { buffer });
    source.connect(this.panner);
    const start = Math.max(this.context.currentTime, this.end);
    this.end = start + buffer.duration;
    this.playing.add(source);
    source.onended = () => this.playing.delete(source);
    source.start(start);
    note(this.levels, start, channel);
  }

  flush() {
    for (const source of this.playing) source.stop();
    this.playing.clear();
    const now = this.context.currentTime;
    this.end = Math.min(this.end, now);
    for (let i = this.levels.length - 1; i >= 0 && this.levels[i].at > now; i--) this.levels.pop();
  }
}

function note(levels, start, samples) {
  const block = RATE / 50;
  for (let first = 0; first < samples.length; first += block) {
    const part = samples.subarray(first, first + block);
    let sum = 0;
    for (const sample of part) sum += sample * sample;
    levels.push({ at: start + first / RATE, level: Math.sqrt(sum / part.length) });
  }
}

async function begin(item) {
  buttons.talk.disabled = true;
  find("log").replaceChildren();
  const context = new AudioContext({ sampleRate: RATE });
  const talk = { context, heard: [], said: [], began: context.currentTime, microphone: null, socket: null };
  current = talk;
  try {
    if (!item) await openMicrophone(talk);
  } catch (error) {
    end(talk, `the microphone cannot be used: ${error.message}`);
    return;
  }
  const system = new Player(context, item ? 0.8 : 0, talk.said);
  const played = new Player(context, -0.8, talk.heard);
  const socket = new WebSocket(`ws://${location.host}/talk${item ? `?item=${encodeURIComponent(item)}` : ""}`);
  talk.socket = socket;
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") return take(talk, system, JSON.parse(data));
    const pcm = new Int16Array(data.slice(1));
    (new Uint8Array(data)[0] === SYSTEM ? system : played).push(pcm);
  };
  socket.onclose = () => end(talk, "ended");
  buttons.stop.disabled = false;
  show("connecting");
  draw(talk);
}

async function openMicrophone(talk) {
  const wanted = { echoCancellation: true, noiseSuppression: false, autoGainControl: false, channelCount: 1 };
  talk.stream = await navigator.mediaDevices.getUserMedia({ audio: wanted });
  await talk.context.audioWorklet.addModule("microphone.js");
  const node = new AudioWorkletNode(talk.context, "microphone", { numberOfOutputs: 0 });
  node.port.onmessage = ({ data }) => {
    const pcm = new Int16Array(data);
    note(talk.heard, talk.context.currentTime, Float32Array.from(pcm, (sample) => sample / 32768));
    if (talk.ready && talk.socket.readyState === WebSocket.OPEN) talk.socket.send(data);
  };
  new MediaStreamAudioSourceNode(talk.context, { mediaStream: talk.stream }).connect(node);
}

function take(talk, system, event) {
  if (event.kind === "ready") {
    talk.ready = true;
    talk.began = talk.context.currentTime;
    show(event.omitted?.length ? `playing; this system cannot take: ${event.omitted.join(", ")}` : "connected");
  } else if (event.kind === "flush") {
    system.flush();
    log(talk, "flush", "the system gave way");
  } else if (event.kind === "text" || event.kind === "user_text") {
    log(talk, event.kind, `${event.kind === "text" ? "system" : "it heard"}: ${event.text}`);
  } else if (event.kind === "error") {
    log(talk, "error", event.text);
  }
}

function log(talk, kind, text) {
  const last = find("log").lastElementChild;
  if (kind === "text" && last?.className === "text") {
    last.append(` ${text.slice("system: ".length)}`);
    return;
  }
  const entry = document.createElement("li");
  entry.className = kind;
  const time = document.createElement("time");
  time.textContent = `${(talk.context.currentTime - talk.began).toFixed(1)} s`;
  entry.append(time, text);
  find("log").append(entry);
}

function end(talk, told) {
  if (current !== talk) return;
  current = null;
  talk.stream?.getTracks().forEach((track) => track.stop());
  // What was sent is heard to its end: the context goes when its last chunk has.
  setTimeout(() => talk.context.close(), 10000);
  buttons.talk.disabled = false;
  buttons.stop.disabled = true;
  show(told);
}

function show(text) {
  find("state").textContent = text;
}

function draw(talk) {
  const canvas = find("levels");
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.body);
  const now = talk.context.currentTime;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  for (const [levels, name, side] of [[talk.heard, "--heard", -1], [talk.said, "--said", 1]]) {
    pen.fillStyle = style.getPropertyValue(name);
    while (levels.length && levels[0].at < now - SHOWN_S) levels.shift();
    for (const { at, level } of levels) {
      if (at > now) break;
      const height = Math.min(1, level * 5) * 56;
      pen.fillRect(canvas.width * (1 - (now - at) / SHOWN_S), 60 - (side > 0 ? 0 : height), 2, height);
    }
  }
  if (current === talk) requestAnimationFrame(() => draw(talk));
}

buttons.talk.addEventListener("click", () => begin(""));
buttons.stop.addEventListener("click", () => {
  if (current?.socket?.readyState === WebSocket.OPEN) current.socket.send('{"kind": "stop"}');
});
find("items").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!current) begin(find("item").value);
});
const about = await (await fetch("about")).json();
find("title").textContent = about.title;
document.title = `${about.title} · Talk · duplex_bench`;
for (const item of about.items) {
  const option = new Option(`${item.track}, ${item.protocol}, ${item.seconds.toFixed(0)} s: ${item.item_id}`, item.item_id);
  find("item").append(option);
}
find("items").hidden = !about.items.length;
