// What is chosen, in words and tables, below the timeline.
import { h, scroller } from '../dom';
import { bytes, count, nanos, percent, safe } from '../format';
import { timeChooser } from '../range';
import type { Marks } from './draw';
import { type Events, launchedBy, launchOf, type Place } from './events';
import type { Lane } from './lanes';
import { sumOf } from './sums';

type Selected = NonNullable<Marks['selected']>;

const instant = (time: number): string => `${(time / 1e9).toFixed(9)} s`;

function line(label: string, value: Node | string | null): HTMLElement | null {
  return value === null || value === '' ? null : h('div', {}, h('dt', {}, label), h('dd', {}, value));
}

function way(text: string, place: Place, lead: (place: Place) => void): HTMLElement {
  return h('button', { type: 'button', class: 'link', click: () => lead(place) }, text);
}

export function describeSlice(all: Events, selected: Selected, own: { text: string; detail: string } | null, lead: (place: Place) => void): HTMLElement {
  const length = selected.end - selected.begin;
  const times = [line('begin', instant(selected.begin)), line('length', nanos(length))];
  const { place } = selected;
  if (!place) {
    return h('div', {}, h('h2', {}, `${safe(selected.lane.label)}: ${safe(own?.text ?? '')}`), h('dl', { class: 'evidence' }, ...times.filter((one) => one !== null), line('more', safe(own?.detail ?? '')) ?? ''));
  }
  const { track, at } = place;
  const name = all.names[track.name[at] ?? 0];
  const size = track.bytes?.[at] ?? 0;
  const launch = launchOf(all, place);
  const effect = track.kind === 'thread' ? launchedBy(all, place) : null;
  const result = track.result?.[at] ?? 0;
  const site = all.sites[(launch ? launch.track.site?.[launch.at] : track.site?.[at]) ?? 0] ?? '';
  const ended = launch ? (launch.track.end[launch.at] ?? 0) : 0;
  return h('div', {}, h('h2', {}, safe(name?.text ?? '')),
    h('dl', { class: 'evidence wide' },
      ...times,
      line('what', name?.kind ?? null),
      line('on', safe(selected.lane.label)),
      line('shape', safe(name?.detail ?? '')),
      line('bytes', size ? `${bytes(size)}${length ? `, ${bytes(size / (length / 1e9))}/s` : ''}` : null),
      line('source line', safe(site)),
      line('launched by', launch ? way(`${safe(all.names[launch.track.name[launch.at] ?? 0]?.text ?? '')}`, launch, lead) : null),
      line('waited', !launch ? null : (track.begin[at] ?? 0) < ended ? 'began before that call returned' : `${nanos((track.begin[at] ?? 0) - ended)} from the end of that call`),
      line('launched', effect ? way(safe(all.names[effect.track.name[effect.at] ?? 0]?.text ?? ''), effect, lead) : null),
      line('result', result ? `error ${result}` : null),
      line('name', name && name.whole && name.whole !== name.text ? h('code', {}, safe(name.whole)) : null)));
}

export function describeRange(all: Events, lanes: readonly Lane[], range: readonly [number, number], show: (begin: number, end: number) => void): HTMLElement {
  const [begin, end] = range;
  const length = end - begin;
  const sums = sumOf(all, lanes, begin, end);
  const busy = sums.lanes.map((sum) => h('tr', {}, h('td', { class: 'text' }, safe(sum.lane.label)), h('td', {}, count(sum.count)), h('td', {}, nanos(sum.busy)), h('td', {}, percent(Math.min(1, sum.busy / length)))));
  const names = sums.names.map((sum) => {
    const name = all.names[sum.name];
    return h('tr', {}, h('td', { class: 'text long', title: safe(name?.whole || name?.text || '') }, safe(name?.text ?? '')), h('td', { class: 'text' }, name?.kind ?? ''), h('td', {}, count(sum.count)), h('td', {}, nanos(sum.total)), h('td', {}, nanos(sum.total / sum.count)));
  });
  const head = (...words: string[]): HTMLElement => h('thead', {}, h('tr', {}, ...words.map((word, at) => h('th', { scope: 'col', class: at === 0 || word === 'what' ? 'text' : 'number' }, word))));
  return h('div', {},
    h('h2', {}, `${nanos(length)} from ${instant(begin)} on`),
    h('p', {}, h('button', { type: 'button', class: 'quiet', click: () => show(begin, end) }, 'Fit'), timeChooser(begin, end)),
    h('div', { class: 'side' },
      scroller('Lanes in the chosen time', h('table', {}, h('caption', { class: 'unseen' }, 'Lanes in the chosen time'), head('lane', 'slices', 'busy', 'of it'), h('tbody', {}, ...busy))),
      scroller('Names in the chosen time', h('table', {}, h('caption', { class: 'unseen' }, 'Names in the chosen time'), head('name', 'what', 'count', 'total', 'mean'), h('tbody', {}, ...names)))));
}
