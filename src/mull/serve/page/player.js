// The recurrences as a film: they come in faster than anybody can watch, and are shown one after the other.

const LONGEST = 3200, FASTEST = 28, SLOWEST = 170; // milliseconds: of a film, and of one recurrence

export class Player {
  constructor(show) {
    const find = (id) => document.getElementById(id);
    Object.assign(this, { show, timeline: find("timeline"), slider: find("slider"), button: find("play"), where: find("where") });
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play(this.place === this.frames.length ? 1 : this.place)));
    this.slider.addEventListener("input", () => { this.pause(); this.go(Number(this.slider.value)); });
    this.reset();
  }

  reset() {
    clearTimeout(this.timer);
    Object.assign(this, { frames: [], place: 0, playing: false, complete: false, timer: null });
    this.timeline.hidden = true;
  }

  get frame() { return this.frames[this.place - 1]; }
  get ended() { return this.complete && this.place === this.frames.length; }

  add(frame) {
    this.frames.push(frame);
    this.slider.max = this.frames.length;
    this.timeline.hidden = false;
    if (this.frames.length === 1) this.play(1);
    else this.label();
  }

  // An answer that is no recurrence's comes last.
  found(values, how) {
    this.frames.push({ values, sure: values.map(() => 1), step: this.frames.at(-1).step, how });
    this.slider.max = this.frames.length;
    if (this.complete) this.place = this.frames.length;
    this.label();
  }

  finish() {
    this.complete = true;
    if (!this.playing) this.go(this.place);
  }

  play(from) {
    this.playing = true;
    this.button.textContent = "❚❚";
    this.button.setAttribute("aria-label", "Pause");
    this.go(from);
    this.next();
  }

  next() {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pace = still ? 0 : Math.min(SLOWEST, Math.max(FASTEST, LONGEST / Math.max(this.frames.length, 1)));
    const began = performance.now();
    this.timer = setTimeout(() => {
      if (!this.playing) return;
      const late = pace ? Math.floor((performance.now() - began) / pace) : 1; // a slow machine leaves some out
      if (this.place < this.frames.length) this.go(this.place + Math.max(1, late));
      else if (this.complete) { this.pause(); this.go(this.place); return; }
      this.next();
    }, pace);
  }

  pause() {
    clearTimeout(this.timer);
    this.playing = false;
    this.button.textContent = "▶";
    this.button.setAttribute("aria-label", "Play");
  }

  go(place) {
    this.place = Math.max(1, Math.min(place, this.frames.length));
    this.slider.value = this.place;
    this.label();
    this.show(this.frame, this.ended);
  }

  label() {
    const count = this.frames.filter((one) => !one.how).length;
    const how = { search: "search", exact: "exact solver" }[this.frame?.how];
    this.where.textContent = how || `${this.place} of ${count}`;
    this.slider.setAttribute("aria-valuetext", how || `recurrence ${this.place} of ${count}`);
  }
}
