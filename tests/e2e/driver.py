"""The driver API by ctypes, for programs that the scenarios run: no compiler, no runtime, nothing of ours in it.

    from driver import Driver;  d = Driver();  k = d.kernel('step');  d.launch(k, grid=(4, 1, 1), block=(128, 1, 1))
"""
import ctypes

PTX = '.version 7.0\n.target sm_52\n.address_size 64\n' + ''.join(
    f'.visible .entry {name}(.param .u64 p) {{ ret; }}\n' for name in ('step', 'reduce', 'scale'))


class Driver:
    def __init__(self, library='libcuda.so.1'):
        self.cuda = ctypes.CDLL(library, use_errno=True)
        self.context, self.module = ctypes.c_void_p(), ctypes.c_void_p()
        self('cuInit', 0)
        self('cuDevicePrimaryCtxRetain', ctypes.byref(self.context), 0)
        self('cuCtxSetCurrent', self.context)
        self('cuModuleLoadData', ctypes.byref(self.module), PTX.encode())

    def __call__(self, name, *arguments, expect=0):
        result = getattr(self.cuda, name)(*arguments)
        if result != expect:
            raise RuntimeError(f'{name}: {result}')
        return result

    def kernel(self, name):
        function = ctypes.c_void_p()
        self('cuModuleGetFunction', ctypes.byref(function), self.module, name.encode())
        return function

    def alloc(self, size):
        address = ctypes.c_uint64()
        self('cuMemAlloc_v2', ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def stream(self):
        stream = ctypes.c_void_p()
        self('cuStreamCreate', ctypes.byref(stream), 1)
        return stream

    def launch(self, function, grid=(1, 1, 1), block=(32, 1, 1), shared=0, stream=None):
        argument = ctypes.c_uint64(0)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        self('cuLaunchKernel', function, *grid, *block, shared, stream, arguments, None)
