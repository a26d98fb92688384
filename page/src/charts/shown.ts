// Charts that draw pixels need to know their width: they are drawn when they are first seen, and again when it changes or the theme does.
import { h } from '../dom';

export function whenShown(label: string, height: number, draw: (holder: HTMLElement, width: number) => void): HTMLElement {
  const holder = h('div', { class: 'drawn', role: 'img', 'aria-label': `${label}; the table below has the numbers` });
  holder.style.height = `${height}px`;
  let width = 0;
  const again = (): void => {
    if (holder.clientWidth > 0) draw(holder, holder.clientWidth);
  };
  new ResizeObserver(() => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    again();
  }).observe(holder);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
  return h('figure', { class: 'chart' }, holder);
}
