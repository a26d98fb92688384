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


TWINS = r'''
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#define MUST(call) do { int r = (call); if (r) { fprintf(stderr, "%s: %d\n", #call, r); exit(70); } } while (0)
#define PTX(entries) ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n" entries
static const char* const ptx[] = {PTX(""), PTX(".visible .entry more() { ret; }\n")};
int main(void) {
  CUcontext context; CUmodule modules[2]; CUfunction functions[2]; CUgraph graph; CUgraphExec exec; CUstream stream; CUgraphNode node, before;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  for (int i = 0; i < 2; ++i) {
    MUST(cuModuleLoadData(&modules[i], ptx[i]));
    MUST(cuModuleGetFunction(&functions[i], modules[i], "k"));
  }
  MUST(cuStreamCreate(&stream, 0));
  MUST(cuGraphCreate(&graph, 0));
  for (int i = 0; i < 3; ++i) {  /* the second module's twice */
    CUDA_KERNEL_NODE_PARAMS params = {.func = functions[i > 0], .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
    MUST(cuGraphAddKernelNode(&node, graph, i ? &before : 0, i > 0, &params));
    before = node;
  }
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 10; ++i) MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  return 0;
}
'''


def twins(cupti=None):
    run = traced_device([compiled('twins.c', TWINS, '-lcuda', '-Wno-unused')], {'GPUTRACE_GRAPHS': 'node', 'SIMGPU_KERNEL_TIME': '.=10us', 'SIMGPU_CUPTI': cupti})
    check_equal(metrics(run)['kernels'], 30, 'kernels, as many as ran')
    return run, sorted((row['launches'] or 0, row['total_ns'] or 0) for row in rows(run, 'kernels') if row['symbol'] == 'k')


def test_kernels_of_one_name_in_one_graph():
    """Whose clone a node is, CUPTI tells its subscriber while the graph is instantiated."""
    run, found = twins()
    check_equal(found, [(10, 100_000), (20, 200_000)], 'executions and time of each of the two modules')
    told = [record for record in records(run, 'DeviceGraphNode') if record['id']]
    check_equal(len({record['id'] for record in told}), 3, 'each node and its clone')
    check_equal({record['id'] for record in told}, {record['graph_node'] for record in records(run, 'DeviceKernel')}, 'the ids of the device records')


def test_kernels_of_one_name_where_another_client_has_subscribed():
    """The second subscription, that for the instantiating call, is refused: nothing tells the two apart, and nothing is guessed."""
    run, found = twins('error=cuptiSubscribe:2:39')
    check_equal(found, [(0, 300_000), (10, 0), (20, 0)], 'executions of each, their time apart')
    check(any('30 kernels of graphs could be of several functions' in row['text'] for row in rows(run, 'quality-notes')), 'it is said', rows(run, 'quality-notes'))


LEAVES = TWINS.replace('int main(void) {', r"""#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
static sigjmp_buf out;
static void leave(int signal) { siglongjmp(out, 1); }
static void* instantiate(void* graph) {
  CUgraphExec exec;
  if (!sigsetjmp(out, 1)) cuGraphInstantiateWithFlags(&exec, graph, 0);
  return 0;
}
static void leave_it(CUgraph graph) {
  pthread_t thread;
  signal(SIGUSR1, leave);
  pthread_create(&thread, 0, instantiate, graph);
  nanosleep(&(struct timespec){0, 300 * 1000 * 1000}, 0);
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, 0);
}
int main(void) {""").replace('  MUST(cuGraphInst', '  leave_it(graph);\n  MUST(cuGraphInst')


def test_a_call_that_is_left_before_it_returns():
    """A thread that jumps out of the call that makes a graph, and ends, leaves nothing behind: device records come, and the next graph is told of."""
    run = traced_device([compiled('leaves.c', LEAVES, '-lcuda', '-pthread', '-Wno-unused')],
                        {'GPUTRACE_GRAPHS': 'node', 'SIMGPU_KERNEL_TIME': '.=10us', 'SIMGPU_HANG': 'cuGraphInstantiateWithFlags:1:600000'})
    found = sorted((row['launches'] or 0, row['total_ns'] or 0) for row in rows(run, 'kernels') if row['symbol'] == 'k')
    check_equal(found, [(10, 100_000), (20, 200_000)], 'executions and time of each of the two modules')


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
