// A section's table: search, sort by any column, choice of columns, more rows on demand, a copy as CSV.
// A heading is a button; the table says by aria-sort how it is ordered.
import { announce, h, scroller } from './dom';
import { brief, cell, count, heading, headings, isInstant, isText, prose, safe, unitOf } from './format';
import type { Column, Hint, Row, Section, Value } from './report';
import { info } from './report';

const FIRST_ROWS = 50;
const MORE_ROWS = 500;

export interface TableOptions {
  // What a row's button does, by its first column that is a name; nothing: rows have no button.
  readonly open?: { readonly label: string; readonly act: (row: Row) => void };
  readonly rows?: number; // shown at first
}

export class SectionTable {
  readonly element: HTMLElement;
  private readonly hints: { readonly [key: string]: Hint };
  private readonly words: string[];
  private readonly texts: (string | undefined)[];
  private readonly body = h('tbody');
  private readonly head = h('tr');
  private readonly status = h('p', { class: 'count' });
  private readonly more = h('div', { class: 'more' });
  private shown: boolean[];
  private order: number[] = [];
  private sortKey: string | null = null;
  private descending = true;
  private search = '';
  private limit: number;

  constructor(
    private readonly name: string,
    private readonly section: Section,
    private readonly options: TableOptions = {},
  ) {
    this.hints = info.hints[name] ?? {};
    this.words = headings(section.columns);
    this.texts = new Array<string | undefined>(section.rows.length);
    this.limit = options.rows ?? FIRST_ROWS;
    const single = section.columns.some((column) => column.key === 'metric');
    this.shown = section.columns.map((column) => this.hints[column.key] !== 'detail' && this.hasValue(column) && !(single && column.key === 'unit'));
    this.element = h('div', { class: 'table' });
    this.build();
    this.apply();
  }

  // Rows that have this text, as if typed into the search.
  find(text: string): void {
    const box = this.element.querySelector('input');
    if (box) box.value = text;
    this.search = text;
    this.apply();
  }

  private hasValue(column: Column): boolean {
    return this.section.rows.length === 0 || this.section.rows.some((row) => row[column.key] !== null);
  }

  private build(): void {
    const large = this.section.rows.length > 8;
    const tools = h('div', { class: 'tools' });
    if (large) {
      const box = h('input', { type: 'search', placeholder: 'search', 'aria-label': `Search in ${this.section.title}`, spellcheck: 'false' });
      box.addEventListener('input', () => {
        this.search = box.value;
        this.apply();
        announce(this.status.textContent ?? '');
      });
      tools.append(box);
    }
    tools.append(this.columnChoice(), h('button', { type: 'button', class: 'quiet', click: () => this.save() }, 'CSV'));
    if (large) tools.append(this.status);
    const caption = h('caption', { class: 'unseen' }, this.section.title);
    const table = h('table', {}, caption, h('thead', {}, this.head), this.body);
    this.element.append(tools, scroller(this.section.title, table), this.more);
    for (const note of this.section.notes) this.element.append(h('p', { class: 'note' }, prose(note)));
  }

  private columnChoice(): HTMLElement {
    const boxes = this.section.columns.map((column, at) => {
      const box = h('input', { type: 'checkbox' });
      box.checked = this.shown[at] ?? false;
      box.addEventListener('change', () => {
        this.shown[at] = box.checked;
        this.draw();
      });
      const nothing = this.hasValue(column) ? '' : ' (not known here)';
      return h('label', {}, box, ` ${this.words[at]}${nothing}`);
    });
    const list = h('div', { class: 'choice' }, ...boxes);
    const choice = h('details', { class: 'columns' }, h('summary', {}, 'Columns'), list);
    choice.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') choice.open = false;
    });
    return choice;
  }

  private textOf(index: number): string {
    const known = this.texts[index];
    if (known !== undefined) return known;
    const row = this.section.rows[index] ?? {};
    const text = this.section.columns.map((column) => cell(row[column.key] ?? null, column, this.hints[column.key], unitOf(row, column))).join('\u0001').toLowerCase();
    this.texts[index] = text;
    return text;
  }

  private sortBy(key: string): void {
    const column = this.section.columns.find((one) => one.key === key);
    if (!column) return;
    if (this.sortKey === key) this.descending = !this.descending;
    else this.descending = !isText(column) && !isInstant(column);
    this.sortKey = key;
    this.apply();
    announce(`ordered by ${this.words[this.section.columns.indexOf(column)]}, ${this.descending ? 'largest first' : 'smallest first'}`);
  }

  private apply(): void {
    const wanted = this.search.toLowerCase().split(/\s+/).filter(Boolean);
    this.order = [];
    for (let at = 0; at < this.section.rows.length; ++at) {
      if (wanted.every((word) => this.textOf(at).includes(word))) this.order.push(at);
    }
    const key = this.sortKey;
    if (key !== null) {
      const sign = this.descending ? -1 : 1;
      const { rows } = this.section;
      this.order.sort((a, b) => compare(rows[a]?.[key] ?? null, rows[b]?.[key] ?? null, sign) || a - b);
    }
    this.draw();
  }

  private draw(): void {
    this.drawHead();
    const columns = this.section.columns.filter((_, at) => this.shown[at]);
    const rows = this.order.slice(0, this.limit).map((index) => this.rowOf(index, columns));
    if (rows.length === 0) rows.push(h('tr', {}, h('td', { colspan: Math.max(1, columns.length), class: 'none' }, this.search ? 'nothing has these words' : 'none')));
    this.body.replaceChildren(...rows);
    this.element.classList.toggle('many', columns.length > 11); // more than a sheet of paper takes
    const all = this.section.total_rows ?? this.section.rows.length;
    const matching = this.order.length;
    this.status.textContent = this.search ? `${count(matching)} of ${count(all)} rows` : `${count(all)} rows`;
    this.drawMore();
  }

  private drawMore(): void {
    const left = this.order.length - this.limit;
    this.more.replaceChildren();
    if (left <= 0) return;
    const extend = (by: number): void => {
      this.limit += by;
      this.draw();
    };
    this.more.append(h('button', { type: 'button', class: 'quiet', click: () => extend(MORE_ROWS) }, `${count(left)} more rows: show ${count(Math.min(left, MORE_ROWS))}`));
  }

  private drawHead(): void {
    const cells = this.section.columns.map((column, at) => {
      if (!this.shown[at]) return null;
      const active = (this.sortKey ?? info.sort[this.name]) === column.key;
      const down = this.sortKey === null || this.descending;
      const mark = active ? h('span', { 'aria-hidden': 'true' }, down ? ' ▾' : ' ▴') : null;
      const approximate = column.approximate ? ' ~' : '';
      const button = h('button', { type: 'button', click: () => this.sortBy(column.key) }, `${this.words[at]}${approximate}`, mark);
      const sort = active ? (down ? 'descending' : 'ascending') : null;
      return h('th', { scope: 'col', class: isText(column) ? 'text' : 'number', 'aria-sort': sort }, button);
    });
    const focused = this.head.contains(document.activeElement) ? [...this.head.querySelectorAll('button')].indexOf(document.activeElement as HTMLButtonElement) : -1;
    this.head.replaceChildren(...cells.filter((one) => one !== null));
    if (focused >= 0) this.head.querySelectorAll('button')[focused]?.focus();
  }

  private rowOf(index: number, columns: readonly Column[]): HTMLTableRowElement {
    const row = this.section.rows[index] ?? {};
    const open = this.options.open;
    const named = open ? columns.find((column) => isText(column)) : undefined;
    return h('tr', {}, ...columns.map((column) => this.cellOf(row, column, column === named)));
  }

  private cellOf(row: Row, column: Column, opens: boolean): HTMLTableCellElement {
    const hint = this.hints[column.key];
    const value: Value = row[column.key] ?? null;
    const whole = column.key === 'metric' ? heading(String(value)) : cell(value, column, hint, unitOf(row, column));
    const text = hint === 'kernel' || hint === 'tree' ? brief(whole) : whole;
    const long = hint === 'name' || hint === 'kernel' || hint === 'tree' || (column.unit === 'text' && hint !== 'prose');
    const made = h('td', { class: `${isText(column) ? 'text' : 'number'}${long ? ' long' : ''}${hint === 'prose' ? ' prose' : ''}`, title: long && whole.length > 24 ? whole : null });
    const open = this.options.open;
    if (opens && open) made.append(h('button', { type: 'button', class: 'link', 'aria-label': `${open.label}: ${text}`, click: () => open.act(row) }, text));
    else made.append(text);
    if (hint === 'tree') made.style.setProperty('--level', String(row['level'] ?? 0));
    if (column.unit === 'ratio' && typeof value === 'number') {
      made.classList.add('share');
      made.style.setProperty('--share', `${Math.max(0, Math.min(1, value)) * 100}%`);
    }
    if (hint === 'tree') made.classList.add('tree');
    return made;
  }

  // Base units, as --format csv writes them. Names come from the traced program: none is a formula to a spreadsheet.
  private save(): void {
    const quoted = (value: Value): string => {
      const text = value === null ? '' : typeof value === 'object' ? cell(value, { key: '', unit: 'text' }, undefined)
        : typeof value === 'string' ? safe(value).replace(/^[=+@-]/, "'$&") : String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const columns = this.section.columns;
    const lines = [columns.map((column) => column.key).join(',')];
    for (const index of this.order) lines.push(columns.map((column) => quoted(this.section.rows[index]?.[column.key] ?? null)).join(','));
    const link = h('a', { download: `${this.name}.csv`, href: URL.createObjectURL(new Blob([lines.join('\r\n') + '\r\n'], { type: 'text/csv' })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

// Unknown values come last, either way.
function compare(a: Value, b: Value, sign: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === 'string' && typeof b === 'string') return sign * (a < b ? -1 : a > b ? 1 : 0);
  const left = weight(a);
  const right = weight(b);
  return sign * (left - right);
}

function weight(value: Value): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value !== null && typeof value === 'object') return Object.values(value).reduce((sum, one) => sum + one, 0);
  return 0;
}
