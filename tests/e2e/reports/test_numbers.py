# meson: timeout=200
# Copies, memsets, allocations, graphs, errors, module loads, 150 driver entries: each call, each number, and the report's sums.
from against_truth import *

SMALL_PTX = {'SIMGPU_DEVICES': '2'}


def check_program(command, env=None, **options):
    run = traced(command, {**CALLS, **(env or {})})
    same_output(untraced(command, env), run)
    compared = check_call_by_call(run, **options)
    check(compared > 20, 'calls were compared', compared)
    check_report_against_truth(run)
    seen, stored, dropped = check_conservation(run)
    check(dropped == 0 and seen == stored, 'everything seen is stored', seen, stored, dropped)
    return run


def test_memory_shared():
    run = check_program([program('memory_shared')])
    counts = dict(re.findall(r'(allocations|copies|memsets) (\d+)', run.stdout.decode()))
    # The program counts its calls; the driver's pool copies and symbol look-ups add none.
    copies = [row for row in rows(run, 'copies') if row['kind'] != 'memset']
    check_equal(sum(row['count'] for row in copies), int(counts['copies']), 'copies that the program counted')
    memsets = [row for row in rows(run, 'copies') if row['kind'] == 'memset']
    check_equal(sum(row['count'] for row in memsets), int(counts['memsets']), 'memsets that the program counted: a cudaMemset3D is one')
    check_equal(len(run.truth_of('memset')), int(counts['memsets']) + 4, 'memsets that the device ran: five for it')


def test_memory_static():
    check_program([program('memory_sim'), 'count=2'])


def test_copies_by_memory_kind():
    run = traced([program('memory_sim')], CALLS)
    truth = collections.defaultdict(lambda: [0, 0])
    for line in run.truth_of('copy', 'memset'):
        kind = line['kind'] if line['op'] == 'copy' else 'memset'
        host = kind in ('HtoD', 'DtoH', 'HtoH')
        if kind != 'memset':
            truth[kind, line['memory'] if host else 'device', bool(line['async'])][0] += 1
            truth[kind, line['memory'] if host else 'device', bool(line['async'])][1] += line['bytes']
    said = {(row['kind'], row['memory'], row['async']): [row['count'], row['bytes']] for row in rows(run, 'copies') if row['kind'] != 'memset'}
    check_equal(said, dict(truth), 'copies by kind, memory of the host side, and async')


def test_graphs_shared():
    run = check_program([program('graphs_shared')])
    _check_graphs(run)


def test_graphs_static():
    run = check_program([program('graphs_sim'), 'count=7'])
    _check_graphs(run)


def _check_graphs(run):
    words = re.search(r'graph launches (\d+) nodes (\d+) kernels (\d+) host calls (\d+)', run.stdout.decode())
    launches, nodes, kernels, _ = map(int, words.groups())
    graphs = rows(run, 'graphs')
    check_equal(sum(row['launches'] for row in graphs), launches, 'graph launches')
    check_equal(sum(row['nodes'] for row in graphs if row['launches']), nodes, 'nodes')
    check_equal(sum(row['updates'] for row in graphs), 1, 'updates')
    check_equal(metrics(run)['kernels'], kernels, 'kernel executions')
    nodes_of = collections.Counter(line['exec'] for line in run.truth_of('graph_launch'))
    check_equal(sorted(nodes_of.values()), sorted(row['launches'] for row in graphs if row['launches']), 'launches of each graph')


def test_every_driver_entry():
    for name in ('drv_every', 'drv_every_ptsz'):
        command = [program(name)]
        run = traced(command, CALLS)
        plain = untraced_with_truth(command)
        same_output(plain, run)
        check(check_call_by_call(run) > 100, 'calls were compared')
        check_api_against_truth(run, plain)
        check_report_against_truth(run)
        forget_run()


def test_calls_of_the_runtime_programs_by_name():
    for name in ('launches_sim', 'memory_sim', 'graphs_sim', 'streams_sim', 'errors_sim'):
        command = [program(name)]
        run = traced(command, CALLS)
        check_api_against_truth(run, untraced_with_truth(command))
        forget_run()


def test_errors_are_recorded_with_their_result():
    command = [program('errors_sim')]
    run = traced(command, CALLS)
    failed = collections.Counter((call.variant, call.result) for call in calls_of(run, recorded_variants() - own_queries()) if call.result)
    check(failed, 'the program makes calls that fail')
    seen = collections.Counter((call.variant, call.result) for calls in trace_calls(dump(run)).values() for call in calls
                               if call.result and call.variant not in own_queries())
    check_equal(dict(seen), dict(failed), 'failed calls by result')
    ids = {finding['id'] for finding in report(run)['findings']}
    check('call-errors' in ids, 'the report names them', ids)


def test_an_injected_error_changes_nothing_else():
    command = [program('drv_linked')]
    env = {'SIMGPU_ERROR': 'cuStreamSynchronize:2:719'}
    plain, run = untraced(command, env), traced(command, {**CALLS, **env})
    same_output(plain, run)
    check_equal(run.returncode, 70, 'the program saw the error')
    check_call_by_call(run)
    sync = [row for row in rows(run, 'api') if row['call'] == 'cuStreamSynchronize'][0]
    check_equal((sync['calls'], sync['errors']), (2, 1), 'calls and errors')


def test_memory_peak_and_timeline():
    program_text = r'''
import sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
held = []
for n in (5 << 20, 1 << 20, 9 << 20, 3):
    held.append(d.alloc(n))
d('cuMemFree_v2', held.pop(0))
for n in (2 << 20, 7 << 20):
    held.append(d.alloc(n))
for address in held[1:]:
    d('cuMemFree_v2', address)
'''
    run = traced([sys.executable, '-c', program_text, os.path.join(SOURCE, 'tests', 'e2e')], CALLS)
    check_equal(run.returncode, 0, run.stderr)
    check_call_by_call(run)
    check_report_against_truth(run)
    mega = 1 << 20
    check_equal([row['allocated_bytes'] for row in rows(run, 'memory-timeline')],
                [5 * mega, 6 * mega, 15 * mega, 15 * mega + 3, 10 * mega + 3, 12 * mega + 3, 19 * mega + 3, 10 * mega + 3, 10 * mega, 8 * mega, mega], 'bytes after each change')
    memory = rows(run, 'memory')
    check_equal([(row['peak_bytes'], row['live_at_end_bytes']) for row in memory], [(19 * mega + 3, mega)], 'peak and what was left')
    at_peak = rows(run, 'memory-peak')
    check_equal([(row['kind'], row['bytes'], row['count']) for row in at_peak], [('device', 19 * mega + 3, 5)], 'what was live at the peak')
    spans = sorted(rows(run, 'memory-spans'), key=lambda row: row['begin_ns'])
    check_equal([(row['kind'], row['bytes'], row['end_ns'] is None) for row in spans],
                [('device', mega, True), ('device', 9 * mega, False), ('device', 3, False), ('device', 2 * mega, False), ('device', 7 * mega, False)], 'pieces at the peak')
    truth = {line['address']: line for line in run.truth_of('alloc')}
    frees = {line['address']: line for line in run.truth_of('free')}
    for row in spans:
        address = int(row['address'], 16)
        check_equal(truth[address]['bytes'], row['bytes'], 'the address of the truth')
        check(truth[address]['call_begin_ns'] <= row['begin_ns'], 'allocated in its call', row)
        if row['end_ns'] is not None: check(abs(row['end_ns'] - frees[address]['call_begin_ns']) < 5_000_000, 'freed in its call', row)
    change = [row['at_ns'] for row in rows(run, 'memory-timeline')]
    check_equal(change, sorted(change), 'in time order')
    truth = run.truth_of('alloc', 'free')
    for row, line in zip(rows(run, 'memory-timeline'), truth):
        check(abs(row['at_ns'] - (line['call_end_ns'] if line['op'] == 'alloc' else line['call_begin_ns'])) < 5_000_000, 'the time of a change', row, line)


def test_two_devices():
    program_text = r'''
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver, PTX
d = Driver()
second, module = ctypes.c_void_p(), ctypes.c_void_p()
d.alloc(1 << 20)
d.launch(d.kernel('step'), grid=(2, 1, 1))
d('cuDevicePrimaryCtxRetain', ctypes.byref(second), 1)
d('cuCtxSetCurrent', second)
d('cuModuleLoadData', ctypes.byref(d.module), PTX.encode())
d.alloc(3 << 20)
for i in range(3): d.launch(d.kernel('reduce'), grid=(1, 4, 1))
d('cuCtxSynchronize')
'''
    run = traced([sys.executable, '-c', program_text, os.path.join(SOURCE, 'tests', 'e2e')], {**CALLS, 'SIMGPU_DEVICES': '2'})
    check_equal(run.returncode, 0, run.stderr)
    check_call_by_call(run)
    check_report_against_truth(run)
    check_equal({(row['symbol'], row['device']): row['launches'] for row in rows(run, 'kernels')}, {('step', 0): 1, ('reduce', 1): 3}, 'kernels by device')
    check_equal(len(rows(run, 'devices')), 2, 'devices')


def test_module_loads():
    run = traced([program('launches_sim'), 'count=1'], CALLS)
    truth = run.truth_of('module')
    loads = [record for record in records(run, 'ModuleLoad') if record['what_name'] in ('module', 'library')]
    check_equal(len(loads), len(truth), 'loads')
    check_equal(sum(row['count'] for row in rows(run, 'jit')), len(truth), 'loads in the report')
    for record, line in zip(loads, truth):
        check_equal(record['bytes'], line['bytes'], 'size of the image')


main()
