# meson: timeout=120
# Processes and threads as a tree, seen from outside, against what each measured of itself.
from harness import *

PROGRAM = os.path.join(SOURCE, 'tests', 'programs', 'python', 'threads.py')


def run_threads(**options):
    truth = scratch('threads.json')
    run = traced([sys.executable, PROGRAM, truth], **options)
    check(run.returncode == 0 and b'done' in run.stdout, 'the program came to its end', run.stdout, run.stderr)
    with open(truth, encoding='utf-8') as file:
        return run, json.load(file)


def test_processor_time_of_threads_and_forked_processes():
    run, truth = run_threads()
    rows = report(run, 'threads')['sections']['threads']['rows']
    by_tid = {row['tid']: row for row in rows}
    main_pid = truth['main'][0]
    for name, (tid, cpu) in truth.items():
        row = by_tid.get(tid)
        check(row, f'{name} is there', rows)
        # What it did after the last look, a quarter of a second before its end, is not seen; all rest by then but the main thread.
        check(abs(row['cpu_ns'] - cpu) < 0.1 * cpu + 50e6, f'{name} used {cpu}', row)
        check(row['seen_ns'] > row['begin_ns'], 'it lived', row)
    main_row, helper, maker = by_tid[main_pid], by_tid[truth['helper'][0]], by_tid[truth['maker (of) x'][0]]
    check_equal((main_row['role'], main_row['parent']), ('main', None), 'the main thread')
    check_equal((helper['name'], helper['pid'], helper['parent'], helper['calls']), ('helper', main_pid, main_pid, 0), 'a thread of it')
    check_equal((maker['name'], maker['pid'], maker['parent']), ('maker (of) x', maker['tid'], main_pid), 'a process of it')
    check(main_row['calls'] >= 14 and main_row['wait_ns'] > 0, 'who calls', main_row)
    order = [row['tid'] for row in rows]
    check(order.index(main_pid) < order.index(helper['tid']) < order.index(maker['tid']), 'the tree from its root', order)
    check_equal(len(run.traces), 1, 'traces: what makes no call makes none')


def test_where_nobody_looks_it_is_said():
    run, truth = run_threads(env={'GPUTRACE_COLLECT': 'api,device'})
    section = report(run, 'threads')['sections']['threads']
    check_equal([row['cpu_ns'] for row in section['rows']], [None] * len(section['rows']), 'not known')
    check(truth['main'][0] in [row['tid'] for row in section['rows']], 'who calls is known', section['rows'])
    check('python' in text_of(run, 'threads'), 'and why')


def text_of(run, section):
    done = subprocess.run([places.gputrace, 'report', run.output, '--section', section], capture_output=True, text=True, check=True,
                          env=environment())
    return done.stdout


main()
