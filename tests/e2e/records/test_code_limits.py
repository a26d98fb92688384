# meson: timeout=240
# Machine code where it cannot be had, and what it costs: budgets, a scanner that dies, older kernels, large libraries.
import statistics

from code_images import *


def sidecars():
    found = []
    for pid in os.listdir('/proc'):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            with open(f'/proc/{pid}/environ', 'rb') as file:
                mine = scratch('trace').encode() in file.read()
        except OSError:
            continue
        if mine and words and words[0].endswith(b'gputrace-sidecar'):
            with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
                found.append((int(pid), file.read().strip()))
    return found


def finish_waiting(process, go):
    with open(go, 'w', encoding='utf-8'):
        pass
    result = finish(process)
    left = wait_for_orphans()
    check(not left, 'the sidecar ends soon after the program', left)
    return result


def test_the_scanner_is_killed():
    go = scratch('go')
    process = start([sys.executable, LOADS, f'wait={go}', f'data:{images()["sm90.cubin"]}:'], env=traced_environment())
    wait_until(lambda: any(name == 'gputrace-code' for _, name in sidecars()), 'the scanner')
    check(process.stdout.readline(), 'a line')
    for pid, name in sidecars():
        if name == 'gputrace-code':
            os.kill(pid, signal.SIGKILL)
    rc, _, err = finish_waiting(process, go)
    check_equal((rc, err), (0, b''), 'the program')
    run = Run([], rc, b'', err, 0, scratch('trace'), scratch('truth-%p.jsonl'))
    check_conservation(run)
    code = Code(run)
    check_equal(len(code.images), 1, 'images')
    check_equal(code.kernels, [], 'kernels')
    check(any(record['record'] == 'KernelLaunch' or record['record'] == 'Sync' for record in code.records), 'the trace is whole')
    out, _ = gputrace('report', run.output, '--section', 'quality-notes')
    check('damage' not in out, 'the trace is whole', out)


def test_the_program_ends_before_its_code_is_read():
    image = scratch('image')
    os.mkfifo(image)  # the program waits for its image until the scanner is held up
    process = start([sys.executable, LOADS, f'data:{image}:saxpy'], env=traced_environment())
    wait_until(lambda: any(name == 'gputrace-code' for _, name in sidecars()), 'the scanner')
    stopped = [pid for pid, name in sidecars() if name == 'gputrace-code']
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with open(images()['sm90.cubin'], 'rb') as cubin, open(image, 'wb') as to:
        shutil.copyfileobj(cubin, to)
    check_equal(finish(process)[0], 0, 'exit code')
    run = Run([], 0, b'', b'', 0, scratch('trace'), scratch('truth-%p.jsonl'))

    whole = report(run)
    said = whole['coverage']
    check_equal((said['missing'], said['truncated'], said['remarks']), (['machine code of 1 image was not read yet: it is being read, or its reader was killed'], False, []),
                'what the report says meanwhile')
    check(not any('unfinished' in finding['id'] for finding in whole['findings']), 'the trace has its end')
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    check(not wait_for_orphans(), 'the sidecar ends soon after')
    said = report(run)['coverage']
    check_equal((said['missing'], said['complete']), ([], True), 'what it says then')
    check_conservation(run)
    check_equal(len(Code(run).kernels), 1, 'kernels whose code is known')


def test_over_budget():
    path = scratch('big.ptx')
    with open(images()['k.ptx'], encoding='utf-8') as file:
        text = file.read()
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text + '\n// ' + 'x' * (13 << 20) + '\n')
    run = loads(f'data:{path}:saxpy', f'data:{images()["sm90.cubin"]}:saxpy')
    code = Code(run)
    check_equal([number(image['state']) for image in code.images], [OVER_BUDGET, COPIED], 'states')
    said = [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'code']
    check_equal(said, ['machine code: 2 images loaded, 0 by reference, 1 by copy; of 1 whose kernels were asked for 1 could be read',
                       'machine code: 1 image was not kept: more than is copied (12 MiB an image; of a process 32 MiB, 64 MiB with those of which a kernel is asked for)',
                       'machine code: it is not known of 1 of 2 launched kernels'], 'the report says so')
    check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), 1, 'launches with code')


def padded(index, size):
    """The PTX of our kernels, made so large, by what compresses no better than code does."""
    path = scratch(f'{index}.ptx')
    with open(images()['k.ptx'], encoding='utf-8') as file:
        text = file.read()
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text + f'\n// {index} ' + os.urandom(size // 2).hex() + '\n')
    return path


def states(code):
    return [number(image['state']) for image in code.images]


def test_budget_of_a_process():
    words = [f'data:{padded(index, 6 << 20)}:saxpy' for index in range(12)]
    run = loads(*words, env={'GPUTRACE_BUFFER': '64M'})
    check(os.path.getsize(run.trace) < 1 << 20, 'what was read of 60 MiB of code is kept, not the code', os.path.getsize(run.trace))
    code = Code(run)
    check_equal(states(code), [COPIED] * 5 + [OVER_BUDGET, COPIED] * 5 + [OVER_BUDGET] * 2, '32 MiB hold five, and five more when they are asked for')
    check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), 10, 'launches with code')
    check_equal(len({image['image'] for image in code.images}), 12, 'an image that is kept later is the same one')


def test_no_room_in_the_ring():
    run = loads(f'data:{padded(0, 2 << 20)}:saxpy', env={'GPUTRACE_BUFFER': '2M'})
    check_equal(states(Code(run)), [NO_ROOM], 'states')
    check_equal(check_conservation(run)[2], 0, 'no record is dropped for it')


def test_what_had_no_room_is_kept_when_it_is_asked_for():
    """Three fifths of the ring: more than a load may take, less than what is asked for may."""
    path = padded(0, 2400 << 10)
    for more, wanted in (([], [NO_ROOM, COPIED]), (['gone'], [NO_ROOM]), (['changed'], [NO_ROOM])):
        run = loads(f'lib:{path}:saxpy', *more, env={'GPUTRACE_BUFFER': '4M'})
        code = Code(run)
        check_equal(states(code), wanted, f'states {more}')
        check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), len(wanted) - 1, f'launches with code {more}')
        check_equal(check_conservation(run)[2], 0, 'no record is dropped for it')
        said = [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'code']
        check_equal(said[0], 'machine code: 1 image loaded, 0 by reference, {0} by copy; of {0} whose kernels were asked for {0} could be read'.format(len(wanted) - 1), 'the report')
        check_equal(len(said), 1 if len(wanted) == 2 else 3, said)
        forget_run()


def test_older_kernels_and_filters():
    """Without PROCMAP_QUERY (before Linux 6.11), and where process_vm_readv is refused, the table of mappings does."""
    strace = shutil.which('strace') or skip('no strace')
    if subprocess.run([strace, '-qq', '-e', 'inject=ioctl:error=ENOTTY', '-e', 'trace=ioctl', 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        skip('strace cannot inject')
    words = [f'{how}:{images()[image]}:{",".join(NAMES)}' for how, image in
             (('mmap', 'sm90.cubin'), ('data', 'zstd.fatbin'), ('data', 'sm90.cubin'), ('data', 'k.ptx'), ('lib', 'k.ptx'))]
    for calls in (['ioctl:error=ENOTTY'], ['process_vm_readv:error=EPERM'], ['ioctl:error=ENOTTY', 'process_vm_readv:error=ENOSYS']):
        command = [strace, '-qq', '-o', '/dev/null', '-e', 'trace=ioctl,process_vm_readv']
        for call in calls:
            command += ['-e', 'inject=' + call]
        run = traced([*command, sys.executable, LOADS, *words])
        check_equal(run.returncode, 0, run.stderr)
        code = Code(run)
        check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), 15, f'{calls}: launches with code')
        check_equal(sorted(number(image['state']) for image in code.images), [IN_FILE] + [COPIED] * 4, f'{calls}: states')
        check_equal(len({image['image'] for image in code.images}), 4, f'{calls}: the same text has one id')
        forget_run()


def test_off():
    run = loads(f'data:{images()["sm90.cubin"]}:saxpy', env={'GPUTRACE_COLLECT': 'api'})
    code = Code(run)
    check_equal([code.images, code.bytes, code.kernels], [[], [], []], 'records of machine code')
    check(any(entry['what'] == 'code' for entry in report(run)['coverage']['not_collected']), 'the report says so', report(run)['coverage'])


def test_a_large_library_costs_neither_memory_nor_time():
    """400 MB by reference: a fatbin inside of a mapped sparse file; and the toolkit's largest library, as it is."""
    path = scratch('large')
    offset = 200 << 20
    with open(path, 'wb') as file:
        file.truncate(400 << 20)
        file.seek(offset)
        with open(images()['zstd.fatbin'], 'rb') as image:
            file.write(image.read())
    words = ['time', 'rss', f'mmap@{offset}:{path}:{",".join(NAMES)}']
    times = {}
    for name in ('plain', 'traced'):
        for _ in range(5):
            forget_run()
            run = loads(*words) if name == 'traced' else untraced([sys.executable, LOADS, *words])
            lines = run.stdout.decode().splitlines()
            times.setdefault(name, []).append(int(lines[0].split()[2]))
            times.setdefault(name + ' rss', []).append(int([line for line in lines if line.startswith('rss')][0].split()[1]))
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f'  load of a 400 MB library: {medians["plain"] / 1e3:.0f} us without, {medians["traced"] / 1e3:.0f} us with; '
          f'anonymous memory {medians["plain rss"] / 1024:.1f} MB without, {medians["traced rss"] / 1024:.1f} MB with')
    check_kernels(Code(run), 3, IN_FILE)
    check(medians['traced rss'] < medians['plain rss'] + 20 * 1024, 'memory of the host', medians)
    check(medians['traced'] < medians['plain'] + 5e6, 'time of the load', medians)


def test_the_toolkit_s_largest_library():
    """Fatbins of libcublasLt as they lie in its file: nothing copied, each kernel that was asked for has its code."""
    library = os.path.join(CUDA, 'lib64', 'libcublasLt.so')
    readelf = shutil.which('readelf')
    if not os.path.exists(library) or not readelf:
        skip('no libcublasLt.so, or no readelf')
    library = os.path.realpath(library)
    sections = subprocess.run([readelf, '-SW', library], stdout=subprocess.PIPE, timeout=60, check=True).stdout.decode().splitlines()
    words = [line.split(']')[1].split() for line in sections if '.nv_fatbin ' in line][0]
    command = [sys.executable, os.path.join(os.path.dirname(LOADS), 'code_library.py'), library, str(int(words[3], 16)), str(int(words[4], 16)), '120']
    plain, run = untraced(command), traced(command)
    loaded, kernels, megabytes, _, _ = map(float, plain.stdout.split())
    check_equal(list(map(float, run.stdout.split()))[:3], [loaded, kernels, megabytes], 'what was loaded')
    took, memory = ([float(out.stdout.split()[i]) for out in (plain, run)] for i in (3, 4))
    code = Code(run)
    check_equal(code.bytes, [], 'copies')
    check_equal({number(image['state']) for image in code.images}, {IN_FILE}, 'states')
    check_equal({number(scan['state']) for scan in code.scans}, {SCANNED}, 'scans')
    wanted = {record['name'] for record in code.of('FunctionGet')}
    check_equal(wanted - {kernel['name'] for kernel in code.kernels}, set(), 'kernels without code')
    check(wanted, 'kernels')
    print(f'  {loaded:.0f} fatbins of libcublasLt, {megabytes:.0f} MB, {len(wanted)} kernels: load {took[0] / 1e3:.0f} us without, {took[1] / 1e3:.0f} us with '
          f'(medians); anonymous memory {memory[0] / 1024:.1f} MB, {memory[1] / 1024:.1f} MB; scan {sum(scan["took_us"] for scan in code.scans) / 1e3:.0f} ms')
    check(memory[1] < memory[0] + 12 * 1024, 'memory of the host', memory)
    check(took[1] < took[0] + 2e6, 'time of a load', took)


main()
