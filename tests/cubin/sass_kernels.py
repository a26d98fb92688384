"""PTX kernels that each hold one kind of arithmetic, with what their machine code must be found to be.

The expectation follows from the PTX instruction and from what each chip has hardware for; it is written here without
looking at the scanner's tables. Where a chip emulates an instruction, the truth is what runs: int4 on sm_90 is int8.
"""
VARIANTS = ['75', '80', '86', '87', '88', '89', '90', '90a', '100', '100a', '100f', '103', '103a', '103f', '110', '110a',
            '110f', '120', '120a', '120f', '121', '121a', '121f']
FLOATS = {'e4m3': 'fp8', 'e5m2': 'fp8', 'e3m2': 'fp6', 'e2m3': 'fp6', 'e2m1': 'fp4'}
META = ', %e, 0x0'                       # of sparse operands
SCALES = ', %e, {0,0}, %e, {0,0}'        # of blocks


def number(variant):
    return int(variant.rstrip('af'))


class Kernel:
    """`expect(variant)` gives (classes, precisions, extra facts as a dict); `runs(variant)`: whether it assembles there."""

    def __init__(self, name, lines, expect, first=75, only=None):
        self.name, self.lines, self.expect, self.first, self.only = name, lines, expect, first, only

    def runs(self, variant):
        return number(variant) >= self.first and (self.only is None or variant in self.only)

    def ptx(self):
        return (f'.visible .entry {self.name}(.param .u64 p)\n{{\n.reg .b64 %p; .reg .b32 %e; ld.param.u64 %p,[p]; '
                f'cvta.to.global.u64 %p,%p; ld.global.b32 %e,[%p+4096];\n' + '\n'.join(self.lines) + '\nret;\n}\n')


def loaded(prefix, register, count, at):
    lines = [f'.reg .{register} %{prefix}<{count}>;']
    lines += [f'ld.global.{register} %{prefix}{i}, [%p+{at + i * 8}];' for i in range(count)]
    return lines, '{' + ','.join(f'%{prefix}{i}' for i in range(count)) + '}'


def warp_mma(instruction, a, b, c, types=('b32', 'b32', 'f32'), extra=''):
    lines_a, set_a = loaded('a', types[0], a, 0)
    lines_b, set_b = loaded('b', types[1], b, a * 8)
    lines_c, set_c = loaded('c', types[2], c, (a + b) * 8)
    lines = lines_a + lines_b + lines_c + [f'{instruction} {set_c}, {set_a}, {set_b}, {set_c}{extra};']
    return lines + [f'st.global.{types[2]} [%p+{i * 8}], %c{i};' for i in range(c)]


def always(mma, precision, **extra):
    return lambda variant: (mma, precision, extra)


def half_kernels():
    kernels = []
    sp = 'mma.sp::ordered_metadata.sync.aligned'
    for acc, register, wide, narrow in (('f16', 'b32', 4, 2), ('f32', 'f32', 8, 4)):
        types = ('b32', 'b32', register)
        tail = f'{acc}.f16.f16.{acc}'
        # Volta's shape: Turing still has it, later chips compute it without tensor cores.
        kernels.append(Kernel(f'mma_f16_m8n8k4_{acc}', warp_mma(f'mma.sync.aligned.m8n8k4.row.col.{tail}', 2, 2, wide, types),
                              lambda v: ('HMMA', 'fp16', {}) if number(v) <= 75 else ('-', '-', {})))
        hmma = always('HMMA', 'fp16')
        kernels.append(Kernel(f'mma_f16_m16n8k8_{acc}', warp_mma(f'mma.sync.aligned.m16n8k8.row.col.{tail}', 2, 1, narrow, types), hmma))
        kernels.append(Kernel(f'mma_f16_m16n8k16_{acc}', warp_mma(f'mma.sync.aligned.m16n8k16.row.col.{tail}', 4, 2, narrow, types), hmma, 80))
        kernels.append(Kernel(f'mmasp_f16_{acc}', warp_mma(f'{sp}.m16n8k32.row.col.{tail}', 4, 4, narrow, types, META), hmma, 80))
    for name, shape, a, b in (('bf16', 'm16n8k8', 2, 1), ('bf16', 'm16n8k16', 4, 2), ('tf32', 'm16n8k4', 2, 1), ('tf32', 'm16n8k8', 4, 2)):
        kernels.append(Kernel(f'mma_{name}_{shape}', warp_mma(f'mma.sync.aligned.{shape}.row.col.f32.{name}.{name}.f32', a, b, 4),
                              always('HMMA', name), 80))
    for name, shape in (('bf16', 'm16n8k32'), ('tf32', 'm16n8k16')):
        kernels.append(Kernel(f'mmasp_{name}', warp_mma(f'{sp}.{shape}.row.col.f32.{name}.{name}.f32', 4, 4, 4, extra=META),
                              always('HMMA', name), 80))
    for shape, a, b, c, first in (('m8n8k4', 1, 1, 2, 80), ('m16n8k4', 2, 1, 4, 90), ('m16n8k8', 4, 2, 4, 90), ('m16n8k16', 8, 4, 4, 90)):
        kernels.append(Kernel(f'mma_f64_{shape}', warp_mma(f'mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64', a, b, c, ('f64',) * 3),
                              always('DMMA', 'fp64'), first))
    return kernels


def integer_kernels():
    kernels = []
    types = ('b32', 'b32', 'b32')
    sp = 'mma.sp::ordered_metadata.sync.aligned'
    for a in ('s8', 'u8'):
        for b in ('s8', 'u8'):
            tail = f'row.col.s32.{a}.{b}.s32'
            int8 = always('IMMA', 'int8')
            kernels += [Kernel(f'mma_{a}_{b}_m8n8k16', warp_mma(f'mma.sync.aligned.m8n8k16.{tail}', 1, 1, 2, types), int8),
                        Kernel(f'mma_{a}_{b}_m16n8k16', warp_mma(f'mma.sync.aligned.m16n8k16.{tail}', 2, 1, 4, types), int8, 80),
                        Kernel(f'mma_{a}_{b}_m16n8k32', warp_mma(f'mma.sync.aligned.m16n8k32.{tail}', 4, 2, 4, types), int8, 80),
                        Kernel(f'mmasp_{a}_{b}', warp_mma(f'{sp}.m16n8k64.{tail}', 4, 4, 4, types, META), int8, 80)]
    for a in ('s4', 'u4'):
        for b in ('s4', 'u4'):
            tail = f'row.col.s32.{a}.{b}.s32'
            int4 = lambda v: ('IMMA', 'int4' if number(v) < 90 else 'int8', {})
            kernels += [Kernel(f'mma_{a}_{b}_m8n8k32', warp_mma(f'mma.sync.aligned.m8n8k32.{tail}', 1, 1, 2, types), int4),
                        Kernel(f'mma_{a}_{b}_m16n8k32', warp_mma(f'mma.sync.aligned.m16n8k32.{tail}', 2, 1, 4, types), int4, 80),
                        Kernel(f'mma_{a}_{b}_m16n8k64', warp_mma(f'mma.sync.aligned.m16n8k64.{tail}', 4, 2, 4, types), int4, 80),
                        Kernel(f'mmasp_{a}_{b}', warp_mma(f'{sp}.m16n8k128.{tail}', 4, 4, 4, types, META), int4, 80)]
    b1 = lambda v: ('BMMA', 'b1', {}) if number(v) <= 90 else ('IMMA', 'int8', {})
    for op, first in (('xor', 75), ('and', 80)):
        for shape, a, b, c, since in (('m8n8k128', 1, 1, 2, first), ('m16n8k128', 2, 1, 4, 80), ('m16n8k256', 4, 2, 4, 80)):
            kernels.append(Kernel(f'mma_b1_{shape}_{op}', warp_mma(f'mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc', a, b, c, types),
                                  b1, since))
    return kernels


def narrow_kernels():
    kernels = []
    # sm_90, 100, 103 and 110 convert to f16 and use that.
    fp8 = lambda v: ('QMMA', 'fp8', {}) if number(v) == 89 or number(v) >= 120 else ('HMMA', 'fp16', {})
    for a in ('e4m3', 'e5m2'):
        for b in ('e4m3', 'e5m2'):
            for acc, register, c in (('f32', 'f32', 4), ('f16', 'b32', 2)):
                for k, na, nb in ((16, 2, 1), (32, 4, 2)):
                    kernels.append(Kernel(f'mma_{a}_{b}_k{k}_{acc}', warp_mma(f'mma.sync.aligned.m16n8k{k}.row.col.{acc}.{a}.{b}.{acc}',
                                                                              na, nb, c, ('b32', 'b32', register)), fp8, 89))
            kernels.append(Kernel(f'mmasp_{a}_{b}', warp_mma(f'mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.{a}.{b}.f32',
                                                             4, 4, 4, extra=META), fp8, 89))
    blackwell = ('120a', '120f', '121a', '121f')
    for a in FLOATS:
        for b in FLOATS:
            expect = always('QMMA', '|'.join(sorted({FLOATS[a], FLOATS[b]}, key=('fp8', 'fp6', 'fp4').index)))
            kernels += [
                Kernel(f'kind_{a}_{b}', warp_mma(f'mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.{a}.{b}.f32', 4, 2, 4), expect, only=blackwell),
                Kernel(f'scaled_{a}_{b}', warp_mma('mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.'
                                                   f'f32.{a}.{b}.f32.ue8m0', 4, 2, 4, extra=SCALES), expect, only=blackwell),
                Kernel(f'kindsp_{a}_{b}', warp_mma(f'mma.sp::ordered_metadata.sync.aligned.kind::f8f6f4.m16n8k64.row.col.f32.{a}.{b}.f32',
                                                   4, 4, 4, extra=META), expect, only=blackwell)]
    for kind, vector, scale in (('mxf4', '2X', 'ue8m0'), ('mxf4nvf4', '2X', 'ue8m0'), ('mxf4nvf4', '4X', 'ue4m3')):
        kernels.append(Kernel(f'{kind}_{vector}', warp_mma(f'mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{vector}.'
                                                           f'f32.e2m1.e2m1.f32.{scale}', 4, 2, 4, extra=SCALES),
                              always('OMMA', 'fp4'), only=blackwell))
    return kernels


def group_mma(shape, types, acc, count, tail, registers=False, sparse='', commits=1):
    cls = {'f32': 'f32', 'f16': 'b32', 's32': 'b32'}[acc]
    lines = ['.reg .b64 %da,%db; ld.global.b64 %da,[%p]; ld.global.b64 %db,[%p+8]; .reg .pred %q; setp.ne.b32 %q,%e,0;']
    c_lines, c_set = loaded('c', cls, count, 16)
    a_lines, a_set = loaded('a', 'b32', 4, 256) if registers else ([], '%da')
    b1 = '.and.popc' if 'b1' in types else ''
    meta = META if sparse else ''
    lines += c_lines + a_lines + ['wgmma.fence.sync.aligned;',
                                  f'wgmma.mma_async{sparse}.sync.aligned.{shape}.{acc}.{types}{b1} {c_set}, {a_set}, %db{meta}, %q{tail};']
    lines += ['wgmma.commit_group.sync.aligned;'] * commits + ['wgmma.wait_group.sync.aligned 0;']
    return lines + [f'st.global.{cls} [%p+{16 + i * 8}],%c{i};' for i in range(count)]


def group_kernels():
    kernels = []
    def add(name, mma, precision, *arguments, **options):
        kernels.append(Kernel('wgmma_' + name, group_mma(*arguments, **options), always(mma, precision, matrix=1), only=('90a',)))
    for t, p in (('f16', 'fp16'), ('bf16', 'bf16')):
        add(f'{t}_ss', 'HGMMA', p, 'm64n8k16', f'{t}.{t}', 'f32', 4, ', 1, 1, 0, 0')
        add(f'{t}_rs', 'HGMMA', p, 'm64n8k16', f'{t}.{t}', 'f32', 4, ', 1, 1, 0', registers=True)
        add(f'{t}_sp', 'HGMMA', p, 'm64n8k32', f'{t}.{t}', 'f32', 4, ', 1, 1, 0, 0', sparse='.sp')
    add('f16_f16', 'HGMMA', 'fp16', 'm64n8k16', 'f16.f16', 'f16', 2, ', 1, 1, 0, 0')
    add('tf32_ss', 'HGMMA', 'tf32', 'm64n8k8', 'tf32.tf32', 'f32', 4, ', 1, 1')
    add('tf32_rs', 'HGMMA', 'tf32', 'm64n8k8', 'tf32.tf32', 'f32', 4, ', 1, 1', registers=True)
    add('tf32_sp', 'HGMMA', 'tf32', 'm64n8k16', 'tf32.tf32', 'f32', 4, ', 1, 1', sparse='.sp')
    for a in ('e4m3', 'e5m2'):
        for b in ('e4m3', 'e5m2'):
            for form, registers in (('ss', False), ('rs', True)):
                add(f'{a}_{b}_{form}', 'QGMMA', 'fp8', 'm64n8k32', f'{a}.{b}', 'f32', 4, ', 1, 1', registers=registers)
    for a in ('s8', 'u8'):
        for b in ('s8', 'u8'):
            for form, registers in (('ss', False), ('rs', True)):
                add(f'{a}_{b}_{form}', 'IGMMA', 'int8', 'm64n8k32', f'{a}.{b}', 's32', 4, '', registers=registers)
    for form, registers in (('ss', False), ('rs', True)):
        add(f'b1_{form}', 'BGMMA', 'b1', 'm64n8k256', 'b1.b1', 's32', 4, '', registers=registers)
    # A commit of its own is encoded as an HGMMA without operands: it is no matrix instruction.
    add('s8_two_commits', 'IGMMA', 'int8', 'm64n8k32', 's8.s8', 's32', 4, '', commits=2)
    kernels.append(Kernel('wgmma_commit_only', ['wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; '
                                                'wgmma.wait_group.sync.aligned 0; st.global.b32 [%p],%e;'],
                          always('-', '-', matrix=0), only=('90a',)))
    return kernels


def tensor_memory_mma(instruction, descriptor=None, sparse=False, scaled=False, a_in_tensor_memory=False, mask='', tail=''):
    lines = ['.reg .b64 %da,%db; ld.global.b64 %da,[%p]; ld.global.b64 %db,[%p+8]; .reg .pred %q; setp.ne.b32 %q,%e,0; '
             '.reg .b32 %d,%i,%s; ld.global.b32 %d,[%p+16]; ld.global.b32 %s,[%p+24];',
             f'mov.b32 %i,{descriptor:#x};' if descriptor is not None else 'ld.global.b32 %i,[%p+20];']
    a = '[%s]' if a_in_tensor_memory else '%da'
    return lines + [f'{instruction} [%d], {a}, %db, ' + ('[%s], ' if sparse else '') + '%i, ' + ('[%s], [%s], ' if scaled else '') +
                    f'{mask}%q{tail};']


def tensor_memory_kernels():
    kernels = []
    everywhere = ('100a', '100f', '103a', '103f', '110a', '110f')
    classes = {'f16': 'UTCHMMA', 'tf32': 'UTCHMMA', 'f8f6f4': 'UTCQMMA', 'i8': 'UTCIMMA'}
    def described(a, b):  # the instruction descriptor with its types
        return 0x8100010 | a << 7 | b << 10
    for kind, mma in classes.items():
        only = ('100a', '110a') if kind == 'i8' else everywhere
        known = {'i8': 'int8'}.get(kind)
        expect = always(mma, known or '-', part=known is None)  # the types are in a descriptor that comes from memory
        for group in (1, 2):
            for ts in (False, True):
                kernels.append(Kernel(f'tc_{kind}_{group}_{"ts" if ts else "ss"}',
                                      tensor_memory_mma(f'tcgen05.mma.cta_group::{group}.kind::{kind}', a_in_tensor_memory=ts), expect, only=only))
        kernels.append(Kernel(f'tc_{kind}_sp', tensor_memory_mma(f'tcgen05.mma.sp.cta_group::1.kind::{kind}', sparse=True), expect, only=only))
        kernels.append(Kernel(f'tc_{kind}_ws', tensor_memory_mma(f'tcgen05.mma.ws.cta_group::1.kind::{kind}'), expect, only=only))
    for name, kind, a, b, precision in (('fp16', 'f16', 0, 0, 'fp16'), ('bf16', 'f16', 1, 1, 'bf16'), ('tf32', 'tf32', 2, 2, 'tf32'),
                                        ('e4m3', 'f8f6f4', 0, 1, 'fp8'), ('e2m3', 'f8f6f4', 3, 4, 'fp6'), ('e2m1', 'f8f6f4', 5, 5, 'fp4'),
                                        ('mixed', 'f8f6f4', 0, 5, 'fp8|fp4')):
        expect = always(classes[kind], precision, part=False)
        base = f'tcgen05.mma.cta_group::1.kind::{kind}'
        kernels.append(Kernel(f'tc_const_{name}', tensor_memory_mma(base, described(a, b)), expect, only=everywhere))
        kernels.append(Kernel(f'tc_const_{name}_ts', tensor_memory_mma(base, described(a, b), a_in_tensor_memory=True), expect, only=everywhere))
    expect = always('UTCHMMA', 'bf16', part=False)
    bf16 = described(1, 1)
    four, eight = '{%s,%s,%s,%s}, ', '{%s,%s,%s,%s,%s,%s,%s,%s}, '
    scalable = ('100a', '100f', '103a', '103f')
    for name, instruction, options, only in (
            ('scaled', 'tcgen05.mma.cta_group::1.kind::f16', {'tail': ', 7'}, scalable),
            ('mask', 'tcgen05.mma.cta_group::1.kind::f16', {'mask': four}, everywhere),
            ('mask2', 'tcgen05.mma.cta_group::2.kind::f16', {'mask': eight}, everywhere),
            ('fill', 'tcgen05.mma.cta_group::1.kind::f16.collector::a::fill', {}, everywhere),
            ('last', 'tcgen05.mma.cta_group::2.kind::f16.collector::a::lastuse', {}, everywhere),
            ('shift', 'tcgen05.mma.cta_group::1.kind::f16.ashift', {'a_in_tensor_memory': True}, everywhere),
            ('ws_b1', 'tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill', {}, everywhere)):
        kernels.append(Kernel(f'tc_form_{name}', tensor_memory_mma(instruction, bf16, **options), expect, only=only))
    # Two paths with two descriptors: nobody can tell which.
    paths = tensor_memory_mma('tcgen05.mma.cta_group::1.kind::f16')
    paths[1] = f'mov.b32 %i,{described(0, 0):#x}; setp.gt.s32 %q2,%e,5; @%q2 bra ELSE; ld.global.b32 %i,[%p+20]; ELSE:'
    paths[0] += ' .reg .pred %q2;'
    kernels.append(Kernel('tc_two_paths', paths, always('UTCHMMA', '-', part=True), only=everywhere))
    for kind, mma, precision, part, only in (('mxf8f6f4', 'UTCQMMA', '-', True, everywhere), ('mxf4', 'UTCOMMA', 'fp4', False, everywhere)):
        instruction = f'tcgen05.mma.cta_group::1.kind::{kind}.block_scale'
        expect = always(mma, precision, part=part)
        kernels.append(Kernel(f'tc_{kind}', tensor_memory_mma(instruction, scaled=True), expect, only=only))
        kernels.append(Kernel(f'tc_{kind}_ts', tensor_memory_mma(instruction, scaled=True, a_in_tensor_memory=True), expect, only=only))
    exact = ('100a', '103a', '110a')
    kernels.append(Kernel('tc_nvf4', tensor_memory_mma('tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X', scaled=True),
                          always('UTCOMMA', 'fp4', part=False), only=exact))
    kernels.append(Kernel('tc_mxf4_sp', tensor_memory_mma('tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale', scaled=True, sparse=True),
                          always('UTCOMMA', 'fp4', part=False), only=exact))
    return kernels


def plain(register, operations, width=8):
    return [f'.reg .{register} %a,%b,%c; ld.global.{register} %a,[%p]; ld.global.{register} %b,[%p+{width}]; '
            f'ld.global.{register} %c,[%p+{2 * width}];'] + operations + [f'st.global.{register} [%p+64],%c;']


def plain_kernels():
    """No matrix instruction; the counts are the floating-point instructions written, but for the emulated ones."""
    three = lambda t: [f'add.rn.{t} %c,%a,%c;', f'mul.rn.{t} %a,%a,%c;', f'fma.rn.{t} %c,%a,%b,%c;']
    def compare(t, register):
        return [f'.reg .{register} %a,%b; .reg .pred %q; .reg .b32 %r; ld.global.{register} %a,[%p]; ld.global.{register} %b,[%p+8]; '
                f'setp.lt.{t} %q,%a,%b; selp.b32 %r,1,0,%q; st.global.b32 [%p+16],%r;']
    none = lambda **counts: always('-', '-', matrix=0, **dict({'fp64': 0, 'fp32': 0, 'fp16': 0, 'bf16': 0}, **counts))
    kernels = [
        Kernel('plain_f64', plain('f64', three('f64') + ['min.f64 %c,%c,%b;']), none(fp64=4)),
        Kernel('plain_f32', plain('f32', three('f32') + ['min.f32 %c,%c,%b;']), none(fp32=4)),
        Kernel('plain_f16', plain('b16', three('f16')), none(fp16=3)),
        Kernel('plain_f16x2', plain('b32', three('f16x2')), none(fp16=3)),
        Kernel('plain_bf16', plain('b16', ['fma.rn.bf16 %c,%a,%b,%c;', 'min.bf16 %c,%c,%b;']), none(bf16=2), 80),
        Kernel('plain_bf16x2', plain('b32', three('bf16x2')), none(bf16=3), 90),
        Kernel('plain_compare_f64', compare('f64', 'f64'), none(fp64=1)),
        Kernel('plain_compare_f32', compare('f32', 'f32'), none(fp32=1)),
        Kernel('plain_compare_f16', compare('f16', 'b16'), none(fp16=1)),
        Kernel('plain_compare_bf16', compare('bf16', 'b16'), none(bf16=1), 90),
        Kernel('plain_dp4a', plain('b32', ['dp4a.s32.s32 %c,%a,%b,%c;']), none()),
        Kernel('plain_integer', plain('b32', ['mad.lo.s32 %c,%a,%b,%c;']), none()),
        # Conversion is no arithmetic, though f16 to f32 is done by an addition of zero.
        Kernel('plain_convert', ['.reg .b16 %h; .reg .f32 %f; ld.global.b16 %h,[%p]; cvt.f32.f16 %f,%h; st.global.f32 [%p+8],%f;'], none()),
        Kernel('plain_f32x2', plain('b64', three('f32x2'), 16), lambda v: ("-", "-", {"fp32": 3 if number(v) in (100, 103) else 6}), 100),
        Kernel('copy_async', ['.shared .align 16 .b8 s0[256]; .reg .b32 %s; mov.b32 %s,s0; cp.async.ca.shared.global [%s],[%p],16; '
                              'cp.async.wait_all; ld.shared.b32 %s,[%s]; st.global.b32 [%p],%s;'], always('-', '-', asynchronous=True, tma=False), 80),
        Kernel('copy_bulk', ['.shared .align 16 .b8 s1[256]; .shared .align 8 .b64 m1; .reg .b32 %s,%m; mov.b32 %s,s1; mov.b32 %m,m1; '
                             'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s],[%p],256,[%m];'],
               always('-', '-', asynchronous=False, tma=True), 90),
        Kernel('copy_bulk_back', ['.shared .align 16 .b8 s2[256]; .reg .b32 %s; mov.b32 %s,s2; cp.async.bulk.global.shared::cta.bulk_group [%p],[%s],256;'],
               always('-', '-', tma=True), 90),
        Kernel('copy_bulk_reduce', ['.shared .align 16 .b8 s3[256]; .reg .b32 %s; mov.b32 %s,s3; '
                                    'cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p],[%s],256;'], always('-', '-', tma=True), 90),
        Kernel('copy_prefetch', ['cp.async.bulk.prefetch.L2.global [%p],256;'], always('-', '-', tma=True), 90)]
    for name, operation in (('load', 'cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%s],[%p,{%e}],[%m];'),
                            ('store', 'cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%p,{%e}],[%s];'),
                            ('reduce', 'cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%p,{%e}],[%s];'),
                            ('prefetch', 'cp.async.bulk.prefetch.tensor.1d.L2.global [%p,{%e}];')):
        kernels.append(Kernel(f'tensor_{name}', [f'.shared .align 128 .b8 t_{name}[256]; .shared .align 8 .b64 b_{name}; .reg .b32 %s,%m; '
                                                 f'mov.b32 %s,t_{name}; mov.b32 %m,b_{name}; {operation}'], always('-', '-', tma=True), 90))
    return kernels


KERNELS = (half_kernels() + integer_kernels() + narrow_kernels() + group_kernels() + tensor_memory_kernels() + plain_kernels())


def ptx(variant, version='9.0'):
    return f'.version {version}\n.target sm_{variant}\n.address_size 64\n' + ''.join(k.ptx() for k in KERNELS if k.runs(variant))
