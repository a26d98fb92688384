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

PROGRAM = r'''
#include <cuda.h>
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
static void launch(unsigned grid) {
  cuLaunchKernel(function, grid, grid + 1, grid + 2, grid + 3, grid + 4, grid + 5, grid + 6, (CUstream)(grid + 7ul), nullptr, nullptr);
}
static void fiber() {
  launch(41);
  launch(42);
  swapcontext(&other, &home);
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
int main() {
  CUdevice device; CUcontext context; CUmodule module;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, "x") || cuModuleGetFunction(&function, module, "kernel_07")) return 70;
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


def test_calls_within_a_launch():
    folder = scratch('driver')
    os.makedirs(folder)
    driver = compiled('driver.c', DRIVER, '-shared', '-fPIC', '-fexceptions', '-I' + SOURCE, '-Wl,-soname,libcuda.so.1')
    os.rename(driver, os.path.join(folder, 'libcuda.so.1'))
    command = [compiled('within.cpp', PROGRAM, os.path.join(folder, 'libcuda.so.1'), '-lstdc++')]
    env = {'LD_LIBRARY_PATH': folder, 'SIMGPU_TRUTH': None}
    run = traced(command, env)
    same_output(untraced(command, env), run)
    traces = [records(trace, 'KernelLaunch') for trace in run.traces]
    check_equal(len(traces), 2, 'traces: the program and the child that returns through its launch')
    parent, child = sorted(traces, key=len, reverse=True)
    check_equal([record['grid_x'] for record in child], [61, 62], 'launches of the child')
    grids = [record['grid_x'] for record in parent]
    check_equal(grids, [1, 2, 13, 11, 12, 10, 3, 4, 5, 6, 7, 8, 41, 42, 40, 9, 66, 50, 51, 60, 62], 'launches of the program, by their ends')
    for record in parent + child:
        grid = record['grid_x']
        got = [record[key] for key in ('grid_y', 'grid_z', 'block_x', 'block_y', 'block_z', 'dynamic_shared_bytes', 'stream')]
        check_equal([int(str(value), 0) for value in got], [grid + n for n in range(1, 8)], f'arguments of launch {grid}')
        check_equal(record['result'] != 0, grid == 66, f'result of launch {grid}')


if __name__ == '__main__':
    main()
