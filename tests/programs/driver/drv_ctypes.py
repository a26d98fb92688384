#!/usr/bin/env python3
"""drv_ctypes.py [mode=local|global|deepbind] [count=N] [exit=E]: the driver through ctypes, as Python programs use it."""
import ctypes
import os
import sys

PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry from_python(.param .u64 data, .param .u32 count) { ret; }
"""
MODES = {'local': os.RTLD_LOCAL, 'global': os.RTLD_GLOBAL, 'deepbind': os.RTLD_LOCAL | os.RTLD_DEEPBIND}


def options():
    given = dict(word.split('=', 1) for word in sys.argv[1:])
    return given.get('mode', 'local'), int(given.get('count', 10)), int(given.get('exit', 0))


def must(result):
    if result != 0:
        sys.exit(f'driver call failed: {result}')


def main():
    mode, count, code = options()
    cuda = ctypes.CDLL('libcuda.so.1', mode=MODES[mode] | os.RTLD_NOW)
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, device = ctypes.c_uint64(), ctypes.c_int()
    must(cuda.cuInit(0))
    must(cuda.cuDeviceGet(ctypes.byref(device), 0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    must(cuda.cuModuleGetFunction(ctypes.byref(function), module, b'from_python'))
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256)))
    sent = bytes(range(256))
    must(cuda.cuMemcpyHtoD_v2(memory, sent, ctypes.c_size_t(256)))
    n = ctypes.c_uint32(256)
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(n))
    for index in range(count):
        must(cuda.cuLaunchKernel(function, 1 + index % 4, 1, 1, 64, 1, 1, 0, None, arguments, None))
    must(cuda.cuCtxSynchronize())
    received = ctypes.create_string_buffer(256)
    must(cuda.cuMemcpyDtoH_v2(received, memory, ctypes.c_size_t(256)))
    must(cuda.cuMemFree_v2(memory))
    must(cuda.cuModuleUnload(module))
    must(cuda.cuDevicePrimaryCtxRelease_v2(device))
    print(f'launches {count} same bytes {received.raw == sent}')
    return code


if __name__ == '__main__':
    sys.exit(main())
