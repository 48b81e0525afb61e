// One sound of two channels: wavesurfer draws it, this routes it, so that either side can be heard alone.
import * as api from "./api.js";

const CHANNELS = [0, 1];

export class Player {
  constructor(sessionId, duration, container) {
    this.sessionId = sessionId;
    this.duration = duration;
    this.container = container;
    this.solo = null;
    this.muted = [false, false];
    this.stopAt = null;
    this.media = new Audio();
    this.media.preload = "auto";
    this.media.src = `/api/session/audio.wav?${api.query({ session_id: sessionId })}`;
  }

  async load(colours) {
    const raw = new Uint16Array(await api.bytes(`session/peaks?${api.query({ session_id: this.sessionId })}`));
    const n = raw.length / 2;
    const peaks = CHANNELS.map((channel) => Float32Array.from(raw.subarray(channel * n, (channel + 1) * n), (value) => value / 65535));
    // One height for both: the louder person's loudest moment; otherwise whispers would look like shouts.
    this.maxPeak = Math.max(0.05, peaks.reduce((most, one) => one.reduce((a, b) => Math.max(a, b), most), 0));
    for (const one of peaks) for (let i = 0; i < n; i += 1) one[i] /= this.maxPeak;
    this.surfer = WaveSurfer.create({
      container: this.container, media: this.media, peaks, duration: this.duration, minPxPerSec: 1,
      cursorWidth: 0, autoScroll: true, autoCenter: false, dragToSeek: false, normalize: false,
      splitChannels: CHANNELS.map((channel) => ({ height: 104, waveColor: colours[channel], progressColor: colours[channel], overlay: false })),
    });
    await new Promise((resolve) => { this.surfer.once("ready", resolve); });
    return this;
  }

  get pps() { return this.surfer.getWrapper().scrollWidth / this.duration; }
  get scroll() { return this.surfer.getScroll(); }
  get width() { return this.surfer.getWidth(); }
  get time() { return this.media.currentTime; }
  get playing() { return !this.media.paused; }
  x(seconds) { return seconds * this.pps - this.scroll; }
  at(x) { return Math.min(this.duration, Math.max(0, (x + this.scroll) / this.pps)); }
  get visible() { return [this.at(0), this.at(this.width)]; }

  stretch(factor) {
    // How tall the waveforms are drawn: quiet talk can be made visible, loud talk is then cut off.
    this.height = Math.min(32, Math.max(1, (this.height ?? 1) * factor));
    this.surfer.setOptions({ barHeight: this.height });
  }

  seek(seconds) {
    this.stopAt = null;
    this.media.currentTime = Math.min(this.duration, Math.max(0, seconds));
  }

  zoom(pps, anchor = null) {
    const least = this.width / this.duration;
    const wanted = Math.min(2000, Math.max(least, pps));
    const [first, last] = this.visible;
    const still = anchor ?? (this.time >= first && this.time <= last ? this.time : (first + last) / 2);
    const offset = this.x(still);
    this.surfer.zoom(wanted);
    this.surfer.setScroll(Math.max(0, still * this.pps - offset));
  }

  show(start, stop, margin = 0.35) {
    const room = Math.max(1, (stop - start) * margin);
    this.surfer.zoom(Math.min(2000, this.width / (stop - start + 2 * room)));
    this.surfer.setScrollTime(Math.max(0, start - room));
  }

  reveal(start, stop) {
    const [first, last] = this.visible;
    if (start < first || stop > last) this.surfer.setScrollTime(Math.max(0, start - (last - first) * 0.2));
  }

  route() {
    if (!this.context) {
      this.context = new AudioContext();
      const split = this.context.createChannelSplitter(2);
      const join = this.context.createChannelMerger(2);
      this.context.createMediaElementSource(this.media).connect(split);
      this.gains = CHANNELS.map((from) => CHANNELS.map((to) => {
        const gain = this.context.createGain();
        split.connect(gain, from);
        gain.connect(join, 0, to);
        return gain;
      }));
      this.output = join;
      join.connect(this.context.destination);
    }
    for (const from of CHANNELS) for (const to of CHANNELS) {
      // A side heard alone is heard in both ears.
      const heard = this.solo === null ? !this.muted[from] && from === to : this.solo === from;
      this.gains[from][to].gain.value = heard ? 1 : 0;
    }
    return this.context.resume();
  }

  async play(start = null, stop = null) {
    await this.route();
    if (start !== null) this.seek(start);
    this.stopAt = stop;
    await this.media.play();
  }

  pause() { this.media.pause(); }
  toggle() { return this.playing ? this.pause() : this.play(); }

  tick() {
    if (this.stopAt !== null && this.time >= this.stopAt) {
      this.pause();
      this.stopAt = null;
    }
  }

  setSolo(channel) {
    this.solo = this.solo === channel ? null : channel;
    if (this.context) this.route();
  }

  setMuted(channel) {
    this.muted[channel] = !this.muted[channel];
    if (this.context) this.route();
  }

  get speed() { return this.media.playbackRate; }
  set speed(value) { this.media.playbackRate = Math.min(3, Math.max(0.25, value)); }

  destroy() {
    this.pause();
    this.surfer?.destroy();
    this.context?.close();
    this.media.removeAttribute("src");
    this.media.load();
  }
}
