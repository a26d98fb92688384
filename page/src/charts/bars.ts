// Bars of HTML: they print, they scale, and their text is text.
import { h } from '../dom';
import { nanos, percent, safe } from '../format';

export interface Slice {
  readonly label: string;
  readonly value: number;
  readonly color: string; // a custom property
  readonly more?: string;
  readonly idle?: boolean; // nothing was done: hatched
}

export function swatch(color: string, idle = false): HTMLElement {
  const made = h('i', { class: idle ? 'swatch idle' : 'swatch', 'aria-hidden': 'true' });
  made.style.setProperty('--color', `var(${color})`);
  return made;
}

// One bar of parts of a whole, with its legend as a list.
export function stackedBar(label: string, slices: readonly Slice[], words: (value: number) => string = nanos): HTMLElement {
  const whole = slices.reduce((sum, slice) => sum + slice.value, 0) || 1;
  const bar = h('div', { class: 'stack', 'aria-hidden': 'true' });
  const legend = h('ul', { class: 'legend', 'aria-label': label });
  for (const slice of slices) {
    const share = slice.value / whole;
    const name = safe(slice.label);
    const piece = h('span', { class: slice.idle ? 'idle' : null, title: `${name}: ${words(slice.value)} (${percent(share)})` }, share > 0.08 ? h('b', {}, name) : null, share > 0.05 ? h('b', { class: 'light' }, percent(share)) : null);
    piece.style.setProperty('--color', `var(${slice.color})`);
    piece.style.flexGrow = String(share);
    bar.append(piece);
    legend.append(h('li', { title: slice.more ? safe(slice.more) : null }, swatch(slice.color, slice.idle), `${name} `, h('b', {}, words(slice.value)), ` ${percent(share)}`));
  }
  return h('figure', { class: 'chart' }, bar, legend);
}

// A bar a line, largest first; the rest in one.
export function rankedBars(label: string, all: readonly Slice[], words: (value: number) => string = nanos, most = 12): HTMLElement {
  const sorted = [...all].filter((slice) => slice.value > 0).sort((a, b) => b.value - a.value);
  const whole = sorted.reduce((sum, slice) => sum + slice.value, 0) || 1;
  const largest = sorted[0]?.value ?? 1;
  const list = h('ul', { class: 'bars', 'aria-label': label });
  const rest = sorted.slice(most);
  const shown: Slice[] = sorted.slice(0, most);
  if (rest.length) shown.push({ label: `${rest.length} more`, value: rest.reduce((sum, slice) => sum + slice.value, 0), color: '--c-unknown' });
  for (const slice of shown) {
    const name = safe(slice.label);
    const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--color', `var(${slice.color})`);
    bar.style.setProperty('--share', `${Math.min(100, (slice.value / largest) * 100)}%`);
    list.append(h('li', { title: slice.more ? safe(slice.more) : null }, h('span', { class: 'name', title: name }, name), h('span', { class: 'track' }, bar), h('span', { class: 'amount' }, `${words(slice.value)} `, h('small', {}, percent(slice.value / whole)))));
  }
  return h('figure', { class: 'chart' }, list);
}
