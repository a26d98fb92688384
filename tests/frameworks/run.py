"""`./dev frameworks [NAME...] [--quick] [--program NAME]`: real frameworks on the simulated GPU; see docs/HACKING.md.

Exit 1 when a program's run, its report or its profiler differ from what they must be, or when a framework that was named cannot be had.
By hand: GT_BUILD=DIR python3 tests/frameworks/run.py ...; GT_KEEP=1 keeps what the runs left.
"""
import argparse
import os
import re
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'e2e')]

import against_itself  # noqa: E402
import against_profiler  # noqa: E402
import against_tracebacks  # noqa: E402
import against_truth_of_gpu  # noqa: E402
import cases  # noqa: E402
import results  # noqa: E402
from artefacts import SOURCE  # noqa: E402
from catalogue import programs  # noqa: E402
from differences import Difference  # noqa: E402
from environments import CannotBeHad, installed, locked  # noqa: E402
from running import Runner  # noqa: E402


def exported_runtime_names():
    """What interpose/api.def intercepts of the runtime."""
    with open(os.path.join(SOURCE, 'interpose', 'api.def'), encoding='utf-8') as file:
        return {name.lstrip('_') for name in re.findall(r'^GT_RUNTIME(?:_PTSZ|_PTDS)?\((\w+)', file.read(), re.M)}


def measure(program, framework, runner):
    """All runs of a program and all that is compared: what results.py keeps."""
    runs = runner.runs(program, framework)
    result = {'seconds': [runs.traced.seconds, runs.plain.seconds], 'missing': runs.missing}
    differences = list(against_itself.compare(runs))
    if runs.traced.returncode == 0:
        differences += against_truth_of_gpu.compare(runs.traced, device_times=not program.own_cupti, operations=program.operations)
        result.update(against_truth_of_gpu.numbers(runs.traced))
        if program.all_reduce:
            wanted, found = re.search(program.all_reduce, runs.traced.stdout.decode()), against_truth_of_gpu.reduced(runs.traced)
            differences += against_truth_of_gpu.compare_reduced(found, int(wanted[1]) if wanted else None)
            result['reduced'] = [sum(found), len(found) * int(wanted[1]) if wanted else 0]
        if program.steps:
            result['steps'] = against_truth_of_gpu.steps(runs.traced, program.steps)
            differences += against_truth_of_gpu.compare_steps(*result['steps'])
        if runs.profiled is not None:
            differences += against_profiler.compare(runs.profiled, exported_runtime_names())
            if runs.profiled.run.returncode == 0:
                result.update(against_profiler.numbers(runs.profiled, exported_runtime_names()))
    if program.backward:
        run, path = runner.noted(program, framework)
        right, compared, wrong = against_tracebacks.lines(run, path) if path else (0, 0, [])
        differences += against_tracebacks.compare(run, right, compared, wrong)
        result['backward_lines'] = [right, compared]
    result['differences'] = [str(line) for line in differences]
    return result


def measured(program, framework, keep):
    """`measure`, with what goes wrong in the comparing itself as a difference."""
    runner = Runner(keep)
    try:
        return measure(program, framework, runner)
    except cases.Failed as error:
        return {'seconds': [0, 0], 'differences': [str(Difference('run', ' '.join(str(error).split())[:800]))]}
    except Exception:
        return {'seconds': [0, 0], 'differences': [str(Difference('comparing', traceback.format_exc()))]}
    finally:
        cases.end_orphans()
        runner.close()


def run_framework(name, chosen, keep):
    """The number of programs with differences."""
    framework, bad = installed(name), 0
    size = framework.bytes() / 2**30
    print(f'{name}: ' + (f'installed in {framework.seconds:.0f} s, ' if framework.seconds else '') + f'{size:.1f} GiB', flush=True)
    for program in chosen:
        began = time.monotonic()
        result = measured(program, framework, keep)
        results.keep(name, program.name, result)
        bad += bool(result['differences'])
        numbers = ', '.join(f'{key.replace("_", " ")} {value[0]} / {value[1]}' for key, value in result.items() if key in ('kernels', 'calls', 'flops', 'backward_lines') and value)
        print(f"{'DIFFERS' if result['differences'] else 'agrees '} {name} {program.name} ({time.monotonic() - began:.0f} s): {numbers}", flush=True)
        for line in result['differences']:
            print('    ' + line.replace('\n', '\n    '), flush=True)
    return bad


def arguments():
    parser = argparse.ArgumentParser(prog='./dev frameworks', description='real frameworks on the simulated GPU')
    parser.add_argument('names', nargs='*', metavar='NAME', help='; '.join(locked()))
    parser.add_argument('--quick', action='store_true', help="PyTorch's quick part")
    parser.add_argument('--program', action='append', metavar='NAME', help='these programs only')
    options = parser.parse_args()
    unknown = set(options.names) - set(locked())
    if unknown:
        parser.error(f"no lock for {', '.join(sorted(unknown))}; there are {', '.join(locked())}")
    return options


def write_table(catalogue, quick):
    text, whole = results.table(catalogue, locked())
    path = results.DOCUMENT if whole and not quick else os.path.join(results.RESULTS, 'frameworks.md')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    print(f'the table is in {os.path.relpath(path)}')


def main():
    options, catalogue, bad, ran = arguments(), programs(), 0, 0
    cases.become_reaper()
    cases.stop_ignoring_signals()
    began = time.monotonic()
    for name in options.names or (['pytorch'] if options.quick else locked()):
        chosen = [program for program in catalogue if name in program.frameworks and (program.quick or not options.quick)
                  and (not options.program or program.name in options.program)]
        if not chosen:
            continue
        try:
            bad += run_framework(name, chosen, os.environ.get('GT_KEEP') == '1')
            ran += len(chosen)
        except CannotBeHad as why:
            print(f'NOT RUN {name}: {why}', flush=True)
            bad += options.quick or name in options.names or 'no Python' not in str(why)
    write_table(catalogue, options.quick)
    print(f'{ran} programs, {bad} with differences, {time.monotonic() - began:.0f} s')
    return 1 if bad or not ran else 0


sys.exit(main())
