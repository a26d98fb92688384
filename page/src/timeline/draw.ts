// The picture of the lanes: a canvas, drawn anew for each change of what is in view. Work is by pixels and rows in view, not by events: what
// is narrower than a pixel is taken together, its colour as strong as the pixel is busy.
import { themed } from '../dom';
import { nanos, safe } from '../format';
import type { Events, Place } from './events';
import { firstAfter, type Lane, type SliceRow } from './lanes';
import { Sheet, wordOf } from './sheet';

export const ROW = 17;
const HEAD = 26; // the ruler
const GROUP = 22;
const GAP = 5;
export const COUNTER = 44;
export const GUTTER = 178;

export interface LaneBox {
  readonly lane: Lane;
  readonly top: number;
  readonly height: number;
  readonly group: string | null; // a heading above it
}

export function layOut(lanes: readonly Lane[]): { boxes: LaneBox[]; height: number } {
  let top = HEAD + 4;
  let group = '';
  const boxes = lanes.map((lane): LaneBox => {
    const fresh = lane.group !== group;
    if (fresh) top += GROUP;
    group = lane.group;
    const strip = lane.strip ? 8 : 0;
    const height = (lane.counter ? COUNTER : Math.max(1, lane.rows.length) * ROW) + strip;
    const box = { lane, top, height, group: fresh ? lane.group : null };
    top += height + GAP;
    return box;
  });
  return { boxes, height: top + 8 };
}

export interface View {
  begin: number; // ns
  end: number;
  scroll: number; // pixels
  width: number;
  height: number;
}

export interface Marks {
  selected: { lane: Lane; place: Place | null; begin: number; end: number; row: number } | null;
  range: readonly [number, number] | null;
  flows: readonly { from: { lane: Lane; row: number; time: number }; to: { lane: Lane; row: number; time: number } }[];
  marked: readonly (readonly [number, number])[];
  matches: ReadonlySet<number> | null; // names that the search found: the others are dim
  cursor: number | null;
}

interface Theme {
  bg: string; panel: string; line: string; text: string; soft: string; ink: string; accent: string; font: string;
}

export class Painter {
  private theme: Theme = { bg: '', panel: '', line: '', text: '', soft: '', ink: '', accent: '', font: 'sans-serif' };
  private readonly resolved = new Map<string, string>();
  private readonly words = new Map<string, number>(); // the same for the sheet
  private readonly sheet = new Sheet();
  private letter = 6;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly all: Events,
    private readonly nameColors: readonly string[],
    private readonly boxes: readonly LaneBox[],
  ) {
    this.readTheme();
  }

  readTheme(): void {
    this.theme = { bg: themed('--bg'), panel: themed('--panel'), line: themed('--line'), text: themed('--text'), soft: themed('--soft'), ink: themed('--ink'), accent: themed('--accent'), font: themed('--font') || 'sans-serif' };
    this.resolved.clear();
    this.words.clear();
  }

  private color(property: string): string {
    let value = this.resolved.get(property);
    if (value === undefined) {
      value = themed(property) || '#888';
      this.resolved.set(property, value);
    }
    return value;
  }

  private word(property: string): number {
    let value = this.words.get(property);
    if (value === undefined) {
      value = wordOf(this.color(property));
      this.words.set(property, value);
    }
    return value;
  }

  draw(view: View, marks: Marks): void {
    const { context, theme } = this;
    context.font = `11px ${theme.font}`;
    this.letter = context.measureText('abcdefghij_123').width / 14;
    context.textBaseline = 'middle';
    context.fillStyle = theme.bg;
    context.fillRect(0, 0, view.width, view.height);
    context.save();
    context.beginPath();
    context.rect(GUTTER, HEAD, view.width - GUTTER, view.height - HEAD);
    context.clip();
    const ticks = this.grid(view);
    const seen = this.boxes.filter((box) => box.top - view.scroll <= view.height && box.top - view.scroll + box.height >= HEAD);
    const dots = context.getTransform().a; // of the screen, a pixel of the page
    const columns = Math.max(1, Math.ceil((view.width - GUTTER) * dots));
    this.sheet.begin(columns, Math.max(1, seen.reduce((sum, box) => sum + box.lane.rows.length, 0)));
    for (const box of seen) this.lane(box, box.top - view.scroll, view, marks, dots);
    this.sheet.draw(context, GUTTER, columns / dots, ROW - 2);
    this.overlays(view, marks);
    context.restore();
    this.gutter(view);
    this.ruler(view, ticks, marks);
  }

  private grid(view: View): number[] {
    const ticks = ticksOf(view.begin, view.end, (view.width - GUTTER) / 110);
    this.context.fillStyle = this.theme.line;
    for (const tick of ticks) this.context.fillRect(Math.round(xOf(view, tick)), HEAD, 1, view.height);
    return ticks;
  }

  private lane(box: LaneBox, top: number, view: View, marks: Marks, dots: number): void {
    if (box.lane.counter) return this.counter(box, top, view);
    box.lane.rows.forEach((row, at) => this.row(box.lane, row, top + at * ROW, view, marks, dots));
    if (box.lane.strip) this.strip(box, top, view);
  }

  private row(lane: Lane, row: SliceRow, top: number, view: View, marks: Marks, dots: number): void {
    const { context } = this;
    const scale = (view.width - GUTTER) / (view.end - view.begin);
    const { begin, end, busy, at } = row;
    const names = lane.track?.name;
    const height = ROW - 2;
    this.sheet.row(top);
    for (let i = firstAfter(row, view.begin); i < begin.length && (begin[i] ?? 0) < view.end; ) {
      const left = GUTTER + ((begin[i] ?? 0) - view.begin) * scale;
      const width = ((end[i] ?? 0) - (begin[i] ?? 0)) * scale;
      const index = at[i] ?? 0;
      const name = names ? (names[index] ?? 0) : -1;
      const color = name >= 0 ? (this.nameColors[name] ?? '--c-unknown') : (lane.own[index]?.color ?? '--c-unknown');
      const dim = marks.matches !== null && name >= 0 && !marks.matches.has(name);
      if (width >= 1.5) {
        const from = Math.max(left, GUTTER - 2);
        const shown = Math.min(left + width, view.width + 2) - from;
        context.fillStyle = this.color(color);
        context.globalAlpha = dim ? DIM : 1;
        context.fillRect(from, top, shown > 3 ? shown - 0.6 : shown, height);
        if (shown > 30) this.label(name >= 0 ? (this.all.names[name]?.text ?? '') : (lane.own[index]?.text ?? ''), from, top, shown);
        ++i;
        continue;
      }
      const column = (left - GUTTER) * dots;
      const next = gallop(row, view.begin + (Math.floor(column) + 1) / (scale * dots), i); // all before it end within this column
      const taken = next > i ? ((busy[next] ?? 0) - (busy[i] ?? 0)) * scale : width;
      const from = next > i ? Math.floor(column) : column;
      this.sheet.put(from, from + taken * dots, dim ? faint(this.word(color)) : this.word(color));
      i = Math.max(i + 1, next);
    }
    context.globalAlpha = 1;
  }

  private label(text: string, left: number, top: number, width: number): void {
    const letters = Math.floor((width - 8) / this.letter);
    if (letters < 3) return;
    const said = safe(text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
    this.context.fillStyle = this.theme.ink;
    this.context.fillText(said, left + 4, top + ROW / 2 - 0.5, width - 6);
  }

  private strip(box: LaneBox, top: number, view: View): void {
    const strip = box.lane.strip;
    if (!strip) return;
    const base = top + box.height - 1;
    this.context.fillStyle = this.theme.soft;
    const scale = (view.width - GUTTER) / (view.end - view.begin);
    strip.busy.forEach((busy, at) => {
      const left = GUTTER + (strip.from + at * strip.width - view.begin) * scale;
      const width = strip.width * scale;
      if (busy === 0 || left > view.width || left + width < GUTTER) return;
      const height = Math.max(1, 7 * Math.min(1, busy / strip.width));
      this.context.fillRect(left, base - height, Math.max(1, width), height);
    });
  }

  private counter(box: LaneBox, top: number, view: View): void {
    const counter = box.lane.counter;
    if (!counter) return;
    const { context } = this;
    const scale = (view.width - GUTTER) / (view.end - view.begin);
    const base = top + box.height;
    const height = (value: number): number => (value / counter.most) * (box.height - 4);
    context.fillStyle = this.color(counter.color);
    context.globalAlpha = 0.75;
    let i = upTo(counter.at, view.begin);
    for (let x = GUTTER; i < counter.at.length && (counter.at[i] ?? 0) < view.end; ) {
      const until = counter.at[i + 1] ?? view.end;
      const right = Math.min(view.width, GUTTER + (until - view.begin) * scale);
      let most = counter.value[i] ?? 0;
      ++i;
      // Of what lies within one pixel the largest is drawn.
      while (right - x < 1 && i < counter.at.length && GUTTER + ((counter.at[i + 1] ?? view.end) - view.begin) * scale < x + 1) {
        most = Math.max(most, counter.value[i] ?? 0);
        ++i;
      }
      const edge = Math.max(right, x + 1);
      const from = Math.max(x, GUTTER + ((counter.at[0] ?? 0) - view.begin) * scale);
      if (edge > from) context.fillRect(from, base - height(most), edge - from, height(most));
      x = Math.max(x, edge);
    }
    context.globalAlpha = 1;
    context.fillStyle = this.theme.soft;
    context.fillText(counter.words(counter.most), GUTTER + 4, top + 8);
  }

  private overlays(view: View, marks: Marks): void {
    const { context, theme } = this;
    for (const [begin, end] of marks.marked) {
      context.fillStyle = theme.accent;
      context.globalAlpha = 0.14;
      context.fillRect(xOf(view, begin), HEAD, Math.max(1, xOf(view, end) - xOf(view, begin)), view.height);
      context.globalAlpha = 1;
      context.fillRect(xOf(view, begin), HEAD, 1, view.height);
      context.fillRect(xOf(view, end), HEAD, 1, view.height);
    }
    if (marks.range) {
      const [begin, end] = marks.range;
      context.globalAlpha = 0.16;
      context.fillStyle = theme.text;
      context.fillRect(xOf(view, begin), HEAD, xOf(view, end) - xOf(view, begin), view.height);
      context.globalAlpha = 1;
    }
    if (marks.selected) this.frame(view, marks.selected);
    context.strokeStyle = theme.text;
    context.lineWidth = 1.2;
    for (const flow of marks.flows) this.arrow(view, flow);
    if (marks.cursor !== null) {
      context.fillStyle = theme.soft;
      context.fillRect(Math.round(xOf(view, marks.cursor)), HEAD, 1, view.height);
    }
  }

  private frame(view: View, selected: NonNullable<Marks['selected']>): void {
    const box = this.boxes.find((one) => one.lane === selected.lane);
    if (!box) return;
    const left = Math.max(GUTTER - 4, xOf(view, selected.begin));
    const right = Math.min(view.width + 4, Math.max(left + 2, xOf(view, selected.end)));
    this.context.strokeStyle = this.theme.text;
    this.context.lineWidth = 2;
    this.context.strokeRect(left, box.top - view.scroll + selected.row * ROW - 1, right - left, ROW);
  }

  private arrow(view: View, flow: Marks['flows'][number]): void {
    const from = this.boxes.find((one) => one.lane === flow.from.lane);
    const to = this.boxes.find((one) => one.lane === flow.to.lane);
    if (!from || !to) return;
    const x1 = xOf(view, flow.from.time);
    const y1 = from.top - view.scroll + flow.from.row * ROW + ROW / 2;
    const x2 = xOf(view, flow.to.time);
    const y2 = to.top - view.scroll + flow.to.row * ROW + ROW / 2;
    const { context } = this;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + 30, y1, x2 - 30, y2, x2, y2);
    context.moveTo(x2 - 6, y2 - 4);
    context.lineTo(x2, y2);
    context.lineTo(x2 - 6, y2 + 4);
    context.stroke();
  }

  private gutter(view: View): void {
    const { context, theme } = this;
    context.fillStyle = theme.bg;
    context.fillRect(0, 0, GUTTER, view.height);
    context.save();
    context.beginPath();
    context.rect(0, HEAD, view.width, view.height - HEAD);
    context.clip();
    for (const box of this.boxes) {
      const top = box.top - view.scroll;
      if (top > view.height || top + box.height < HEAD - GROUP) continue;
      if (box.group !== null) {
        context.fillStyle = theme.panel;
        context.fillRect(0, top - GROUP, view.width, GROUP - 4);
        context.fillStyle = theme.text;
        context.font = `600 11px ${theme.font}`;
        context.fillText(box.group, 8, top - GROUP / 2 - 2);
        context.font = `11px ${theme.font}`;
      }
      context.fillStyle = theme.text;
      context.fillText(fit(box.lane.label, Math.floor((GUTTER - 20) / this.letter)), 12, top + ROW / 2);
      context.fillStyle = theme.line;
      context.fillRect(0, top + box.height + 2, GUTTER, 1);
    }
    context.restore();
    context.fillStyle = theme.line;
    context.fillRect(GUTTER - 1, 0, 1, view.height);
  }

  private ruler(view: View, ticks: readonly number[], marks: Marks): void {
    const { context, theme } = this;
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, view.width, HEAD);
    context.fillStyle = theme.soft;
    context.fillText(nanos(view.end - view.begin), 12, HEAD / 2);
    context.fillStyle = theme.text;
    const step = (ticks[1] ?? view.end) - (ticks[0] ?? view.begin);
    for (const tick of ticks) {
      const x = xOf(view, tick);
      if (x > GUTTER - 2 && x < view.width - 40) context.fillText(instantWithin(tick, step), x + 3, HEAD / 2);
    }
    if (marks.cursor !== null) {
      const text = instantWithin(marks.cursor, (view.end - view.begin) / 1000);
      const x = Math.min(xOf(view, marks.cursor) + 4, view.width - 90);
      context.fillStyle = theme.accent;
      context.fillRect(x - 2, 3, text.length * this.letter + 10, HEAD - 6);
      context.fillStyle = theme.bg;
      context.fillText(text, x + 2, HEAD / 2);
    }
    context.fillStyle = theme.line;
    context.fillRect(0, HEAD - 1, view.width, 1);
  }
}

const DIM = 0.18; // what a search did not find
const faint = (word: number): number => (word & 0xffffff) | (Math.round(DIM * 255) << 24);

export const xOf = (view: View, time: number): number => GUTTER + ((time - view.begin) / (view.end - view.begin)) * (view.width - GUTTER);
export const timeAt = (view: View, x: number): number => view.begin + ((x - GUTTER) / (view.width - GUTTER)) * (view.end - view.begin);

const fit = (text: string, letters: number): string => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);

// As many digits as tell two ticks apart.
export function instantWithin(time: number, step: number): string {
  const [unit, name] = step >= 1e8 ? [1e9, 's'] : step >= 1e5 ? [1e6, 'ms'] : step >= 100 ? [1e3, 'µs'] : [1, 'ns'];
  const steps = step / unit;
  const digits = [0, 1, 2].find((some) => Math.abs(steps * 10 ** some - Math.round(steps * 10 ** some)) < 1e-6 && steps * 10 ** some > 0.5) ?? 3;
  const value = Math.abs(time) < step / 1000 ? 0 : time / unit; // no -0
  return `${value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`;
}

function ticksOf(begin: number, end: number, wanted: number): number[] {
  const raw = (end - begin) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-9)));
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? power * 10);
  const ticks: number[] = [];
  for (let tick = Math.ceil(begin / step) * step; tick < end && ticks.length < 200; tick += step) ticks.push(tick);
  return ticks;
}

// The first slice from `from` on that ends after `time`: near ones are found in few steps.
function gallop(row: SliceRow, time: number, from: number): number {
  let step = 1;
  let low = from;
  while (low + step < row.end.length && (row.end[low + step] ?? 0) <= time) {
    low += step;
    step *= 2;
  }
  let high = Math.min(row.end.length, low + step);
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((row.end[middle] ?? 0) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The last point at or before `time`, else the first.
function upTo(at: Float64Array, time: number): number {
  let low = 0;
  let high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((at[middle] ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
