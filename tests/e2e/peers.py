"""Kernels on every device, copies between all pairs of them; with `host`, host functions in between. A program for scenarios."""
import ctypes
import sys

from driver import PTX, Driver

d = Driver()
count = ctypes.c_int()
d('cuDeviceGetCount', ctypes.byref(count))
contexts, functions, memory, streams = [], [], [], []
for device in range(count.value):
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    d('cuDevicePrimaryCtxRetain', ctypes.byref(context), device)
    d('cuCtxSetCurrent', context)
    d('cuModuleLoadData', ctypes.byref(module), PTX.encode())
    d('cuModuleGetFunction', ctypes.byref(function), module, b'reduce')
    contexts.append(context)
    functions.append(function)
    memory.append(d.alloc(1 << 16))
    streams.append(d.stream())

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
called = []
callback = CALLBACK(lambda _: called.append(1))
for round in range(5):
    for a in range(len(contexts)):
        d('cuCtxSetCurrent', contexts[a])
        d.launch(functions[a], grid=(a + 1, 1, 1), stream=streams[a])
        if 'host' in sys.argv:
            d('cuLaunchHostFunc', streams[a], callback, None)
            d.launch(functions[a], grid=(a + 7, 1, 1), stream=streams[a])
        for b in range(len(contexts)):
            if a != b:
                d('cuMemcpyPeerAsync', memory[b], contexts[b], memory[a], contexts[a], ctypes.c_size_t(4096 * (round + 1)), streams[a])
for context in contexts:
    d('cuCtxSetCurrent', context)
    d('cuCtxSynchronize')
print('devices', len(contexts), 'host functions', len(called))
