"""Spends its time between CUDA calls, at lines that are known, and writes how much at which as JSON to a file.

    python between.py FILE SECONDS [WORKERS [METHOD [cuda]]]

With WORKERS what is computed is computed by processes made for it (METHOD: fork, spawn, forkserver), and the loop waits for them; `cuda`: they
call CUDA first."""
import ctypes
import json
import multiprocessing
import sys
import time

out, seconds, workers = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
method, workers_call_cuda = sys.argv[4] if len(sys.argv) > 4 else 'fork', 'cuda' in sys.argv[5:]
cuda = ctypes.CDLL('libcuda.so.1')
buffer, context = ctypes.c_uint64(), ctypes.c_void_p()


def leaf(number):
    return number * number


def middle(number):
    total = 0
    for k in range(40):
        total += leaf(number + k)
    return total


def made(number):
    """Code that comes and goes, at addresses of earlier code."""
    names = {}
    exec(compile('\n' * (number % 50) + f'def made_{number}(n):\n    return sum(range(n))\n', f'made {number}', 'exec'), names)
    names[f'made_{number}'](2000)


def compute(length):
    end, turn = time.perf_counter() + length, 0
    while time.perf_counter() < end:
        middle(turn)
        made(turn)
        turn += 1


def rest(length):
    time.sleep(length)


def serve(queue):
    if workers_call_cuda:
        cuda.cuInit(0)
    while True:
        compute(0.02)
        queue.put(1)


def turn(queue, spent):
    begin = time.perf_counter()
    if queue:
        queue.get()
    else:
        compute(0.02)
    middle_of = time.perf_counter()
    rest(0.01)
    end = time.perf_counter()
    cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))
    cuda.cuCtxSynchronize()
    spent['compute'] += middle_of - begin
    spent['rest'] += end - middle_of
    spent['turns'] += 1


def main():
    queue, children = None, []
    if workers:
        made_by = multiprocessing.get_context(method)
        queue = made_by.Queue(2)
        children = [made_by.Process(target=serve, args=(queue,), daemon=True) for _ in range(workers)]
        for child in children:
            child.start()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))
    spent = {'compute': 0.0, 'rest': 0.0, 'turns': 0}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        turn(queue, spent)
    spent['workers'] = [child.pid for child in children]
    for child in children:
        child.kill()
    with open(out, 'w', encoding='utf-8') as file:
        json.dump(spent, file)
    print('done')


if __name__ == '__main__':
    main()
