"""Loads the fatbins inside of a shared library one by one, as its runtime would: each by the address in a mapping of the file.

    python3 code_library.py LIBRARY OFFSET BYTES COUNT      .nv_fatbin lies at OFFSET; at most COUNT fatbins

Asks for all of their kernels, launches one. Prints: loaded, kernels, megabytes, median load in ns, anonymous memory in kB.
"""
import ctypes
import mmap
import os
import statistics
import struct
import sys
import time

cuda = ctypes.CDLL('libcuda.so.1')
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def enumerate_kernels(module):
    count = ctypes.c_uint()
    cuda.cuModuleGetFunctionCount(ctypes.byref(count), module)
    functions = (ctypes.c_void_p * max(count.value, 1))()
    cuda.cuModuleEnumerateFunctions(functions, count.value, module)
    return list(functions)[:count.value]


def launch(function):
    buffer = ctypes.create_string_buffer(8192)
    arguments = (ctypes.c_void_p * 256)(*[ctypes.addressof(buffer)] * 256)
    return cuda.cuLaunchKernel(ctypes.c_void_p(function), 1, 1, 1, 32, 1, 1, 0, None, arguments, None)


def main():
    path, offset, size, count = sys.argv[1], *map(int, sys.argv[2:5])
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    file = os.open(path, os.O_RDONLY)
    base = libc.mmap(None, os.fstat(file).st_size, mmap.PROT_READ, mmap.MAP_PRIVATE, file, 0)
    at, times, kernels, taken, launched = offset, [], 0, 0, False
    while at < offset + size and len(times) < count:
        magic, _, header, rest = struct.unpack('<IHHQ', os.pread(file, 16, at))
        if magic != 0xBA55ED50:
            at += 8
            continue
        module = ctypes.c_void_p()
        began = time.perf_counter_ns()
        result = cuda.cuModuleLoadData(ctypes.byref(module), ctypes.c_void_p(base + at))
        took = time.perf_counter_ns() - began
        if result == 0:
            times.append(took)
            taken += header + rest
            functions = enumerate_kernels(module)
            kernels += len(functions)
            launched = launched or (bool(functions) and launch(functions[0]) == 0)
        at += header + rest
    with open('/proc/self/status', encoding='utf-8') as status:
        memory = dict(line.split(':', 1) for line in status)['RssAnon'].split()[0]
    print(len(times), kernels, taken >> 20, statistics.median(times), memory)


main()
