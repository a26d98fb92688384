// What a device's engines did, all its streams together: computing, each direction of copies. Where several ran at once that is one slice, which
// says how many.
import type { Events, Name, Track } from './events';

export interface EngineSlice {
  readonly begin: number;
  end: number;
  count: number;
  most: number; // at once
}
export interface Engine {
  readonly label: string;
  readonly color: string;
  readonly slices: EngineSlice[];
  readonly partly: boolean; // of some streams not every event is here
}

const ORDER = ['compute', 'collectives', 'graphs', 'Memcpy HtoD', 'Memcpy DtoH', 'Memcpy DtoD', 'Memcpy PtoP', 'Memcpy HtoH', 'Memset'];

function engineOf(name: Name | undefined): [label: string, color: string] {
  switch (name?.kind) {
    case 'collective':
      return ['collectives', '--c-collective'];
    case 'graph':
      return ['graphs', '--c-compute'];
    case 'copy':
      return [name.text, '--c-copy'];
    case 'memset':
      return ['Memset', '--c-copy'];
    default:
      return ['compute', '--c-compute'];
  }
}

// In time: a begin at the instant of an end comes after it.
function merged(begins: Float64Array, ends: Float64Array): EngineSlice[] {
  const stops = ends.slice().sort();
  const starts = begins.slice().sort();
  const slices: EngineSlice[] = [];
  let open: EngineSlice | null = null;
  let running = 0;
  for (let i = 0, j = 0; i < starts.length || running > 0;) {
    const start = starts[i] ?? Infinity;
    const stop = stops[j] ?? Infinity;
    if (start < stop) {
      if (!open) {
        open = { begin: start, end: start, count: 0, most: 0 };
        slices.push(open);
      }
      ++running;
      ++open.count;
      open.most = Math.max(open.most, running);
      ++i;
    } else {
      ++j;
      --running;
      if (open) open.end = stop;
      if (running <= 0 && starts[i] !== stop) open = null;
      running = Math.max(running, 0);
    }
  }
  return slices;
}

// Those of one device; none where its streams say the same: one stream, one engine.
export function enginesOf(all: Events, streams: readonly Track[]): Engine[] {
  const kinds = all.names.map(engineOf);
  const spans = new Map<string, { color: string; begin: number[]; end: number[] }>();
  for (const track of streams) {
    for (let i = 0; i < track.begin.length; ++i) {
      const [label, color] = kinds[track.name[i] ?? 0] ?? ['compute', '--c-compute'];
      const begin = track.begin[i] ?? 0;
      const end = track.end[i] ?? 0;
      if (end <= begin) continue; // no time was taken
      let span = spans.get(label);
      if (!span) spans.set(label, (span = { color, begin: [], end: [] }));
      span.begin.push(begin);
      span.end.push(end);
    }
  }
  if (streams.length < 2 && spans.size < 2) return [];
  const partly = streams.some((track) => track.strip !== null);
  return [...spans].sort((a, b) => ORDER.indexOf(a[0]) - ORDER.indexOf(b[0]))
    .map(([label, { color, begin, end }]) => ({ label, color, partly, slices: merged(Float64Array.from(begin), Float64Array.from(end)) }));
}
