// Which sections have a picture, and which. The table always stands below it.
import * as colors from '../colors';
import { brief, bytes, count } from '../format';
import { type Row, type Section, numberAt, textAt } from '../report';
import { rankedBars, stackedBar, type Slice } from './bars';
import { curves } from './curve';
import { flame } from './flame';
import { spans } from './spans';
import { steps } from './steps';
import { treemap } from './treemap';

type Chart = (section: Section) => HTMLElement | null;

function slices(section: Section, name: string, amount: string, color: (text: string, at: number) => string): Slice[] {
  const made: Slice[] = [];
  section.rows.forEach((row: Row, at) => {
    const value = numberAt(row, amount);
    const label = textAt(row, name);
    if (value) made.push({ label, value, color: color(label, at), more: textAt(row, 'meaning') || textAt(row, 'rule') });
  });
  return made;
}

function bars(name: string, amount: string, color: (text: string, at: number) => string = () => '--c-compute'): Chart {
  return (section) => {
    const of = slices(section, name, amount, color);
    return of.length > 1 ? rankedBars(section.title, of, amount.endsWith('bytes') ? bytes : undefined) : null;
  };
}

function tensorCores(section: Section): HTMLElement | null {
  const of = section.rows.flatMap((row, at): Slice[] => {
    const value = numberAt(row, 'total_ns');
    const kind = textAt(row, 'kind') || 'code not known';
    const label = `${kind === 'none' ? 'no tensor cores' : kind} ${textAt(row, 'precision')}`.trim();
    return value ? [{ label, value, color: kind === 'none' ? '--c-unknown' : colors.ofSeries(at) }] : [];
  });
  return of.length ? stackedBar(section.title, of) : null;
}

function kernelBars(section: Section): HTMLElement | null {
  const sums = new Map<string, Slice>();
  for (const row of section.rows) {
    const label = brief(textAt(row, 'name'));
    const value = (numberAt(row, 'total_ns') ?? 0) + (sums.get(label)?.value ?? 0);
    sums.set(label, { label, value, color: colors.ofCategory(textAt(row, 'category')), more: textAt(row, 'category') });
  }
  return sums.size > 1 ? rankedBars('Kernels by time, all launch shapes of one name together', [...sums.values()], undefined, 10) : null;
}

const CHARTS: { readonly [section: string]: Chart } = {
  kernels: kernelBars,
  categories: bars('category', 'total_ns', colors.ofCategory),
  'idle-causes': bars('cause', 'total_ns', colors.ofCause),
  'category-tree': treemap,
  'memory-timeline': (section) => curves(section, section.rows.some((row) => numberAt(row, 'reserved_bytes')) ? ['reserved_bytes', 'allocated_bytes'] : ['allocated_bytes'], ['device'], bytes),
  'queue-timeline': (section) => curves(section, ['mean'], ['device', 'stream'], count),
  'memory-peak': bars('kind', 'bytes', () => '--c-copy'),
  'memory-spans': spans,
  ops: (section) => flame(section, 'path', 'device_self_ns'),
  steps,
  sites: bars('site', 'device_total_ns', (_, at) => colors.ofSeries(at)),
  'tensor-cores': tensorCores,
  api: bars('call', 'self_ns', () => '--c-host'),
  copies: bars('kind', 'bytes', () => '--c-copy'),
};

export function chartOf(name: string, section: Section): HTMLElement | null {
  const chart = Object.hasOwn(CHARTS, name) ? CHARTS[name] : undefined;
  return chart ? chart(section) : null;
}
