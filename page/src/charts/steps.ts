// Steps as stacked bars: where each one's time went. The slider chooses which are seen; a click leads to the step in the timeline.
import * as colors from '../colors';
import { h, themed } from '../dom';
import { count, heading, nanos } from '../format';
import { info, numberAt, type Row, type Section } from '../report';
import { hasEvents } from '../timeline/events';
import { type Slice, stackedBar } from './bars';
import { chart, tooltip } from './echarts';

const FIRST_SHOWN = 200;
const NOT_PARTS = new Set(['begin_ns', 'duration_ns', 'end_ns']);

// The parts of a step: every time but its place and its length; those that no step has are left out.
function partsOf(section: Section): string[] {
  return section.columns.filter((column) => column.unit === 'ns' && !NOT_PARTS.has(column.key) && section.rows.some((row) => numberAt(row, column.key))).map((column) => column.key);
}

const plain = (key: string): string => key.replace(/_ns$/, '');

// Where the picture ends, in ns: the first steps of a run may be a hundred times as long as the others, which then were not to be seen.
function topOf(section: Section, counted: readonly Row[]): number | null {
  const lengths = counted.map((row) => numberAt(row, 'duration_ns') ?? 0).sort((a, b) => a - b);
  const usual = Math.max(lengths[Math.ceil(lengths.length * 0.99) - 1] ?? 0, 2 * (lengths[Math.ceil(lengths.length / 2) - 1] ?? 0));
  return section.rows.some((row) => (numberAt(row, 'duration_ns') ?? 0) > 2 * usual) ? 1.25 * usual : null;
}

export function steps(section: Section): HTMLElement | null {
  const parts = partsOf(section);
  if (section.rows.length === 0 || parts.length === 0) return null;
  const usual = section.rows.filter((row) => row['counted'] !== false);
  const counted = usual.length ? usual : section.rows;
  const left = section.rows.length - counted.length;
  const mean = (key: string): number => counted.reduce((sum, row) => sum + (numberAt(row, key) ?? 0), 0) / counted.length;
  const average: Slice[] = parts.map((key) => ({ label: heading(key), value: mean(key), color: colors.ofStepPart(plain(key)) }));
  const bar = stackedBar('Where the time of a mean step went', average.filter((slice) => slice.value > 0).sort((a, b) => b.value - a.value));
  const top = topOf(section, counted);
  const beyond = top === null ? [] : section.rows.filter((row) => (numberAt(row, 'duration_ns') ?? 0) > top);
  const picture = chart(section.title, 300, () => ({
    tooltip: {
      ...tooltip(), trigger: 'axis', axisPointer: { type: 'shadow' },
      formatter: (points) => {
        const row = section.rows[(Array.isArray(points) ? points[0] : points)?.dataIndex ?? -1];
        return row ? said(row, parts) : '';
      },
    },
    grid: { left: 70, right: 12, top: 12, bottom: 62 },
    xAxis: { type: 'category', data: section.rows.map((row) => String(row['step'] ?? '')), axisLine: { lineStyle: { color: themed('--soft') } }, axisLabel: { color: themed('--soft') } },
    yAxis: { type: 'value', ...(top === null ? {} : { max: top }), axisLabel: { color: themed('--soft'), formatter: (value: number) => nanos(value) }, splitLine: { lineStyle: { color: themed('--line') } } },
    dataZoom: [{ type: 'slider', height: 18, bottom: 8, startValue: 0, endValue: FIRST_SHOWN - 1, textStyle: { color: themed('--soft') }, borderColor: themed('--line'), fillerColor: `${themed('--accent')}22`, showDataShadow: true }],
    series: parts.map((key) => ({ type: 'bar', name: heading(key), stack: 'step', barCategoryGap: '12%', itemStyle: { color: themed(colors.ofStepPart(plain(key))) }, data: section.rows.map((row) => numberAt(row, key) ?? 0) })),
  }), lead(section));
  return h('div', {}, h('h3', {}, `The mean of ${count(counted.length)} steps${left ? `, without ${count(left)} that do not count (first ones, compilation, evaluation, checkpoints)` : ''}`), bar, h('h3', {}, 'Step by step'), beyond.length ? h('p', { class: 'note' }, cutOff(beyond)) : null, picture);
}

function cutOff(beyond: readonly Row[]): string {
  const named = beyond.slice(0, 3).map((row) => `step ${String(row['step'] ?? '')} (${nanos(numberAt(row, 'duration_ns') ?? 0)})`);
  return `Longer than the picture is high: ${named.join(', ')}${beyond.length > 3 ? ` and ${count(beyond.length - 3)} more` : ''}.`;
}

function said(row: Row, parts: readonly string[]): string {
  const lines = parts.flatMap((key) => (numberAt(row, key) ? [`${heading(key)}  ${nanos(numberAt(row, key) ?? 0)}`] : []));
  return [`step ${String(row['step'] ?? '')}  ${nanos(numberAt(row, 'duration_ns') ?? 0)}`, ...lines].join('\n');
}

function lead(section: Section): ((index: number) => void) | undefined {
  if (!hasEvents() || info.origin_ns === null) return undefined;
  return (index) => {
    const begin = numberAt(section.rows[index], 'begin_ns');
    if (begin === null) return;
    const from = begin - (info.origin_ns ?? 0);
    location.hash = `timeline/${from}-${from + (numberAt(section.rows[index], 'duration_ns') ?? 1)}`;
  };
}
