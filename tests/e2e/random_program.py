"""A CUDA program by chance: `random_program.py SEED STEPS`. Streams of both sorts, events, kernels of several shapes, copies of every kind from
every memory, memsets, allocations, waits, queries, host functions, graphs, two devices, threads; nothing of ours in it, and the same calls for the
same seed (threads take turns)."""
import ctypes
import random
import sys

from driver import PTX, Driver

SEED, STEPS = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(SEED)
u64, size, KIB = ctypes.c_uint64, ctypes.c_size_t, 1024
NON_BLOCKING, NO_TIMING = 1, 2


def made(d, call, kind, *arguments):
    handle = kind()
    d(call, ctypes.byref(handle), *arguments)
    return handle


class Device:
    """One device: its context, kernels, streams, events and memory."""

    def __init__(self, d, ordinal):
        self.d, self.ordinal = d, ordinal
        self.context = made(d, 'cuDevicePrimaryCtxRetain', ctypes.c_void_p, ordinal)
        self.enter()
        module = made(d, 'cuModuleLoadData', ctypes.c_void_p, PTX.encode())
        self.kernels = [made(d, 'cuModuleGetFunction', ctypes.c_void_p, module, name) for name in (b'step', b'reduce', b'scale')]
        self.streams = [None] + [made(d, 'cuStreamCreate', ctypes.c_void_p, flags) for flags in (0, NON_BLOCKING, NON_BLOCKING)]
        self.events = [made(d, 'cuEventCreate', ctypes.c_void_p, NO_TIMING) for _ in range(3)]
        for event in self.events:
            d('cuEventRecord', event, self.streams[1])
        self.memory = made(d, 'cuMemAlloc_v2', u64, size(256 * KIB))
        self.pinned = made(d, 'cuMemAllocHost_v2', u64, size(256 * KIB))
        self.pageable = ctypes.create_string_buffer(256 * KIB)
        self.held, self.graphs = [], []

    def enter(self):
        self.d('cuCtxSetCurrent', self.context)

    def stream(self):
        return chance.choice(self.streams)

    def length(self):
        return size(chance.choice((4, 64, 4 * KIB, 60 * KIB, 200 * KIB)))

    def host(self):
        return chance.choice((self.pinned, ctypes.cast(self.pageable, ctypes.c_void_p)))

    # ------------------------------------------------------------------ what a program may do
    def launch(self, stream=False):
        argument = u64(0)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        grid, block = (chance.choice((1, 3, 300)), 1, 1), (chance.choice((32, 256)), 1, 1)
        self.d('cuLaunchKernel', chance.choice(self.kernels), *grid, *block, chance.choice((0, 1024)), self.stream() if stream is False else stream, arguments, None)

    def launches(self):
        for _ in range(chance.randint(2, 12)):
            self.launch()

    def copy(self):
        kind = chance.randrange(6)
        if kind == 0:
            self.d('cuMemcpyHtoDAsync_v2', self.memory, self.host(), self.length(), self.stream())
        elif kind == 1:
            self.d('cuMemcpyDtoHAsync_v2', self.host(), self.memory, self.length(), self.stream())
        elif kind == 2:
            self.d('cuMemcpyHtoD_v2', self.memory, self.host(), self.length())
        elif kind == 3:
            self.d('cuMemcpyDtoH_v2', self.host(), self.memory, self.length())
        elif kind == 4:
            self.d('cuMemcpyDtoDAsync_v2', u64(self.memory.value + 128 * KIB), self.memory, size(chance.choice((64, 100 * KIB))), self.stream())
        else:
            self.d('cuMemcpyDtoD_v2', u64(self.memory.value + 128 * KIB), self.memory, size(4 * KIB))

    def memset(self):
        if chance.random() < 0.5:
            self.d('cuMemsetD8Async', self.memory, 1, self.length(), self.stream())
        else:
            self.d('cuMemsetD32_v2', self.memory, 7, size(chance.choice((1, 1000))))

    def allocate(self):
        sort = chance.choice(('cuMemAlloc_v2', 'cuMemAllocHost_v2', 'managed', 'pool'))
        length = size(chance.choice((512, 64 * KIB, 3 << 20)))
        if sort == 'managed':
            self.held.append(('cuMemFree_v2', made(self.d, 'cuMemAllocManaged', u64, length, 1)))
        elif sort == 'pool':
            self.held.append(('cuMemFreeAsync', made(self.d, 'cuMemAllocAsync', u64, length, self.streams[1])))
        else:
            self.held.append(('cuMemFree_v2' if sort == 'cuMemAlloc_v2' else 'cuMemFreeHost', made(self.d, sort, u64, length)))

    def free(self):
        if self.held:
            call, address = self.held.pop(chance.randrange(len(self.held)))
            self.d(call, address, *([self.streams[1]] if call == 'cuMemFreeAsync' else []))

    def wait(self):
        kind = chance.randrange(3)
        if kind == 0:
            self.d('cuCtxSynchronize')
        elif kind == 1:
            self.d('cuStreamSynchronize', self.stream())
        else:
            self.d('cuEventSynchronize', chance.choice(self.events))

    def query(self):
        for _ in range(chance.randint(1, 4)):
            self.d.cuda.cuEventQuery(chance.choice(self.events))
            self.d.cuda.cuStreamQuery(self.stream())

    def order(self):
        event = chance.choice(self.events)
        self.d('cuEventRecord', event, self.stream())
        if chance.random() < 0.7:
            self.d('cuStreamWaitEvent', self.stream(), event, 0)

    def make_graph(self):
        stream = self.streams[2]
        self.d('cuStreamBeginCapture_v2', stream, 2)
        for _ in range(chance.randint(1, 6)):
            self.launch(stream)
        if chance.random() < 0.5:
            self.d('cuMemsetD8Async', self.memory, 1, size(4 * KIB), stream)
        graph = made_by_end(self.d, stream)
        self.graphs.append(made(self.d, 'cuGraphInstantiateWithFlags', ctypes.c_void_p, graph, u64(0)))

    def replay(self):
        if not self.graphs:
            self.make_graph()
        for _ in range(chance.randint(1, 4)):
            self.d('cuGraphLaunch', chance.choice(self.graphs), chance.choice(self.streams[1:]))

    def refused(self):
        self.d.cuda.cuMemAlloc_v2(ctypes.byref(u64()), size(1 << 60))


def made_by_end(d, stream):
    graph = ctypes.c_void_p()
    d('cuStreamEndCapture', stream, ctypes.byref(graph))
    return graph


def main():
    d = Driver()
    count = ctypes.c_int()
    d('cuDeviceGetCount', ctypes.byref(count))
    devices = [Device(d, i) for i in range(count.value)]
    # Each program has habits of its own.
    acts = {'launch': 8, 'launches': 4, 'copy': 5, 'memset': 2, 'allocate': 2, 'free': 2, 'wait': 2, 'query': 1, 'order': 3, 'make_graph': 0.5, 'replay': 2, 'refused': 0.2}
    weights = [weight * chance.choice((0, 0.5, 1, 3)) for weight in acts.values()]
    weights[0] += 1
    for _ in range(STEPS):
        device = chance.choice(devices)
        device.enter()
        getattr(device, chance.choices(list(acts), weights)[0])()
    for device in devices:
        device.enter()
        d('cuCtxSynchronize')


main()
