// The first tab: what the run was, where the device's time went, what to do about it.
import * as colors from './colors';
import { stackedBar, type Slice } from './charts/bars';
import { h } from './dom';
import { bytes, count, heading, human, nanos, percent, prose, safe } from './format';
import { type Finding, metric, metricNote, numberAt, report, section, programOf, textAt } from './report';

function fact(label: string, value: string | null, more: string | null = null): HTMLElement | null {
  if (value === null || value === '') return null;
  return h('div', { class: 'fact' }, h('dt', {}, label), h('dd', {}, value, more ? h('small', {}, more) : null));
}

function told(name: string, words: (value: number) => string): string | null {
  const value = metric(name);
  return value === null ? null : words(value);
}

function facts(): HTMLElement {
  const run = section('run')?.rows ?? [];
  const devices = section('devices')?.rows ?? [];
  const names = [...new Set(devices.map((row) => textAt(row, 'name')))].map(safe);
  const program = programOf(run[0]);
  const others = run.length > 1 ? ` and ${run.length - 1} more` : '';
  const median = told('step_median_ns', nanos);
  const beside = metricNote('steps_counted');
  return h('dl', { class: 'facts' },
    fact('Program', safe(program) + others, safe([...new Set(run.map((row) => textAt(row, 'host')))].join(', '))),
    fact('Device', devices.length ? `${devices.length} × ${names.join(', ')}` : null),
    fact('Time', told('wall_ns', nanos), 'first to last record'),
    fact('Device busy', told('gpu_busy_ratio', percent), 'kernels, copies, memsets'),
    fact('Steps', told('steps_counted', count), median ? `median ${median}${beside ? `, ${safe(beside)}` : ''}` : null),
    fact('Kernels', told('kernels', count), told('launches', (value) => `by ${count(value)} launches`)),
    fact('Peak memory', told('peak_memory_bytes', bytes), 'fullest device'),
    fact('Tensor cores', told('tensor_core_time_ratio', percent), 'of kernel time'));
}

function deviceTime(): Slice[] {
  const slices: Slice[] = [];
  const put = (label: string, value: number | null, color: string, more = ''): void => {
    if (value !== null && value > 0) slices.push({ label, value, color, more, idle: label.startsWith('idle') });
  };
  put('compute', metric('compute_ns'), '--c-compute', 'a kernel ran that is no collective');
  put('exposed collectives', metric('exposed_collective_ns'), '--c-collective', 'a collective ran and no other kernel');
  put('exposed copies', metric('exposed_copy_ns'), '--c-copy', 'a copy or memset ran and no kernel');
  const causes = section('idle-causes')?.rows ?? [];
  for (const row of causes) put(`idle: ${textAt(row, 'cause')}`, numberAt(row, 'total_ns'), colors.ofCause(textAt(row, 'cause')), textAt(row, 'meaning'));
  const idle = metric('idle_ns');
  if (causes.length === 0) put('idle', idle, '--c-unknown');
  return slices;
}

// Where the time of a mean step went; empty where steps are not known.
function stepTime(): Slice[] {
  const rows = section('overview')?.rows ?? [];
  const slices = rows.flatMap((row) => {
    const part = /^step_(\w+)_ns$/.exec(textAt(row, 'metric'))?.[1] ?? 'mean';
    const value = numberAt(row, 'value') ?? 0;
    return ['mean', 'median', 'p99'].includes(part) || value <= 0 ? [] : [{ label: heading(part), value, color: colors.ofStepPart(part) }];
  });
  return slices.sort((a, b) => b.value - a.value);
}

// One sentence, from the largest parts alone: of a step where steps are known, since start-up and what comes behind the loop are none of it.
function verdictOfSteps(slices: readonly Slice[]): string {
  const whole = slices.reduce((sum, slice) => sum + slice.value, 0);
  const share = (value: number): string => percent(value / whole);
  const computing = slices.filter((slice) => slice.label.startsWith('compute')).reduce((sum, slice) => sum + slice.value, 0);
  const others = slices.filter((slice) => !slice.label.startsWith('compute')).slice(0, 2).filter((slice) => slice.value > whole / 20);
  const rest = others.map((slice) => `${slice.label} ${share(slice.value)}`).join(', ');
  return `Of a step of ${nanos(metric('step_mean_ns') ?? whole)} the device computes ${share(computing)}${rest ? `; most of the rest: ${rest}` : ''}.`;
}

// The same of the whole run.
function verdict(slices: readonly Slice[]): string {
  const whole = slices.reduce((sum, slice) => sum + slice.value, 0);
  if (whole === 0) return report.coverage.device_timing === 'none' ? 'The times of the device were not measured.' : 'No device did anything.';
  const idle = slices.filter((slice) => slice.label.startsWith('idle'));
  const idleTime = idle.reduce((sum, slice) => sum + slice.value, 0);
  const worst = idle.reduce<Slice | null>((most, slice) => (!most || slice.value > most.value ? slice : most), null);
  if (worst && idleTime > whole / 2) {
    return `The device is idle ${percent(idleTime / whole)} of the time; most of it: ${worst.label.replace('idle: ', '')} (${percent(worst.value / whole)}).`;
  }
  const rest = worst && idleTime > whole / 20 ? ` It is idle ${percent(idleTime / whole)}, most of it: ${worst.label.replace('idle: ', '')}.` : '';
  const busiest = slices.filter((slice) => !slice.label.startsWith('idle')).reduce((most, slice) => (slice.value > most.value ? slice : most));
  return `The device is busy ${percent(1 - idleTime / whole)} of the time, most of it with ${busiest.label.replace('exposed ', '')}.${rest}`;
}

function evidence(finding: Finding): HTMLElement {
  const rows = Object.entries(finding.evidence).map(([key, value]) => {
    const unit = key.endsWith('_ns') ? 'ns' : key.endsWith('bytes') ? 'bytes' : /ratio$|^share$/.test(key) ? 'ratio' : 'count';
    const plain = key === 'pid' || key === 'device' || typeof value !== 'number';
    return h('div', {}, h('dt', {}, key.replaceAll('_', ' ')), h('dd', {}, plain ? human(value, 'none') : human(value, unit)));
  });
  return h('details', {}, h('summary', {}, 'Evidence'), h('dl', { class: 'evidence' }, ...rows));
}

function card(finding: Finding, whole: number, linkTo: (section: string) => string | null): HTMLElement {
  const gain = numberAt(finding.evidence, 'gain_ns') ?? 0;
  const link = linkTo(finding.section);
  const worth = h('div', { class: 'gain' });
  if (gain > 0) {
    const bar = h('span', { class: 'meter', 'aria-hidden': 'true' });
    bar.style.setProperty('--share', `${Math.min(100, (gain / Math.max(whole, gain)) * 100)}%`);
    const each = finding.gain_ns_per_step;
    worth.append(h('strong', {}, nanos(each ?? gain)), h('small', {}, each === null ? 'at most, of device time' : `a step at most; ${nanos(gain)} in all`), bar);
  }
  return h('li', { class: `finding ${finding.severity}` },
    h('div', { class: 'what' },
      h('p', {}, h('span', { class: 'severity' }, finding.severity), ' ', prose(finding.text)),
      finding.site ? h('p', { class: 'site' }, 'at ', h('code', {}, safe(finding.site))) : null,
      finding.fix ? h('p', { class: 'fix' }, h('strong', {}, 'Do: '), prose(finding.fix)) : null,
      h('div', { class: 'under' }, link ? h('a', { href: link }, `Look at ${finding.section}`) : null, evidence(finding))),
    worth);
}

// What the numbers rest on: loud only where something is missing.
export function coverage(): HTMLElement {
  const { coverage: is } = report;
  const words = [`${count(is.processes)} process${is.processes === 1 ? '' : 'es'}`, `${count(is.records)} records`, `${count(is.dropped)} dropped`];
  if (is.unknown_records) words.push(`${count(is.unknown_records)} of unknown types`);
  const good = is.complete && is.dropped === 0;
  const box = h('div', { class: good ? 'coverage' : 'coverage bad' },
    h('p', {}, h('strong', {}, good ? 'Complete' : 'Incomplete'), `: ${words.join(', ')}`));
  for (const line of [...is.missing, ...is.remarks]) box.append(h('p', {}, prose(line)));
  return box;
}

export function notCollected(): HTMLElement | null {
  const list = report.coverage.not_collected;
  if (list.length === 0) return null;
  const items = list.map((one) => h('li', {}, h('strong', {}, safe(one.what)), ': ', prose(one.why)));
  return h('details', { class: 'absent' }, h('summary', {}, `Not collected: ${list.map((one) => safe(one.what)).join(', ')}`), h('ul', {}, ...items));
}

const bar = (title: string, slices: readonly Slice[]): HTMLElement[] => [h('h2', {}, title), stackedBar(title, slices)];

export function overview(linkTo: (section: string) => string | null): HTMLElement {
  const slices = deviceTime();
  const ofStep = stepTime();
  const whole = slices.reduce((sum, slice) => sum + slice.value, 0);
  const page = h('div', { class: 'overview' }, h('p', { class: 'verdict' }, (ofStep.length ? verdictOfSteps(ofStep) : verdict(slices)).replaceAll(' %', '\u00a0%')), facts());
  const bad = !report.coverage.complete || report.coverage.dropped > 0;
  if (bad) page.prepend(coverage());
  const device = slices.length ? bar(ofStep.length ? 'Where the device’s time went in the whole run' : 'Where the device’s time went', slices) : [];
  page.append(...(ofStep.length ? bar('Where the time of a step went', ofStep) : device));
  if (report.findings.length) {
    page.append(h('h2', {}, 'Findings'), h('ol', { class: 'findings' }, ...report.findings.map((finding) => card(finding, whole, linkTo))));
  }
  if (ofStep.length) page.append(...device);
  if (!bad) page.append(coverage());
  const absent = notCollected();
  if (absent) page.append(absent);
  return page;
}
