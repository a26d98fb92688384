// What the timeline draws, from top to bottom: steps; of each device its engines, its streams, its gaps and its counters; of each process its threads.
// A lane has rows of slices that do not overlap, in order of time, so that what is visible is found by bisection.
import * as colors from '../colors';
import { safe } from '../format';
import { numberAt, report, section, textAt, info } from '../report';
import { enginesOf } from './engines';
import type { Events, Name, Strip, Track } from './events';

export interface SliceRow {
  readonly begin: Float64Array;
  readonly end: Float64Array;
  readonly at: Uint32Array; // index in the track, or in the lane's own list
  readonly busy: Float64Array; // time in the slices before this one
}

export interface OwnSlice {
  readonly text: string;
  readonly color: string;
  readonly detail: string;
}

export interface Lane {
  readonly label: string;
  readonly group: string;
  readonly rows: readonly SliceRow[];
  readonly track: Track | null;
  readonly own: readonly OwnSlice[]; // slices that are of no track: gaps, steps, engines
  readonly summed?: readonly number[]; // of engines: the events in each slice
  readonly counter: Counter | null;
  readonly strip: Strip | null;
}

export interface Counter {
  readonly at: Float64Array;
  readonly value: Float64Array;
  readonly most: number;
  readonly words: (value: number) => string;
  readonly color: string;
}

const NO_ROWS: readonly SliceRow[] = [];

// Slices in the order of their begins go to the first row that is free: what is nested lies below.
function rowsOf(begin: Float64Array, end: Float64Array): SliceRow[] {
  const depth = new Uint8Array(begin.length);
  const ends: number[] = [];
  const counts: number[] = [];
  for (let i = 0; i < begin.length; ++i) {
    let row = 0;
    while (row < ends.length && (ends[row] ?? 0) > (begin[i] ?? 0) && row < 63) ++row;
    ends[row] = Math.max(ends[row] ?? 0, end[i] ?? 0);
    counts[row] = (counts[row] ?? 0) + 1;
    depth[i] = row;
  }
  const rows = counts.map((count) => ({ begin: new Float64Array(count), end: new Float64Array(count), at: new Uint32Array(count), busy: new Float64Array(count + 1) }));
  const used = counts.map(() => 0);
  for (let i = 0; i < begin.length; ++i) {
    const row = rows[depth[i] ?? 0];
    const to = used[depth[i] ?? 0] ?? 0;
    used[depth[i] ?? 0] = to + 1;
    if (!row) continue;
    const from = begin[i] ?? 0;
    const until = end[i] ?? 0;
    row.begin[to] = from;
    row.end[to] = until;
    row.at[to] = i;
    row.busy[to + 1] = (row.busy[to] ?? 0) + (until - from);
  }
  return rows;
}

function ownLane(label: string, group: string, slices: { begin: number; end: number; own: OwnSlice }[]): Lane | null {
  if (slices.length === 0) return null;
  slices.sort((a, b) => a.begin - b.begin || b.end - a.end);
  const rows = rowsOf(Float64Array.from(slices, (one) => one.begin), Float64Array.from(slices, (one) => one.end));
  return { label, group, rows, track: null, own: slices.map((one) => one.own), counter: null, strip: null };
}

const origin = (): number => info.origin_ns ?? 0;

function stepLanes(): Lane[] {
  const rows = section('steps')?.rows ?? [];
  const slices = rows.flatMap((row) => {
    const begin = numberAt(row, 'begin_ns');
    const length = numberAt(row, 'duration_ns');
    if (begin === null || length === null) return [];
    const odd = (numberAt(row, 'step') ?? 0) % 2 === 1;
    return [{ begin: begin - origin(), end: begin - origin() + length, own: { text: `step ${String(row['step'] ?? '')}`, color: odd ? '--c-dispatch' : '--c-unknown', detail: textAt(row, 'phase') } }];
  });
  const lane = ownLane('Steps', 'Run', slices);
  return lane ? [lane] : [];
}

function gapLane(device: number | null): Lane | null {
  const rows = section('idle')?.rows ?? [];
  return ownLane('idle, by cause', groupOfDevice(device), rows.flatMap((row) => {
    const begin = numberAt(row, 'begin_ns');
    const length = numberAt(row, 'duration_ns');
    if (begin === null || length === null || (device !== null && row['device'] !== device)) return [];
    const cause = textAt(row, 'cause');
    const parts = typeof row['parts'] === 'object' && row['parts'] ? Object.keys(row['parts']).join(', ') : cause;
    return [{ begin: begin - origin(), end: begin - origin() + length, own: { text: cause, color: colors.ofCause(cause), detail: [parts, textAt(row, 'call'), textAt(row, 'site')].filter(Boolean).join(' · ') } }];
  }));
}

function engineLanes(all: Events, device: number | null, streams: readonly Track[]): Lane[] {
  return enginesOf(all, streams).flatMap((engine) => {
    const lane = ownLane(engine.partly ? `${engine.label}, of what is shown one by one` : engine.label, groupOfDevice(device), engine.slices.map((one) => ({
      begin: one.begin, end: one.end, own: { text: one.count === 1 ? engine.label : `${engine.label} × ${one.count}`, color: engine.color, detail: one.most > 1 ? `up to ${one.most} at once` : 'one after another' },
    })));
    return lane ? [{ ...lane, summed: engine.slices.map((one) => one.count) }] : [];
  });
}

const groupOfDevice = (device: number | null): string => (device === null ? 'Device' : `Device ${device}`);

function counterLanes(device: number | null, words: { bytes: (value: number) => string; count: (value: number) => string }): Lane[] {
  const made = (name: string, column: string, label: string, color: string, say: (value: number) => string): Lane[] => {
    const rows = (section(name)?.rows ?? []).filter((row) => device === null || row['device'] === device);
    const points = rows.flatMap((row) => {
      const at = numberAt(row, 'at_ns');
      const value = numberAt(row, column);
      return at === null || value === null ? [] : [{ at: at - origin(), value }];
    });
    if (points.length < 2) return [];
    points.sort((a, b) => a.at - b.at);
    const last = rows.reduce((most, row) => Math.max(most, (numberAt(row, 'at_ns') ?? 0) + (numberAt(row, 'duration_ns') ?? 0)), 0) - origin();
    if (last > (points[points.length - 1]?.at ?? 0)) points.push({ at: last, value: 0 }); // what has a length ends
    const value = Float64Array.from(points, (one) => one.value);
    const counter = { at: Float64Array.from(points, (one) => one.at), value, most: value.reduce((most, one) => Math.max(most, one), 0) || 1, words: say, color };
    return [{ label, group: groupOfDevice(device), rows: NO_ROWS, track: null, own: [], counter, strip: null }];
  };
  return [...made('memory-timeline', 'allocated_bytes', 'memory', '--c-copy', words.bytes), ...made('queue-timeline', 'mean', 'launch queue', '--c-launch', words.count)];
}

export function makeLanes(all: Events, words: { bytes: (value: number) => string; count: (value: number) => string }): Lane[] {
  const lanes: Lane[] = stepLanes();
  const streams = all.tracks.filter((track) => track.kind === 'stream');
  const devices = [...new Set(streams.map((track) => track.device))].sort((a, b) => (a ?? -1) - (b ?? -1));
  for (const device of devices) {
    const group = groupOfDevice(device);
    const gaps = info.origin_ns === null ? null : gapLane(device); // clocks of several hosts: gaps are on their own
    const own = streams.filter((one) => one.device === device);
    lanes.push(...engineLanes(all, device, own));
    for (const track of own) {
      const pid = all.processes.length > 1 ? ` of ${all.processes[track.process]?.pid ?? '?'}` : '';
      lanes.push(trackLane(track, `stream ${track.id}${pid}`, group));
    }
    if (gaps) lanes.push(gaps);
    if (info.origin_ns !== null) lanes.push(...counterLanes(device, words));
  }
  all.processes.forEach((process, at) => {
    const rank = process.rank === '' ? '' : `, rank ${process.rank}`;
    const group = `Process ${process.pid} ${safe(process.executable.split('/').pop() ?? '')}${safe(rank)}`;
    for (const track of all.tracks) {
      if (track.process !== at || track.kind === 'stream') continue;
      const name = safe(track.label) || 'thread';
      lanes.push(trackLane(track, track.kind === 'ranges' ? `${name}: ranges` : `${name} ${track.id}`, group));
    }
  });
  return lanes;
}

function trackLane(track: Track, label: string, group: string): Lane {
  return { label, group, rows: rowsOf(track.begin, track.end), track, own: [], counter: null, strip: track.strip };
}

// By what the name is; kernels by their category.
export function colorsOfNames(names: readonly Name[]): string[] {
  const categories = new Map<string, string>();
  for (const row of report.sections['kernels']?.rows ?? []) categories.set(textAt(row, 'kernel'), textAt(row, 'category'));
  return names.map((name) => {
    switch (name.kind) {
      case 'kernel':
        return colors.ofCategory(categories.get(name.whole) ?? 'other');
      case 'collective':
        return '--c-collective';
      case 'copy':
      case 'memset':
        return '--c-copy';
      case 'graph':
        return '--c-compute';
      case 'operation':
        return '--c-norm';
      case 'range':
      case 'mark':
        return '--c-stream';
      case 'library':
        return '--c-library';
      default:
        return colorOfCall(name.text);
    }
  });
}

function colorOfCall(call: string): string {
  if (/Launch/.test(call)) return '--c-launch';
  if (/Synchronize|StreamWait|EventQuery|StreamQuery/.test(call)) return '--c-sync';
  if (/Memcpy|Memset/.test(call)) return '--c-copy';
  if (/Malloc|Free|MemAlloc|MemFree|MemPool/.test(call)) return '--c-alloc';
  if (/Module|Library|Link|GetFunction|GetProcAddress/.test(call)) return '--c-load';
  return '--c-dispatch';
}

// The first slice that ends after `time`.
export function firstAfter(row: SliceRow, time: number, from = 0): number {
  let low = from;
  let high = row.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((row.end[middle] ?? 0) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
