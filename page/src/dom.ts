// Elements from code. Text is only ever set as text: nothing here takes markup.

type Child = Node | string | null | undefined | false;
type Attributes = { readonly [name: string]: string | number | boolean | null | undefined | ((event: never) => void) };

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value as EventListener);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  add(element, ...children);
  return element;
}

export function add(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) parent.appendChild(typeof child === 'string' ? document.createTextNode(child) : child);
  }
}

// What scrolls must be reachable by keyboard, and say what it is.
export function scroller(label: string, ...children: Child[]): HTMLDivElement {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, ...children);
}

// A value of the theme in force.
export function themed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

let announcer: HTMLElement | null = null;
export function announce(text: string): void {
  if (!announcer) {
    announcer = h('div', { class: 'unseen', role: 'status', 'aria-live': 'polite' });
    document.body.appendChild(announcer);
  }
  announcer.textContent = text;
}
