// A part of the run: whoever serves the page makes every table and chart of it anew; a page in a file says the command that does.
import { h } from './dom';
import { safe } from './format';
import { info, numberAt, type Section } from './report';

function open(query: string): void {
  document.body.classList.add('waiting');
  location.assign(`./?${query}${location.hash}`);
}

// Which part is shown, and the way back. Null: all of it.
export function rangeBar(): HTMLElement | null {
  if (!info.range) return null;
  const back = h('a', { href: './', click: (event: Event) => {
    event.preventDefault();
    location.assign(`./${location.hash}`);
  } }, 'show the whole run');
  return h('p', { class: 'range', role: 'status' }, h('strong', {}, `Only ${safe(info.range)}`), ': every table and chart is of this part; the timeline is of the whole run. ', back);
}

// Beside the steps: from which one to which. `open` is left to whoever serves the page.
export function stepChooser(steps: Section): HTMLElement | null {
  const numbers = steps.rows.map((row) => numberAt(row, 'step')).filter((one) => one !== null);
  if (numbers.length < 2 || info.range) return null;
  const first = Math.min(...numbers);
  const last = Math.max(...numbers);
  const field = (label: string, value: number): HTMLInputElement => h('input', { type: 'number', min: first, max: last, value, 'aria-label': label });
  const from = field('first step', first);
  const to = field('last step', last);
  const said = h('p', { class: 'note', role: 'status' });
  const chosen = (): string => {
    const ends = [Number(from.value), Number(to.value)].map((one) => Math.min(last, Math.max(first, Math.round(one) || first))).sort((a, b) => a - b);
    return ends.join('-');
  };
  const choose = (event: Event): void => {
    event.preventDefault();
    if (info.served) return open(`steps=${chosen()}`);
    said.replaceChildren('This page is one file: ', h('code', {}, `gputrace report --steps ${chosen()} --html steps-${chosen()}.html`), ' makes the page of these steps, and gputrace view makes it at once.');
  };
  return h('form', { class: 'chooser', submit: choose }, 'Only steps ', from, ' to ', to, ' ', h('button', { type: 'submit', class: 'quiet' }, 'Show'), said);
}

// Behind a chosen time of the timeline, in ns after the first record.
export function timeChooser(begin: number, end: number): HTMLElement | null {
  if (!info.served || info.origin_ns === null) return null;
  return h('button', { type: 'button', class: 'quiet', click: () => open(`from=${Math.max(0, Math.floor(begin))}&to=${Math.ceil(end)}`) }, 'All tables of this time');
}
