// The page: a list of tabs beside what the chosen one shows. The address says where one is: #kernels.
import './style.css';
import { chartOf } from './charts';
import { add, announce, h } from './dom';
import { safe } from './format';
import { showKernel } from './kernel';
import { coverage, notCollected, overview } from './overview';
import { rangeBar, stepChooser } from './range';
import { info, numberAt, programOf, report, type Row, section } from './report';
import { SectionTable, type TableOptions } from './table';
import { makeTabs, type Tab, tabOfSection } from './tabs';
import { events, fetchEvents, hasEvents } from './timeline/events';
import type { Events } from './timeline/events';
import { Timeline } from './timeline/timeline';

const tabs = makeTabs(hasEvents());
const panels = new Map<string, HTMLElement>();
const content = h('main', { id: 'content', tabindex: -1 });
const links = new Map<string, HTMLAnchorElement>();
let timeline: Timeline | null = null;

function linkTo(name: string): string | null {
  const tab = tabOfSection(tabs, name);
  return tab ? `#${tab.id}` : null;
}

function panelOf(tab: Tab): HTMLElement {
  const known = panels.get(tab.id);
  if (known) return known;
  const panel = h('div', { class: 'panel', 'data-tab': tab.id }, h('h1', {}, tab.label));
  panels.set(tab.id, panel);
  if (tab.id === 'overview') panel.append(overview(linkTo));
  if (tab.id === 'timeline') panel.append(makeTimeline().element);
  if (tab.id === 'quality') add(panel, coverage(), notCollected());
  for (const name of tab.sections) {
    const of = section(name);
    if (!of) continue;
    const block = h('section', { id: `section-${name}` }, h('h2', {}, safe(of.title)));
    add(block, name === 'steps' ? stepChooser(of) : null, chartOf(name, of), new SectionTable(name, of, optionsOf(name)).element);
    panel.append(block);
  }
  return panel;
}

function makeTimeline(): Timeline {
  timeline ??= newTimeline(events());
  return timeline;
}

function newTimeline(all: Events): Timeline {
  const made = new Timeline(all, (place) => history.replaceState(null, '', `#${place}`), info.served ? (begin, end) => void more(begin, end) : null);
  (globalThis as { gputraceTimeline?: Timeline }).gputraceTimeline = made; // for tests and the curious
  return made;
}

// A timeline with every event of that time takes the other's place.
async function more(begin: number, end: number): Promise<void> {
  const note = h('p', { class: 'note fetching' }, 'fetching the events of this time …');
  timeline?.element.prepend(note);
  try {
    const fresh = newTimeline(await fetchEvents(begin, end));
    const before = timeline;
    timeline = fresh;
    if (!before) return;
    const focused = before.element.contains(document.activeElement);
    before.element.replaceWith(fresh.element);
    fresh.follow(before);
    if (focused) fresh.focus();
    announce('every event of this time is shown');
  } catch {
    note.textContent = 'the events of this time could not be fetched: is gputrace view still running?';
  }
}

// Whoever serves the page ends with it: it holds a connection open.
async function stay(): Promise<void> {
  try {
    const answer = await fetch('here');
    const reader = answer.body?.getReader();
    while (reader && !(await reader.read()).done);
  } catch {
    // it has ended
  }
  document.querySelector('footer')?.append(' · gputrace view has ended: what is shown stays, nothing more can be fetched');
}

function optionsOf(name: string): TableOptions {
  if (name === 'overview') return { rows: 100 };
  if (name.endsWith('-timeline')) return { rows: 10 }; // the picture says more
  if (name === 'kernels') return { open: { label: 'More on', act: showKernel } };
  if (name !== 'idle' || !hasEvents() || info.origin_ns === null) return {};
  const lead = (row: Row): void => {
    const begin = (numberAt(row, 'begin_ns') ?? 0) - (info.origin_ns ?? 0);
    location.hash = `timeline/${begin}-${begin + (numberAt(row, 'duration_ns') ?? 1)}`;
  };
  return { open: { label: 'In the timeline', act: lead } };
}

function current(): Tab {
  const wanted = decodeURIComponent(location.hash.slice(1)).split('/')[0];
  return tabs.find((tab) => tab.id === wanted) ?? (tabs[0] as Tab);
}

function show(): void {
  const tab = current();
  for (const [id, link] of links) {
    if (id === tab.id) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  content.replaceChildren(panelOf(tab));
  if (tab.id === 'timeline') {
    const place = location.hash.split('/')[1];
    if (place) makeTimeline().goTo(place);
    makeTimeline().focus();
  }
  document.title = `${tab.label} · ${title()}`;
}

function title(): string {
  const run = section('run')?.rows[0];
  const program = programOf(run);
  return program ? `${safe(program)} · gputrace` : 'gputrace';
}

function start(): void {
  const list = h('ul');
  for (const tab of tabs) {
    const link = h('a', { href: `#${tab.id}` }, tab.label);
    links.set(tab.id, link);
    list.append(h('li', {}, link));
  }
  const bad = !report.coverage.complete || report.coverage.dropped > 0;
  const head = h('header', {}, h('a', { class: 'brand', href: '#overview' }, 'gputrace'), h('span', { class: 'subject' }, title().replace(' · gputrace', '')),
    bad ? h('a', { class: 'badge bad', href: '#quality' }, 'incomplete') : null);
  const foot = h('footer', {}, `gputrace ${info.version} · ${info.served ? 'served by gputrace view on this machine' : 'one file, no connection to anywhere'}`);
  document.getElementById('plain')?.remove();
  add(document.getElementById('app') as HTMLElement,
    h('a', { class: 'skip', href: '#content', click: (event: Event) => { event.preventDefault(); content.focus(); } }, 'Skip to the content'),
    head, h('div', { class: 'body' }, h('nav', { 'aria-label': 'Parts of the report' }, list), h('div', { class: 'right' }, rangeBar(), content, foot)));
  addEventListener('hashchange', () => {
    show();
    scrollTo(0, 0);
  });
  show();
}

start();
if (info.served) void stay();
