// One kernel and launch shape in a panel: all that is known of it, and its executions over time.
import uPlot from 'uplot';
import { h, themed } from './dom';
import { cell, headings, nanos, safe } from './format';
import { info, type Row, section, textAt } from './report';
import { instantWithin } from './timeline/draw';
import { events, hasEvents } from './timeline/events';

interface Executions {
  readonly at: number[]; // seconds
  readonly length: number[]; // ns
}

function executionsOf(row: Row): Executions {
  const all = events();
  const shape = `grid ${textAt(row, 'grid')} block ${textAt(row, 'block')}`;
  const names = new Set<number>();
  all.names.forEach((name, at) => {
    if (name.whole === textAt(row, 'kernel') && name.detail === shape) names.add(at);
  });
  const found: { at: number; length: number }[] = [];
  for (const track of all.tracks) {
    if (track.kind !== 'stream' || (track.device !== null && typeof row['device'] === 'number' && track.device !== row['device'])) continue;
    for (let i = 0; i < track.begin.length; ++i) {
      if (names.has(track.name[i] ?? -1)) found.push({ at: (track.begin[i] ?? 0) / 1e9, length: (track.end[i] ?? 0) - (track.begin[i] ?? 0) });
    }
  }
  found.sort((a, b) => a.at - b.at);
  return { at: found.map((one) => one.at), length: found.map((one) => one.length) };
}

function draw(holder: HTMLElement, of: Executions): void {
  const axis = { stroke: themed('--soft'), grid: { stroke: themed('--line'), width: 1 }, ticks: { stroke: themed('--line'), width: 1 } };
  new uPlot({
    width: Math.max(300, holder.clientWidth), height: 200, legend: { show: false }, cursor: { drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.1 || 1] } },
    axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => instantWithin(tick * 1e9, ((ticks[1] ?? 1) - (ticks[0] ?? 0)) * 1e9)) }, { ...axis, size: 80, values: (_, ticks) => ticks.map(nanos) }],
    series: [{}, { stroke: themed('--c-compute'), width: 0, points: { show: true, size: 4, fill: themed('--c-compute') }, paths: () => null }],
  }, [of.at, of.length], holder);
}

// Opens the panel; Escape or its button closes it.
export function showKernel(row: Row): void {
  const kernels = section('kernels');
  if (!kernels) return;
  const words = headings(kernels.columns);
  const facts = kernels.columns.flatMap((column, at) => {
    const value = row[column.key] ?? null;
    if (value === null || column.key === 'kernel' || column.key === 'symbol') return [];
    return [h('div', {}, h('dt', {}, words[at] ?? ''), h('dd', {}, cell(value, column, info.hints['kernels']?.[column.key])))];
  });
  const name = safe(textAt(row, 'name') || textAt(row, 'kernel'));
  const holder = h('div', { class: 'drawn' });
  const dialog = h('dialog', { class: 'side-panel', 'aria-label': name },
    h('div', { class: 'top' }, h('h2', {}, name), h('button', { type: 'button', class: 'quiet', click: () => dialog.close() }, 'Close')),
    h('p', {}, h('code', {}, safe(textAt(row, 'kernel')))),
    h('dl', { class: 'evidence' }, ...facts));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  if (!hasEvents()) return;
  const of = executionsOf(row);
  if (of.at.length === 0) return;
  dialog.append(h('h3', {}, `${of.at.length === 1 ? 'Its execution' : `${of.at.length} executions`} over time`), holder);
  draw(holder, of);
}
