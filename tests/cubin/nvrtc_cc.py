#!/usr/bin/env python3
"""A compiler of device code out of NVRTC and ptxas, for CUDA releases of which there is no nvcc to be had as a package.

    nvrtc_cc.py ROOT FATBINARY -cubin|-ptx|-fatbin -arch=sm_NN|-gencode=arch=compute_NN,code=sm_NN... [-std=…] [-Xptxas -v] -o OUT SOURCE

ROOT holds cuda_nvrtc, cuda_nvcc and cuda_runtime as their wheels unpack them; FATBINARY packs images. It takes the options of nvcc that the tests of this folder
use. What ptxas says goes to stderr, as with nvcc.
"""
import ctypes
import glob
import os
import subprocess
import sys
import tempfile


def ptx_of(root, source, architecture, options):
    nvrtc = ctypes.CDLL(glob.glob(os.path.join(root, 'cuda_nvrtc/lib/libnvrtc.so.*'))[0])
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def call(name, *arguments):
        result = getattr(nvrtc, name)(*arguments)
        if result == 0 or name == 'nvrtcCompileProgram':
            return result
        sys.exit(f'nvrtc_cc.py: {name}: error {result}')

    with open(source, 'rb') as file:
        text = file.read()
    # No C library here: what the sources want of it is built in.
    names, contents = (ctypes.c_char_p * 1)(b'cstdio'), (ctypes.c_char_p * 1)(b'')
    call('nvrtcCreateProgram', ctypes.byref(program), text, os.path.basename(source).encode(), 1, contents, names)
    flags = [f'--gpu-architecture={architecture}', *options, *('-I' + os.path.join(root, part, 'include') for part in ('cuda_runtime', 'cuda_nvcc'))]
    if call('nvrtcCompileProgram', program, len(flags), (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))):
        call('nvrtcGetProgramLogSize', program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        call('nvrtcGetProgramLog', program, log)
        sys.exit(log.value.decode())
    call('nvrtcGetPTXSize', program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    call('nvrtcGetPTX', program, ptx)
    return ptx.value


def assemble(root, ptx, chip, options, out):
    with tempfile.NamedTemporaryFile(suffix='.ptx') as file:
        file.write(ptx)
        file.flush()
        subprocess.run([os.path.join(root, 'cuda_nvcc/bin/ptxas'), f'-arch={chip}', *options, file.name, '-o', out], check=True)


def main():
    root, fatbinary, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    value = {name: arguments.pop(arguments.index(name) + 1) for name in ('-o', '-Xptxas') if name in arguments}
    options = [argument for argument in arguments if argument.startswith('-std')]
    ptxas_options = [value['-Xptxas']] if '-Xptxas' in value else []
    source = arguments[-1]
    codes = [argument.split('code=')[-1].split('=')[-1] for argument in arguments if argument.startswith(('-arch', '-gencode'))]
    if '-ptx' in arguments:
        with open(value['-o'], 'wb') as file:
            file.write(ptx_of(root, source, codes[0], options))
        return
    with tempfile.TemporaryDirectory() as folder:
        images = []
        for code in codes:
            number, path = code.split('_')[1], os.path.join(folder, code)
            ptx = ptx_of(root, source, f'compute_{number}', options)
            if code.startswith('compute'):
                with open(path, 'wb') as file:
                    file.write(ptx)
            else:
                assemble(root, ptx, code, ptxas_options, path if '-fatbin' in arguments else value['-o'])
            images.append(f'--image3=kind={"ptx" if code.startswith("compute") else "elf"},sm={number},file={path}')
        if '-fatbin' in arguments:
            subprocess.run([fatbinary, f'--create={value["-o"]}', '-64', *images], check=True)


main()
