"""Our kernel counts and durations against torch.profiler's of the same program, and both in one process."""
import ctypes
import json
import os
import shutil
import sys

from machine import HERE, NUMBERS, metric, modules_absent, not_run, report, row, run

WITHIN_US = 1.0


def demangle(symbol):
    """As torch.profiler's own names are made: by the C++ runtime."""
    library = ctypes.CDLL('libstdc++.so.6')
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return symbol
    name = ctypes.string_at(text).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return name


def own_kernels(said):
    """{name: (executions, median in us or None)}, launch shapes of one kernel together: median of the commonest shape."""
    kernels = {}
    for line in said['sections']['kernels']['rows']:
        name = demangle(line.get('symbol') or line['kernel'])
        count, median, most = kernels.get(name, (0, None, 0))
        if line['launches'] > most:
            most, median = line['launches'], None if line['median_ns'] is None else line['median_ns'] / 1000
        kernels[name] = (count + line['launches'], median, most)
    return kernels


def same_counts(title, said, seen):
    ours = {name: value[0] for name, value in own_kernels(said).items()}
    theirs = {name: value['count'] for name, value in seen.items()}
    differ = {name: (ours.get(name, 0), theirs.get(name, 0)) for name in ours.keys() | theirs.keys() if ours.get(name, 0) != theirs.get(name, 0)}
    NUMBERS[f'{title}: counts that differ (ours, theirs)'] = differ
    row(title, 'executions of each kernel = torch.profiler\'s', ours and not differ,
        f'{sum(ours.values())} of {sum(theirs.values())} executions, {len(theirs)} kernels, {len(differ)} differ')


def check(tree, folder):
    if why := modules_absent('torch'):
        not_run('torch.profiler', why)
        return
    python = shutil.which('python3') or sys.executable

    def train(name, profile, with_us):
        """(what the program wrote, our report); None for what is not there."""
        result, output = os.path.join(folder, name + '.json'), os.path.join(folder, name)
        done = run([python, os.path.join(HERE, 'torch_step.py'), result], {'PROFILE': profile} if profile else {},
                   preload=tree.library if with_us else None, output=output)
        row('torch.profiler', f'{name}: exit code', done.returncode == 0, done.stderr.decode(errors='replace').strip()[-200:])
        wrote = None
        if os.path.exists(result):
            with open(result, encoding='utf-8') as file:
                wrote = json.load(file)
        said, error = report(tree, output) if with_us else (None, '')
        if with_us:
            row('torch.profiler', f'{name}: the trace can be read', said is not None, error)
        return wrote, said

    alone, _ = train('profiler-alone', 'before', False)
    _, said = train('gputrace-alone', '', True)
    if alone and said:
        same_counts('gputrace alone, torch.profiler alone', said, alone['kernels'])
        ours, worst, compared = own_kernels(said), (0.0, ''), 0
        for name, theirs in alone['kernels'].items():
            if name in ours and ours[name][1] is not None:
                compared += 1
                worst = max(worst, (abs(ours[name][1] - theirs['median_us']), name))
        row('torch.profiler', f'median durations within {WITHIN_US:.0f} us', compared and worst[0] <= WITHIN_US,
            f'{compared} kernels compared, worst {worst[0]:.2f} us ({worst[1][:60]})')
    for moment in ('before', 'after'):
        wrote, said = train(f'both-profiler-{moment}', moment, True)
        other, _ = (alone, None) if moment == 'before' else train('profiler-alone-after', moment, False)
        if not (wrote and said and other):
            continue
        row('torch.profiler', f'started {moment} us: it sees what it sees alone',
            {name: value['count'] for name, value in wrote['kernels'].items()}
            == {name: value['count'] for name, value in other['kernels'].items()}, f"{len(wrote['kernels'])} kernels")
        row('torch.profiler', f'started {moment} us: our launches are complete', said['coverage']['dropped'] == 0,
            f"{metric(said, 'launches')} launches, device times: {said['coverage']['device_timing']}")
        if alone and moment == 'before':
            same_counts('both at once', said, alone['kernels'])
        NUMBERS[f'started {moment} us: not collected'] = said['coverage']['not_collected']
