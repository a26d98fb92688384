# meson: serial timeout=500
# Programs that nobody here wrote: Debian's ffmpeg and hashcat. The same exit code and output with and without us; launches as the truth has them.
from against_truth import *

SOURCE_A, SOURCE_B = ('testsrc=size=320x240:rate=10:duration=1', 'testsrc2=size=160x120:rate=10:duration=1')


def ffmpeg(name, *arguments):
    """ffmpeg with a raw output on stdout; what it logs has times and addresses in it and is compared without numbers."""
    if not shutil.which('ffmpeg'):
        skip('ffmpeg is not installed')
    filters = subprocess.run(['ffmpeg', '-hide_banner', '-filters'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=False).stdout
    if b'hwupload_cuda' not in filters:
        skip('this ffmpeg has no CUDA filters')
    return ['ffmpeg', '-hide_banner', '-nostdin', '-loglevel', 'warning', '-threads', '1', '-filter_threads', '1', *arguments, '-f', 'rawvideo', '-']


def without_numbers(text):
    return re.sub(rb'0x[0-9a-f]+|\d+', b'#', text)


FILTERS = {
    'scale': (['-f', 'lavfi', '-i', SOURCE_A, '-vf', 'format=nv12,hwupload_cuda,scale_cuda=160:120,hwdownload,format=nv12'], 1),
    'yadif': (['-f', 'lavfi', '-i', SOURCE_A, '-vf', 'format=nv12,hwupload_cuda,yadif_cuda,hwdownload,format=nv12'], 1),
    'thumbnail': (['-f', 'lavfi', '-i', SOURCE_A, '-vf', 'format=nv12,hwupload_cuda,thumbnail_cuda=5,hwdownload,format=nv12'], 1),
    'overlay': (['-f', 'lavfi', '-i', SOURCE_A, '-f', 'lavfi', '-i', SOURCE_B, '-filter_complex',
                 '[0:v]format=nv12,hwupload_cuda[a];[1:v]format=nv12,hwupload_cuda[b];[a][b]overlay_cuda=x=10:y=10,hwdownload,format=nv12'], 1),
}


def check_program(command, env=None, compare_errors=True, timeout=100, least=1):
    plain = untraced(command, env, timeout=timeout)
    run = traced(command, {**(env or {}), **CALLS}, timeout=timeout)
    check_equal((run.returncode, len(run.stdout)), (plain.returncode, len(plain.stdout)), f'exit code and size of the output ({run.stderr[-800:]!r})')
    check_equal(run.returncode, 0, f'exit code ({plain.stderr[-800:]!r})')
    check(run.stdout == plain.stdout, 'the output, byte by byte')
    if compare_errors:
        check_equal(without_numbers(run.stderr), without_numbers(plain.stderr), 'stderr')
    launches = len([line for line in run.truth_of('kernel') if line.get('graph') is None])
    check(launches >= least, 'the program launched', launches)
    check_equal(check_launches_against_truth(run), launches, 'launches')
    check_call_by_call(run)
    check_report_against_truth(run, memory_exact=True)
    _, _, dropped = check_conservation(run)
    check_equal(dropped, 0, 'dropped')
    return run


def _filter_test(name):
    def test():
        arguments, least = FILTERS[name]
        run = check_program(ffmpeg(name, *arguments), least=least)
        check(len(run.stdout) > 10000, 'there is a video', len(run.stdout))
    return test


for _name in FILTERS:
    globals()[f'test_ffmpeg_{_name}'] = _filter_test(_name)


def test_ffmpeg_under_gputrace_run():
    command = ffmpeg('scale', *FILTERS['scale'][0])
    plain, run = untraced(command), traced(command, mode='run', options=('-q',))
    check_equal((run.returncode, run.stdout), (plain.returncode, plain.stdout), 'exit code and output')
    check_equal(metrics(run)['launches'], len(run.truth_of('kernel')), 'launches')


def test_hashcat():
    if not shutil.which('hashcat'):
        skip('hashcat is not installed')
    cuda = os.environ.get('GT_CUDA', '/usr/local/cuda')
    nvrtc = [folder for folder in (os.path.join(cuda, sub) for sub in ('lib64', 'lib', 'targets/x86_64-linux/lib')) if glob.glob(os.path.join(folder, 'libnvrtc.so*'))]
    if not nvrtc:
        skip('the toolkit has no NVRTC')

    def prepared(name):
        home = scratch(name)
        os.makedirs(home, exist_ok=True)
        return {'HOME': home, 'XDG_DATA_HOME': home, 'XDG_CACHE_HOME': home, 'LD_LIBRARY_PATH': places.simgpu + ':' + nvrtc[0]}
    command = ['hashcat', '-m', '0', '-a', '3', '--self-test-disable', '--potfile-disable', '--quiet', '-D', '2', '--backend-ignore-opencl', '--force', '-O', '-w', '1',
               '8743b52063cd84097a65d1633f5c74f5', '?d?d?d?d']
    plain = untraced(command, prepared('plain'), timeout=240)  # most of it is NVRTC
    if b'No devices found' in plain.stderr + plain.stdout:
        fail(f'hashcat does not find the simulated device: {plain.stdout[-500:]!r} {plain.stderr[-500:]!r}')
    shutil.copytree(scratch('plain'), scratch('traced'))  # with the kernels that it has compiled
    run = traced(command, {**prepared('traced'), **CALLS}, timeout=120)
    check_equal((run.returncode, run.stdout), (plain.returncode, plain.stdout), f'exit code and output ({run.stderr[-500:]!r})')
    launches = run.truth_of('kernel')
    check(launches, 'it built and launched its kernels', run.stderr[-500:])
    check_equal(check_launches_against_truth(run), len(launches), 'launches')
    check_equal(metrics(run)['launches'], len(launches), 'launches in the report')
    check_conservation(run)


main()
