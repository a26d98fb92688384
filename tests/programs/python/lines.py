"""Calls CUDA from lines of all kinds, and writes each call's own stack, as the interpreter has it, as one line of JSON to a file.

    python lines.py FILE [ROUNDS]

A call is a memset whose size is its number, so that a trace can be held against the file, stack by stack."""
import ctypes
import gc
import itertools
import json
import sys
import threading

cuda = ctypes.CDLL('libcuda.so.1')
numbers = itertools.count(1)
out = open(sys.argv[1], 'w', encoding='utf-8')
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
buffer = ctypes.c_uint64()
context = ctypes.c_void_p()
lock = threading.Lock()


def here():
    """The next number, its caller's stack written down."""
    with lock:
        number = next(numbers)
        frame, stack = sys._getframe(1), []
        while frame:
            code = frame.f_code
            stack.append([code.co_filename, frame.f_lineno, getattr(code, 'co_qualname', code.co_name), code.co_firstlineno])
            frame = frame.f_back
        out.write(json.dumps({'number': number, 'stack': stack[::-1]}) + '\n')
        return number


def plain(): cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(here()))


def recursive(depth):
    if depth:
        recursive(depth - 1)
    else:
        n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))


def generator(count):
    for _ in range(count):
        n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))
        yield n


class Modèle:
    def __init__(self):
        n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))

    def __call__(self, *, größe=1):
        return (lambda: [plain() for _ in range(größe)])()

    @property
    def 参数(self):
        n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))


async def waiting():
    n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))


async def tasks():
    await waiting()
    n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))


def far_apart():
    """Lines further apart than one entry of a line table holds (127), in a function whose first line lies beyond 300."""
    call = 'n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))'
    gap, body = '\n' * 200, '\n    '
    text = gap + gap + f'def f():{body}{call}{gap}{body}x = ({gap}here.__name__,{body}1){body}{call}{gap}{gap}{body}{call}\nf()\n'
    exec(compile(text, '<far apart>', 'exec'), dict(globals()))


def out_of_order():
    # One that comes before the one before it.
    for _ in (
            0, 1):
        n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))
    try:
        raise ValueError
    except ValueError:
        n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))
    finally:
        n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))


def made_and_thrown_away(i):
    """New code objects at the addresses of old ones."""
    text = '\n' * (i % 7) + f'def f{i % 3}():\n    n = here(); cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(n))\nf{i % 3}()\n'
    exec(compile(text, f'<made {i % 5}>', 'exec'), dict(globals()))
    gc.collect()


def everything(round_number):
    plain()
    for depth in (0, 1, 5, 60):
        recursive(depth)
    list(generator(3))
    Modèle()(größe=2)
    Modèle().参数
    coroutine = tasks()
    try:
        coroutine.send(None)
    except StopIteration:
        pass
    far_apart()
    out_of_order()
    sorted([3, 1, 2], key=lambda x: plain() or x)
    for i in range(20):
        made_and_thrown_away(i + round_number)
    plain(); plain()


def in_thread():
    cuda.cuCtxSetCurrent(context)
    everything(1)


cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))
for n in range(rounds):
    everything(n)
threads = [threading.Thread(target=in_thread) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
cuda.cuCtxSynchronize()
out.close()
print('done', next(numbers) - 1)
