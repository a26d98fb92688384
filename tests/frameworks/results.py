"""What each program came to, kept in build/frameworks/results, and the table of all of it, docs/frameworks.md."""
import collections
import json
import os

from environments import ROOT, package_of, python_of

RESULTS = os.path.join(ROOT, 'results')
DOCUMENT = os.path.abspath(os.path.join(ROOT, '..', '..', 'docs', 'frameworks.md'))

_HEAD = '''# Real frameworks on the simulated GPU

Made by `./dev frameworks`; do not edit. Unmodified packages of PyPI run programs as users write them (`tests/frameworks`), with and without
gputrace; each run's report is held against what the simulated GPU did (`SIMGPU_TRUTH`), and against the framework's own profiler in the same
process. A difference is a line below the table.

- *same*: exit code, stdout, and stderr but for numbers, with gputrace and without.
- *kernels*: executions in the report / in the truth; their names, shapes, registers, order, copies, memory and device times are compared too.
- *calls*: of the CUDA runtime, those that gputrace records / those that Kineto records. Kineto leaves out `cudaGetDevice`, `cudaSetDevice`,
  `cudaGetLastError`, `cudaEventCreate`, `cudaEventCreateWithFlags` and `cudaEventDestroy` (in PyTorch 2.1 `cudaEventRecord` and
  `cudaEventSynchronize` too); gputrace does not export names whose parameters
  are not the same in CUDA 11, 12 and 13. All others are equal, name by name.
- *operations*: launches of which the report tells the operation as Kineto does / those of which Kineto has one.
- *lines*: launches of which the report tells the program's line as the interpreter itself has it at that operation (`sys._getframe`) / those that were
  compared: threads of autograd have no line of the program's own. Of `gpt-train`, `resnet-train` and `lstm-train` the lines of backward operations are
  held against the tracebacks that PyTorch keeps of the forward ones (`set_detect_anomaly`), in a run of their own.
- *steps*: in the report, but for those of an evaluation / that the program makes.
- *memory*: peak of what PyTorch's allocator gave out, in the report / by `torch.cuda.memory_stats`, in bytes.
- *FLOPs*: of products and convolutions in the report / by PyTorch's counter; within 1 %.
- *reduced bytes*: of NCCL's all-reduces in the report, over all processes / the bytes of gradients that the program says it must reduce.
- *lost*: records that found no room. *time*: seconds with / without gputrace, on a machine whose cores others used too.

'''
_COLUMNS = ('framework', 'version', 'program', 'same', 'kernels', 'copied bytes', 'calls', 'operations', 'lines', 'steps', 'memory', 'FLOPs', 'reduced bytes', 'lost', 'time')


def keep(framework, program, result):
    folder = os.path.join(RESULTS, framework)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, program + '.json'), 'w', encoding='utf-8') as file:
        json.dump(result, file, indent=1)


def kept(framework, program):
    try:
        with open(os.path.join(RESULTS, framework, program + '.json'), encoding='utf-8') as file:
            return json.load(file)
    except OSError:
        return None


def _pair(numbers):
    if not numbers:
        return '–'
    return f'{numbers[0]:,}' if numbers[0] == numbers[1] else f'{numbers[0]:,} / {numbers[1]:,}'


def _row(framework, program, result):
    version = f'{package_of(framework)}, Python {python_of(framework)}'
    if result is None:
        return (framework, version, program.name, 'not run', *['–'] * (len(_COLUMNS) - 4))
    broken = any(line.startswith(('exit code', 'stdout', 'stderr', 'without', 'run')) for line in result['differences'])
    same = '**no**' if broken else 'yes'
    return (framework, version, program.name, same, _pair(result.get('kernels')), _pair(result.get('copy_bytes')), _pair(result.get('calls')),
            *(_pair(result.get(what)) for what in ('operations', 'lines', 'steps', 'memory')), _pair(result.get('flops')), _pair(result.get('reduced')), str(result.get('dropped', '–')), f"{result['seconds'][0]:.1f} / {result['seconds'][1]:.1f}")


def table(programs, frameworks):
    """The document's text, and whether every program of the catalogue has a result."""
    rows, lines, missing, whole = [], [], collections.defaultdict(set), True
    for framework in frameworks:
        for program in programs:
            if framework not in program.frameworks:
                continue
            result = kept(framework, program.name)
            whole = whole and result is not None
            rows.append(_row(framework, program, result))
            for library, names in (result or {}).get('missing', {}).items():
                missing[library] |= set(names)
            lines += [f'- {framework}, {program.name}: {line}' for line in (result or {'differences': []})['differences']]
    text = _HEAD + '| ' + ' | '.join(_COLUMNS) + ' |\n' + '|---' * len(_COLUMNS) + '|\n'
    text += ''.join('| ' + ' | '.join(row) + ' |\n' for row in rows)
    text += '\n' + ('\n'.join(lines) if lines else 'No differences.') + '\n'
    text += '\nAsked for and not modelled by the simulation (`SIMGPU_MISSING`), which answered *not supported*:\n\n'
    text += ''.join(f"- `{library}`: {', '.join(sorted(names))}\n" for library, names in sorted(missing.items())) or 'nothing.\n'
    return text, whole
