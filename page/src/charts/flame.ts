// Paths with a weight as a flame graph, roots on top: boxes of HTML, which print and have titles. A click makes a box the whole width.
import * as colors from '../colors';
import { h } from '../dom';
import { nanos, percent, safe } from '../format';
import { numberAt, type Section, textAt } from '../report';

interface Frame {
  readonly name: string;
  readonly children: Map<string, Frame>;
  self: number;
  total: number;
}

const LEAST = 0.002; // of the width; narrower boxes are not made

function frame(name: string): Frame {
  return { name, children: new Map(), self: 0, total: 0 };
}

export function flame(section: Section, path: string, weight: string): HTMLElement | null {
  const root = frame('all');
  for (const row of section.rows) {
    const value = numberAt(row, weight);
    if (!value) continue;
    let at = root;
    at.total += value;
    for (const name of textAt(row, path).split(' / ')) {
      const next = at.children.get(name) ?? frame(name);
      at.children.set(name, next);
      at = next;
      at.total += value;
    }
    at.self += value;
  }
  if (root.total === 0 || root.children.size === 0) return null;
  const figure = h('figure', { class: 'chart flame', 'aria-label': `${section.title}: flame graph by device time; the table below has the numbers` });
  const show = (top: Frame, way: readonly Frame[]): void => {
    const back = way.length ? h('button', { type: 'button', class: 'quiet', click: () => show(root, []) }, 'All') : null;
    const box = h('div', { class: 'boxes' });
    const depth = put(box, top, 0, 1, 0, root.total, (to, from) => show(to, [...way, ...from]));
    box.style.height = `${depth * 22}px`;
    figure.replaceChildren(...(back ? [back] : []), box);
  };
  show(root, []);
  return figure;
}

// Returns how many rows it and what is under it take.
function put(box: HTMLElement, one: Frame, left: number, width: number, row: number, whole: number, open: (to: Frame, from: Frame[]) => void): number {
  const name = safe(one.name);
  const made = h('button', { type: 'button', tabindex: -1, title: `${name}\n${nanos(one.total)}, ${percent(one.total / whole)}; itself ${nanos(one.self)}`, click: () => open(one, [one]) }, name);
  made.style.left = `${left * 100}%`;
  made.style.width = `${width * 100}%`;
  made.style.top = `${row * 22}px`;
  made.style.setProperty('--color', `var(${row === 0 ? '--c-unknown' : colors.ofSeries(hash(one.name))})`);
  box.append(made);
  let depth = row + 1;
  let at = left;
  for (const child of [...one.children.values()].sort((a, b) => b.total - a.total)) {
    const share = (child.total / one.total) * width;
    if (share < LEAST) break;
    depth = Math.max(depth, put(box, child, at, share, row + 1, whole, open));
    at += share;
  }
  return depth;
}

function hash(text: string): number {
  let value = 7;
  for (let at = 0; at < text.length; ++at) value = (value * 31 + text.charCodeAt(at)) >>> 0;
  return value;
}
