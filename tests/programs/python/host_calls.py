"""Reads, writes and waits as often and as long as it says, as JSON in a file.

    python host_calls.py FOLDER [many]

FOLDER: for its files, of which result.json is what it did; `many`: it writes ten thousand different ones, too."""
import ctypes
import json
import multiprocessing
import os
import sys
import threading
import time

FOLDER, MANY = sys.argv[1], 'many' in sys.argv[2:]
cuda = ctypes.CDLL('libcuda.so.1')
libc = ctypes.CDLL(None, use_errno=True)
TURNS, PIECE = 20, 64 << 10


def path_of(name):
    return os.path.join(FOLDER, name)


def begin_cuda():
    context, buffer = ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))


def read_all(name):
    with open(path_of(name), 'rb', buffering=0) as file:
        while file.read(PIECE):
            pass


def serve(queue):
    for _ in range(TURNS):
        read_all('set')
    queue.put(os.getpid())
    time.sleep(60)


def held(lock, is_held, seconds):
    with lock:
        is_held.set()
        time.sleep(seconds)


def wait_for_lock():
    lock = threading.Lock()
    for _ in range(3):
        is_held = threading.Event()
        thread = threading.Thread(target=held, args=(lock, is_held, 0.15))
        thread.start()
        is_held.wait()
        lock.acquire()  # waits-for-lock
        lock.release()
        thread.join()


def rest():
    time.sleep(0.02)  # rests


def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(100))


def want_interpreter():
    """Two threads that both run Python code."""
    thread = threading.Thread(target=burn, args=(0.3,))
    thread.start()
    burn(0.3)
    thread.join()


def main():
    began = time.perf_counter()
    begin_cuda()
    with open(path_of('set'), 'wb', buffering=0) as file:
        for _ in range(4):
            file.write(b'x' * PIECE)
        os.fsync(file.fileno())
    fork = multiprocessing.get_context('fork')
    queue = fork.Queue()
    workers = [fork.Process(target=serve, args=(queue,), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    done = {queue.get() for _ in workers}
    os.lseek(os.open(path_of('set'), os.O_RDONLY), 0, os.SEEK_SET)
    libc.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(libc.fopen(path_of('set').encode(), b'rb'))
    into = ctypes.create_string_buffer(PIECE)
    for _ in range(3):
        assert libc.fread(into, ctypes.c_size_t(16), ctypes.c_size_t(100), stream) == 100
    assert libc.read(10_000, into, ctypes.c_size_t(1)) == -1 and ctypes.get_errno() == 9  # EBADF
    for _ in range(10):
        rest()
    wait_for_lock()
    want_interpreter()
    if MANY:
        for number in range(10_000):
            with open(path_of(f'many-{number:05}'), 'wb', buffering=0) as file:
                file.write(b'1')
    for worker in workers:
        worker.kill()
    with open(path_of('result.json'), 'w', encoding='utf-8') as file:
        json.dump({'seconds': time.perf_counter() - began, 'pid': os.getpid(), 'tid': threading.get_native_id(), 'workers': sorted(done)}, file)
    print('done')


main()
