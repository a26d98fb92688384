# meson: timeout=120
# What `./dev frameworks` compares: a run that agrees has no differences, and each thing that it promises to see is seen when it is put in.
from harness import *

sys.path.insert(0, os.path.join(SOURCE, 'tests', 'frameworks'))
import against_itself
import against_profiler
import against_truth_of_gpu
from catalogue import Program, programs
from running import Runs


def runs_of(name):
    command = [program(name)]
    return Runs(Program(name, 'x.py', []), untraced(command), traced(command, {'SIMGPU_CLOCK': 'monotonic'}), None, {})


def test_a_run_that_agrees():
    runs = runs_of('launches_shared')
    check_equal([str(line) for line in against_itself.compare(runs)] + [str(line) for line in against_truth_of_gpu.compare(runs.traced)], [], 'differences')
    kernels = against_truth_of_gpu.numbers(runs.traced)['kernels']
    check(kernels[0] == kernels[1] > 0, 'kernels', kernels)


def change_truth(run, change):
    """Rewrites the lines of the truth by `change`, which gives lines back, or none."""
    for path in glob.glob(run._truth.replace('%p', '*')):
        with open(path, encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        with open(path, 'w', encoding='utf-8') as file:
            file.writelines(json.dumps(line) + '\n' for line in change(lines))


def changed_kernel(**fields):
    def change(lines):
        first = next(line for line in lines if line['op'] == 'kernel')
        first.update(fields)
        return lines
    return change


def without_a_kernel(lines):
    lines.remove(next(line for line in lines if line['op'] == 'kernel'))
    return lines


def test_what_differs_from_the_truth_is_a_line():
    for what, change in (('report', without_a_kernel), ('calls of the trace', changed_kernel(grid=[7, 7, 7])), ('device times', changed_kernel(end_ns=1)),
                         ('device times', changed_kernel(registers=251))):
        forget_run()
        runs = runs_of('launches_shared')
        change_truth(runs.traced, change)
        found = {line.what for line in against_truth_of_gpu.compare(runs.traced)}
        check(what in found, f'{what} differs', found)


def test_what_operations_ran_differs_from_the_truth():
    command = [program('nvtx_window'), 'cuda', '+XlaModule:#hlo_module=jit_step#@TSL', '1', '2', '+Thunk:#hlo_op=mul#@TSL', '1', '-@TSL', '-@TSL', '2',
               '~200']
    run = traced(command, {'SIMGPU_CLOCK': 'monotonic', 'GPUTRACE_COLLECT': 'api,device,nvtx,ops'})
    check_equal([str(line) for line in against_truth_of_gpu.compare(run, operations=True)], [], 'differences')
    change_truth(run, changed_kernel(end_ns=1 << 62))
    found = [str(line) for line in against_truth_of_gpu.compare(run, operations=True)]
    check(any('device time by operation' in line for line in found), 'the time of an operation differs', found)


def test_numbers_may_stand_in_columns():
    check_equal(against_itself._lines(b'I0 12:3.4   28579 port.cc:153] it\n'), against_itself._lines(b'I1 11:2.4    9579 port.cc:153] it\n'), 'lines')
    check(against_itself._lines(b'a 1') != against_itself._lines(b'a1') != against_itself._lines(b'b1'), 'other lines differ')


def test_another_output_is_a_line():
    runs = runs_of('launches_shared')
    for field, value in (('returncode', 3), ('stdout', b'other'), ('stderr', b'a warning\n')):
        kept = getattr(runs.traced, field)
        setattr(runs.traced, field, value)
        found = {line.what for line in against_itself.compare(runs)}
        check_equal(found, {'exit code' if field == 'returncode' else field}, 'what differs')
        setattr(runs.traced, field, kept)


def kineto_file(truth, **change):
    """What Kineto writes of these kernels, with `change` put into the first one."""
    events = [{'ph': 'X', 'name': 'gt: program', 'cat': 'user_annotation', 'ts': 0.0, 'dur': 1e18}]
    for line in truth:
        correlation = line['correlation']
        events.append({'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'ts': 1.0, 'dur': 1.0, 'args': {'correlation': correlation}})
        kernel = {'ph': 'X', 'cat': 'kernel', 'name': line['symbol'], 'ts': line['start_ns'] / 1000, 'dur': (line['end_ns'] - line['start_ns']) / 1000,
                  'args': {'correlation': correlation, 'grid': line['grid'], 'block': line['block'], 'registers per thread': line['registers'] or 0,
                           'shared memory': line['static_shared_bytes'] + line['dynamic_shared_bytes']}}
        if change:
            kernel.update({key: value for key, value in change.items() if key != 'args'})
            kernel['args'].update(change.get('args', {}))
            change = None
        events.append(kernel)
    with open(scratch('kineto.json'), 'w', encoding='utf-8') as file:
        json.dump({'traceEvents': events}, file)
    return against_profiler.Kineto(scratch('kineto.json'))


def test_what_differs_from_the_profiler_is_a_line():
    run = runs_of('launches_shared').traced
    process = against_truth_of_gpu.by_process(run)[0][0]
    truth = [line for line in process.truth_of('kernel') if line.get('graph') is None]
    process._lines = truth
    said = {'begin_ns': 0, 'end_ns': 1 << 62}
    check_equal(list(against_profiler._compare_operations(process, said, kineto_file(truth))), [], 'differences of what agrees')
    for change in ({'name': 'another'}, {'dur': 1.0}, {'args': {'grid': [9, 9, 9]}}, {'args': {'registers per thread': 250}}, {'ts': 5.0}):
        check(list(against_profiler._compare_operations(process, said, kineto_file(truth, **change))), 'a difference', change)
    check(list(against_profiler._compare_operations(process, said, kineto_file(truth[1:]))), 'a kernel too few is a difference')
    launched, name = against_profiler.runtime_calls(process, said)['cudaLaunchKernel'], {'cudaLaunchKernel'}
    check(0 < launched <= len(truth), 'launches by <<<>>>', launched, len(truth))
    check_equal(list(against_profiler._compare_calls(process, said, kineto_file(truth[:launched]), name)), [], 'differences of the same calls')
    check(list(against_profiler._compare_calls(process, said, kineto_file(truth[:launched - 1]), name)), 'a call too few is a difference')


def test_the_catalogue_names_what_is_there():
    from environments import locked
    for each in programs():
        check(os.path.exists(each.path), 'the program is there', each.path)
        check(set(each.frameworks) <= set(locked()), 'its frameworks have locks', each.name, each.frameworks)
        check(each.frameworks or not (each.quick or each.operations), 'what a real GPU alone runs is held against no simulated one', each.name)


main()
