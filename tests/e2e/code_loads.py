"""Loads code images in every way that there is and launches their kernels once, by ctypes: nothing of ours in it.

    python3 code_loads.py HOW:FILE:KERNEL,KERNEL ...       prints one line per image: HOW result, and the launches

HOW: data, dataex, fat (a wrapper), lib, link: from anonymous memory; mmap, mmaplib: from a mapping of the file (HOW@OFFSET: of an
image inside of it); file, libfile: by name; modlib: cuLibraryGetModule of a library. `twice:` before it loads it two times.
`spoil` puts another file in the image's place before its kernels are asked for; `gone` gives the memory of an image back before, `changed` writes into it. `time` prints how long each load took (ns); `rss` what the process holds at the end; `wait=FILE` waits for that file after the launches.
"""
import ctypes
import mmap
import os
import sys
import time

cuda = ctypes.CDLL('libcuda.so.1', use_errno=True)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
keep, regions = [], []


def must(result, what):
    if result:
        raise SystemExit(f'{what}: {result}')


def anonymous(path):
    with open(path, 'rb') as file:
        data = file.read()
    if 'gone' in sys.argv:
        address = libc.mmap(None, len(data) + 1, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        ctypes.memmove(address, data, len(data))
        regions.append((address, len(data) + 1))
        return address
    keep.append(ctypes.create_string_buffer(data, len(data) + 1))
    return ctypes.addressof(keep[-1])


def mapped(path, offset):
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
    os.close(fd)
    return address + offset


def wrapped(path):
    data = anonymous(path)
    keep.append((ctypes.c_uint64 * 3)(1 << 32 | 0x466243B1, data, 0))
    return ctypes.addressof(keep[-1])


def load(how, path):
    """(result, handle, whether it is a library, ns)"""
    how, _, offset = how.partition('@')
    handle = ctypes.c_void_p()
    out = ctypes.byref(handle)
    none = (None, None, 0, None, None, 0)
    if how in ('mmap', 'mmaplib'):
        image = mapped(path, int(offset or 0))
    elif how in ('file', 'libfile'):
        image = path.encode()
    elif how == 'fat':
        image = wrapped(path)
    else:
        image = anonymous(path)
    began = time.monotonic_ns()
    if how in ('data', 'mmap', 'fat'):
        result = cuda.cuModuleLoadData(out, ctypes.c_void_p(image))
    elif how == 'dataex':
        result = cuda.cuModuleLoadDataEx(out, ctypes.c_void_p(image), 0, None, None)
    elif how == 'file':
        result = cuda.cuModuleLoad(out, image)
    elif how == 'libfile':
        result = cuda.cuLibraryLoadFromFile(out, image, *none)
    elif how in ('lib', 'mmaplib', 'modlib'):
        result = cuda.cuLibraryLoadData(out, ctypes.c_void_p(image), *none)
    elif how == 'link':
        state, linked, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        must(cuda.cuLinkCreate_v2(0, None, None, ctypes.byref(state)), 'cuLinkCreate')
        must(cuda.cuLinkAddData_v2(state, 1, ctypes.c_void_p(image), ctypes.c_size_t(os.path.getsize(path) + 1), b'x', 0, None, None), 'cuLinkAddData')
        must(cuda.cuLinkComplete(state, ctypes.byref(linked), ctypes.byref(size)), 'cuLinkComplete')
        result = cuda.cuModuleLoadData(out, linked)
    else:
        raise SystemExit('how: ' + how)
    took = time.monotonic_ns() - began
    library = how in ('lib', 'mmaplib', 'libfile')
    if how == 'modlib' and not result:
        module = ctypes.c_void_p()
        must(cuda.cuLibraryGetModule(ctypes.byref(module), handle), 'cuLibraryGetModule')
        handle = module
    return result, handle, library, took


def launch(handle, library, name):
    function = ctypes.c_void_p()
    get = cuda.cuLibraryGetKernel if library else cuda.cuModuleGetFunction
    must(get(ctypes.byref(function), handle, name.encode()), name)
    buffer = ctypes.create_string_buffer(8192)
    arguments = (ctypes.c_void_p * 16)(*[ctypes.addressof(buffer)] * 16)
    must(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None), 'cuLaunchKernel')


def main():
    words = sys.argv[1:]
    context = ctypes.c_void_p()
    must(cuda.cuInit(0), 'cuInit')
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), 'retain')
    must(cuda.cuCtxSetCurrent(context), 'current')
    launches = 0
    for word in words:
        if word in ('time', 'rss', 'spoil', 'gone', 'changed') or word.startswith('wait='):
            continue
        times = 2 if word.startswith('twice:') else 1
        how, path, names = word.removeprefix('twice:').split(':')
        for _ in range(times):
            result, handle, library, took = load(how, path)
            print(how.partition('@')[0], result, *([took] if 'time' in words else []))
            if 'spoil' in words:
                with open(path + '.new', 'wb') as file:
                    file.write(b'x' * os.path.getsize(path))
                os.replace(path + '.new', path)
            for address, size in regions:
                must(libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size)), 'munmap')
            regions.clear()
            if 'changed' in words:
                keep[-1][-2] = b'y'
            for name in names.split(',') if not result and names else []:
                launch(handle, library, name)
                launches += 1
    must(cuda.cuCtxSynchronize(), 'synchronize')
    for word in words:
        if word.startswith('wait='):
            print('waiting', flush=True)
            while not os.path.exists(word[5:]):
                time.sleep(0.01)
    if 'rss' in words:
        with open('/proc/self/status', encoding='utf-8') as file:
            facts = dict(line.split(':', 1) for line in file)
        print('rss', facts['RssAnon'].split()[0], facts['VmHWM'].split()[0])
    print('launches', launches)


main()
