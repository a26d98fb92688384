// What lies in a range of time, lane by lane and name by name. Slices that lie in it in part count with that part.
import type { Events } from './events';
import { firstAfter, type Lane } from './lanes';

export interface LaneSum {
  readonly lane: Lane;
  readonly count: number;
  readonly busy: number; // of the first row: nested slices lie within it
}

export interface NameSum {
  readonly name: number;
  count: number;
  total: number;
}

export function sumOf(all: Events, lanes: readonly Lane[], from: number, to: number): { lanes: LaneSum[]; names: NameSum[] } {
  const sums: LaneSum[] = [];
  const names = new Map<number, NameSum>();
  for (const lane of lanes) {
    if (!lane.track && !lane.summed) continue;
    let count = 0;
    let busy = 0;
    lane.rows.forEach((row, depth) => {
      for (let i = firstAfter(row, from); i < row.begin.length && (row.begin[i] ?? 0) < to; ++i) {
        const part = Math.min(row.end[i] ?? 0, to) - Math.max(row.begin[i] ?? 0, from);
        count += lane.summed?.[row.at[i] ?? 0] ?? 1;
        if (depth === 0) busy += part;
        if (!lane.track) continue; // its events are named by their streams
        const name = lane.track?.name[row.at[i] ?? 0] ?? 0;
        const sum = names.get(name) ?? { name, count: 0, total: 0 };
        ++sum.count;
        sum.total += part;
        names.set(name, sum);
      }
    });
    if (count) sums.push({ lane, count, busy });
  }
  return { lanes: sums, names: [...names.values()].sort((a, b) => b.total - a.total).slice(0, 40).filter((sum) => all.names[sum.name]) };
}

// Slices whose names have all the words, in order of time.
export interface Match {
  readonly lane: Lane;
  readonly row: number;
  readonly at: number; // in the row
  readonly begin: number;
}

export function matchingNames(all: Events, words: string): Set<number> | null {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return null;
  const found = new Set<number>();
  all.names.forEach((name, at) => {
    const text = `${name.text} ${name.whole} ${name.detail}`.toLowerCase();
    if (wanted.every((word) => text.includes(word))) found.add(at);
  });
  return found;
}

export function matchesOf(lanes: readonly Lane[], names: ReadonlySet<number>): Match[] {
  const found: Match[] = [];
  for (const lane of lanes) {
    const track = lane.track;
    if (!track) continue;
    lane.rows.forEach((row, depth) => {
      for (let i = 0; i < row.at.length; ++i) {
        if (names.has(track.name[row.at[i] ?? 0] ?? -1)) found.push({ lane, row: depth, at: i, begin: row.begin[i] ?? 0 });
      }
    });
  }
  return found.sort((a, b) => a.begin - b.begin);
}
