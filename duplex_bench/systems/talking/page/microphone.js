// Runs on the audio thread: hands over the microphone in blocks of 20 ms as PCM16.
class Microphone extends AudioWorkletProcessor {
  block = new Int16Array(480);
  filled = 0;

  process([input]) {
    const channel = input[0];
    if (!channel) return true;
    for (const sample of channel) {
      this.block[this.filled++] = Math.max(-32768, Math.min(32767, Math.round(sample * 32768)));
      if (this.filled === this.block.length) {
        this.port.postMessage(this.block.slice().buffer);
        this.filled = 0;
      }
    }
    return true;
  }
}
registerProcessor("microphone", Microphone);
