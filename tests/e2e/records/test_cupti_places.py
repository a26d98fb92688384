# Which libcupti would be used, as doctor and env say before a program runs, over made-up layouts; and, where one really was
# chosen, that it is the one they named.
from harness import *

FOUND = {'LD_LIBRARY_PATH': None, 'CUDA_HOME': None, 'VIRTUAL_ENV': None, 'GPUTRACE_CUPTI': None, 'GPUTRACE_COLLECT': None}


def doctor(*arguments, **env):
    done = finish(start([places.gputrace, 'doctor', '--json', *arguments], environment(**{**FOUND, **env})))
    return json.loads(done[1])


def touch(*path):
    file = scratch(*path)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, 'w', encoding='utf-8'):
        pass
    return file


def fake_python(*packages):
    """A Python of a virtual environment with these files below its site-packages."""
    python = scratch('venv/bin/python3')
    if not os.path.lexists(python):
        os.makedirs(os.path.dirname(python))
        os.symlink(os.path.realpath(sys.executable), python)
    return python, [touch('venv/lib/python3.11/site-packages', package) for package in packages]


def row(answer, word):
    return [check for check in answer['checks'] if word in check['text']]


def test_what_needs_cupti_brings_device_times():
    for part in ('device', 'latency', 'environment'):
        check(doctor('--simgpu', GPUTRACE_COLLECT=f'api,{part}')['cupti']['path'], f'{part} is collected through CUPTI')
    check_equal(doctor('--simgpu', GPUTRACE_COLLECT='api')['cupti']['path'], None, 'api alone needs none')


def test_beside_the_driver():
    chosen = doctor('--simgpu')['cupti']
    check_equal((chosen['path'], chosen['reason']), (os.path.join(places.simgpu, 'libcupti.so.13'), 'it lies beside the loaded driver'), 'chosen')


def test_python_packages_of_cuda_13_and_12():
    for package in ('nvidia/cu13/lib/libcupti.so.13', 'nvidia/cuda_cupti/lib/libcupti.so.12'):
        python, (file,) = fake_python(package)
        answer = doctor('--', python)
        check_equal(answer['cupti']['path'], file, 'chosen')
        check('Python packages' in answer['cupti']['reason'], 'why', answer['cupti'])
        check_equal([line['status'] for line in row(answer, file)], ['ok'], 'its row')
        os.unlink(file)


def test_toolkit_comes_after_packages():
    toolkit = touch('cuda/extras/CUPTI/lib64/libcupti.so.12')
    python, (package,) = fake_python('nvidia/cu13/lib/libcupti.so.13')
    answer = doctor(CUDA_HOME=scratch('cuda'))
    check_equal((answer['cupti']['path'], answer['cupti']['reason']), (toolkit, 'it belongs to the toolkit'), 'no packages')
    answer = doctor('--', python, CUDA_HOME=scratch('cuda'))
    check_equal(answer['cupti']['path'], package, 'packages first')
    check([place['path'] for place in answer['cupti']['places'] if place['found']][:2] == [package, toolkit], 'both are named', answer['cupti'])


def test_a_driver_of_cuda_12_takes_no_cupti_13():
    os.makedirs(scratch('driver'))
    touch('driver/libcuda.so.535.104')
    os.symlink('libcuda.so.535.104', scratch('driver/libcuda.so.1'))
    touch('cuda/lib64/libcupti.so.13')
    twelve = touch('cuda/lib64/libcupti.so.12')
    answer = doctor(LD_LIBRARY_PATH=scratch('driver'), CUDA_HOME=scratch('cuda'))
    check_equal(answer['cupti']['path'], twelve, 'chosen')
    check(not [place for place in answer['cupti']['places'] if place['path'].endswith('.13')], 'none of 13 is looked at', answer['cupti'])


def test_what_the_program_is_linked_against():
    os.makedirs(scratch('lib'))
    for name in ('libcudart.so.13', 'libcupti.so.12'):
        os.rename(compiled(name + '.c', 'int made_up_%s(void) { return 0; }\n' % name[3:7], '-shared', '-fPIC', f'-Wl,-soname,{name}'), scratch('lib', name))
    flags = ['-L', scratch('lib'), f'-Wl,-rpath,{scratch("lib")}', '-Wl,--no-as-needed']
    runtime = compiled('with_runtime.c', 'int main(void) { return 7; }\n', *flags, '-l:libcudart.so.13')
    answer = doctor('--', runtime)['cupti']
    check_equal((answer['path'], answer['reason']), (scratch('lib', 'libcupti.so.12'), 'it lies beside the loaded runtime'), 'beside the runtime')
    linked = compiled('with_cupti.c', 'int main(void) { return 7; }\n', *flags, '-l:libcupti.so.12')
    answer = doctor('--', linked)['cupti']  # on the simulated GPU its own would be preloaded
    check_equal((answer['path'], answer['reason']), (scratch('lib', 'libcupti.so.12'), 'the program is linked against it'), 'linked')


def test_the_variable():
    file = touch('own/libcupti.so.13')
    check_equal(doctor('--simgpu', GPUTRACE_CUPTI=file)['cupti']['path'], file, 'GPUTRACE_CUPTI')
    absent = doctor('--simgpu', GPUTRACE_CUPTI='/none/libcupti.so.13')
    check_equal((absent['cupti']['path'], absent['ready']), (None, True), 'a path that is not there')
    check_equal([line['status'] for line in row(absent, '/none/libcupti.so.13')], ['warn'], 'and is said')
    for env in ({'GPUTRACE_CUPTI': 'off'}, {'GPUTRACE_COLLECT': 'api,nvtx'}, {'GPUTRACE_COLLECT': '-device'}):
        off = doctor('--simgpu', **env)
        check_equal((off['cupti']['path'], [line['status'] for line in row(off, 'no device times')]), (None, ['info']), env)


def test_what_was_told_is_what_is_taken():
    wanted = doctor('--simgpu', '--', program('drv_linked'))['cupti']
    run = traced([program('drv_linked')])
    reason = records(run, 'DeviceState')[0]['reason']
    check(reason.startswith(f'{wanted["path"]} ({wanted["reason"]})'), 'the trace says the same', reason, wanted)


def test_env_says_it_last():
    lines = gputrace('env', '--simgpu', '-o', scratch('out'))[0].splitlines()
    check_equal(lines[-1], f'# device times: {os.path.join(places.simgpu, "libcupti.so.13")}: it lies beside the loaded driver', 'the last line')
    check(all(line.startswith('export ') for line in lines[:-2]), 'but for the simulated CUDA the rest are variables', lines)
    check('#' not in gputrace('env', '--simgpu', '--docker')[0], 'docker run takes no comment')


main()
