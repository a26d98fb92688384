# meson: timeout=400
# Device records in the trace, number by number: each is the truth's line of the same correlation id, whatever the program does, and
# its call is the one that our own record of that call encloses.
from device_truth import *


def test_launches():
    check_records(traced_device([program('launches_shared')]))


def test_many_streams_and_events():
    run = traced_device([program('streams_shared')])
    check_records(run)
    check(len({line['stream'] for line in run.truth_of('kernel')}) > 2, 'several streams')


def test_copies_and_memsets():
    run = traced_device([program('memory_shared')])
    check_records(run)
    check({'HtoD', 'DtoH', 'DtoD'} <= {line['kind'] for line in run.truth_of('copy')}, 'copies of each kind')


def test_graphs_by_node():
    run = traced_device([program('graphs_shared')], {'GPUTRACE_GRAPHS': 'node'})
    check_records(run)
    check_nodes(run)


def test_graphs_as_a_whole():
    check_records(traced_device([program('graphs_shared')]), whole_graphs=True)


def test_training():
    check_records(traced_device([program('train'), '2'], {'GPUTRACE_GRAPHS': 'node'}, tells_time=True))


def test_threads():
    run = traced_device([program('drv_threads'), 'threads=40', 'alive=20', 'launches=5'])
    check_records(run)
    check_equal(len(run.truth_of('kernel')), 200, 'kernels')


def test_many_launches():
    run = traced_device([program('drv_loop'), 'calls=20000', 'threads=3'], {'SIMGPU_CALL_TIME': '0', 'SIMGPU_KERNEL_TIME': '.=300ns'}, tells_time=True)
    check_records(run)


def test_devices_and_peer_copies():
    run = traced_device(['python3', os.path.join(SOURCE, 'tests', 'e2e', 'peers.py')], {'SIMGPU_DEVICES': '3'})
    check_records(run)
    check_equal(sum(line['kind'] == 'PtoP' for line in run.truth_of('copy')), 30, 'peer copies')
    check_equal({line['device'] for line in run.truth_of('kernel')}, {0, 1, 2}, 'devices')


def test_host_functions_between():
    run = traced_device(['python3', os.path.join(SOURCE, 'tests', 'e2e', 'peers.py'), 'host'], {'SIMGPU_DEVICES': '3'})
    check_records(run)


main()
