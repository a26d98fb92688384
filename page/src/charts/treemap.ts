// The tree of categories, kernels and launch shapes as areas: a click goes in, the path above leads back.
import * as colors from '../colors';
import { themed } from '../dom';
import { brief, nanos, percent, safe } from '../format';
import { numberAt, type Section, textAt } from '../report';
import { chart, tooltip } from './echarts';

interface Node {
  name: string;
  value: number;
  itemStyle?: { color: string };
  children?: Node[];
}

function treeOf(section: Section): Node[] {
  const roots: Node[] = [];
  const open: Node[] = [];
  for (const row of section.rows) {
    const level = numberAt(row, 'level') ?? 0;
    const node: Node = { name: safe(level === 1 ? brief(textAt(row, 'what')) : textAt(row, 'what')), value: numberAt(row, 'total_ns') ?? 0 };
    if (level === 0) {
      node.itemStyle = { color: themed(colors.ofCategory(textAt(row, 'what'))) };
      roots.push(node);
    } else {
      const parent = open[level - 1];
      if (parent) (parent.children ??= []).push(node);
    }
    open[level] = node;
  }
  return roots;
}

export function treemap(section: Section): HTMLElement | null {
  if (!section.rows.some((row) => numberAt(row, 'total_ns'))) return null;
  const whole = section.rows.reduce((sum, row) => sum + (row['level'] === 0 ? (numberAt(row, 'total_ns') ?? 0) : 0), 0) || 1;
  const line = (): string => themed('--bg');
  return chart(section.title, 340, () => ({
    tooltip: { ...tooltip(), formatter: (at) => { const one = Array.isArray(at) ? at[0] : at; return `${one?.name ?? ''}\n${nanos(Number(one?.value))}, ${percent(Number(one?.value) / whole)}`; } },
    series: [{
      type: 'treemap', name: 'kernels', data: treeOf(section), leafDepth: 2, roam: false, left: 0, right: 0, top: 0, drillDownIcon: '', bottom: 28, nodeClick: 'zoomToNode',
      breadcrumb: { bottom: 0, itemStyle: { color: themed('--panel'), borderColor: themed('--line'), textStyle: { color: themed('--text') } }, emphasis: { itemStyle: { color: themed('--line') } } },
      label: { color: themed('--ink'), fontSize: 12, lineHeight: 16, overflow: 'truncate', formatter: (at) => `${at.name}\n${nanos(Number(at.value))}` },
      upperLabel: { show: true, height: 20, color: themed('--text'), fontWeight: 'bold', overflow: 'truncate', formatter: (at) => `${at.name}  ${percent(Number(at.value) / whole)}` },
      itemStyle: { borderColor: line(), borderWidth: 1, gapWidth: 1 },
      levels: [{ itemStyle: { borderColor: line(), borderWidth: 0, gapWidth: 3 }, upperLabel: { show: false } }, { itemStyle: { borderColor: line(), gapWidth: 1 } }, { colorAlpha: [0.75, 1], itemStyle: { gapWidth: 1 } }],
    }],
  }));
}
