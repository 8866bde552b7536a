// Stepping through the sequence, by hand or by the clock.

export class Player {
  constructor({ button, speed, onStep }) {
    Object.assign(this, { button, speed, onStep, timer: null });
    button.addEventListener("click", () => this.toggle());
  }

  setSpeed(speed) {
    if (this.perSecond === 2 ** speed) return;
    this.speed.value = speed;
    this.perSecond = 2 ** speed;
    this.speed.setAttribute("aria-valuetext", `${this.perSecond.toFixed(0)} tokens a second`);
    if (this.timer) this.start();
  }

  get playing() { return this.timer !== null; }

  toggle() { if (this.playing) this.stop(); else this.start(); }

  start() {
    clearInterval(this.timer);
    this.timer = setInterval(() => { if (!this.onStep()) this.stop(); }, 1000 / this.perSecond);
    this.say("Pause", "Pause");
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.say("Play", "Play");
  }

  say(words, label) {
    this.button.textContent = words;
    this.button.setAttribute("aria-label", label);
  }
}
