# meson: timeout=300
# Device time: every number of kernels, launches, copies, idle and overview is the one that the truth gives.
from timeline_truth import *

NODES = {'GPUTRACE_GRAPHS': 'node'}


def check_program(command, env=None, whole_graphs=False):
    run = traced(command, env)
    same_output(untraced(command, env), run)
    return run, check_timeline(run, whole_graphs)


def test_launches():
    check_program([program('launches_shared')], NODES)


def test_streams_and_events():
    check_program([program('streams_shared')], NODES)


def test_memory():
    check_program([program('memory_shared')], NODES)


def test_graphs_node_by_node():
    _, operations = check_program([program('graphs_shared')], NODES)
    check(any(o['line'].get('graph') for o in operations), 'nodes of graphs are among them')


def test_graphs_as_a_whole():
    run, operations = check_program([program('graphs_shared')], whole_graphs=True)
    check(any(o['kind'] == 'graph' for o in operations), 'graphs are among them')


def test_the_training_program():
    check_program([program('train'), '5'], NODES)


def test_several_devices():
    check_program([program('streams_shared')], {**NODES, 'SIMGPU_DEVICES': '2'})


def test_without_cupti_the_reason_is_said():
    run = traced([program('launches_shared')], {'GPUTRACE_CUPTI': 'off'})
    coverage = report(run)['coverage']
    check_equal(coverage['device_timing'], 'none', 'device timing')
    check(any(entry['what'] == 'device' and 'GPUTRACE_CUPTI=off' in entry['why'] for entry in coverage['not_collected']), 'the reason', coverage)
    check_equal(metrics(run)['gpu_busy_ratio'], None, 'busy ratio')
    check(all(row['total_ns'] is None for row in rows(run, 'kernels')), 'no times')


main()
