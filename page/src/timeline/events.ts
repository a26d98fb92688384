// The events of the run, track by track, in the order of their begins. Instants are nanoseconds from the run's origin.
import { embedded } from '../report';
import { fromBase64, summed, unpackLz4, unsigned } from './unpack';

export type NameKind = 'driver' | 'runtime' | 'library' | 'operation' | 'range' | 'mark' | 'kernel' | 'collective' | 'copy' | 'memset' | 'graph';

export interface Name {
  readonly text: string;
  readonly kind: NameKind;
  readonly whole: string; // of a kernel: the whole name
  readonly detail: string;
}

// Events that were too many to be kept one by one: how busy they were, in equal pieces of time.
export interface Strip {
  readonly from: number;
  readonly width: number;
  readonly busy: readonly number[];
  readonly counts: readonly number[];
}

export interface Track {
  readonly process: number;
  readonly kind: 'thread' | 'ranges' | 'stream';
  readonly label: string;
  readonly id: number;
  readonly device: number | null;
  readonly strip: Strip | null;
  readonly begin: Float64Array;
  readonly end: Float64Array;
  readonly name: Float64Array;
  readonly result: Float64Array | null; // threads, and the following
  readonly site: Float64Array | null;
  readonly bytes: Float64Array | null; // streams, and the following
  readonly launch: Float64Array | null; // place among the process's host events, + 1
}

export interface Process {
  readonly pid: number;
  readonly rank: string;
  readonly host: string;
  readonly executable: string;
}

export interface Events {
  readonly processes: readonly Process[];
  readonly tracks: readonly Track[];
  readonly names: readonly Name[];
  readonly sites: readonly string[];
  readonly leftOut: number;
  readonly shortest: number; // of those kept outside of `exact`
  readonly exact: readonly [number, number] | null; // where every event is kept
}

interface Described {
  readonly processes: readonly Process[];
  readonly names: readonly (readonly [string, NameKind, string, string])[];
  readonly sites: readonly string[];
  readonly left_out: number;
  readonly shortest_ns: number;
  readonly exact: readonly [number, number] | null;
  readonly tracks: readonly {
    readonly process: number;
    readonly kind: Track['kind'];
    readonly label: string;
    readonly id: number;
    readonly device?: number | null;
    readonly events: number;
    readonly columns: readonly (readonly [number, number])[];
    readonly strip?: Strip;
  }[];
}

export const hasEvents = (): boolean => document.getElementById('gputrace-events') !== null;

let read: Events | null = null;

export function events(): Events {
  read ??= embeddedEvents();
  return read;
}

// Those of a served page, with every one that begins in this time (where that are too many: around its middle). From then on they are the
// page's events.
export async function fetchEvents(begin: number, end: number): Promise<Events> {
  const answer = await fetch(`events?from=${Math.floor(begin)}&to=${Math.ceil(end)}`);
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  const said = (await answer.json()) as { readonly events: Described; readonly columns: string };
  read = readEvents(said.events, said.columns);
  return read;
}

function embeddedEvents(): Events {
  const columns = document.getElementById('gputrace-columns');
  const text = columns?.textContent ?? '';
  columns?.remove(); // read once; a copy of the text is memory for nothing
  return readEvents(JSON.parse(embedded('gputrace-events') ?? 'null') as Described, text);
}

function readEvents(described: Described, columns: string): Events {
  const bytes = fromBase64(columns);
  let at = 0;
  const tracks = described.tracks.map((track): Track => {
    const raw = track.columns.map(([size, packed]) => {
      const column = unpackLz4(bytes.subarray(at, at + packed), size);
      at += packed;
      return column;
    });
    const empty = new Uint8Array();
    const count = track.events;
    const begin = summed(raw[0] ?? empty, count);
    const end = unsigned(raw[1] ?? empty, count);
    for (let i = 0; i < count; ++i) end[i] = (end[i] ?? 0) + (begin[i] ?? 0);
    const stream = track.kind === 'stream';
    return {
      process: track.process, kind: track.kind, label: track.label, id: track.id, device: track.device ?? null, strip: track.strip ?? null,
      begin, end, name: unsigned(raw[2] ?? empty, count),
      result: stream ? null : unsigned(raw[3] ?? empty, count),
      site: stream ? null : unsigned(raw[4] ?? empty, count),
      bytes: stream ? unsigned(raw[3] ?? empty, count) : null,
      launch: stream ? summed(raw[4] ?? empty, count) : null,
    };
  });
  const names = described.names.map(([text, kind, whole, detail]): Name => ({ text, kind, whole, detail }));
  return { processes: described.processes, tracks, names, sites: described.sites, leftOut: described.left_out, shortest: described.shortest_ns, exact: described.exact };
}

export interface Place {
  readonly track: Track;
  readonly at: number; // index in the track
}

// The call that launched it, if it is known.
export function launchOf(all: Events, place: Place): Place | null {
  let number = (place.track.launch?.[place.at] ?? 0) - 1;
  if (number < 0) return null;
  for (const track of all.tracks) {
    if (track.process !== place.track.process || track.kind === 'stream') continue;
    if (number < track.begin.length) return { track, at: number };
    number -= track.begin.length;
  }
  return null;
}

// What the call launched, in any stream: the first.
export function launchedBy(all: Events, place: Place): Place | null {
  let number = place.at + 1;
  for (const track of all.tracks) {
    if (track === place.track) break;
    if (track.process === place.track.process && track.kind !== 'stream') number += track.begin.length;
  }
  for (const track of all.tracks) {
    if (track.process !== place.track.process || !track.launch) continue;
    const at = track.launch.indexOf(number);
    if (at >= 0) return { track, at };
  }
  return null;
}
