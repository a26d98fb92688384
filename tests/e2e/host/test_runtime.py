# meson: timeout=200
# Programs compiled by nvcc, shared and static runtime: the runtime call above, the driver call nested in it, every launch once.
from against_truth import *

CLUSTERED = {'_Z9clusteredPf'}


def nested(outer, inner):
    return outer.tid == inner.tid and outer.begin <= inner.begin and inner.end <= outer.end


def launches_of(command, runtime_visible, env=None):
    run = traced(command, {**CALLS, **(env or {})})
    same_output(untraced(command, env), run)
    check_call_by_call(run, compile_time_clusters=CLUSTERED)
    wanted = int(re.search(rb'launches (\d+)', run.stdout)[1])
    check_equal(check_launches_against_truth(run), wanted, 'launches')
    check_report_against_truth(run)
    check_equal(metrics(run)['launches'], wanted, 'launches in the report: each once, at driver level')
    _, _, dropped = check_conservation(run)
    check_equal(dropped, 0, 'dropped')
    runtime = trace_calls(dump(run), 'runtime')
    launching = [call for calls in runtime.values() for call in calls if 'Launch' in call.variant and 'Host' not in call.variant]
    check_equal(len(launching), wanted if runtime_visible else 0, 'runtime launch calls')
    driver = [call for calls in trace_calls(dump(run)).values() for call in calls if call.of('KernelLaunch')]
    if runtime_visible:
        inside = sum(1 for call in driver if sum(1 for outer in runtime[call.tid] if nested(outer, call) and 'Launch' in outer.variant) == 1)
        check_equal(inside, len(driver), 'driver launches within exactly one runtime launch')
    return run


def test_launches_shared():
    launches_of([program('launches_shared')], True)


def test_launches_shared_threads():
    launches_of([program('launches_shared'), 'threads=4', 'count=5', 'exit=6'], True)


def test_launches_static():
    launches_of([program('launches_sim')], False)


def test_launches_static_threads():
    launches_of([program('launches_sim'), 'threads=3', 'count=4'], False)


def test_streams_shared_and_static():
    for name in ('streams_shared', 'streams_sim', 'streams_ptds_shared', 'streams_ptds_sim'):
        launches_of([program(name)], name.endswith('shared'))
        forget_run()


def test_examples():
    for command in (['train', '5'], ['inference', '8'], ['inference', '8', 'eager']):
        words = [program(command[0]), *command[1:]]
        run = traced(words, CALLS)
        check_equal(run.returncode, untraced(words).returncode, 'exit code')
        check_call_by_call(run)
        check_report_against_truth(run)
        check_conservation(run)
        forget_run()


def test_runtime_calls_are_counted():
    run = traced([program('launches_shared'), 'count=3'])
    api = {(row['level'], row['call']): row for row in rows(run, 'api')}
    check_equal(api['runtime', 'cudaMalloc']['calls'], 1, 'cudaMalloc')
    check_equal(api['runtime', 'cudaFree']['calls'], 1, 'cudaFree')
    check_equal(api['runtime', 'cudaStreamSynchronize']['calls'], 1, 'cudaStreamSynchronize')
    check_equal(sum(row['calls'] for (level, call), row in api.items() if level == 'runtime' and 'Launch' in call), 21, 'runtime launches')
    malloc = api['runtime', 'cudaMalloc']
    check(malloc['self_ns'] < malloc['total_ns'], 'self time of a runtime call is without the driver calls within it', malloc)


def test_runtime_errors():
    for name in ('errors_shared', 'errors_sim'):
        command = [program(name)]
        run = traced(command, CALLS)
        same_output(untraced(command), run)
        check_call_by_call(run)
        forget_run()


main()
