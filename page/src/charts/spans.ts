// Life spans of the memory at the peak: each piece is a box from when it came to when it went, as high as it is large. By time they lie
// in the order in which they came; by address as they lay in memory, what was free between them left out.
import * as colors from '../colors';
import { h, themed } from '../dom';
import { bytes, count, instant, nanos, roundBytes, safe } from '../format';
import { info, numberAt, section as other, type Row, type Section, textAt } from '../report';
import { instantWithin } from '../timeline/draw';
import { swatch } from './bars';
import { chart, type CustomItem, tooltip } from './echarts';

const MOST = 600; // boxes; the others together are thinner than a line
const LEAST_WIDTH = 3; // pixels: what lived for microseconds is to be seen beside what lived for hours
const LEAST_GAP = 0.004; // of the height, where something else lay between two addresses

interface Box {
  readonly row: Row;
  readonly begin: number;
  readonly end: number;
  readonly low: number;
  readonly high: number;
}

const sinceOrigin = (at: number): number => at - (info.origin_ns ?? 0);
const begin = (row: Row): number => numberAt(row, 'begin_ns') ?? 0;
const size = (row: Row): number => numberAt(row, 'bytes') ?? 0;
const address = (row: Row): number => Number(textAt(row, 'address') || Number.NaN);

function stacked(rows: readonly Row[], end: number, gaps: boolean): Box[] {
  const gap = gaps ? LEAST_GAP * rows.reduce((sum, row) => sum + size(row), 0) : 0;
  const boxes: Box[] = [];
  let low = 0;
  let free = Number.NaN; // the address behind the last box
  for (const row of rows) {
    if (address(row) > free) low += gap;
    free = address(row) + size(row);
    boxes.push({ row, begin: begin(row), end: numberAt(row, 'end_ns') ?? end, low, high: low + size(row) });
    low += size(row);
  }
  return boxes;
}

// Of one process on one device: one address space.
function holders(section: Section): Map<string, Row[]> {
  const made = new Map<string, Row[]>();
  for (const row of section.rows) {
    const name = `device ${String(row['device'] ?? '?')}, process ${String(row['pid'] ?? '?')}`;
    made.set(name, [...(made.get(name) ?? []), row]);
  }
  return made;
}

function said({ row, end }: Box): string {
  const where = [textAt(row, 'op'), textAt(row, 'site')].filter(Boolean).map(safe).join('\n');
  const until = row['end_ns'] === null ? 'to the end' : `to ${instant(end)}: ${nanos(end - begin(row))}`;
  return `${safe(textAt(row, 'kind'))}, ${bytes(size(row))}\n${where ? `${where}\n` : ''}from ${instant(begin(row))} ${until}${textAt(row, 'address') ? `\nat ${textAt(row, 'address')}` : ''}`;
}

function picture(title: string, rows: readonly Row[], byAddress: boolean): HTMLElement {
  const ends = (other('run')?.rows ?? []).map((row) => numberAt(row, 'end_ns') ?? 0);
  const last = Math.max(...ends, ...rows.map((row) => numberAt(row, 'end_ns') ?? begin(row)));
  const first = Math.min(...rows.map(begin));
  const ordered = byAddress ? rows.filter((row) => !Number.isNaN(address(row))).sort((a, b) => address(a) - address(b)) : [...rows].sort((a, b) => begin(a) - begin(b));
  const boxes = stacked(ordered, last, byAddress);
  const high = boxes.at(-1)?.high ?? 1;
  const kinds = [...new Set(rows.map((row) => textAt(row, 'kind')))].sort();
  const peak = numberAt(rows[0], 'peak_at_ns');
  return chart(title, 320, () => ({
    tooltip: { ...tooltip(), formatter: (at) => { const box = boxes[(Array.isArray(at) ? at[0] : at)?.dataIndex ?? -1]; return box ? said(box) : ''; } },
    grid: { left: 84, right: 12, top: 18, bottom: 62 },
    xAxis: { type: 'value', min: sinceOrigin(first), max: sinceOrigin(last), axisLabel: { color: themed('--soft'), formatter: (at: number) => instantWithin(at, (last - first) / 12) }, axisLine: { lineStyle: { color: themed('--soft') } }, splitLine: { show: false } },
    yAxis: { type: 'value', min: 0, max: high, interval: 2 ** Math.ceil(Math.log2(high / 6)), axisLabel: { show: !byAddress, color: themed('--soft'), showMaxLabel: false, formatter: (value: number) => roundBytes(value) }, splitLine: { show: !byAddress, lineStyle: { color: themed('--line') } } },
    dataZoom: [{ type: 'slider', height: 18, bottom: 8, filterMode: 'none', textStyle: { color: themed('--soft') }, labelFormatter: '', borderColor: themed('--line'), fillerColor: `${themed('--accent')}22`, showDataShadow: false }],
    series: [{
      type: 'custom', clip: true, data: boxes.map((box) => [sinceOrigin(box.begin), box.low, sinceOrigin(box.end), box.high]), encode: { x: [0, 2], y: [1, 3] },
      renderItem: (params, api): CustomItem => {
        const [left = 0, bottom = 0] = api.coord([api.value(0), api.value(1)]);
        const [right = 0, top = 0] = api.coord([api.value(2), api.value(3)]);
        const kind = kinds.indexOf(textAt(boxes[params.dataIndex]?.row, 'kind'));
        const line = bottom - top > 4 ? 1 : 0;
        return { type: 'rect', shape: { x: left, y: top, width: Math.max(LEAST_WIDTH, right - left), height: Math.max(0.5, bottom - top) }, style: { fill: themed(colors.ofSeries(kind)), stroke: themed('--bg'), lineWidth: line } };
      },
      ...(peak === null ? {} : { markLine: { silent: true, symbol: 'none', data: [{ xAxis: sinceOrigin(peak) }], label: { formatter: 'peak', color: themed('--soft') }, lineStyle: { color: themed('--soft'), type: 'dotted', width: 1 } } }),
    }],
  }));
}

export function spans(section: Section): HTMLElement | null {
  if (section.rows.length === 0) return null;
  const all = holders(section);
  const shown = h('div');
  const who = h('select', { 'aria-label': 'Whose memory' }, ...[...all.keys()].map((name) => h('option', { value: name }, name)));
  const order = h('select', { 'aria-label': 'Order of the boxes' }, h('option', { value: 'time' }, 'by time'), h('option', { value: 'address' }, 'by address'));
  const draw = (): void => {
    const rows = [...(all.get(who.value) ?? [])].sort((a, b) => size(b) - size(a));
    const drawn = rows.slice(0, MOST);
    const kinds = [...new Set(drawn.map((row) => textAt(row, 'kind')))].sort();
    const legend = h('ul', { class: 'legend', 'aria-label': 'Colours' }, ...kinds.map((kind, at) => h('li', {}, swatch(colors.ofSeries(at)), safe(kind))));
    const left = rows.slice(MOST);
    const note = left.length ? h('p', { class: 'note' }, `Drawn: the ${count(MOST)} largest; ${count(left.length)} more, ${bytes(left.reduce((sum, row) => sum + size(row), 0))} in all, are in the table.`) : null;
    shown.replaceChildren(picture(section.title, drawn, order.value === 'address'), legend, ...(note ? [note] : []));
  };
  who.addEventListener('change', draw);
  order.addEventListener('change', draw);
  draw();
  return h('div', {}, h('div', { class: 'tools' }, all.size > 1 ? who : null, order), shown);
}
