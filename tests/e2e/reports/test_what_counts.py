# Work that is counted where it happened: memory of graphs, work on another device's stream, arrays, waits that failed.
from harness import *

PROGRAM = r'''
#include <cuda.h>
#include <stdio.h>
#define CHECK(call) do { int code = (call); if (code) { printf("%s: %d\n", #call, code); return 1; } } while (0)
static int graph_memory(void) {
  CUstream stream; CUgraph graph; CUgraphExec exec; CUdeviceptr kept, scratch;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(cuMemAllocAsync(&kept, 3 << 20, stream));
  CHECK(cuMemAllocAsync(&scratch, 5 << 20, stream));
  CHECK(cuMemsetD8Async(scratch, 1, 5 << 20, stream));
  CHECK(cuMemFreeAsync(scratch, stream));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 4; ++i) {
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(i == 3 ? 0 : cuMemFreeAsync(kept, stream));
  }
  return cuStreamSynchronize(stream);
}
static int other_device(CUcontext* contexts) {
  CUstream stream; CUdeviceptr there; char host[4096];
  CHECK(cuCtxSetCurrent(contexts[1]));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&there, sizeof host));
  CHECK(cuCtxSetCurrent(contexts[0]));
  CHECK(cuMemcpyHtoDAsync(there, host, sizeof host, stream));
  CHECK(cuMemsetD8Async(there, 0, 1000, stream));
  return cuStreamSynchronize(stream);
}
static int arrays(void) {
  CUDA_ARRAY_DESCRIPTOR shape = {64, 1, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  CUarray from, to;
  CHECK(cuArrayCreate(&from, &shape));
  CHECK(cuArrayCreate(&to, &shape));
  return cuMemcpyAtoA(to, 0, from, 0, 64);
}
int main(void) {
  CUcontext contexts[2]; CUdevice device;
  CHECK(cuInit(0));
  for (int i = 0; i < 2; ++i) {
    CHECK(cuDeviceGet(&device, i));
    CHECK(cuDevicePrimaryCtxRetain(&contexts[i], device));
  }
  CHECK(cuCtxSetCurrent(contexts[0]));
  if (graph_memory() || other_device(contexts) || arrays()) return 1;
  for (int i = 0; i < 3; ++i) cuCtxSynchronize();
  return 0;
}
'''


def peak_by_device(run):
    """The largest sum of what the truth has live, for each device."""
    live, peak = collections.Counter(), collections.Counter()
    sizes = {}
    for line in sorted(run.truth_of('alloc', 'free'), key=lambda line: line['seq']):
        if line['memory'] == 'host':
            continue
        if line['op'] == 'alloc':
            sizes[line['address']] = (line['device'], line['bytes'])
            live[line['device']] += line['bytes']
        else:
            device, size = sizes.pop(line['address'])
            live[device] -= size
        for device, size in live.items():
            peak[device] = max(peak[device], size)
    return dict(peak)


def counted_run():
    return traced([compiled('counts.c', PROGRAM, '-lcuda')],
                  {'SIMGPU_DEVICES': '2', 'SIMGPU_CLOCK': 'monotonic', 'SIMGPU_ERROR': 'cuCtxSynchronize:2:700'})


def test_all_of_it():
    run = counted_run()
    check_equal(run.returncode, 0, run.stdout)
    wanted = collections.Counter()
    for line in run.truth_of('copy', 'memset'):
        if line.get('graph') is None:
            wanted[line['kind'] if line['op'] == 'copy' else 'memset', line['device'], line['bytes']] += 1
    got = collections.Counter()
    for row in rows(run, 'copies'):
        got[row['kind'], row['device'], row['bytes'] // max(1, row['count'])] += row['count']
    got['memset', 0, 5 << 20] -= 4  # the graph's
    check_equal({key: count for key, count in got.items() if count}, dict(wanted), 'copies and memsets by kind and device')
    check_equal([row['kind'] for row in rows(run, 'copies') if row['bytes'] == 64], ['DtoD'], 'array to array')
    peaks = peak_by_device(run)
    check_equal(metrics(run)['peak_memory_bytes'], max(peaks.values()), 'peak, memory of graphs included')
    graphs = [row for row in rows(run, 'memory') if row['pool'] == 'graphs']
    check_equal([(row['device'], row['allocations'], row['frees'], row['peak_bytes'], row['live_at_end_bytes']) for row in graphs],
                [(0, 8, 7, peaks[0], 3 << 20)], 'memory of graphs')
    waits = {row['call']: row['count'] for row in rows(run, 'sync')}
    check_equal(waits['cuCtxSynchronize'], 2, 'waits that were one')


main()
