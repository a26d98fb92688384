// Checks of the page in a browser: `node checks.mjs CHECK PAGE`, or `node checks.mjs shots FOLDER PAGE`. Ends with 0, or says on stderr what
// was not as it should be. Beside it must lie what `tools/build_page --tests` brought (GT_PAGE_MODULES: the folder with package.json).
//   · Every check fails when the page asks for anything, when its policy is broken, when a script throws, when a dialog opens.
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.env.GT_PAGE_MODULES}/package.json`);
const { chromium } = require('playwright-core');

const troubles = [];

async function withPage(file, work, { scheme = 'light', width = 1400, height = 900, scripts = true, scale = 1 } = {}) {
  const browser = await chromium.launch({ executablePath: process.env.GT_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  try {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, javaScriptEnabled: scripts, deviceScaleFactor: scale, acceptDownloads: true });
    const page = await context.newPage();
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`); });
    page.on('pageerror', (error) => troubles.push(`error: ${error.stack ?? error.message}`));
    page.on('dialog', (dialog) => { troubles.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    page.on('request', (request) => { if (!/^(data|blob):/.test(request.url()) && request.url() !== pathToFileURL(file).href) troubles.push(`request: ${request.url()}`); });
    await page.goto(pathToFileURL(file).href);
    if (scripts) await page.waitForSelector('#content h1');
    await work(page, context);
  } finally {
    await browser.close();
  }
}

const tabsOf = (page) => page.$$eval('nav a', (links) => links.map((link) => link.getAttribute('href').slice(1)));
const reportOf = (page) => page.evaluate(() => JSON.parse(document.getElementById('gputrace-report').textContent));

async function open(page, tab) {
  await page.click(`nav a[href="#${tab}"]`);
  await page.waitForSelector(`[data-tab="${tab}"]`);
}

const column = (page, section, name) => page.$$eval(`#section-${section} tbody tr`, (rows, key) => {
  const heads = [...rows[0].closest('table').querySelectorAll('th')].map((head) => head.textContent.replace(/[ ▾▴]+$/u, ''));
  return rows.map((row) => row.cells[heads.indexOf(key)].textContent);
}, name);

const checks = {
  // Every section of the report is in exactly one tab, under its title, with its rows.
  async tabs(file) {
    await withPage(file, async (page) => {
      const report = await reportOf(page);
      const seen = new Map();
      for (const tab of await tabsOf(page)) {
        await open(page, tab);
        assert.equal(await page.getAttribute('nav a[aria-current]', 'href'), `#${tab}`);
        for (const [name, title, rows] of await page.$$eval('.panel section', (all) => all.map((one) => [one.id.replace('section-', ''), one.querySelector('h2').textContent, one.querySelectorAll('.table tbody tr').length]))) {
          assert.ok(!seen.has(name), `${name} is in two tabs`);
          seen.set(name, tab);
          assert.equal(title, report.sections[name].title);
          const most = name === 'overview' ? 100 : name.endsWith('-timeline') ? 10 : 50;
          assert.equal(rows, Math.max(1, Math.min(most, report.sections[name].rows.length)), `rows of ${name}`);
        }
      }
      const filled = Object.keys(report.sections).filter((name) => report.sections[name].rows.length > 0);
      assert.deepEqual(filled.filter((name) => !seen.has(name)), [], 'every section that has a row is in a tab');
      for (const tab of new Set(seen.values())) {
        assert.ok(['overview', 'quality'].includes(tab) || filled.some((name) => seen.get(name) === tab), `${tab} has something to show`);
      }
      assert.equal(await page.$('#plain'), null, 'the plain tables make room');
    });
  },

  // Each box of the life spans is where its row says, in the colour of its kind: pixels of the picture, in both orders.
  async spans(file) {
    await withPage(file, async (page) => {
      const report = await reportOf(page);
      const { rows } = report.sections['memory-spans'];
      const last = Math.max(...report.sections.run.rows.map((row) => row.end_ns));
      const first = Math.min(...rows.map((row) => row.begin_ns));
      await open(page, 'memory');
      const picture = '#section-memory-spans .drawn canvas';
      const legend = await page.$$eval('#section-memory-spans .legend li', (items) => items.map((item) => [item.textContent, getComputedStyle(item.querySelector('.swatch')).backgroundColor]));
      for (const order of ['time', 'address']) {
        await page.selectOption('#section-memory-spans select[aria-label="Order of the boxes"]', order);
        await page.waitForSelector(picture);
        await page.waitForTimeout(300);
        const place = (row) => (order === 'time' ? row.begin_ns : Number(row.address));
        const ordered = [...rows].sort((a, b) => place(a) - place(b));
        const gap = order === 'time' ? 0 : 0.004 * rows.reduce((sum, row) => sum + row.bytes, 0);
        const { width, height } = await page.$eval(picture, (canvas) => ({ width: canvas.clientWidth, height: canvas.clientHeight }));
        const inner = { left: 84, width: width - 84 - 12, bottom: height - 62, height: height - 62 - 18 };
        let low = 0;
        const boxes = ordered.map((row, at) => {
          const before = ordered[at - 1];
          if (before && Number(row.address) > Number(before.address) + before.bytes) low += gap;
          const box = { row, low };
          low += row.bytes;
          return box;
        });
        const large = boxes.filter(({ row }) => (inner.height * row.bytes) / low >= 8);
        const places = large.map(({ row, low: from }) => [
          3 + inner.left + (inner.width * ((row.begin_ns + (row.end_ns ?? last)) / 2 - first)) / (last - first),
          inner.bottom - (inner.height * (from + row.bytes / 2)) / low,
        ]);
        const found = await page.$eval(picture, (canvas, at) => { // all of it read at once
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          const scale = canvas.width / canvas.clientWidth;
          return at.map(([x, y]) => 4 * (Math.round(y * scale) * canvas.width + Math.round(x * scale))).map((start) => `rgb(${[...data.slice(start, start + 3)].join(', ')})`);
        }, places);
        const wanted = large.map(({ row }) => legend.find(([kind]) => kind === row.kind)[1]);
        assert.deepEqual(found, wanted, `${order}: ${JSON.stringify(large)} at ${JSON.stringify(places)}`);
        const looked = large.length;
        assert.ok(looked >= 4, `${order}: ${looked} boxes were large enough to be looked at`);
      }
    });
  },

  async search_and_sort(file) {
    await withPage(file, async (page) => {
      const report = await reportOf(page);
      await open(page, 'kernels');
      const rows = report.sections.kernels.rows;
      const word = rows[0].name.split(/\W/)[0];
      await page.fill('#section-kernels input[type=search]', word);
      const wanted = rows.filter((row) => Object.values(row).some((value) => String(value).includes(word))).length;
      assert.ok(wanted > 0 && wanted <= rows.length);
      assert.equal((await column(page, 'kernels', 'name')).length, wanted, 'rows that have the word');
      await page.fill('#section-kernels input[type=search]', 'there is no such kernel');
      assert.equal(await page.textContent('#section-kernels tbody'), 'nothing has these words');
      await page.fill('#section-kernels input[type=search]', '');

      await page.click('#section-kernels th:has-text("launches") button');
      assert.equal(await page.getAttribute('#section-kernels th:has-text("launches")', 'aria-sort'), 'descending');
      const launches = rows.map((row) => row.launches).sort((a, b) => b - a).slice(0, 50);
      assert.deepEqual((await column(page, 'kernels', 'launches')).map((text) => Number(text.replaceAll(',', ''))), launches);
      await page.keyboard.press('Enter'); // the heading keeps the focus
      assert.equal(await page.getAttribute('#section-kernels th:has-text("launches")', 'aria-sort'), 'ascending');
      assert.deepEqual((await column(page, 'kernels', 'launches')).map((text) => Number(text.replaceAll(',', ''))), rows.map((row) => row.launches).sort((a, b) => a - b).slice(0, 50));

      await page.click('#section-kernels .columns summary');
      await page.click('#section-kernels .choice label:has-text("symbol")');
      assert.equal(new Set(await column(page, 'kernels', 'symbol')).size, new Set(rows.slice(0, 50).map((row) => row.symbol)).size);
    });
  },

  // A kernel's panel: its row, and as many executions as the device reported.
  async kernel(file) {
    await withPage(file, async (page) => {
      const report = await reportOf(page);
      const row = report.sections.kernels.rows[0];
      await open(page, 'kernels');
      await page.click('#section-kernels tbody button');
      await page.waitForSelector('dialog[open]');
      const text = await page.textContent('dialog');
      assert.ok(text.includes(row.name) && text.includes(row.kernel));
      assert.ok(text.includes(`${row.launches} executions over time`), text.slice(-200));
      await page.keyboard.press('Escape');
      await page.waitForSelector('dialog', { state: 'detached' });
    });
  },

  // What is saved is what --format csv writes.
  async csv(file, wanted) {
    await withPage(file, async (page) => {
      await open(page, 'calls');
      const [download] = await Promise.all([page.waitForEvent('download'), page.click('#section-api button:has-text("CSV")')]);
      assert.equal(readFileSync(await download.path(), 'utf8').replaceAll('\r\n', '\n'), readFileSync(wanted, 'utf8').replaceAll('\r\n', '\n'));
    });
  },

  async csv_of_formulas(file) {
    await withPage(file, async (page) => {
      await open(page, 'calls');
      const [download] = await Promise.all([page.waitForEvent('download'), page.click('#section-api button:has-text("CSV")')]);
      const lines = readFileSync(await download.path(), 'utf8').trimEnd().split('\r\n').slice(1);
      assert(lines.length > 3, `${lines.length} lines`);
      for (const line of lines) assert(line.startsWith("'=1+1\\x07"), line);
    });
  },

  // axe-core on every tab; in the dark its colours; in a narrow window the tabs that change most.
  async axe(file) {
    const source = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
    const looks = [{ scheme: 'light' }, { scheme: 'dark', only: ['color-contrast'] }, { scheme: 'light', width: 420, tabs: ['overview', 'kernels', 'timeline'] }];
    for (const { only, tabs, ...look } of looks) {
      await withPage(file, async (page) => {
        await page.evaluate(source); // by the debugger: the page's policy is not asked
        for (const tab of tabs ?? (await tabsOf(page))) {
          await open(page, tab);
          const { violations } = await page.evaluate((rules) => axe.run(document, { resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) }), only);
          const told = violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} (${node.any[0]?.message ?? ''})`).join(' | ')}`);
          assert.deepEqual(told, [], `${tab}, ${JSON.stringify(look)}`);
        }
      }, look);
    }
  },

  // Nothing is wider than the window, but what scrolls by itself. 200 % zoom is half the window.
  async narrow(file) {
    for (const width of [1400, 700, 360]) {
      await withPage(file, async (page) => {
        for (const tab of await tabsOf(page)) {
          await open(page, tab);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wide <= 0, `${tab} is ${wide} wider than ${width}`);
        }
      }, { width });
    }
  },

  // By keyboard alone: to the content, through the tabs.
  async keyboard(file) {
    await withPage(file, async (page) => {
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
      await page.keyboard.press('Enter');
      assert.equal(await page.evaluate(() => document.activeElement.id), 'content');
      await page.focus('nav a[href="#kernels"]');
      await page.keyboard.press('Enter');
      await page.waitForSelector('[data-tab=kernels]');
      await page.focus('#section-kernels th button');
      await page.keyboard.press('Enter');
      assert.ok(await page.$('#section-kernels th[aria-sort]'));
    });
  },

  // Without scripts the tables stand.
  async plain(file) {
    await withPage(file, async (page) => {
      const titles = await page.$$eval('#plain h2', (all) => all.map((one) => one.textContent));
      const report = JSON.parse(await page.textContent('#gputrace-report'));
      for (const one of Object.values(report.sections)) assert.ok(titles.includes(one.title), one.title);
      assert.equal((await page.$$('#plain table')).length, Object.keys(report.sections).length);
    }, { scripts: false });
  },

  // A page whose every text is an attack: nothing of it becomes an element, nothing runs. Troubles are counted below.
  async hostile(file) {
    await withPage(file, async (page) => {
      for (const tab of await tabsOf(page)) {
        await open(page, tab);
        assert.deepEqual(await page.$$eval('img, iframe, object, embed, svg script, base, link[rel=stylesheet], [onerror], [onload], a[href^="javascript:"]', (all) => all.map((one) => one.outerHTML)), [], tab);
        assert.equal(await page.evaluate(() => globalThis.attacked ?? null), null, tab);
      }
      assert.ok((await page.textContent('body')).includes('<img src=x onerror='), 'the names are shown as they are');
    });
  },

  // What is narrower than a pixel is seen where it is and nowhere else: pixel by pixel, in streams and threads, far away and nearer, also on a screen
  // with more dots.
  async drawn(file) {
    for (const dots of [1, 1.5]) {
      await withPage(file, async (page) => {
        await open(page, 'timeline');
        const said = await page.evaluate(() => {
          const timeline = globalThis.gputraceTimeline;
          const { canvas, view } = timeline;
          const dots = canvas.getContext('2d').getTransform().a;
          const GUTTER = 178;
          const picture = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
          const said = { missing: 0, strange: 0, seen: 0, empty: 0, narrow: 0 };
          const [from, to] = [timeline.first, timeline.last];
          for (const part of [1, 0.3]) {
            const middle = (from + to) / 2;
            timeline.show(middle - ((to - from) * part) / 2, middle + ((to - from) * part) / 2);
            for (const box of timeline.boxes.filter((one) => one.lane.track && one.lane.rows.length)) {
              view.scroll = Math.max(0, box.top - 60);
              timeline.paint();
              picture.drawImage(canvas, 0, 0);
              const pixels = (y) => picture.getImageData(0, Math.round(y * dots), canvas.width, 1).data;
              const [lane, beside] = [pixels(box.top - view.scroll + 7), pixels(box.top - view.scroll - 3)]; // what lies beneath: the grid
              const [row] = box.lane.rows;
              const scale = ((view.width - GUTTER) * dots) / (view.end - view.begin);
              const near = new Uint8Array(canvas.width + 8), middles = new Uint8Array(canvas.width + 8);
              for (let i = 0; i < row.begin.length; ++i) {
                const [left, right] = [row.begin[i], row.end[i]].map((time) => (time - view.begin) * scale + GUTTER * dots);
                if (right < GUTTER * dots || left >= canvas.width) continue;
                said.narrow += right - left < 1;
                middles[Math.floor((left + right) / 2)] = 1;
                for (let x = Math.max(0, Math.floor(left) - 1); x <= Math.min(canvas.width, right + 1); ++x) near[x] = 1;
              }
              for (let x = Math.ceil(GUTTER * dots) + 2; x < canvas.width - 4; ++x) {
                const painted = [0, 1, 2].some((c) => Math.abs(lane[4 * x + c] - beside[4 * x + c]) > 3);
                said.missing += middles[x] && !painted;
                said.strange += !near[x] && painted;
                said.seen += middles[x];
                said.empty += !near[x];
              }
            }
          }
          return said;
        });
        assert.deepEqual([said.missing, said.strange], [0, 0], `${JSON.stringify(said)} with ${dots} dots a pixel`);
        assert.ok(said.seen > 100 && said.empty > 100 && said.narrow > 100, JSON.stringify(said));
      }, { scale: dots });
    }
  },

  // The engines of each device: prints their slices.
  async engines(file) {
    await withPage(file, async (page) => {
      await open(page, 'timeline');
      process.stdout.write(JSON.stringify(await page.evaluate(() => globalThis.gputraceTimeline.lanes.filter((lane) => lane.summed).map((lane) => ({
        group: lane.group, label: lane.label, rows: lane.rows.length, begin: [...lane.rows[0].begin], end: [...lane.rows[0].end], summed: lane.summed,
      })))));
    });
  },

  // The events as the page has them, for whoever holds them against the truth.
  async events(file, out) {
    await withPage(file, async (page) => {
      await open(page, 'timeline');
      const events = await page.evaluate(() => {
        const { all } = globalThis.gputraceTimeline;
        const list = (track) => [...track.begin].map((begin, at) => ({
          begin, end: track.end[at], name: all.names[track.name[at]], result: track.result?.[at], bytes: track.bytes?.[at], launch: track.launch?.[at], site: all.sites[track.site?.[at] ?? 0],
        }));
        return { tracks: all.tracks.map((track) => ({ ...track, begin: undefined, end: undefined, name: undefined, slices: list(track) })), processes: all.processes, left_out: all.leftOut };
      });
      writeFileSync(out, JSON.stringify(events));
    });
  },

  // Keys, mouse, search, choice, link: what they show and say.
  // Where start-up takes most of the time, the timeline opens at the steps; 0 shows the whole run, the button leads back.
  async opens_at_steps(file) {
    await withPage(file, async (page) => {
      await open(page, 'timeline');
      const [first, last] = await page.evaluate(() => {
        const report = JSON.parse(document.getElementById('gputrace-report').textContent);
        const origin = JSON.parse(document.getElementById('gputrace-page').textContent).origin_ns;
        const { rows } = report.sections.steps;
        return [rows[0].begin_ns - origin, rows.at(-1).begin_ns + rows.at(-1).duration_ns - origin];
      });
      const near = (one, other) => assert.ok(Math.abs(one - other) < 0.001 * (last - first), `${one} is near ${other}`);
      const opened = async () => {
        const { begin, end } = await page.evaluate(() => ({ ...globalThis.gputraceTimeline.view }));
        near(begin, first - 0.05 * (last - first));
        near(end, last + 0.05 * (last - first));
      };
      await opened();
      await page.focus('canvas');
      await page.keyboard.press('0');
      assert.ok(await page.evaluate(() => globalThis.gputraceTimeline.view.end - globalThis.gputraceTimeline.view.begin) > 2 * (last - first), '0 shows all');
      await page.click('.timeline .tools button:has-text("Steps")');
      await opened();
    });
  },

  async timeline(file) {
    await withPage(file, async (page) => {
      await open(page, 'timeline');
      const view = () => page.evaluate(() => ({ ...globalThis.gputraceTimeline.view }));
      await page.focus('canvas');
      await page.keyboard.press('0');
      const whole = await view();
      const length = (one) => one.end - one.begin;
      await page.keyboard.press('w');
      const closer = await view();
      assert.ok(Math.abs(length(closer) / length(whole) - 0.8) < 1e-6, 'W zooms in');
      await page.keyboard.press('d');
      assert.ok((await view()).begin > closer.begin, 'D moves on');
      await page.keyboard.press('0');
      assert.deepEqual(await view(), whole, '0 shows all');
      const box = await (await page.$('canvas')).boundingBox();
      await page.mouse.move(box.x + 600, box.y + 60);
      await page.keyboard.down('Control');
      await page.mouse.wheel(0, -300);
      await page.keyboard.up('Control');
      await page.waitForFunction((before) => globalThis.gputraceTimeline.view.end - globalThis.gputraceTimeline.view.begin < before, length(whole) * 0.9);
      await page.keyboard.press('0');

      // Every kernel is found; the first one is chosen, in words.
      const kernels = await page.evaluate(() => {
        const { all } = globalThis.gputraceTimeline;
        const name = all.names.find((one) => one.kind === 'kernel');
        let slices = 0;
        for (const track of all.tracks) for (const at of track.name) slices += all.names[at].text.includes(name.text) || all.names[at].whole.includes(name.text) ? 1 : 0;
        return { text: name.text, slices };
      });
      await page.keyboard.press('/');
      await page.keyboard.type(kernels.text);
      assert.equal(await page.textContent('.timeline .count'), `${kernels.slices.toLocaleString('en-US')} found`);
      await page.keyboard.press('Enter');
      assert.ok((await page.textContent('.chosen h2')).includes(kernels.text));
      assert.match(await page.textContent('.chosen'), /launched by.*Launch/);
      assert.match(await page.evaluate(() => location.hash), /^#timeline\/\d+-\d+$/);
      // To the call and back.
      await page.click('.chosen button:has-text("Launch")');
      assert.match(await page.textContent('.chosen h2'), /Launch/);
      await page.keyboard.press('Escape');

      // A chosen time: its sums are those of the slices in it.
      await page.focus('canvas');
      await page.keyboard.press('0');
      await page.mouse.move(box.x + 400, box.y + 40);
      await page.mouse.down();
      await page.mouse.move(box.x + 900, box.y + 80, { steps: 3 });
      await page.mouse.up();
      const engines = await page.evaluate(() => globalThis.gputraceTimeline.lanes.filter((lane) => lane.summed).map((lane) => lane.label));
      const sums = await page.evaluate(() => {
        const { marks, all } = globalThis.gputraceTimeline;
        const [from, to] = marks.range;
        return all.tracks.map((track) => [...track.begin].filter((begin, at) => begin < to && track.end[at] > from).length).filter((one) => one > 0).sort((a, b) => a - b);
      });
      assert.deepEqual(await page.$$eval('.side table:first-of-type', (all, engines) => [...all[0].querySelectorAll('tbody tr')].filter((row) => !engines.includes(row.cells[0].textContent)).map((row) => Number(row.cells[1].textContent.replaceAll(',', ''))).sort((a, b) => a - b), engines), sums);
      await page.keyboard.press('m');
      assert.equal(await page.evaluate(() => globalThis.gputraceTimeline.marks.marked.length), 1);
      await page.keyboard.press('f');
      const fitted = await view();
      const hash = await page.evaluate(() => location.hash);

      // The link leads there, in another window too.
      const other = await page.context().newPage();
      await other.goto(pathToFileURL(file).href + hash);
      await other.waitForSelector('.chosen h2');
      const there = await other.evaluate(() => globalThis.gputraceTimeline.marks.range);
      const [begin, end] = hash.split('/')[1].split('-').map(Number);
      assert.deepEqual(there, [begin, end]);
      assert.ok(fitted.begin <= begin && fitted.end >= end);
    });
  },

  // Milliseconds from the address to the picture of the timeline, and frames a second while it moves, at four zooms: printed, for those who
  // measure. A frame is 1/60 s at best, and a browser without a GPU paints on the same cores.
  async speed(file) {
    await withPage(file, async (page) => {
      const said = await page.evaluate(async () => {
        const frame = () => new Promise((done) => requestAnimationFrame(done));
        const begin = performance.now();
        location.hash = '#timeline';
        while (!globalThis.gputraceTimeline) await new Promise((done) => setTimeout(done, 1));
        await frame();
        await frame();
        const said = { ready_ms: performance.now() - begin };
        const timeline = globalThis.gputraceTimeline;
        said.slices = timeline.all.tracks.reduce((sum, track) => sum + track.begin.length, 0);
        const whole = timeline.view.end - timeline.view.begin;
        const middle = (timeline.view.begin + timeline.view.end) / 2;
        for (const zoom of [1, 0.1, 0.01, 0.001]) {
          timeline.show(middle - (whole * zoom) / 2, middle + (whole * zoom) / 2);
          await frame();
          const from = performance.now();
          let drawing = 0;
          for (let i = 0; i < 60; ++i) {
            timeline.pan(0.004);
            const at = performance.now();
            timeline.paint();
            drawing += performance.now() - at;
            await frame();
          }
          said[`fps_${zoom}`] = 60000 / (performance.now() - from);
          said[`draw_ms_${zoom}`] = drawing / 60;
        }
        return said;
      });
      process.stdout.write(`${JSON.stringify(said, (_, value) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value))}\n`);
    });
  },

  async shots(folder, file) {
    for (const scheme of ['light', 'dark']) {
      await withPage(file, async (page) => {
        for (const tab of await tabsOf(page)) {
          await open(page, tab);
          await page.waitForTimeout(300);
          if (scheme === 'light' || ['overview', 'timeline'].includes(tab)) await page.screenshot({ path: `${folder}/${tab}${scheme === 'dark' ? '-dark' : ''}.png` });
        }
      }, { scheme, width: 1280, height: 800 });
    }
  },
};

// A served page: coming near, one gets every event of what is in view; it asks nobody but its server. Prints the view and the begins of what
// ran on devices in it.
checks.served = async (address, ...instants) => {
  const browser = await chromium.launch({ executablePath: process.env.GT_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`); });
    page.on('pageerror', (error) => troubles.push(`error: ${error.stack ?? error.message}`));
    const asked = [];
    page.on('request', (request) => { asked.push(request.url()); if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(address)) troubles.push(`request: ${request.url()}`); });
    await page.goto(`${address}#timeline`);
    await page.waitForSelector('.timeline canvas');
    assert.ok(await page.evaluate(() => globalThis.gputraceTimeline.all.leftOut > 0), 'more events than the page holds');
    await page.evaluate(() => {
      globalThis.showsAll = ({ all, view }) => all.exact !== null && view.begin >= all.exact[0] && view.end <= all.exact[1];
    });
    const whole = () => page.evaluate(() => globalThis.showsAll(globalThis.gputraceTimeline));
    const before = await page.evaluate((places) => places.every((at) => { // the first place beside what is exact from the beginning
      const timeline = globalThis.gputraceTimeline;
      const middle = at - JSON.parse(document.getElementById('gputrace-page').textContent).origin_ns;
      const half = (timeline.last - timeline.first) * 0.02;
      timeline.show(middle - half, middle + half);
      return globalThis.showsAll(timeline); // at once: its server may have answered before the next call from here
    }), instants.map(Number));
    assert.ok(!before, 'not yet');
    for (let i = 0; i < 20 && !(await whole()); ++i) {
      await page.waitForTimeout(700);
      if (await whole()) break;
      await page.focus('.timeline canvas');
      for (let key = 0; key < 7; ++key) await page.keyboard.press('w');
    }
    assert.ok(await whole(), 'every event of what is in view');
    assert.ok(asked.some((url) => url.includes('/events?from=')), 'fetched from its server');
    process.stdout.write(JSON.stringify(await page.evaluate(() => {
      const { all, view } = globalThis.gputraceTimeline;
      const began = all.tracks.filter((track) => track.kind === 'stream').flatMap((track) => [...track.begin]).filter((at) => at >= view.begin && at <= view.end);
      return { origin: JSON.parse(document.getElementById('gputrace-page').textContent).origin_ns, begin: view.begin, end: view.end, began };
    })));
  } finally {
    await browser.close();
  }
};

// Steps 5 to 9 are chosen: by a served page, which is then of these; a page in a file says the command. Prints what the tables are of.
checks.chosen = async (address, file) => {
  const browser = await chromium.launch({ executablePath: process.env.GT_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  const choose = async (page) => {
    await page.waitForSelector('form.chooser');
    await page.getByLabel('first step').fill('9');
    await page.getByLabel('last step').fill('5'); // in whatever order
    await page.getByRole('button', { name: 'Show', exact: true }).click();
  };
  try {
    const page = await browser.newPage();
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`); });
    page.on('pageerror', (error) => troubles.push(`error: ${error.stack ?? error.message}`));
    await page.goto(`file://${file}#steps`);
    await choose(page);
    assert.match(await page.locator('form.chooser').innerText(), /gputrace report --steps 5-9 --html/);
    assert.ok(page.url().startsWith('file:'), 'a file stays where it is');
    await page.goto(`${address}#steps`);
    await choose(page);
    await page.waitForSelector('.range');
    assert.match(await page.locator('.range').innerText(), /^Only steps 5-9/);
    assert.ok(page.url().endsWith('/?steps=5-9#steps'), page.url());
    const report = await page.evaluate(() => JSON.parse(document.getElementById('gputrace-report').textContent).sections);
    assert.equal(await page.locator('#section-steps tbody tr').count(), report.steps.rows.length);
    await page.getByRole('link', { name: 'show the whole run' }).click();
    await page.waitForSelector('form.chooser');
    assert.equal(await page.locator('.range').count(), 0);
    process.stdout.write(JSON.stringify({ steps: report.steps.rows.map((row) => row.step), launches: report.kernels.rows.reduce((sum, row) => sum + row.launches, 0) }));
  } finally {
    await browser.close();
  }
};

const [name, ...given] = process.argv.slice(2);
try {
  await checks[name](...given);
  assert.deepEqual(troubles, []);
} catch (error) {
  process.stderr.write(`${name}: ${error.message ?? error}\n`);
  for (const trouble of troubles.slice(0, 10)) process.stderr.write(`  ${trouble}\n`);
  process.exit(1);
}
