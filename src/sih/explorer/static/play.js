// Stepping through the sequence, by hand or by the clock.

export class Player {
  constructor({ button, speed, onStep }) {
    Object.assign(this, { button, speed, onStep, timer: null });
    button.addEventListener("click", () => this.toggle());
    speed.addEventListener("input", () => { if (this.timer) this.start(); });
  }

  get playing() { return this.timer !== null; }

  toggle() { if (this.playing) this.stop(); else this.start(); }

  start() {
    clearInterval(this.timer);
    const perSecond = 2 ** Number(this.speed.value);
    this.speed.setAttribute("aria-valuetext", `${perSecond.toFixed(0)} tokens a second`);
    this.timer = setInterval(() => { if (!this.onStep()) this.stop(); }, 1000 / perSecond);
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
