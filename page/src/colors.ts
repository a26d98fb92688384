// One colour per meaning, on every chart of the page. The values are in style.css, for light and dark.

const CAUSES: { readonly [cause: string]: string } = {
  host: 'host', launch: 'launch', synchronization: 'sync', polling: 'sync', copy: 'copy', allocation: 'alloc',
  'module load': 'load', library: 'library', 'queue full': 'launch', 'other stream': 'stream', peer: 'stream', 'host function': 'host',
  'memory value': 'stream', dispatch: 'dispatch', 'inside a graph': 'dispatch', profiler: 'profiler', unknown: 'unknown',
  input: 'copy', python: 'host',
};
const CATEGORIES: { readonly [category: string]: string } = {
  gemm: 'gemm', convolution: 'conv', attention: 'attention', 'normalization/reduction': 'norm', elementwise: 'elementwise',
  copy: 'copy', memset: 'copy', collective: 'collective', 'sort/scan': 'alloc', random: 'load', other: 'unknown',
};
const STEPS: { readonly [column: string]: string } = {
  compilation: 'load', input: 'copy', output: 'stream', launch: 'launch', host: 'host', device_to_device: 'dispatch',
  collective: 'collective', compute_16: 'gemm', compute_32: 'compute', compute_other: 'elementwise', other: 'unknown',
};
const SERIES = ['gemm', 'host', 'copy', 'collective', 'norm', 'launch', 'sync', 'elementwise', 'attention', 'alloc'];

// Names of custom properties: `--c-host`.
export const ofCause = (cause: string): string => `--c-${CAUSES[cause] ?? 'unknown'}`;
export const ofCategory = (category: string): string => `--c-${CATEGORIES[category] ?? 'unknown'}`;
export const ofStepPart = (column: string): string => `--c-${STEPS[column] ?? 'unknown'}`;
export const ofSeries = (index: number): string => `--c-${SERIES[index % SERIES.length] ?? 'unknown'}`;
