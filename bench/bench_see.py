"""To see a run: the page in a file, its timeline in Chromium, `gputrace view` without its index, while it makes one and with it, and the exports
for other viewers; at 10 M records of three processes with device times. GT_LARGE=1: at 100 M records too (minutes, and 5 GB in the temporary folder)."""
import json
import os
import random
import re
import select
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request

from bench import SOURCE, Table, built, harness, run, scratch

LARGE = os.environ.get('GT_LARGE') == '1'
SIZES = {'10 M': 10, **({'100 M': 100} if LARGE else {})}  # million records
PAGE = os.path.join(SOURCE, 'build', 'page')
FEW = 1_300_000  # records, with two calls and a key for each kernel: nearly the million slices that the page shows one by one
WINDOWS = 20
MIB = 1 << 20


def remove(path):
    (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)


def measured(*arguments, makes=None):
    """(seconds, CPU seconds, peak memory in bytes, what it said) of `gputrace ARGUMENTS`, which makes this: the better of two."""
    best = None
    for _ in range(2):
        if makes and os.path.exists(makes):
            remove(makes)
        said = os.path.join(scratch.name, 'said')
        with open(said, 'wb') as to:
            began = time.monotonic()
            process = subprocess.Popen([harness.places.gputrace, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=to)
            _, process.returncode, usage = os.wait4(process.pid, 0)
        with open(said, encoding='utf-8', errors='replace') as file:
            text = file.read()
        if process.returncode:
            sys.exit(f'bench: gputrace {arguments[0]} ended with status {process.returncode}\n{text}')
        figures = (time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text)
        best = min(best or figures, figures)
    return best


class View:
    """`gputrace view` of a folder: seconds to its first page, then seconds for windows, and its memory."""

    def __init__(self, folder, index):
        began = time.monotonic()
        self.process = subprocess.Popen([harness.places.gputrace, 'view', '--no-browser', '--index', index, folder], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, 'XDG_CACHE_HOME': os.path.join(scratch.name, 'cache')})
        self.address = self.process.stdout.readline().decode().strip()
        if not self.address:
            sys.exit(f'bench: gputrace view gave no address: {self.process.stderr.read().decode()}')
        self.page, _ = self.get('')
        self.first = time.monotonic() - began
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as file:
            self.cpu = sum(map(int, file.read().rpartition(')')[2].split()[11:13])) / os.sysconf('SC_CLK_TCK')

    def get(self, path):
        """(bytes, seconds)"""
        began = time.monotonic()
        with urllib.request.urlopen(self.address + path) as answer:
            body = answer.read()
        return body, time.monotonic() - began

    def said(self):
        text = b''
        while select.select([self.process.stderr], [], [], 0.3)[0] and (piece := os.read(self.process.stderr.fileno(), 4096)):
            text += piece
        return text.decode()

    def memory(self):
        """(now, peak), bytes."""
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as file:
            lines = dict(line.split(':', 1) for line in file)
        return tuple(int(lines[name].split()[0]) * 1024 for name in ('VmRSS', 'VmHWM'))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def windows_of(length, count):
    """Times anywhere in the run, from a millionth of it to the whole; the same ones each time."""
    numbers = random.Random(1)
    for _ in range(count):
        width = max(1000, int(length / 10 ** numbers.uniform(0, 6)))
        begin = numbers.randrange(max(1, length - width))
        yield f'events?from={begin}&to={begin + width}'


def served(table, name, folder, length, slices, report):
    """`report`: (seconds, CPU seconds) that a report takes."""
    few = list(windows_of(length, 4))
    with View(folder, 'never') as view:
        table.add(f'{name}, no index: first page', f'{view.first:.1f} s')
        took = [view.get(path)[1] for path in few]
        wanted = [view.page] + [view.get(path)[0] for path in few]
        table.add(f'{name}, no index: a time, median of {len(few)}', f'{statistics.median(took):.2f} s')
    with View(folder, 'always') as view:
        made = re.search(r'\(([^()]*)\)\n', view.said())
        if not made:
            sys.exit('bench: no index was kept')
        table.add(f'{name}, first start: first page', f'{view.first:.1f} s')
        rate = slices / max(1e-9, view.first - report[0])
        table.add(f'{name}, first start: events a second into the index, page and all, less a report', f'{rate / 1e6:.1f} M', '>= 10 M', rate >= 10e6)
        rate = slices / max(1e-9, view.cpu - report[1])
        table.add(f'{name}, first start: events a CPU second into the index, page and all, less a report', f'{rate / 1e6:.1f} M', '>= 10 M', rate >= 10e6)
        now, peak = view.memory()
        table.add(f'{name}, first start: memory then, at its peak', f'{now / MIB:.0f}, {peak / MIB:.0f} MiB', '<= 1024 MiB', peak <= 1 << 30)
    index, traces = (sum(entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith(end)) for end in ('.index', '.gtrace'))
    table.add(f'{name}: index, of the traces', f'{index / MIB:.0f} MiB, {100 * index / traces:.0f} %')
    with View(folder, 'always') as view:
        table.add(f'{name}, second start: first page', f'{view.first:.2f} s', '<= 2 s', view.first <= 2)
        took = [view.get(path)[1] for path in windows_of(length, WINDOWS)]
        worst = max(took)
        table.add(f'{name}, second start: a time, median and worst of {WINDOWS}', f'{statistics.median(took):.3f}, {worst:.3f} s', '<= 1 s', worst <= 1)
        now, peak = view.memory()
        table.add(f'{name}, second start: memory at its peak', f'{peak / MIB:.0f} MiB', '<= 1024 MiB', peak <= 1 << 30)
        same = [view.page] + [view.get(path)[0] for path in few] == wanted
        table.add(f'{name}: page and times are byte for byte those without index', 'yes' if same else 'NO', 'yes', same)
        _, part = view.get(f'?from={length // 3}&to={length // 3 + length // 100}')
        table.add(f'{name}: tables of a hundredth of the run', f'{part:.1f} s')


def in_chromium(table, name, page):
    """The timeline of a page in a file, all of whose events are there one by one; `tools/build_page --tests` brings what drives the browser."""
    modules, chromium = os.path.join(PAGE, 'work'), shutil.which('chromium')
    if not chromium or not os.path.isdir(os.path.join(modules, 'node_modules', 'playwright-core')):
        return table.add(f'{name}: in Chromium', 'not measured: needs chromium, and tools/build_page --tests')
    home = os.path.join(scratch.name, 'home')
    os.makedirs(home, exist_ok=True)
    said = json.loads(run([harness.node(), os.path.join(SOURCE, 'tests', 'page', 'checks.mjs'), 'speed', page],
                          env={'GT_PAGE_MODULES': modules, 'GT_CHROMIUM': chromium, 'HOME': home}))
    table.add(f"{name}: {said['slices']:,} slices: timeline ready", f"{said['ready_ms']:.0f} ms", '<= 1000 ms', said['ready_ms'] <= 1000)
    for zoom in ('1', '0.1', '0.01', '0.001'):
        frames = said[f'fps_{zoom}']
        table.add(f'{name}: panning over {zoom} of the run: frames a second, a drawing', f"{frames:.0f}, {said[f'draw_ms_{zoom}']:.1f} ms", '60', frames >= 59)


def exports(table, name, folder, slices):
    for form, ending in (('perfetto', 'pftrace'), ('parquet', 'parquet')):
        target = os.path.join(scratch.name, 'export.' + ending)
        took, cpu, memory, _ = measured('export', '--format', form, '-o', target, '-q', folder, makes=target)
        rate = slices / cpu
        table.add(f'{name}, {form}: events a CPU second', f'{rate / 1e6:.1f} M ({took:.1f} s, {cpu:.1f} s of CPU)', '>= 3 M', rate >= 3e6)
        table.add(f'{name}, {form}: peak memory', f'{memory / MIB:.0f} MiB', '<= 500 MiB', memory <= 500 * MIB)
        remove(target)


def slices_of(folder):
    """How many events an export has."""
    text = measured('export', '--format', 'folded', '-o', os.path.join(scratch.name, 'folded'), folder)[3]
    found = re.search(r'([\d,]+) device slices, ([\d,]+) host slices', text)
    return sum(int(number.replace(',', '')) for number in found.groups())


def main():
    files, views, others = Table('see: the page in a file'), Table('see: gputrace view'), Table('see: exports for other viewers')
    template = os.path.getsize(os.path.join(PAGE, 'page.html'))
    files.add('the page without data', f'{template / MIB:.2f} MiB', '<= 1.5 MiB', template <= 1.5 * MIB)
    small = os.path.join(scratch.name, 'small')
    os.makedirs(small)
    run([built('device_trace'), small, str(FEW), 'queries'])
    page = os.path.join(scratch.name, 'page.html')
    run([harness.places.gputrace, 'report', '--html', page, small])
    in_chromium(files, 'few records', page)
    for name, millions in SIZES.items():
        folder = os.path.join(scratch.name, name.replace(' ', ''))
        os.makedirs(folder)
        run([built('device_trace'), folder, str(millions * 1_000_000)])
        slices = slices_of(folder)
        report = measured('report', '--json', folder)[:2]
        rows = json.loads(run([harness.places.gputrace, 'report', '--json', '--section', 'overview', folder]))['sections']['overview']['rows']
        length = next(row['value'] for row in rows if row['metric'] == 'wall_ns')
        took, cpu, memory, _ = measured('report', '--html', page, folder)
        files.add(f'{name} records, {slices / 1e6:.1f} M events: made in, CPU time, peak memory', f'{took:.1f} s, {cpu:.1f} s, {memory / MIB:.0f} MiB')
        files.add(f'{name}: the page with its events', f'{os.path.getsize(page) / MIB:.1f} MiB')
        served(views, name, folder, length, slices, report)
        exports(others, name, folder, slices)
        shutil.rmtree(folder)
    for table in (files, views, others):
        table.show()


main()
