"""Threads and forked processes that use the processor for as long as they say, as JSON in a file.

    python threads.py FILE

What each used is measured by the kernel's own clock of the thread, when it has done its work; then all rest, so that whoever
looks from outside can see it."""
import ctypes
import json
import multiprocessing
import sys
import threading
import time

used, gate = {}, threading.Event()
cuda = ctypes.CDLL('libcuda.so.1')


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
    return time.thread_time_ns()


def name_me(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def in_thread():
    name_me('helper')
    used['helper'] = [threading.get_native_id(), burn(0.6)]
    gate.wait()


def in_process(queue):
    name_me('maker (of) x')
    queue.put([multiprocessing.current_process().pid, burn(0.9)])
    time.sleep(60)


def main():
    fork = multiprocessing.get_context('fork')
    queue = fork.Queue()
    child = fork.Process(target=in_process, args=(queue,), daemon=True)
    child.start()
    context, buffer = ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))
    thread = threading.Thread(target=in_thread)
    thread.start()
    for _ in range(7):
        cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))
        cuda.cuCtxSynchronize()
    used['maker (of) x'] = queue.get()
    while 'helper' not in used:
        time.sleep(0.01)
    time.sleep(2)
    used['main'] = [threading.get_native_id(), time.thread_time_ns()]
    gate.set()
    thread.join()
    child.kill()
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        json.dump(used, file)
    print('done')


main()
