// The tabs of the page, made from the sections that the report has: a section that no tab names gets one of its own. A tab without a row is
// none: why there is nothing stands under Quality.
import { report } from './report';

export interface Tab {
  readonly id: string;
  readonly label: string;
  readonly sections: readonly string[];
}

const KNOWN: readonly Tab[] = [
  { id: 'overview', label: 'Overview', sections: ['overview'] },
  { id: 'steps', label: 'Steps', sections: ['steps', 'step-categories', 'phases'] },
  { id: 'input', label: 'Input', sections: ['input', 'input-ops', 'io'] },
  { id: 'kernels', label: 'Kernels', sections: ['kernels', 'category-tree', 'categories', 'launches', 'graphs', 'jit'] },
  { id: 'ops', label: 'Operations', sections: ['ops', 'nvtx'] },
  { id: 'sites', label: 'Source lines', sections: ['sites'] },
  { id: 'idle', label: 'Idle', sections: ['idle-causes', 'idle', 'sync', 'threads', 'waits'] },
  { id: 'memory', label: 'Memory', sections: ['memory-timeline', 'memory', 'memory-peak', 'memory-spans', 'copies'] },
  { id: 'tensor-cores', label: 'Tensor cores', sections: ['tensor-cores', 'tensor-core-misses'] },
  { id: 'libraries', label: 'Libraries', sections: ['libs', 'comm', 'ranks'] },
  { id: 'streams', label: 'Streams', sections: ['queue-timeline', 'streams', 'queue'] },
  { id: 'calls', label: 'Calls', sections: ['api'] },
  { id: 'run', label: 'Run', sections: ['run', 'devices', 'environment'] },
  { id: 'quality', label: 'Quality', sections: ['quality', 'quality-notes'] },
];
const ALWAYS = new Set(['overview', 'quality']);

// What the timeline has lies beside the sections; it comes behind the overview.
export function makeTabs(withTimeline: boolean): Tab[] {
  const there = (name: string): boolean => Object.hasOwn(report.sections, name);
  const tabs: Tab[] = [];
  for (const tab of KNOWN) {
    const sections = tab.sections.filter(there);
    if (sections.some((name) => report.sections[name]?.rows.length) || ALWAYS.has(tab.id)) tabs.push({ ...tab, sections });
    if (tab.id === 'overview' && withTimeline) tabs.push({ id: 'timeline', label: 'Timeline', sections: [] });
  }
  const placed = new Set(KNOWN.flatMap((tab) => tab.sections));
  for (const name of Object.keys(report.sections)) {
    if (!placed.has(name)) tabs.splice(-2, 0, { id: name, label: name, sections: [name] });
  }
  return tabs;
}

export function tabOfSection(tabs: readonly Tab[], name: string): Tab | undefined {
  return tabs.find((tab) => tab.sections.includes(name));
}
