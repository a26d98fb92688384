"""The scan of machine code against what was compiled: SCAN_KERNELS PTXAS NVCC OUTDIR [NVDISASM]; NVCC may be several words.

Every kernel of sass_kernels.py for every chip that the assembler knows, in the PTX version that it knows, then CUDA C++ for all chips in one fatbin, with
calls. Where there is a disassembler, its text must name the same matrix instructions for each kernel, too.
"""
import collections
import os
import re
import shlex
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sass_kernels  # noqa: E402

SCAN, PTXAS, NVCC, OUT = sys.argv[1:5]
NVDISASM = sys.argv[5] if len(sys.argv) > 5 else ''
failures = []


def check(what, got, want):
    if got != want:
        failures.append(f'{what}: {got}, not {want}')


def scan(path):
    """kernel name → facts, of every image in a file; one list entry per architecture."""
    text = subprocess.run([SCAN, path], check=True, capture_output=True, text=True).stdout
    found = collections.defaultdict(list)
    for line in text.splitlines():
        words = line.split()
        found[words[1]].append(dict(word.split('=', 1) for word in words[2:]))
    return found


def check_kernel(variant, kernel, facts):
    mma, precision, extra = kernel.expect(variant)
    where = f'sm_{variant} {kernel.name}'
    check(where + ' class', facts['mma'], mma)
    check(where + ' precision', facts['precision'], precision)
    flags = facts['flags'].split('|')
    check(where + ' variant', 'ArchitectureVariant' in flags, variant.endswith('a'))
    check(where + ' incomplete', 'Incomplete' in flags, False)
    for name, flag in (('tma', 'Tma'), ('asynchronous', 'AsyncCopy'), ('part', 'PrecisionPart')):
        if name in extra:
            check(f'{where} {flag}', flag in flags, extra.pop(name))
    for name, value in extra.items():
        check(f'{where} {name}', int(facts[name]), value)


def code_sections(path):
    data = open(path, 'rb').read()
    offset, = struct.unpack_from('<Q', data, 40)
    count, names = struct.unpack_from('<HH', data, 60)
    headers = [struct.unpack_from('<IIQQQQ', data, offset + 64 * i) for i in range(count)]
    def name(header):
        at = headers[names][4] + header[0]
        return data[at:data.index(0, at)].decode()
    return {name(h)[6:]: data[h[4]:h[4] + h[5]] for h in headers if name(h).startswith('.text.')}


def known(variants):
    """The chips that the assembler knows; its PTX version. CUDA 12.9 has neither sm_88 nor sm_110."""
    release = [int(n) for n in re.search(r'release (\d+)\.(\d+)', subprocess.run([PTXAS, '--version'], capture_output=True, text=True).stdout).groups()]
    listed = set(re.findall(r'sm_(\w+)', subprocess.run([PTXAS, '--help'], capture_output=True, text=True).stdout))
    missing = [variant for variant in variants if variant not in listed]
    check('chips that the assembler does not know', [] if release >= [13, 0] else ['88', '110', '110a', '110f'], missing)
    return [variant for variant in variants if variant in listed], '9.0' if release >= [13, 0] else '8.8'


def check_disassembly(variant, path, found):
    """The disassembler's mnemonics and types, for the chips that it knows (an older one is of use, too)."""
    types = {**{name.upper(): kind for name, kind in sass_kernels.FLOATS.items()}, 'BF16': 'bf16', 'TF32': 'tf32', 'S8': 'int8', 'U8': 'int8',
             'S4': 'int4', 'U4': 'int4'}
    plain = {'BMMA': 'b1', 'BGMMA': 'b1', 'DMMA': 'fp64', 'HMMA': 'fp16', 'HGMMA': 'fp16'}
    sections = code_sections(path)
    raw = os.path.join(OUT, 'raw.bin')
    with open(raw, 'wb') as file:
        file.write(b''.join(sections.values()))
    run = subprocess.run([NVDISASM, '-b', 'SM' + variant, raw], capture_output=True, text=True)
    if run.returncode != 0:
        return 0  # a chip that this disassembler does not know
    ends, at = [], 0
    for kernel, code in sections.items():
        at += len(code)
        ends.append((at, kernel))
    seen = collections.defaultdict(lambda: (set(), set()))
    place = 0
    for address, mnemonic in re.findall(r'^\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+ )?([A-Z0-9.a-z_]+)[^\n]*', run.stdout, re.M):
        while int(address, 16) >= ends[place][0]:
            place += 1
        parts = mnemonic.split('.')
        if re.fullmatch(r'U?(T?C)?[HIBDQO]G?MMA', parts[0]):
            seen[ends[place][1]][0].add(parts[0])
            if parts[0].startswith('UTC'):
                continue  # its types are in a descriptor, which the text does not show
            seen[ends[place][1]][1].update({types[p] for p in parts[1:] if p in types} or {plain.get(parts[0], '?')})
    for kernel in sections:
        mma, precision = seen[kernel]
        if kernel in ('wgmma_s8_two_commits', 'wgmma_commit_only'):  # a commit is disassembled as an HGMMA
            mma.discard('HGMMA')
            precision.discard('fp16')
        facts = found[kernel][0]
        check(f'sm_{variant} {kernel} class as disassembled', set(facts['mma'].split('|')) - {'-'}, mma)
        if not any(name.startswith('UTC') for name in mma):
            check(f'sm_{variant} {kernel} precision as disassembled', set(facts['precision'].split('|')) - {'-'}, precision)
    return len(sections)


def assembled(variants, version):
    kernels = disassembled = 0
    for variant in variants:
        source, cubin = os.path.join(OUT, f'{variant}.ptx'), os.path.join(OUT, f'{variant}.cubin')
        with open(source, 'w') as file:
            file.write(sass_kernels.ptx(variant, version))
        subprocess.run([PTXAS, f'-arch=sm_{variant}', source, '-o', cubin], check=True)
        found = scan(cubin)
        for kernel in sass_kernels.KERNELS:
            if kernel.runs(variant):
                check_kernel(variant, kernel, found[kernel.name][0])
                kernels += 1
        if NVDISASM:
            disassembled += check_disassembly(variant, cubin, found)
    return kernels, disassembled


def check_ptx():
    """The same kernels as text: class and types as written."""
    for variant in ('89', '90a', '100a', '120a'):
        found = scan(os.path.join(OUT, f'{variant}.ptx'))
        for kernel in sass_kernels.KERNELS:
            if not kernel.runs(variant):
                continue
            facts, name = found[kernel.name][0], kernel.name
            where = f'PTX {variant} {name}'
            check(where + ' flags', 'PtxOnly' in facts['flags'] and 'Scanned' not in facts['flags'], True)
            if name.startswith(('mma_f16', 'mmasp_f16')):
                check(where, (facts['mma'], facts['precision']), ('HMMA', 'fp16'))
            elif name.startswith(('mma_s4', 'mma_u4')):
                check(where, (facts['mma'], facts['precision']), ('IMMA', 'int4'))
            elif name.startswith('mma_b1'):
                check(where, (facts['mma'], facts['precision']), ('BMMA', 'b1'))
            elif name.startswith(('mma_e', 'mmasp_e')):
                check(where, (facts['mma'], facts['precision']), ('QMMA', 'fp8'))
            elif name.startswith(('wgmma', 'plain', 'kind', 'scaled', 'mxf4', 'mma_f64', 'mma_bf16', 'mma_tf32')):
                check(where, (facts['mma'], facts['precision']), kernel.expect(variant)[:2])
            elif name.startswith('tc_'):
                check(where, facts['mma'], kernel.expect(variant)[0])


def compiled(variants):
    """CUDA C++ with wmma, half2, bfloat162 and calls, for every chip in one fatbin."""
    chips = [v for v in variants if v.isdigit()]
    fatbin = os.path.join(OUT, 'cxx.fatbin')
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'sass_kernels.cu')
    if not os.path.exists(fatbin) or os.path.getmtime(fatbin) < os.path.getmtime(source):
        codes = [f'-gencode=arch=compute_{c},code=sm_{c}' for c in chips] + ['-gencode=arch=compute_75,code=compute_75']
        subprocess.run([*shlex.split(NVCC), '-fatbin', '-std=c++17', *codes, '-o', fatbin, source], check=True)
    found = scan(fatbin)
    expect = {'wmma_half': ('HMMA', 'fp16'), 'wmma_s8': ('IMMA', 'int8'), 'wmma_twin': ('-', '-'), 'calls_direct': ('HMMA', 'fp16'),
              'calls_nested': ('HMMA', 'fp16'), 'calls_table': ('-', '-'), 'calls_printf': ('-', '-'), 'half_pairs': ('-', '-'),
              'bfloat_pairs': ('-', '-'), 'doubles': ('-', '-'), 'floats': ('-', '-'), 'dots': ('-', '-')}
    for name, (mma, precision) in expect.items():
        rows = found[name]
        check(f'C++ {name} images', len(rows), len(chips) + 1)
        for facts in rows:
            where = f'C++ sm_{facts["sm"]} {name} {facts["flags"]}'
            check(where, (facts['mma'], facts['precision']), (mma, precision))
            check(where + ' incomplete', 'Incomplete' in facts['flags'], name == 'calls_table' and 'PtxOnly' in facts['flags'])
            if 'PtxOnly' in facts['flags']:
                continue
            most = max(('fp64', 'fp32', 'fp16', 'bf16'), key=lambda k: int(facts[k]))
            # sm_75 has no bfloat16 arithmetic: the header computes it in float.
            want = {'half_pairs': 'fp16', 'doubles': 'fp64', 'floats': 'fp32', 'bfloat_pairs': 'bf16' if int(facts['sm']) >= 80 else 'fp32'}
            if name in want:
                check(where + ' most', most, want[name])
    return len(expect) * (len(chips) + 1)


def main():
    os.makedirs(OUT, exist_ok=True)
    variants, version = known(sass_kernels.VARIANTS)
    kernels, disassembled = assembled(variants, version)
    check_ptx()
    fat = compiled(variants)
    print(f'{kernels} kernels assembled for {len(variants)} chips, {fat} compiled, {disassembled} held against the disassembler, '
          f'{len(failures)} failures')
    for line in failures[:40]:
        print(' ', line)
    sys.exit(1 if failures else 0)


main()
