# meson: timeout=400
# CUPTI missing, taken, wrong, failing at any of its calls: the host is as without us, the calls are all there, and coverage says why
# there is no device time, or what of it is lost.
from against_truth import *

# The calls that collection makes, by when they come; each fails once with 999 (unknown), 35 (no privilege) or 15 (not initialized).
FATAL = [('cuptiGetVersion', 1), ('cuptiActivityRegisterCallbacks', 1), ('cuptiActivityEnable', 1), ('cuptiActivityEnable', 2),
         ('cuptiActivityEnable', 3), ('cuptiGetTimestamp', 1), ('cuptiActivityFlushAll', 1), ('cuptiGetTimestamp', 3)]
BEARABLE = ['cuptiGetResultString', 'cuptiSetThreadIdType', 'cuptiGetThreadIdType', 'cuptiActivitySetAttribute',
            'cuptiActivityGetAttribute', 'cuptiActivityEnableDriverApi', 'cuptiGetContextId', 'cuptiGetStreamIdEx',
            'cuptiGetGraphNodeId', 'cuptiGetGraphExecId', 'cuptiActivityGetNumDroppedRecords', 'cuptiActivityDisable',
            'cuptiActivityGetNextRecord']


def run_with(env, command=None):
    command = command or [program('drv_linked')]
    forget_run()
    run = traced(command, env)
    same_output(untraced(command, env), run)
    check_launches_against_truth(run)
    check_conservation(run)
    return run


def why_no_device(run):
    """Device timing is none, the reason is said, and nothing that needs no device time is missing."""
    coverage = report(run)['coverage']
    check_equal(coverage['device_timing'], 'none', 'device timing')
    reasons = [entry['why'] for entry in coverage['not_collected'] if entry['what'] == 'device']
    check(len(reasons) == 1 and reasons[0], 'one reason', coverage)
    check(all(row['total_ns'] is None for row in rows(run, 'kernels')), 'no kernel has a time')
    check(rows(run, 'kernels') and rows(run, 'api'), 'what the calls tell is there')
    return reasons[0]


def device_times(run):
    check_equal(report(run)['coverage']['device_timing'], 'cupti', 'device timing')
    return [row for row in rows(run, 'kernels') if row['total_ns']]


def test_off_by_option():
    check('GPUTRACE_CUPTI=off' in why_no_device(run_with({'GPUTRACE_CUPTI': 'off'})), 'says the option')


def test_api_alone():
    run = run_with({'GPUTRACE_COLLECT': 'api'})
    why_no_device(run)
    check(not records(run, 'DeviceState', 'DeviceKernel', 'DeviceClock'), 'no trace of it')


def test_every_call_refuses():
    check('15' in why_no_device(run_with({'SIMGPU_CUPTI': 'off'})), 'says the result')


def test_another_client_has_it():
    reason = why_no_device(run_with({'SIMGPU_CUPTI': 'busy'}))
    check('client' in reason or 'subscriber' in reason or '39' in reason, 'says that it is taken', reason)


def test_no_such_library():
    check('GPUTRACE_CUPTI' in why_no_device(run_with({'GPUTRACE_CUPTI': '/nowhere/libcupti.so.13'})), 'names it')


def test_not_a_library():
    path = scratch('libcupti.so.13')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('this is no library\n')
    check(path in why_no_device(run_with({'GPUTRACE_CUPTI': path})), 'names it')


def test_not_cupti():
    path = compiled('nothing.c', 'int nothing(void) { return 0; }', '-shared', '-fPIC')
    reason = why_no_device(run_with({'GPUTRACE_CUPTI': path}))
    check('cupti' in reason and path in reason, 'names it and what it lacks', reason)


def test_too_old():
    reason = why_no_device(run_with({'SIMGPU_CUPTI': 'layout=11.8'}))
    check('12.0' in reason, 'says which it needs', reason)


def test_calls_that_end_it():
    for name, turn in FATAL:
        for code in (999, 35) if turn == 1 else (15,):
            run = run_with({'SIMGPU_CUPTI': f'error={name}:{turn}:{code}'})
            states = records(run, 'DeviceState')
            check(states, f'{name}: what became of it is said')
            if report(run)['coverage']['device_timing'] == 'none':
                reason = why_no_device(run)
                check(name in reason and str(code) in reason, f'{name}:{turn}:{code}: the reason', reason)
            else:
                said = ' '.join(state['reason'] for state in states)
                check(name in said and str(code) in said, f'{name}:{turn}:{code}: the state', said)


def test_calls_that_may_fail():
    for name in BEARABLE:
        run = run_with({'SIMGPU_CUPTI': f'error={name}:1:999'})
        timing = report(run)['coverage']['device_timing']
        if timing == 'none':
            check(name in why_no_device(run), f'{name}: the reason')
        else:
            unread = sum(loss['count'] for loss in records(run, 'DeviceLoss') if loss['reason'] == 6)
            failed = [state['reason'] for state in records(run, 'DeviceState') if name in state['reason']]
            check(device_times(run) or unread or failed, f'{name}: times are there, or it is said what failed')


def test_a_graph_whose_ids_are_not_told():
    for name in ('cuptiGetGraphNodeId', 'cuptiGetGraphExecId'):
        run = traced([program('graphs_shared')], {'SIMGPU_CUPTI': f'error={name}:1:1', 'GPUTRACE_GRAPHS': 'node'})
        same_output(untraced([program('graphs_shared')]), run)
        check(device_times(run), 'times are there')


def test_a_slow_start_is_said():
    """CUPTI's first enabling may take seconds: it is ours, lies in no call of the program's, and the report says so."""
    for slow in (True, False):
        forget_run()
        run = traced([program('drv_linked')], {'SIMGPU_CUPTI': 'slow=cuptiActivityEnable:200ms' if slow else None})
        found = [finding for finding in report(run)['findings'] if finding['id'] == 'slow-collection-start']
        check_equal(len(found), int(slow), 'finding')
        if slow:
            check(found[0]['evidence']['total_ns'] >= 1_200_000_000, 'how long', found)
        longest = max(row['max_ns'] for row in rows(run, 'api'))
        check(longest < 200_000_000, 'no call of the program has it', longest)


def test_the_program_ends_badly():
    for env, code in (({'SIMGPU_ABORT_AT': 'cuLaunchKernel:9'}, -6), ({'SIMGPU_ERROR': 'cuLaunchKernel:9:700'}, None)):
        command = [program('drv_linked')]
        run, plain = traced(command, env), untraced(command, env)
        same_output(plain, run)
        check(code is None or run.returncode == code, 'how it ends', run.returncode)
        check(report(run)['coverage']['device_timing'] in ('cupti', 'none'), 'a report of it')


main()
