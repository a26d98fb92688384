// What the page is given: the report as `gputrace report --json` has it, and what only a page needs.

export type Parts = { readonly [name: string]: number };
export type Value = null | boolean | number | string | Parts;
export type Row = { readonly [key: string]: Value };

export type Unit = 'text' | 'ns' | 'bytes' | 'count' | 'ratio' | 'bytes/s' | 'bool' | 'none';

export interface Column {
  readonly key: string;
  readonly unit: Unit;
  readonly approximate?: boolean;
}

export interface Section {
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  readonly notes: readonly string[];
  readonly total_rows?: number; // before rows were cut
}

export interface Finding {
  readonly id: string;
  readonly severity: 'hint' | 'warning' | 'problem';
  readonly section: string;
  readonly text: string;
  readonly fix: string | null;
  readonly site: string | null;
  readonly gain_ns_per_step: number | null;
  readonly evidence: Row;
}

export interface Coverage {
  readonly processes: number;
  readonly records: number;
  readonly dropped: number;
  readonly unknown_records: number;
  readonly truncated: boolean;
  readonly device_timing: string;
  readonly complete: boolean;
  readonly missing: readonly string[];
  readonly not_collected: readonly { readonly what: string; readonly why: string }[];
  readonly remarks: readonly string[];
}

export interface Report {
  readonly schema: string;
  readonly coverage: Coverage;
  readonly sections: { readonly [name: string]: Section };
  readonly findings: readonly Finding[];
}

// How a column is shown, where that is not as usual; `sort`: the column by which a table is ordered.
export type Hint = 'name' | 'kernel' | 'prose' | 'tree' | 'detail' | 'handle' | 'large';
export interface PageInfo {
  readonly version: string;
  readonly served?: boolean; // by `gputrace view`, which may be asked for more events
  readonly range?: string; // of which part of the run the tables are, in words
  readonly origin_ns: number | null; // instants are told from here on
  readonly hints: { readonly [section: string]: { readonly [key: string]: Hint } };
  readonly sort: { readonly [section: string]: string };
}

// The element is inert: a script of a type that no browser runs.
export function embedded(id: string): string | null {
  return document.getElementById(id)?.textContent ?? null;
}

function parsed<T>(id: string): T {
  const text = embedded(id);
  if (text === null) throw new Error(`the page has no ${id}`);
  return JSON.parse(text) as T;
}

export const report: Report = parsed<Report>('gputrace-report');
export const info: PageInfo = parsed<PageInfo>('gputrace-page');

export function section(name: string): Section | undefined {
  return Object.hasOwn(report.sections, name) ? report.sections[name] : undefined;
}

export function numberAt(row: Row | undefined, key: string): number | null {
  const value = row?.[key];
  return typeof value === 'number' ? value : null;
}

export function textAt(row: Row | undefined, key: string): string {
  const value = row?.[key];
  return typeof value === 'string' ? value : '';
}

// A single number of the overview; null where it is not known.
function metricRow(name: string): Row | undefined {
  return section('overview')?.rows.find((one) => one['metric'] === name);
}

export function metric(name: string): number | null {
  return numberAt(metricRow(name), 'value');
}

export function metricNote(name: string): string {
  return textAt(metricRow(name), 'note');
}

// What people call the run: of an interpreter its script, else the program.
export function programOf(run: Row | undefined): string {
  return textAt(run, 'program');
}
