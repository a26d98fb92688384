# meson: timeout=200
# NVTX v3: every event of a program appears once, with domain, message, category, colour, payload, thread and order; the
# environment; who else may have it.
from against_truth import *

EVENT = ('what', 'domain', 'message', 'category', 'color', 'payload_type', 'payload')
PATH = 'NVTX_INJECTION64_PATH'


def said_by_program(run):
    """What the program says that it did: (events, names)."""
    lines = [json.loads(line) for line in run.stdout.decode().splitlines() if line.startswith('{')]
    return [line for line in lines if 'what' in line], [line for line in lines if 'named' in line]


def events(run):
    return [record for record in dump(run) if record['record'] == 'Nvtx']


def plain(record):
    row = {key: record[key] for key in EVENT}
    row['what'], row['domain'], row['message'] = record['what_name'], row['domain'] or '', row['message'] or ''
    return row


def by_thread(run):
    """Events per thread, main first, in the order of the ring."""
    threads = {}
    for record in events(run):
        threads.setdefault(record['tid'], []).append(record)
    main = [tid for tid in threads if f'-{tid}-' in os.path.basename(run.trace)]
    check_equal(len(main), 1, 'the main thread is among them')
    return [threads[main[0]]] + [threads[tid] for tid in threads if tid != main[0]]


def check_against_program(run):
    wanted, names = said_by_program(run)
    got = by_thread(run)
    for thread in sorted({line['thread'] for line in wanted}):
        lines = [{key: line[key] for key in EVENT} for line in wanted if line['thread'] == thread]
        check_equal([plain(record) for record in got[thread]], lines, f'events of thread {thread}')
        stamps = [record['begin_ns'] for record in got[thread]]
        check_equal(stamps, sorted(stamps), 'in order')
    check_equal(len(events(run)), len(wanted), 'no event more')
    given = {(r['what_name'], r['domain'] or '', r['object'], r['name']) for r in dump(run) if r['record'] == 'NvtxName'}
    check_equal(given, {(line['named'], line['domain'], line['object'], line['name']) for line in names}, 'names')
    # Start and end are told apart by their ids.
    starts = [r['range'] for r in events(run) if r['what_name'] == 'start']
    check_equal(len(set(starts)), len(starts), 'range ids are different')
    check_equal(sorted(starts), sorted(r['range'] for r in events(run) if r['what_name'] == 'end'), 'each start has its end')
    return got


def same_but_handles(plain_run, run):
    """Names of streams carry their handles, and of threads their id: those differ from run to run."""
    def strip(text):
        # A program that asks whether a tool listens is told so.
        return re.sub(rb'"object":\d+', b'"object":0', text).replace(b'enabled 0', b'enabled 1')
    check_equal(run.returncode, plain_run.returncode, 'exit code')
    check_equal(run.stderr, plain_run.stderr, 'stderr')
    check_equal(strip(run.stdout), strip(plain_run.stdout), 'stdout')


def test_every_form_of_the_c_interface():
    command = [program('nvtx_c'), 'exit=3']
    run = traced(command)
    same_but_handles(untraced(command), run)
    got = check_against_program(run)
    check_equal([r['flags'] for r in events(run) if r['flags']], [], 'no flag')
    check_conservation(run)
    # Within the launches: the first push, its launch, the second push, its launch, both pops.
    tid = got[0][0]['tid']
    row = [r for r in dump(run) if r['tid'] == tid and r['record'] in ('Nvtx', 'KernelLaunch')]
    text = ' '.join(r.get('what_name', 'launch') for r in row)
    check('push launch push launch push pop pop pop start start start launch end end end' in text, 'launches lie within their ranges', text)
    check_equal(len([r for r in row if r['record'] == 'KernelLaunch']), 5, 'launches of the main thread')


def test_what_was_before_the_first_cuda_call():
    command = [program('nvtx_c'), 'early=1']
    run = traced(command)
    same_but_handles(untraced(command), run)
    got = check_against_program(run)[0]
    flagged = [(r['what_name'], r['message']) for r in got if r['flags']]
    check_equal(sorted(flagged), [('push', 'open before'), ('push', 'registered text'), ('start', 'started before')], 'open before, and said so')
    check(all(r.get('flags_name') == 'OpenBefore' for r in got if r['flags']), 'by name')


def cpp_lines(run):
    return [tuple(line.split('|')) for line in run.stdout.decode().splitlines() if '|' in line]


def test_cpp_and_a_plugin():
    command = [program('nvtx_cpp'), f'plugin={program("nvtx_plugin.so")}']
    run = traced(command)
    same_output(untraced(command), run)
    wanted = cpp_lines(run)
    got = [(r['what_name'], r['domain'] or '', r['message'] or '') for r in events(run)]
    # The program prints the inner range's end after both have ended, in the order of C++; the ends come one after the other.
    check_equal(collections.Counter(got), collections.Counter(wanted), 'events')
    check_equal([e for e in got if e[0] in ('push', 'mark')], [e for e in wanted if e[0] in ('push', 'mark')], 'in order')
    inner = next(r for r in events(run) if r['message'] == 'forward')
    check_equal((inner['color'], inner['category'], inner['payload_type_name']), (0xff010203, 4, 'double'), 'colour, category and payload')
    check_equal([(r['domain'], r['object']) for r in dump(run) if r['record'] == 'NvtxName' and r['name'] == 'blue things'], [('training', 4)], 'category')
    check_equal([r['name'] for r in dump(run) if r['record'] == 'NvtxName' and r['what_name'] == 'domain'], ['training'], 'one domain, in two objects')


PYTHON = r'''
import os, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
print(os.environ.get('NVTX_INJECTION64_PATH'), len(os.environ), file=sys.stderr)
d = Driver()
d.launch(d.kernel('step'))
os.system('echo "[$NVTX_INJECTION64_PATH]" >&2')
'''


def environment_seen(env, **how):
    run = traced([sys.executable, '-c', PYTHON, os.path.join(SOURCE, 'tests', 'e2e')], env, **how)
    check_equal(run.returncode, 0, 'exit code')
    first, second = run.stderr.decode().splitlines()
    path, count = first.rsplit(' ', 1)
    return run, path, int(count), second


def why_not(run):
    return [entry['why'] for entry in report(run)['coverage']['not_collected'] if entry['what'] == 'nvtx']


def test_the_environment():
    run, path, count, child = environment_seen({})
    check_equal((path, child), (places.library, f'[{places.library}]'), 'the variable, for the program and its children')
    check_equal(why_not(run), [], 'nothing is said')
    forget_run()
    for collect in ('-nvtx', 'api', 'api,device'):
        run, path, less, child = environment_seen({'GPUTRACE_COLLECT': collect})
        check_equal((path, child, less), ('None', '[]', count), f'left alone with {collect}')
        check(len(why_not(run)) == 1 and 'GPUTRACE_COLLECT' in why_not(run)[0], 'and said', why_not(run))
        forget_run()
    off = untraced([sys.executable, '-c', PYTHON, os.path.join(SOURCE, 'tests', 'e2e')], {'LD_PRELOAD': places.library, 'GPUTRACE': '0'})
    check(off.stderr.startswith(b'None '), 'left alone with GPUTRACE=0', off.stderr)


def test_relative_preload():
    folder, name = os.path.split(places.library)
    run, path, _, _ = environment_seen({'LD_PRELOAD': f'./{name}'}, cwd=folder)
    check(os.path.samefile(path, places.library) and os.path.isabs(path), 'an absolute path', path)
    forget_run()
    run = traced([program('nvtx_c')], {'LD_PRELOAD': f'./{name}'}, cwd=folder)
    check_against_program(run)


def test_the_users_own_tool_keeps_its_events():
    source, other = scratch('other.c'), scratch('libother.so')
    with open(source, 'w', encoding='ascii') as file:
        file.write('''#include <stdio.h>
            int InitializeInjectionNvtx2(const void* (*table)(unsigned)) { fputs("the other tool\\n", stderr); return 0; }''')
    subprocess.run(['gcc', '-shared', '-fPIC', '-o', other, source], check=True, timeout=60)
    run = traced([program('nvtx_c')], {PATH: other})
    check_equal(run.stderr, b'the other tool\n', 'it is asked, once')
    check_equal(events(run), [], 'we are not')
    check(len(why_not(run)) == 1 and other in why_not(run)[0], 'and the trace says so', why_not(run))


def test_no_nvtx():
    for env in ({'GPUTRACE_COLLECT': '-nvtx'}, {'GPUTRACE_COLLECT': 'api'}):
        run = traced([program('nvtx_c')], env)
        check_equal(events(run), [], 'no event')
        check(check_launches_against_truth(run) > 0, 'launches as ever')
        forget_run()


def test_without_cuda_nothing_happens():
    source, binary = scratch('plain.c'), scratch('plain')
    with open(source, 'w', encoding='ascii') as file:
        file.write('''#include <nvtx3/nvToolsExt.h>
            #include <stdio.h>
            int main(void) { for (int i = 0; i < 100000; ++i) { char t[32]; snprintf(t, 32, "range %d", i); nvtxRangePushA(t); if (i % 3) nvtxRangePop(); }
              puts("done"); return 4; }''')
    cuda = os.environ.get('GT_CUDA', '/usr/local/cuda')
    subprocess.run(['gcc', '-O1', f'-I{cuda}/include', '-o', binary, source, '-ldl'], check=True, timeout=60)
    run = traced([binary])
    same_output(untraced([binary]), run)
    check_equal(run.traces, [], 'no trace')


EARLY_LIBRARY = '''#include <nvtx3/nvToolsExt.h>
    __attribute__((constructor)) static void first(void) { nvtxRangePushA("opened by a constructor"); }
    void early_library(void) { nvtxMarkA("from the library"); }'''


def test_a_library_whose_constructor_uses_nvtx_before_ours():
    source, library = scratch('early.c'), scratch('libearly.so')
    with open(source, 'w', encoding='ascii') as file:
        file.write(EARLY_LIBRARY)
    cuda = os.environ.get('GT_CUDA', '/usr/local/cuda')
    subprocess.run(['gcc', '-shared', '-fPIC', f'-I{cuda}/include', '-o', library, source, '-ldl'], check=True, timeout=60)
    main, binary = scratch('main.c'), scratch('main')
    with open(main, 'w', encoding='ascii') as file:
        file.write('''#include <cuda.h>
            void early_library(void);
            int main(void) { if (cuInit(0)) return 70; early_library(); return 0; }''')
    subprocess.run(['gcc', f'-I{cuda}/include', '-o', binary, main, library, f'-L{cuda}/lib64/stubs', '-lcuda', f'-Wl,-rpath,{scratch()}', '-ldl'], check=True, timeout=60)
    run = traced([binary])
    check_equal(run.returncode, 0, 'exit code')
    check_equal([(r['what_name'], r['message']) for r in events(run)], [('push', 'opened by a constructor'), ('mark', 'from the library')], 'events')


def test_many_threads_and_messages():
    source, binary = scratch('many.c'), scratch('many')
    with open(source, 'w', encoding='ascii') as file:
        file.write('''#include <cuda.h>
            #include <nvtx3/nvToolsExt.h>
            #include <pthread.h>
            #include <stdio.h>
            static void* work(void* p) { for (int i = 0; i < 2000; ++i) { char t[64]; snprintf(t, 64, "thread %d message %d", (int)(long)p, i % 500);
              nvtxRangePushA(t); nvtxRangePop(); } return p; }
            int main(void) { pthread_t t[8]; if (cuInit(0)) return 70; for (long i = 0; i < 8; ++i) pthread_create(&t[i], 0, work, (void*)i);
              for (int i = 0; i < 8; ++i) pthread_join(t[i], 0); return 0; }''')
    cuda = os.environ.get('GT_CUDA', '/usr/local/cuda')
    subprocess.run(['gcc', '-O1', f'-I{cuda}/include', '-o', binary, source, f'-L{cuda}/lib64/stubs', '-lcuda', '-ldl', '-lpthread'], check=True, timeout=60)
    run = traced([binary], {'GPUTRACE_BUFFER': '64M'})
    check_equal(run.returncode, 0, 'exit code')
    _, _, dropped = check_conservation(run)
    check_equal(dropped, 0, 'dropped')
    counts = collections.Counter((r['what_name'], r['message']) for r in events(run))
    wanted = collections.Counter({('push', f'thread {t} message {m}'): 4 for t in range(8) for m in range(500)})
    wanted[('pop', None)] = 16000
    check_equal(counts - wanted, collections.Counter(), 'nothing more')
    check_equal(wanted - counts, collections.Counter(), 'nothing less')


main()
