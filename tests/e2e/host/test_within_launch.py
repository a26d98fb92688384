# What happens within a launch: other calls of the same thread, exceptions, longjmp, another stack. The driver is one of our own that
# calls the program back out of cuLaunchKernel, so that all of it is deterministic.
from harness import *

DRIVER = r'''
#define cuLaunchKernel plain_launch
#include "bench/noop_cuda.c"
#undef cuLaunchKernel
API void (*launch_hook)(unsigned);
API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                            CUstream stream, void** parameters, void** extra) {
  if (launch_hook) launch_hook(gx);
  return gx == 66 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
'''

# Hands a launch to the driver, as the shared runtime does: then the driver's call is one within another.
RUNTIME = r'''
#include <cuda.h>
#include <cuda_runtime_api.h>
__attribute__((visibility("default"))) cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters,
                                                                    size_t shared, cudaStream_t stream) {
  return (cudaError_t)cuLaunchKernel((CUfunction)function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared,
                                     stream, parameters, 0);
}
'''

PROGRAM = r'''
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/time.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <stdexcept>
extern "C" void (*launch_hook)(unsigned);
static CUfunction function;
static jmp_buf out;
static ucontext_t home, other;
static char stack[1 << 16];
static bool through_runtime;
static void launch(unsigned grid) {
  if (through_runtime)
    cudaLaunchKernel(function, dim3(grid, grid + 1, grid + 2), dim3(grid + 3, grid + 4, grid + 5), nullptr, grid + 6,
                     (cudaStream_t)(grid + 7ul));
  else
    cuLaunchKernel(function, grid, grid + 1, grid + 2, grid + 3, grid + 4, grid + 5, grid + 6, (CUstream)(grid + 7ul), nullptr, nullptr);
}
static void fiber() {
  launch(41);
  launch(42);
  swapcontext(&other, &home);
}
static volatile unsigned handled;
static void launch_through(bool runtime, unsigned grid) {
  const bool before = through_runtime;
  through_runtime = runtime;
  launch(grid);
  through_runtime = before;
}
static void handler(int) { launch_through(handled % 2, 2000000 + handled); handled = handled + 1; }
// Launches in every way while a signal handler launches too.
static void under_signals() {
  launch_hook = nullptr;
  launch(1);
  launch_through(true, 1);  // whatever has to be resolved or described is
  signal(SIGALRM, handler);
  const itimerval every{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &every, nullptr);
  unsigned made = 0;
  while (handled < 300) {
    launch_through(made % 2, made + 10);
    ++made;
    if (made % 256 == 0) usleep(100);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  printf("%u %u\n", made, handled);
}
static void within(unsigned grid) {
  switch (grid) {
    case 10: launch(11); launch(12); cuCtxSynchronize(); break;
    case 11: launch(13); break;
    case 20: longjmp(out, 1);
    case 30: throw std::runtime_error("out of the driver");
    case 40: swapcontext(&home, &other); break;
    case 50: if (fork() == 0) _exit(7); wait(nullptr); break;
    case 60: if (fork() != 0) { wait(nullptr); break; } launch(61); break;
  }
}
int main(int argc, char** argv) {
  const char mode = argc > 1 ? *argv[1] : ' ';
  through_runtime = mode == 'r';
  CUdevice device; CUcontext context; CUmodule module;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, "x") || cuModuleGetFunction(&function, module, "kernel_07")) return 70;
  if (mode == 's') return under_signals(), 0;
  launch_hook = within;
  launch(1); launch(2);
  launch(10);
  launch(3); launch(4);
  if (setjmp(out) == 0) launch(20);
  launch(5); launch(6);
  try { launch(30); } catch (const std::exception& error) { printf("%s\n", error.what()); }
  launch(7); launch(8);
  getcontext(&other); other.uc_stack.ss_sp = stack; other.uc_stack.ss_size = sizeof stack; other.uc_link = &home;
  makecontext(&other, fiber, 0);
  launch(40);
  launch(9);
  launch(66);
  launch(50);
  launch(51);
  const pid_t self = getpid();
  launch(60);
  launch(62);
  if (getpid() != self) _exit(3);
  puts("end");
}
'''


def compiled_program():
    """(the program, its environment): it runs on a driver and a runtime of its own."""
    folder = scratch('driver')
    os.makedirs(folder, exist_ok=True)
    driver, runtime = os.path.join(folder, 'libcuda.so.1'), os.path.join(folder, 'libcudart.so.13')
    common = ('-shared', '-fPIC', '-fexceptions', '-I' + SOURCE)
    os.rename(compiled('driver.c', DRIVER, *common, '-Wl,-soname,libcuda.so.1'), driver)
    os.rename(compiled('runtime.c', RUNTIME, *common, '-Wl,-soname,libcudart.so.13', driver), runtime)
    return compiled('within.cpp', PROGRAM, driver, runtime, '-lstdc++'), {'LD_LIBRARY_PATH': folder, 'SIMGPU_TRUTH': None}


def check_arguments(record):
    grid = record['grid_x']
    got = [record[key] for key in ('grid_y', 'grid_z', 'block_x', 'block_y', 'block_z', 'dynamic_shared_bytes', 'stream')]
    check_equal([int(str(value), 0) for value in got], [grid + n for n in range(1, 8)], f'arguments of launch {grid}')


def calls_within_a_launch(*arguments):
    binary, env = compiled_program()
    command = [binary, *arguments]
    run = traced(command, env)
    same_output(untraced(command, env), run)
    traces = [records(trace, 'KernelLaunch') for trace in run.traces]
    check_equal(len(traces), 2, 'traces: the program and the child that returns through its launch')
    parent, child = sorted(traces, key=len, reverse=True)
    check_equal([record['grid_x'] for record in child], [61, 62], 'launches of the child')
    grids = [record['grid_x'] for record in parent]
    check_equal(grids, [1, 2, 13, 11, 12, 10, 3, 4, 5, 6, 7, 8, 41, 42, 40, 9, 66, 50, 51, 60, 62], 'launches of the program, by their ends')
    for record in parent + child:
        check_arguments(record)
        check_equal(record['result'] != 0, record['grid_x'] == 66, f"result of launch {record['grid_x']}")


def test_calls_within_a_launch():
    calls_within_a_launch()


def test_calls_within_a_launch_of_the_runtime():
    calls_within_a_launch('runtime')


def test_signal_handlers_that_launch():
    binary, env = compiled_program()
    run = traced([binary, 'signals'], env)
    made, handled = map(int, run.stdout.split())
    launches = records(run.traces[0], 'KernelLaunch')
    for record in launches:
        check_arguments(record)
    grids = collections.Counter(record['grid_x'] for record in launches)
    check_equal([grid for grid, count in grids.items() if count != (2 if grid == 1 else 1)], [], 'no launch twice')
    calls = sum(1 for record in records(run.traces[0], 'Call') if record['call'] == 'cudaLaunchKernel')
    dropped = report(run)['coverage']['dropped']
    wanted = 3 + made + made // 2 + handled + handled // 2  # through the runtime each is two calls
    check_equal(len(launches) + calls + dropped, wanted, f'launches {len(launches)}, runtime calls {calls}, dropped {dropped}')
    check(dropped <= 2 * handled, 'only what a handler interrupts or makes may be dropped', dropped, handled)
    check(dropped < wanted // 2, 'most are recorded', dropped, wanted)


if __name__ == '__main__':
    main()
