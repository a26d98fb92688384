# Device collection needs no thread in the program before the first work for a device: it may fork without Python's warning and enter a
# new user namespace as it would without us.
from harness import *

PROGRAM = r'''
#define _GNU_SOURCE
#include <cuda.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define MUST(call) do { int r = (call); if (r) { fprintf(stderr, "%s: %d\n", #call, r); exit(70); } } while (0)
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";
static int threads(void) {
  DIR* tasks = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent* task; (task = readdir(tasks));) count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}
static void tell(const char* when) {
  pid_t child = fork();
  int status;
  if (!child) _exit(unshare(CLONE_NEWUSER) != 0);
  waitpid(child, &status, 0);
  printf("%s: %d threads, a child may unshare: %d\n", when, threads(), status == 0);
}
int main(int argc, char** argv) {
  int launches = atoi(argv[1]), unshares = argc > 2;
  CUcontext context; CUmodule module; CUfunction step; CUdeviceptr memory; CUgraph graph; CUgraphExec exec; CUstream stream;
  MUST(cuInit(0));
  tell("cuInit");
  if (unshares) printf("unshare: %d\n", unshare(CLONE_NEWUSER));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemAlloc(&memory, 4096));
  tell("context");
  MUST(cuModuleLoadData(&module, ptx));
  MUST(cuModuleGetFunction(&step, module, "step"));
  if (launches < 0) {  /* the kernel is known from the graph: its plain launches take the shortest way */
    MUST(cuStreamCreate(&stream, 0));
    MUST(cuGraphCreate(&graph, 0));
    CUDA_KERNEL_NODE_PARAMS node = {.func = step, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUgraphNode added;
    MUST(cuGraphAddKernelNode(&added, graph, 0, 0, &node));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    launches = -launches;
  }
  for (int i = 0; i < launches; ++i) MUST(cuLaunchKernel(step, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0));
  if (argc > 3) { MUST(cuCtxSynchronize()); usleep(500000); kill(getpid(), 9); }
  return 0;
}
'''


def host():
    if not os.path.exists(os.path.join(places.simgpu, 'libcupti.so.13')):
        skip('not built: simgpu/libcupti.so.13')
    include = '/usr/local/cuda/extras/CUPTI/include'
    return compiled('device_thread.c', PROGRAM, '-lcuda', '-Wno-unused', '-I', include)


def test_no_thread_before_the_first_work():
    for arguments in (['0'], ['5'], ['0', 'unshare'], ['-3']):
        forget_run()
        command = [host(), *arguments]
        plain = untraced(command)
        check(b'cuInit: 1 threads' in plain.stdout and b'context: 1 threads' in plain.stdout, 'without us', plain.stdout)
        run = traced(command)
        same_output(plain, run)
        check_equal(len(records(run, 'DeviceKernel')), abs(int(arguments[0])), 'kernels with times')
        states = [record['state_name'] for record in records(run, 'DeviceState')]
        check_equal(states, ['on', 'ended'], 'everything was fetched at the end, by a thread or without one')


def test_the_thread_begins_with_the_first_work():
    """What was launched half a second before a kill has its times: somebody fetched them."""
    for launches in ('5', '-3'):
        forget_run()
        run = traced([host(), launches, 'unshare', 'kill'])
        check_equal(run.returncode, -9, 'killed')
        check_equal(len(records(run, 'DeviceKernel')), abs(int(launches)), 'kernels with times')


main()
