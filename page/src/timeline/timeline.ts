// The timeline: what is in view, what is chosen, and the keys and gestures that change it. Keys as in Perfetto and chrome://tracing.
import { announce, h } from '../dom';
import { bytes, count, nanos } from '../format';
import { describeRange, describeSlice } from './details';
import { GUTTER, instantWithin, layOut, type LaneBox, type Marks, Painter, ROW, timeAt, type View, xOf } from './draw';
import { type Events, launchedBy, launchOf, type Place } from './events';
import { colorsOfNames, firstAfter, type Lane, makeLanes } from './lanes';
import { type Match, matchesOf, matchingNames } from './sums';

const HELP = 'W S zoom · A D move · drag: choose a time · shift+drag: move · ctrl+wheel: zoom · F fit the chosen · 0 all · M mark · / search · N P next, previous · [ ] neighbour · Esc';
const SHORTEST = 20; // ns in view, at least

interface Chosen {
  readonly lane: Lane;
  readonly row: number;
  readonly at: number; // in the row
}

export class Timeline {
  readonly element = h('div', { class: 'timeline' });
  private readonly lanes: readonly Lane[];
  private readonly boxes: readonly LaneBox[];
  private readonly fullHeight: number;
  private readonly painter: Painter;
  private readonly canvas = h('canvas', { tabindex: 0, role: 'img', 'aria-label': 'Timeline of the run. W and S zoom, A and D move, slash searches; what is chosen is described below.' });
  private readonly search = h('input', { type: 'search', placeholder: 'search  ( / )', 'aria-label': 'Search in the timeline', spellcheck: 'false' });
  private readonly found = h('span', { class: 'count' });
  private readonly panel = h('div', { class: 'chosen', 'aria-live': 'off' });
  private readonly first: number;
  private readonly last: number;
  private readonly view: View;
  private marks: Marks = { selected: null, range: null, flows: [], marked: [], matches: null, cursor: null };
  private chosen: Chosen | null = null;
  private matches: Match[] = [];
  private match = -1;
  private waiting = 0;
  private resting = 0;
  private readonly loop: readonly [number, number] | null; // all steps, where most of the time is none of theirs: start-up, what follows
  private asked: readonly [number, number] = [0, 0]; // the time whose events were asked for; of the page itself that is the whole
  private drag: { x: number; y: number; begin: number; end: number; scroll: number; moves: boolean; far: boolean } | null = null;

  // `linked`: says where one is. `wanted`: fetches every event of a time; null: what is here is all there is.
  constructor(private readonly all: Events, private readonly linked: (hash: string) => void, private readonly wanted: ((begin: number, end: number) => void) | null = null) {
    this.lanes = makeLanes(this.all, { bytes, count });
    const layout = layOut(this.lanes);
    this.boxes = layout.boxes;
    this.fullHeight = layout.height;
    [this.first, this.last] = extent(this.lanes);
    this.view = { begin: this.first, end: this.last, scroll: 0, width: 800, height: 400 };
    const context = this.canvas.getContext('2d', { alpha: false });
    if (!context) throw new Error('this browser draws no canvas');
    this.painter = new Painter(context, this.all, colorsOfNames(this.all.names), this.boxes);
    this.asked = [this.first, this.last];
    const loop = this.lanes.filter((lane) => lane.group === 'Run' && lane.label === 'Steps');
    const [begin, end] = loop.length ? extent(loop) : [this.first, this.last];
    this.loop = (end - begin) * 2 < this.last - this.first ? [begin, end] : null;
    this.build();
    if (this.loop) this.toLoop();
    else this.all0();
  }

  private build(): void {
    const tool = (label: string, title: string, act: () => void): HTMLElement => h('button', { type: 'button', class: 'quiet', title, click: act }, label);
    const tools = h('div', { class: 'tools' }, this.search, this.found, tool('◂', 'previous match (P)', () => this.toMatch(-1)), tool('▸', 'next match (N)', () => this.toMatch(1)),
      tool('All', 'the whole run (0)', () => this.all0()), tool('Fit', 'what is chosen (F)', () => this.fit()), tool('Mark', 'mark what is chosen (M)', () => this.mark()), tool('Link', 'copy a link to this place', () => void this.copyLink()));
    for (const button of tools.querySelectorAll('button')) {
      const title = button.getAttribute('title');
      if (title && /^[◂▸]$/.test(button.textContent ?? '')) button.setAttribute('aria-label', title);
    }
    const left = this.all.leftOut
      ? h('p', { class: 'note loud' }, `${this.all.exact ? `Between ${(this.all.exact[0] / 1e9).toFixed(6)} s and ${(this.all.exact[1] / 1e9).toFixed(6)} s every event is shown. Elsewhere ` : ''}${count(this.all.leftOut)} events${this.all.shortest ? ` shorter than ${nanos(this.all.shortest)}` : ''} are not shown one by one: the grey strip under a lane is how much of the time they took. ${this.wanted ? 'Come nearer, and all of what is in view is fetched.' : 'All of another window: gputrace view, or report --from T --to T --html FILE'}`)
      : null;
    this.element.append(tools, h('div', { class: 'canvas' }, this.canvas), h('p', { class: 'note keys' }, HELP), this.panel);
    if (left) this.element.prepend(left);
    if (this.loop) tools.append(tool('Steps', 'from the first step to the last', () => this.toLoop()));
    const { exact } = this.all;
    if (exact) tools.append(tool('Exact', 'the time in which every event is shown', () => this.show(exact[0], exact[1])));
    this.search.addEventListener('input', () => this.find(this.search.value));
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.toMatch(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') {
        this.canvas.focus();
        event.preventDefault();
      }
    });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener('pointerdown', (event) => this.press(event));
    this.canvas.addEventListener('pointermove', (event) => this.move(event));
    this.canvas.addEventListener('pointerup', (event) => this.release(event));
    this.canvas.addEventListener('pointerleave', () => this.setCursor(null));
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement as HTMLElement);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.painter.readTheme();
      this.redraw();
    });
  }

  // "BEGIN-END" in ns, as link() makes it.
  goTo(place: string): void {
    const [begin, end] = place.split('-').map(Number);
    if (begin === undefined || end === undefined || !(end > begin)) return;
    this.marks.range = [begin, end];
    this.show(begin - (end - begin) * 0.6, end + (end - begin) * 0.6);
    this.describe();
  }

  focus(): void {
    this.canvas.focus({ preventScroll: true });
  }

  private all0(): void {
    const some = (this.last - this.first) * 0.01;
    this.show(this.first - some, this.last + some);
  }

  private toLoop(): void {
    if (!this.loop) return;
    const [begin, end] = this.loop;
    this.show(begin - (end - begin) * 0.05, end + (end - begin) * 0.05);
  }

  private show(begin: number, end: number): void {
    const whole = (this.last - this.first) * 1.1 + 1000;
    const length = Math.max(SHORTEST, Math.min(end - begin, whole));
    const middle = Math.max(this.first, Math.min((begin + end) / 2, this.last));
    this.view.begin = middle - length / 2;
    this.view.end = middle + length / 2;
    this.wantMore();
    this.redraw();
  }

  // Shows what another one of the same run shows, with these events.
  follow(other: Timeline): void {
    this.asked = other.asked;
    this.marks.range = other.marks.range;
    this.marks.marked = other.marks.marked;
    this.search.value = other.search.value;
    if (this.search.value) this.find(this.search.value);
    this.view.begin = other.view.begin;
    this.view.end = other.view.end;
    this.view.scroll = other.view.scroll;
    clearTimeout(other.resting);
    this.wantMore();
    this.describe();
    this.redraw();
  }

  // Once the view stands still where not every event is here: half a view more on both sides, so that a small move asks for nothing.
  private wantMore(): void {
    clearTimeout(this.resting);
    if (!this.wanted || !this.all.leftOut) return;
    const { begin, end } = this.view;
    const within = (span: readonly [number, number] | null): boolean => span !== null && begin >= span[0] && end <= span[1];
    if (within(this.all.exact)) return;
    // What was asked for and came in part, since it was too much, is asked for again from much nearer only.
    const inView = Math.min(end, this.last) - Math.max(begin, this.first);
    if (inView > (this.asked[1] - this.asked[0]) / 4 && (inView >= this.last - this.first || within(this.asked))) return;
    this.resting = window.setTimeout(() => {
      const some = (end - begin) / 2;
      this.asked = [Math.max(begin - some, this.first), Math.min(end + some, this.last)];
      if (this.asked[0] < this.asked[1]) this.wanted?.(this.asked[0], this.asked[1]);
    }, 300);
  }

  private resize(): void {
    const holder = this.canvas.parentElement as HTMLElement;
    const scale = devicePixelRatio || 1;
    this.view.width = holder.clientWidth;
    this.view.height = Math.max(220, Math.min(this.fullHeight, innerHeight - 230));
    this.canvas.width = Math.round(this.view.width * scale);
    this.canvas.height = Math.round(this.view.height * scale);
    this.canvas.style.height = `${this.view.height}px`;
    this.canvas.getContext('2d')?.setTransform(scale, 0, 0, scale, 0, 0);
    this.scrollTo(this.view.scroll);
  }

  private scrollTo(to: number): void {
    this.view.scroll = Math.max(0, Math.min(to, this.fullHeight - this.view.height));
    this.redraw();
  }

  private redraw(): void {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    if (this.waiting) cancelAnimationFrame(this.waiting);
    this.waiting = 0;
    this.painter.draw(this.view, this.marks);
  }

  private zoom(by: number, at: number): void {
    const time = timeAt(this.view, at);
    const length = Math.max(SHORTEST, (this.view.end - this.view.begin) * by);
    const share = (time - this.view.begin) / (this.view.end - this.view.begin);
    this.show(time - length * share, time + length * (1 - share));
  }

  private pan(by: number): void {
    const length = this.view.end - this.view.begin;
    this.show(this.view.begin + by * length, this.view.end + by * length);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = this.marks.cursor === null ? (this.view.width + GUTTER) / 2 : xOf(this.view, this.marks.cursor);
    const acts: { readonly [key: string]: () => void } = {
      w: () => this.zoom(0.8, middle), s: () => this.zoom(1.25, middle), a: () => this.pan(-0.12), d: () => this.pan(0.12),
      ArrowLeft: () => this.pan(-0.12), ArrowRight: () => this.pan(0.12), ArrowUp: () => this.scrollTo(this.view.scroll - 40), ArrowDown: () => this.scrollTo(this.view.scroll + 40),
      '+': () => this.zoom(0.8, middle), '-': () => this.zoom(1.25, middle),
      '0': () => this.all0(), f: () => this.fit(), m: () => this.mark(), '/': () => this.search.focus(), n: () => this.toMatch(1), p: () => this.toMatch(-1),
      '[': () => this.neighbour(-1), ']': () => this.neighbour(1), Escape: () => this.clear(),
    };
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private wheel(event: WheelEvent): void {
    const x = event.offsetX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.002), x);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / (this.view.width - GUTTER));
    } else if (this.fullHeight > this.view.height + 1) {
      const before = this.view.scroll;
      this.scrollTo(before + event.deltaY);
      if (this.view.scroll !== before) event.preventDefault();
    }
  }

  private press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, y: event.offsetY, begin: this.view.begin, end: this.view.end, scroll: this.view.scroll, moves: event.shiftKey || event.button === 1, far: false };
  }

  private move(event: PointerEvent): void {
    this.setCursor(event.offsetX > GUTTER ? timeAt(this.view, event.offsetX) : null);
    const drag = this.drag;
    if (!drag) return;
    const distance = event.offsetX - drag.x;
    drag.far = drag.far || Math.abs(distance) > 4 || (drag.moves && Math.abs(event.offsetY - drag.y) > 4);
    if (!drag.far) return;
    if (drag.moves) {
      const by = (distance / (this.view.width - GUTTER)) * (drag.end - drag.begin);
      this.show(drag.begin - by, drag.end - by);
      this.scrollTo(drag.scroll - (event.offsetY - drag.y));
    } else {
      const [one, other] = [timeAt(this.view, Math.max(GUTTER, drag.x)), timeAt(this.view, Math.max(GUTTER, event.offsetX))];
      this.marks.range = [Math.min(one, other), Math.max(one, other)];
      this.redraw();
    }
  }

  private release(event: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (!drag.far) this.choose(this.hit(event.offsetX, event.offsetY));
    else if (!drag.moves) {
      this.choose(null, false);
      this.describe();
    }
  }

  private setCursor(time: number | null): void {
    this.marks.cursor = time;
    this.redraw();
  }

  // The slice there, or one within three pixels.
  private hit(x: number, y: number): Chosen | null {
    const at = y + this.view.scroll;
    const box = this.boxes.find((one) => at >= one.top && at < one.top + one.height);
    if (!box || x < GUTTER) return null;
    const row = Math.floor((at - box.top) / ROW);
    const slices = box.lane.rows[row];
    if (!slices) return null;
    const near = 3 * ((this.view.end - this.view.begin) / (this.view.width - GUTTER));
    const time = timeAt(this.view, x);
    const from = firstAfter(slices, time - near);
    let best: Chosen | null = null;
    let nearest = Infinity;
    for (let i = from; i < slices.begin.length && (slices.begin[i] ?? 0) <= time + near && i < from + 64; ++i) {
      const away = Math.max((slices.begin[i] ?? 0) - time, time - (slices.end[i] ?? 0), 0);
      if (away < nearest) {
        nearest = away;
        best = { lane: box.lane, row, at: i };
      }
    }
    return best;
  }

  private choose(chosen: Chosen | null, describe = true): void {
    this.chosen = chosen;
    const slices = chosen ? chosen.lane.rows[chosen.row] : null;
    if (!chosen || !slices) {
      this.marks.selected = null;
      this.marks.flows = [];
      if (describe) this.marks.range = null;
    } else {
      const place = chosen.lane.track ? { track: chosen.lane.track, at: slices.at[chosen.at] ?? 0 } : null;
      this.marks.range = null;
      this.marks.selected = { lane: chosen.lane, place, begin: slices.begin[chosen.at] ?? 0, end: slices.end[chosen.at] ?? 0, row: chosen.row };
      this.marks.flows = place ? this.flowsOf(chosen, place) : [];
    }
    if (describe) this.describe();
    this.redraw();
  }

  private flowsOf(chosen: Chosen, place: Place): Marks['flows'] {
    const own = { lane: chosen.lane, row: chosen.row };
    const from = launchOf(this.all, place);
    const cause = from ? this.chosenOf(from) : null;
    if (from && cause) return [{ from: { lane: cause.lane, row: cause.row, time: from.track.begin[from.at] ?? 0 }, to: { ...own, time: place.track.begin[place.at] ?? 0 } }];
    const to = place.track.kind === 'thread' ? launchedBy(this.all, place) : null;
    const effect = to ? this.chosenOf(to) : null;
    if (to && effect) return [{ from: { ...own, time: place.track.begin[place.at] ?? 0 }, to: { lane: effect.lane, row: effect.row, time: to.track.begin[to.at] ?? 0 } }];
    return [];
  }

  private chosenOf(place: Place): Chosen | null {
    for (const lane of this.lanes) {
      if (lane.track !== place.track) continue;
      const begin = place.track.begin[place.at] ?? 0;
      for (let row = 0; row < lane.rows.length; ++row) {
        const slices = lane.rows[row];
        if (!slices) continue;
        let at = firstAfter(slices, begin - 1);
        while (at < slices.at.length && (slices.begin[at] ?? 0) <= begin) {
          if (slices.at[at] === place.at) return { lane, row, at };
          ++at;
        }
      }
    }
    return null;
  }

  private describe(): void {
    const { selected, range } = this.marks;
    const lead = (place: Place): void => {
      const to = this.chosenOf(place);
      if (to) this.lookAt(to);
    };
    if (selected) this.panel.replaceChildren(describeSlice(this.all, selected, this.chosen ? this.ownOf(this.chosen) : null, lead));
    else if (range) this.panel.replaceChildren(describeRange(this.all, this.lanes, range, (begin, end) => this.show(begin, end)));
    else this.panel.replaceChildren();
    const text = this.panel.querySelector('h2')?.textContent;
    if (text) announce(text);
    if (range) this.linked(this.placeOf(range[0], range[1]));
    else if (selected) this.linked(this.placeOf(selected.begin, selected.end));
  }

  private ownOf(chosen: Chosen): { text: string; detail: string } | null {
    const index = chosen.lane.rows[chosen.row]?.at[chosen.at] ?? -1;
    return chosen.lane.track ? null : (chosen.lane.own[index] ?? null);
  }

  private placeOf(begin: number, end: number): string {
    return `timeline/${Math.floor(begin)}-${Math.ceil(Math.max(end, begin + 1))}`;
  }

  // Brings it into view and chooses it.
  private lookAt(to: Chosen): void {
    const slices = to.lane.rows[to.row];
    const begin = slices?.begin[to.at] ?? 0;
    const end = slices?.end[to.at] ?? 0;
    const length = this.view.end - this.view.begin;
    if (begin < this.view.begin || end > this.view.end) this.show((begin + end) / 2 - length / 2, (begin + end) / 2 + length / 2);
    if (end - begin < length / 400) {
      const wide = Math.max((end - begin) * 60, SHORTEST);
      this.show((begin + end) / 2 - wide / 2, (begin + end) / 2 + wide / 2);
    }
    const box = this.boxes.find((one) => one.lane === to.lane);
    const y = (box?.top ?? 0) + to.row * ROW;
    if (y - this.view.scroll < 30 || y - this.view.scroll > this.view.height - 30) this.scrollTo(y - this.view.height / 2);
    this.choose(to);
  }

  private find(words: string): void {
    const names = matchingNames(this.all, words);
    this.marks.matches = names;
    this.matches = names ? matchesOf(this.lanes, names) : [];
    this.match = -1;
    this.found.textContent = names ? `${count(this.matches.length)} found` : '';
    this.redraw();
  }

  // From the choice, else from the left edge of the view.
  private toMatch(by: number): void {
    if (this.matches.length === 0) return;
    if (this.match < 0) {
      const from = this.marks.selected?.begin ?? this.view.begin;
      this.match = this.matches.findIndex((one) => one.begin >= from);
      if (by < 0) --this.match;
    } else this.match += by;
    this.match = (this.match + this.matches.length) % this.matches.length;
    const to = this.matches[this.match];
    if (to) this.lookAt(to);
    this.found.textContent = `${count(this.match + 1)} of ${count(this.matches.length)}`;
  }

  private neighbour(by: number): void {
    if (!this.chosen) return;
    const at = this.chosen.at + by;
    if (at >= 0 && at < (this.chosen.lane.rows[this.chosen.row]?.at.length ?? 0)) this.lookAt({ ...this.chosen, at });
  }

  private fit(): void {
    const range = this.marks.range ?? (this.marks.selected ? [this.marks.selected.begin, this.marks.selected.end] : null);
    if (!range) return;
    const some = Math.max((range[1] - range[0]) * 0.05, 5);
    this.show(range[0] - some, range[1] + some);
  }

  private mark(): void {
    const range = this.marks.range ?? (this.marks.selected ? ([this.marks.selected.begin, this.marks.selected.end] as const) : null);
    if (!range) return;
    const same = this.marks.marked.find(([begin, end]) => begin === range[0] && end === range[1]);
    this.marks.marked = same ? this.marks.marked.filter((one) => one !== same) : [...this.marks.marked, [range[0], range[1]]];
    announce(`${same ? 'mark removed' : 'marked'}: ${instantWithin(range[0], range[1] - range[0])}`);
    this.redraw();
  }

  private clear(): void {
    this.search.value = '';
    this.find('');
    this.choose(null);
  }

  private async copyLink(): Promise<void> {
    const place = this.placeOf(this.view.begin, this.view.end);
    const range = this.marks.range ?? (this.marks.selected ? ([this.marks.selected.begin, this.marks.selected.end] as const) : null);
    const hash = range ? this.placeOf(range[0], range[1]) : place;
    this.linked(hash);
    try {
      await navigator.clipboard.writeText(`${location.href.split('#')[0]}#${hash}`);
      announce('link copied');
      this.found.textContent = 'link copied';
    } catch {
      this.found.textContent = 'the link is in the address';
    }
  }
}

function extent(lanes: readonly Lane[]): [number, number] {
  let first = Infinity;
  let last = -Infinity;
  for (const lane of lanes) {
    for (const row of lane.rows) {
      first = Math.min(first, row.begin[0] ?? Infinity);
      last = Math.max(last, row.end[row.end.length - 1] ?? -Infinity);
    }
  }
  return first < last ? [first, last] : [0, 1e6];
}

