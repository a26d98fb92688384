"""A small CUDA program in C, and what a program must not notice of us: for programs that the scenarios compile themselves."""
from against_truth import *

CUDA = r'''
#include <cuda.h>
#include <stdio.h>
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry third() { ret; }\n";
static int launch(int times) {
  CUdevice device; CUcontext context; CUmodule module; CUfunction function;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  for (int i = 0; i < times; ++i) if (cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0)) return 71;
  return cuModuleUnload(module) || cuDevicePrimaryCtxRelease(device) ? 72 : 0;
}
'''


def both(command, env=None):
    """The same with and without the library, also with the library switched off; what was traced."""
    plain = untraced(command, env)
    same_output(plain, untraced(command, {**(env or {}), 'GPUTRACE': '0', 'LD_PRELOAD': places.library}))
    run = traced(command, {**CALLS, **(env or {})})
    same_output(plain, run)
    return plain, run
