"""Reads every #include of the sources and holds it against the tables of docs/ARCHITECTURE.md, between folders and between the rooms of
a folder; with it, what else can be read off the sources: how many a folder holds, `#pragma once`, forbidden headers, and that the
hot headers stay free of the C++ library's heavy parts."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, check, finish, skip  # noqa: E402

# Who may include whom; a folder may always include itself.
MAY_INCLUDE = {
    'base': set(),
    'trace': {'base'},
    'cubin': {'base', 'trace'},
    'frames': {'base'},
    'ringbuf': {'base', 'trace'},
    'interpose': {'base', 'trace', 'ringbuf', 'cupti', 'frames'},
    'cupti': {'base', 'trace', 'ringbuf'},
    'writer': {'base', 'trace', 'ringbuf', 'cubin', 'frames'},
    'analysis': {'base', 'trace', 'cubin'},
    'page': set(),
    'cli': {'base', 'trace', 'analysis', 'page', 'cupti'},
    'simgpu': {'base', 'cubin'},
    'examples': set(),
    'tests': {'base', 'trace', 'cubin', 'frames', 'ringbuf', 'interpose', 'cupti', 'writer', 'analysis', 'cli', 'simgpu'},
    'bench': {'base', 'trace', 'cubin', 'frames', 'ringbuf', 'interpose', 'cupti', 'writer', 'analysis', 'simgpu'},
}
# Who may include whom between the rooms of a folder; '' is the folder itself. A room may always include itself. Neither table has a circle.
ROOMS = {
    'interpose': {
        '': set(),
        'hot': {''},
        'lookup': {'', 'hot'},
        'settings': {'', 'hot', 'lookup'},
        'definition': {'', 'hot', 'lookup', 'settings'},
        'code': {'', 'hot', 'lookup', 'settings', 'definition'},
        'device': {'', 'hot', 'lookup', 'settings', 'definition'},
        'library': {'', 'hot', 'lookup', 'settings', 'definition'},
        'nvtx': {'', 'hot', 'lookup', 'settings', 'definition'},
        'ops': {'', 'hot', 'lookup', 'settings', 'definition'},
        'python': {'', 'hot', 'lookup', 'settings', 'definition'},
        'native': {'', 'hot', 'lookup', 'settings'},
        'stacks': {'', 'hot', 'lookup', 'settings', 'definition', 'ops', 'python', 'native'},
        'record': {'', 'hot', 'lookup', 'settings', 'definition', 'code', 'device'},
        'entry': {'', 'hot', 'lookup', 'record'},
        'route': {'', 'hot', 'lookup', 'settings', 'device', 'library'},
        'host': {'', 'hot', 'lookup', 'settings', 'stacks'},
        'session': {'', 'hot', 'lookup', 'settings', 'definition', 'code', 'device', 'host', 'library', 'nvtx', 'ops', 'stacks', 'record'},
    },
    'cli': {'': set(), 'anonymize': {''}, 'read': {''}, 'view': {'', 'read'}, 'run': {''}, 'documents': {''}},
    'analysis': {
        'table': set(),
        'names': set(),
        'symbols': {'names', 'facts'},
        'words': {'table'},
        'facts': {'words'},
        'lines': {'table', 'facts'},
        'run': {'table', 'facts', 'lines'},
        'read': {'facts', 'words'},
        'gaps': {'facts'},
        'replay': {'facts', 'gaps'},
        'timeline': {'facts', 'read', 'gaps', 'replay'},
        'memory': {'facts'},
        'pass': {'facts', 'read', 'timeline', 'memory'},
        'kernels': {'lines', 'table', 'names', 'words', 'facts', 'run'},
        'steps': {'table', 'words', 'facts', 'run', 'kernels', 'lines'},
        'reports': {'lines', 'table', 'names', 'words', 'facts', 'run', 'kernels', 'steps'},
        'gains': {'lines', 'table', 'words', 'facts', 'run'},
        'advice': {'lines', 'facts'},
        'findings': {'lines', 'table', 'names', 'words', 'facts', 'run', 'kernels', 'steps', 'gains', 'advice'},
        'render': {'table', 'words'},
        'diff': {'table', 'words'},
        '': {'table', 'words', 'facts', 'lines', 'run', 'read', 'timeline', 'pass', 'kernels', 'steps', 'symbols', 'reports', 'findings'},
        'events': {'', 'lines', 'facts', 'gaps', 'names', 'read', 'run', 'timeline'},
        'export': {'', 'events', 'lines', 'facts', 'gaps', 'names', 'read', 'run', 'timeline', 'words'},
        'page': {'', 'table', 'names', 'words', 'facts', 'lines', 'run', 'render', 'events'},
    },
}
# More than this and nobody finds anything in a folder: it gets rooms.
MOST_IN_A_FOLDER = 30
# Of trace/, the preloaded library sees what a record is and never what a file is: these are file parts.
FILE_PART = re.compile(r'trace/(file|.*_file|.*reader|.*writer|.*text|chunk|compress|transform|clock_map)\w*\.h$')
NO_FILE_PARTS = {'ringbuf', 'interpose', 'cupti', 'cubin'}
# What runs during an intercepted call.
HOT = ['interpose/hot/traced.h', 'ringbuf/producer.h', 'base/clock.h']
HEAVY = re.compile(r'<(string|vector|map|unordered_map|set|list|deque|mutex|shared_mutex|condition_variable|thread|iostream|'
                   r'ostream|istream|sstream|fstream|memory|functional|stdexcept|exception|future|regex|filesystem|boost/.*)>')
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+[>"])', re.M)
MARKS = re.compile(r'\b(TODO|FIXME|XXX)\b')
SOURCES = ('.h', '.hpp', '.cpp', '.c', '.cc', '.cu', '.def', '.inc')
GENERATED = re.compile(r'\.(inc|def)$|_generated\.h$|^generated/')


def sources():
    for folder in MAY_INCLUDE:
        for at, folders, names in os.walk(os.path.join(SOURCE, folder)):
            folders[:] = [name for name in folders if not name.startswith(('.', 'build', '__pycache__'))]
            for name in names:
                if name.endswith(SOURCES):
                    yield folder, os.path.relpath(os.path.join(at, name), SOURCE)


def room_of(path):
    parts = path.split('/')
    return parts[1] if len(parts) > 2 else ''


def full_folders():
    counts = collections.Counter()
    for folder in list(MAY_INCLUDE) + ['tools']:
        for at, folders, names in os.walk(os.path.join(SOURCE, folder)):
            folders[:] = [name for name in folders if not name.startswith(('.', 'build', '__pycache__', 'corpus'))]
            counts[os.path.relpath(at, SOURCE)] = sum(name.endswith(SOURCES + ('.py', '.S')) for name in names)
    return [f'{folder} holds {count} sources' for folder, count in sorted(counts.items()) if count > MOST_IN_A_FOLDER]


def main():
    seen, wrong = 0, {'rooms': [], 'direction': [], 'file parts': [], 'path': [], 'pragma once': [], 'ranges': [], 'hot': [], 'marks': []}
    for folder, path in sources():
        seen += 1
        with open(os.path.join(SOURCE, path), encoding='utf-8') as file:
            text = file.read()
        if path.endswith(('.h', '.hpp')) and '#pragma once' not in text:
            wrong['pragma once'].append(path)
        wrong['marks'] += [f'{path}: {mark}' for mark in MARKS.findall(text)]
        for include in INCLUDE.findall(text):
            name = include[1:-1]
            if name == 'ranges':
                wrong['ranges'].append(path)
            if path in HOT and HEAVY.match(include):
                wrong['hot'].append(f'{path} includes {include}')
            if include[0] == '<':
                continue
            to = name.split('/')[0]
            if to in MAY_INCLUDE and to != folder and to not in MAY_INCLUDE[folder]:
                wrong['direction'].append(f'{path} includes {name}')
            if to == folder and folder in ROOMS:
                here, there = room_of(path), room_of(name)
                if there != here and there not in ROOMS[folder].get(here, set()):
                    wrong['rooms'].append(f'{path} includes {name}')
            if folder in NO_FILE_PARTS and FILE_PART.match(name):
                wrong['file parts'].append(f'{path} includes {name}')
            if folder == 'interpose' and to == 'cupti' and name != 'cupti/loader.h':
                wrong['direction'].append(f'{path} includes {name}: only cupti/loader.h crosses')
            if folder == 'cli' and to == 'cupti' and name != 'cupti/places.h':
                wrong['direction'].append(f'{path} includes {name}: only cupti/places.h crosses')
            if not os.path.exists(os.path.join(SOURCE, name)) and not GENERATED.search(name) and folder != 'examples':
                wrong['path'].append(f'{path} includes "{name}", which is no path from the root')
    if not seen:
        skip('includes', 'there are no sources yet')
    said = {'direction': 'every include goes along the table of docs/ARCHITECTURE.md',
            'rooms': 'every include between rooms of a folder goes along its table',
            'file parts': 'the preloaded library, the ring and cupti/ see records, never file parts',
            'path': 'own headers are included by path from the root',
            'pragma once': 'every header begins with #pragma once',
            'ranges': 'nothing includes <ranges>',
            'hot': 'the hot headers include none of the C++ library that allocates, locks or throws',
            'marks': 'no TODO, FIXME or XXX is left'}
    for key, what in said.items():
        check(f'{what} ({seen} files)', not wrong[key], '\n       '.join([''] + wrong[key]))
    check(f'no folder holds more than {MOST_IN_A_FOLDER} sources', not full_folders(), full_folders())
    finish()


main()
