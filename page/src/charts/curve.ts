// Values over time: one line a device or stream. What is between two points is what the first one says.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import * as colors from '../colors';
import { themed } from '../dom';
import { bytes, heading, roundBytes } from '../format';
import { info, numberAt, section as other, type Section } from '../report';
import { instantWithin } from '../timeline/draw';
import { whenShown } from './shown';

const MOST_LINES = 8;

// `values`: columns, each with what it is called where there are several.
export function curves(section: Section, values: readonly string[], by: readonly string[], words: (value: number) => string): HTMLElement | null {
  const lines = new Map<string, { at: number; value: number }[]>();
  for (const row of section.rows) {
    const at = numberAt(row, 'at_ns');
    const whose = by.map((key) => `${key} ${String(row[key] ?? '?')}`).join(', ');
    for (const value of values) {
      const amount = numberAt(row, value);
      if (at === null || amount === null) continue;
      const name = values.length > 1 ? `${heading(value)}, ${whose}` : whose;
      const line = lines.get(name) ?? [];
      line.push({ at: (at - (info.origin_ns ?? 0)) / 1e9, value: amount });
      lines.set(name, line);
    }
  }
  const ends = (other('run')?.rows ?? []).map((row) => numberAt(row, 'end_ns') ?? 0);
  const last = (Math.max(0, ...ends) - (info.origin_ns ?? 0)) / 1e9;
  for (const line of lines.values()) {
    const newest = line.reduce((most, point) => (point.at > most.at ? point : most));
    if (last > newest.at) line.push({ at: last, value: newest.value }); // it holds until the run ends
  }
  const shown = [...lines].filter(([, line]) => line.length > 1).sort((a, b) => b[1].length - a[1].length).slice(0, MOST_LINES);
  if (shown.length === 0) return null;
  const data = aligned(shown.map(([, line]) => line.sort((a, b) => a.at - b.at)));
  let plot: uPlot | null = null;
  return whenShown(section.title, 210, (holder, width) => {
    plot?.destroy();
    holder.classList.toggle('single', shown.length === 1); // what its only line is, the heading says
    plot = new uPlot(options(shown.map(([name]) => name), width, words), data, holder);
  });
}

// All lines over one axis: at each instant of any of them, each has its newest value.
function aligned(lines: { at: number; value: number }[][]): uPlot.AlignedData {
  const instants = [...new Set(lines.flatMap((line) => line.map((point) => point.at)))].sort((a, b) => a - b);
  const values = lines.map((line) => {
    let next = 0;
    return instants.map((at) => {
      while (next < line.length && (line[next]?.at ?? 0) <= at) ++next;
      return next > 0 ? (line[next - 1]?.value ?? null) : null;
    });
  });
  return [instants, ...values];
}

function options(names: readonly string[], width: number, words: (value: number) => string): uPlot.Options {
  const axis = { stroke: themed('--soft'), grid: { stroke: themed('--line'), width: 1 }, ticks: { stroke: themed('--line'), width: 1 }, font: `12px ${themed('--font')}` };
  const doublings = Array.from({ length: 50 }, (_, power) => 2 ** power);
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  return {
    width,
    height: 180,
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.08 || 1] } },
    cursor: { drag: { x: true, y: false } },
    legend: { live: true },
    axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => instantWithin(tick * 1e9, ((ticks[1] ?? 1) - (ticks[0] ?? 0)) * 1e9)) }, { ...axis, size: 84, ...(words === bytes ? { incrs: doublings } : {}), values: (_, ticks) => ticks.map((tick) => (words === bytes ? roundBytes(tick) : words(tick))) }],
    series: [
      { label: 'at', value: (_, at) => (at === null ? '' : `${at.toFixed(6)} s`) },
      ...names.map((label, at): uPlot.Series => ({
        label,
        stroke: themed(colors.ofSeries(at)),
        fill: names.length === 1 ? `${themed(colors.ofSeries(at))}33` : '',
        width: 1.5,
        points: { show: false },
        value: (_, value) => (value === null ? '' : words(value)),
        ...(stepped ? { paths: stepped } : {}),
      })),
    ],
  };
}
