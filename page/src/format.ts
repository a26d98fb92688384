// Values as people read them; the same words as the terminal report has.
import type { Column, Parts, Row, Unit, Value } from './report';
import { info } from './report';

function fourDigits(value: number): string {
  const size = Math.abs(value);
  if (size >= 999.95) return value.toFixed(0);
  if (size >= 99.995) return value.toFixed(1);
  if (size >= 9.9995) return value.toFixed(2);
  return value.toFixed(3);
}

export function nanos(value: number): string {
  const size = Math.abs(value);
  if (size < 1e3) return `${Math.round(value)} ns`;
  if (size < 1e6) return `${fourDigits(value / 1e3)} µs`;
  if (size < 1e9) return `${fourDigits(value / 1e6)} ms`;
  return `${fourDigits(value / 1e9)} s`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  if (Math.abs(value) < 1024) return `${Math.round(value)} B`;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  return `${fourDigits(value)} ${units[unit]}`;
}

// Of marks on an axis, which are round.
export const roundBytes = (value: number): string => bytes(value).replace(/\.(\d*[1-9])?0* /, (_, digits: string | undefined) => (digits ? `.${digits} ` : ' '));

export function count(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString('en-US');
  return Math.abs(value) < 0.95 ? String(Number(value.toPrecision(2))) : value.toFixed(1);
}

export function large(value: number): string {
  const prefixes = ['', ' k', ' M', ' G', ' T', ' P', ' E'];
  let prefix = 0;
  while (Math.abs(value) >= 999.95 && prefix < 6) {
    value /= 1000;
    ++prefix;
  }
  return prefix === 0 && Number.isInteger(value) ? String(value) : fourDigits(value) + prefixes[prefix];
}

// What is not all, is not said to be all; nor is a little said to be nothing.
export function percent(ratio: number): string {
  const digits = (ratio * 100).toFixed(1);
  if (digits === '100.0' && ratio < 1) return '> 99.9 %';
  if (digits === '0.0' && ratio > 0) return '< 0.1 %';
  return `${digits} %`;
}

// Names come from strangers: what would change the direction of text or be invisible is shown as its number.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
export function safe(text: string): string {
  return text.replace(UNSEEN, (one) => {
    const code = one.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

// Sentences of the report, which write µs as a terminal can.
export const prose = (text: string): string => safe(text).replace(/(\d) us\b/g, '$1 µs');

function parts(value: Parts): string {
  return Object.entries(value)
    .map(([name, length]) => `${safe(name)} ${nanos(length)}`)
    .join(', ');
}

export function human(value: Value, unit: Unit): string {
  if (value === null) return '–';
  if (typeof value === 'string') return safe(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'object') return parts(value);
  switch (unit) {
    case 'ns':
      return nanos(value);
    case 'bytes':
      return bytes(value);
    case 'bytes/s':
      return `${bytes(value)}/s`;
    case 'ratio':
      return percent(value);
    case 'count':
      return count(value);
    default:
      return Number.isInteger(value) ? String(value) : value.toFixed(3);
  }
}

// A point in time, not a length of it.
export const isInstant = (column: Column): boolean => column.unit === 'ns' && /^(at|begin|end|peak_at)_ns$/.test(column.key);

export function instant(value: number): string {
  return `${((value - (info.origin_ns ?? 0)) / 1e9).toFixed(6)} s`;
}

// In a table of single numbers each row has its own unit.
export function unitOf(row: Row, column: Column): Unit {
  const own = row['unit'];
  return column.key === 'value' && typeof own === 'string' ? (own as Unit) : column.unit;
}

export function cell(value: Value, column: Column, hint: string | undefined, unit: Unit = column.unit): string {
  if (typeof value === 'number' && isInstant(column)) return instant(value);
  if (typeof value === 'number' && hint === 'large') return large(value);
  return human(value, unit);
}

export function heading(key: string): string {
  return key.replace(/(.)(_ns|_bytes|_ratio)$/, '$1').replaceAll('_', ' ');
}

// Two columns of one heading are told apart by the unit of the ratio.
export function headings(columns: readonly Column[]): string[] {
  const plain = columns.map((column) => heading(column.key));
  return columns.map((column, at) => {
    const own = plain[at] ?? '';
    const twice = plain.some((other, index) => index !== at && other === own);
    if (!twice) return own;
    return own + (column.unit === 'ratio' ? ' ratio' : column.unit === 'ns' ? ' time' : column.unit === 'bytes' ? ' bytes' : '');
  });
}

export const isText = (column: Column): boolean => column.unit === 'text' || column.unit === 'bool';

// A function's name without what is around it: return type, parameters, anonymous namespaces.
export function brief(name: string): string {
  let text = name.replaceAll('(anonymous namespace)::', '').replace(/^void /, '');
  const open = outerParenthesis(text);
  if (open > 0) text = text.slice(0, open);
  return text || name;
}

function outerParenthesis(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; ++at) {
    const one = text[at];
    if (one === '<') ++depth;
    else if (one === '>') depth = Math.max(0, depth - 1);
    else if (one === '(' && depth === 0) return at;
  }
  return -1;
}
