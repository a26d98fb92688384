"""Programs with one planted cause of lost time each, and the same programs without it: what `./dev bench gains` runs, and of which pairs of
traces are kept (tests/corpus/gains). A program is told by its argument, `with` or `without`, which of the two it is.

Naps are slept, not spun, and copies are of few bytes over a slow link: what the simulated GPU and Python do on the host is no part of what is
planted."""

BEGIN = '''
import ctypes, queue, sys, threading, time
sys.path.insert(0, {tests!r})
from driver import Driver, PTX
d = Driver()
k, s = d.kernel('step'), d.kernel('scale')
u64, size = ctypes.c_uint64, ctypes.c_size_t
planted = sys.argv[1] == 'with'
main, second = d.stream(), d.stream()
KiB = 1 << 10
def nap(seconds):
    if seconds: time.sleep(seconds)
def pinned(length):
    address = u64()
    d('cuMemAllocHost_v2', ctypes.byref(address), size(length))
    return address
def event():
    made = ctypes.c_void_p()
    d('cuEventCreate', ctypes.byref(made), 2)
    return made
device, result, e, f = d.alloc(256 * KiB), pinned(256 * KiB), event(), event()
def wait(stream=main): d('cuStreamSynchronize', stream)
def fetch(stream=main):
    d('cuMemcpyDtoHAsync_v2', result, device, size(64), stream)
    wait(stream)
def record(event, stream): d('cuEventRecord', event, stream)
def behind(stream, event): d('cuStreamWaitEvent', stream, event, 0)
def graph_of(kernels):
    graph, exec_ = ctypes.c_void_p(), ctypes.c_void_p()
    d('cuStreamBeginCapture_v2', main, 0)
    for each in kernels: d.launch(each, stream=main)
    d('cuStreamEndCapture', main, ctypes.byref(graph))
    d('cuGraphInstantiateWithFlags', ctypes.byref(exec_), graph, u64(0))
    return exec_
class Other:
    """The second device: its context, a stream, a kernel."""
    def __init__(self):
        self.context, module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        d('cuDevicePrimaryCtxRetain', ctypes.byref(self.context), 1)
        with self:
            d('cuModuleLoadData', ctypes.byref(module), PTX.encode())
            d('cuModuleGetFunction', ctypes.byref(self.kernel), module, b'step')
            self.stream, self.event = d.stream(), event()
            d.launch(self.kernel, stream=self.stream)
            wait(self.stream)
    def __enter__(self): d('cuCtxSetCurrent', self.context)
    def __exit__(self, *_): d('cuCtxSetCurrent', d.context)
def in_threads(work):
    def run(stream):
        d('cuCtxSetCurrent', d.context)
        work(stream)
    threads = [threading.Thread(target=run, args=(stream,)) for stream in (main, second)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
d.launch(k, stream=main)
wait()
'''

SLOW_LINK = {'SIMGPU_COPY_BANDWIDTH': '100M'}  # 60 KiB take 0.6 ms
# (key, what, finding, environment, what the program does)
PROGRAMS = [
    ('host-work', 'the host works between two steps', 'idle-gaps', {}, '''
for i in range(30): d.launch(k, stream=main); fetch(); nap(0.002 if planted else 0)
'''),
    ('slow-fourth', 'a loader is slow in every fourth step', 'idle-gaps', {}, '''
for i in range(32): d.launch(k, stream=main); fetch(); nap(0.012 if planted and i % 4 == 3 else 0)
'''),
    ('loader-thread', 'a thread of the program makes batches, and is slower than the device', 'idle-gaps', {}, '''
batches = queue.Queue(2)
def load():
    for i in range(30): nap(0.003 if planted else 0); batches.put(i)
loader = threading.Thread(target=load)
loader.start()
for i in range(30):
    batches.get()
    d('cuMemcpyHtoDAsync_v2', device, result, size(64 * KiB), main)
    d.launch(k, stream=main)
    fetch()
loader.join()
'''),
    ('llm-sampling', 'sampling between the tokens of an LLM (a replay of a graph each)', 'idle-gaps', {'SIMGPU_KERNEL_TIME': '.*=300us'}, '''
exec_ = graph_of([k] * 10)
for i in range(25): d('cuGraphLaunch', exec_, main); fetch(); nap(0.002 if planted else 0)
'''),
    ('training-step', 'a training step: batch to the device, ten kernels, the loss to the host, and Python', 'idle-gaps', {'SIMGPU_KERNEL_TIME': '.*=300us'}, '''
for i in range(25):
    d('cuMemcpyHtoDAsync_v2', device, result, size(64 * KiB), main)
    for j in range(10): d.launch(k, stream=main)
    fetch()
    nap(0.002 if planted else 0)
'''),
    ('two-threads-work', 'two threads with a stream each, both work between their kernels', 'idle-gaps', {}, '''
def work(stream):
    for i in range(30): d.launch(k, stream=stream); wait(stream); nap(0.003 if planted else 0)
in_threads(work)
'''),
    ('two-devices-host', 'two devices, one of which waits for the host', 'idle-gaps', {'SIMGPU_DEVICES': '2'}, '''
other = Other()
for i in range(30):
    with other: d.launch(other.kernel, stream=other.stream)
    d.launch(k, stream=main); fetch(); nap(0.003 if planted else 0)
with other: wait(other.stream)
'''),
    ('peer-stages', 'two stages on two devices: the second waits for the first, which waits for the host', 'idle-gaps', {'SIMGPU_DEVICES': '2'}, '''
other = Other()
for i in range(30):
    d.launch(k, stream=main)
    record(e, main)
    with other:
        behind(other.stream, e)
        d.launch(other.kernel, stream=other.stream)
    fetch()
    nap(0.002 if planted else 0)
with other: wait(other.stream)
'''),
    ('wait-each-step', 'a wait after each step', 'needless-synchronization', {}, '''
for i in range(40):
    d.launch(k, stream=main)
    if planted: wait()
    nap(0.0008)
wait()
'''),
    ('wait-for-all', 'a wait for everything after each kernel', 'needless-synchronization', {'SIMGPU_CALL_TIME': '100us'}, '''
for i in range(60):
    d.launch(k, stream=main)
    if planted: d('cuCtxSynchronize')
    nap(0.0004)
wait()
'''),
    ('wait-for-event', 'a wait for the newest event', 'needless-synchronization', {}, '''
for i in range(40):
    d.launch(k, stream=main)
    record(e, main)
    if planted: d('cuEventSynchronize', e)
    nap(0.0007)
wait()
'''),
    ('two-devices-wait', 'two devices, a wait for each after its kernel', 'needless-synchronization', {'SIMGPU_DEVICES': '2'}, '''
other = Other()
for i in range(40):
    d.launch(k, stream=main)
    if planted: wait()
    with other:
        d.launch(other.kernel, stream=other.stream)
        if planted: wait(other.stream)
wait()
with other: wait(other.stream)
'''),
    ('polling-event', 'polling an event with a nap', 'polling', {}, '''
for i in range(40):
    d.launch(k, stream=main)
    record(e, main)
    if planted:
        while d.cuda.cuEventQuery(e): nap(0.0016)
    else: d('cuEventSynchronize', e)
'''),
    ('polling-stream', 'polling a stream with a long nap', 'polling', {}, '''
for i in range(40):
    for j in range(2): d.launch(k, stream=main)
    if planted:
        while d.cuda.cuStreamQuery(main): nap(0.0014)
    else: wait()
'''),
    ('synchronous-copies', 'synchronous copies to the device', 'synchronous-copies', SLOW_LINK, '''
for i in range(30):
    d.launch(k, stream=main)
    if planted: d('cuMemcpyHtoD_v2', device, result, size(60 * KiB))
    else: d('cuMemcpyHtoDAsync_v2', device, result, size(60 * KiB), None)
    nap(0.0008)
d('cuCtxSynchronize')
'''),
    ('exposed-to-device', 'copies to the device on the kernels\' stream', 'exposed-copies', SLOW_LINK, '''
for i in range(30):
    copies = main if planted else second
    d('cuMemcpyHtoDAsync_v2', device, result, size(60 * KiB), copies)
    record(e, copies)
    behind(main, e)
    d.launch(k, stream=main)
wait()
'''),
    ('one-buffer', 'one buffer where two are needed: each copy waits for the kernel before it', 'exposed-copies', SLOW_LINK, '''
done = [event(), event()]
for i in range(30):
    if i > (0 if planted else 1): behind(second, done[(i - 1 if planted else i) % 2])
    d('cuMemcpyHtoDAsync_v2', device, result, size(60 * KiB), second)
    record(e, second)
    behind(main, e)
    d.launch(k, stream=main)
    record(done[i % 2], main)
wait()
'''),
    ('snapshots', 'snapshots to the host on the kernels\' stream', 'exposed-copies', SLOW_LINK, '''
for i in range(30):
    d.launch(k, stream=main)
    copies = main if planted else second
    record(e, main)
    behind(copies, e)
    d('cuMemcpyDtoHAsync_v2', result, device, size(60 * KiB), copies)
wait(); wait(second)
'''),
    ('pageable', 'batches from pageable memory', 'pageable-async-copies', {'SIMGPU_COPY_BANDWIDTH': '200M'}, '''
pageable = ctypes.create_string_buffer(120 * KiB)
where = result if not planted else ctypes.cast(pageable, ctypes.c_void_p)
for i in range(30):
    d('cuMemcpyHtoDAsync_v2', device, where, size(120 * KiB), main)
    nap(0.0006)
    d.launch(k, stream=main)
    nap(0.0003)
wait()
'''),
    ('allocation', 'allocating and freeing in the loop', 'allocation-in-loop', {'SIMGPU_CALL_TIME': '400us'}, '''
for i in range(40):
    d.launch(k, stream=main)
    if planted: a = d.alloc(1 << 20); d('cuMemFree_v2', a)
wait()
'''),
    ('allocation-pinned', 'pinned memory for each batch', 'allocation-in-loop', {'SIMGPU_CALL_TIME': '400us'}, '''
for i in range(40):
    d.launch(k, stream=main)
    if planted: a = pinned(64 * KiB); d('cuMemFreeHost', a)
wait()
'''),
    ('modules', 'modules that are loaded in the loop', 'code-loading', {'SIMGPU_CALL_TIME': '500us'}, '''
module = ctypes.c_void_p()
for i in range(30):
    d.launch(k, stream=main)
    for j in range(4 if planted else 0): d('cuModuleLoadData', ctypes.byref(module), PTX.encode())
wait()
'''),
    ('host-functions', 'functions of the host in the stream', 'host-functions', {}, '''
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: nap(0.0015))
for i in range(30):
    d.launch(k, stream=main)
    if planted: d('cuLaunchHostFunc', main, function, None)
d.launch(k, stream=main)
wait()
'''),
    ('host-functions-aside', 'functions of the host in another stream, for which the kernels wait', 'host-functions', {}, '''
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: nap(0.0015))
for i in range(30):
    record(f, main)
    behind(second, f)
    if planted: d('cuLaunchHostFunc', second, function, None)
    record(e, second)
    behind(main, e)
    d.launch(k, stream=main)
wait()
'''),
    ('short-kernels', 'short kernels in the same order again and again', 'graph-candidates', {'SIMGPU_CALL_TIME': '150us', 'SIMGPU_KERNEL_TIME': '.*=20us'}, '''
kernels = [k if j % 2 else s for j in range(12)]
exec_ = graph_of(kernels)
for i in range(30):
    if planted:
        for each in kernels: d.launch(each, stream=main)
    else: d('cuGraphLaunch', exec_, main)
    fetch()
'''),
    ('llm-decode', 'an LLM\'s tokens by forty short kernels each, without a graph', 'graph-candidates', {'SIMGPU_CALL_TIME': '40us', 'SIMGPU_KERNEL_TIME': '.*=30us'}, '''
kernels = [(k, s, s)[j % 3] for j in range(40)]
exec_ = graph_of(kernels)
for i in range(20):
    if planted:
        for each in kernels: d.launch(each, stream=main)
    else: d('cuGraphLaunch', exec_, main)
    fetch()
    nap(0.001)
'''),
]
