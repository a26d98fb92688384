# meson: timeout=300
# The Perfetto export, read by Perfetto's own trace_processor: the sums are ours, to the ns.
from exports_against import *
from harness import *


def ours(path):
    return exported(path, 'perfetto', scratch('x.pftrace'))


def test_sums_are_those_of_the_report():
    for path in KEPT:
        errors, kernels, calls, others, idle = trace_processor(
            ours(path), ERRORS, "select name, count(*) n, sum(dur) ns from slice where category = 'kernel' group by name",
            "select category level, name, count(*) n, sum(dur) ns from slice where category in ('driver', 'runtime', 'library') group by category, name",
            "select category, count(*) n, sum(dur) ns, sum(extract_arg(arg_set_id, 'debug.bytes')) bytes from slice where category in ('copy', 'memset', 'graph', 'kernel') group by category",
            "select sum(dur) ns from slice where category = 'idle'")
        check_no_errors(errors)
        check_equal({row['name']: int(row['ns']) for row in kernels}, kernels_of_report(path), f'{path}: kernel times by name')
        check_equal({(row['level'], row['name']): (int(row['n']), int(row['ns'])) for row in calls}, calls_of_report(path), f'{path}: calls')
        records = device_records(path)
        got = {row['category']: row for row in others}
        for category, record in (('kernel', 'DeviceKernel'), ('copy', 'DeviceCopy'), ('memset', 'DeviceMemset'), ('graph', 'DeviceGraph')):
            check_equal(int(got[category]['n']) if category in got else 0, records[record], f'{path}: {record}')
        for category, record in (('copy', 'DeviceCopy'), ('memset', 'DeviceMemset')):
            check_equal(int(got[category]['bytes'] or 0) if category in got else 0, records[record + ' bytes'], f'{path}: bytes of {record}')
        overview = {row['metric']: row['value'] for row in report(path, 'overview')['sections']['overview']['rows']}
        check_equal(int(idle[0]['ns'] or 0), overview['idle_ns'], f'{path}: idle time')


def test_arrows_lead_from_the_call_to_its_work():
    path = KEPT[0]
    arrows, work = trace_processor(
        ours(path), "select a.name call, a.category level, b.category what, b.ts - a.ts late from flow join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in",
        "select count(*) n from slice where category in ('kernel', 'copy', 'memset', 'graph')")
    # All of it was joined in this trace; each piece of work has one arrow into it, from its call or from the node before it.
    check_equal(len(arrows), int(work[0]['n']), 'arrows')
    calls = collections.Counter((row['call'], row['what']) for row in arrows if row['level'] == 'driver')
    for (call, what), count in calls.items():
        check({'kernel': 'Launch', 'copy': 'Memcpy', 'memset': 'Memset', 'graph': 'GraphLaunch'}[what] in call, 'the call fits the work', call, what, count)
    check(all(int(row['late']) >= 0 for row in arrows), 'no work before its call', arrows)
    launches = [row for row in report(path, 'launches')['sections']['launches']['rows']]
    check_equal(sum(count for (call, what), count in calls.items() if what == 'kernel'), sum(row['launches'] for row in launches), 'launches with an arrow')


def test_processes_threads_streams_and_arguments():
    path = KEPT[2]  # two ranks
    processes, streams, kernel = trace_processor(
        ours(path), 'select pid, name from process where pid > 0 order by name', "select distinct track.name name from slice join track on track.id = slice.track_id where category = 'kernel'",
        "select extract_arg(arg_set_id, 'debug.grid') grid, extract_arg(arg_set_id, 'debug.block') block, extract_arg(arg_set_id, 'debug.registers') registers from slice where category = 'kernel' limit 1")
    rows_of_run = report(path, 'run')['sections']['run']['rows']
    check_equal([row['name'] for row in processes], [f"rank {row['rank']} {row['executable']}" for row in sorted(rows_of_run, key=lambda row: row['rank'])], 'processes')
    check(all(row['name'].startswith('GPU ') and ' stream ' in row['name'] for row in streams), 'streams', streams)
    shapes = {(row['grid'], row['block']) for row in report(path, 'kernels')['sections']['kernels']['rows']}
    check((kernel[0]['grid'], kernel[0]['block']) in shapes, 'its shape', kernel, shapes)


def test_ranges_of_nvtx():
    run = traced([program('nvtx_c')])
    ranges = trace_processor(ours(run.output), ERRORS, "select name, count(*) n from slice where category = 'nvtx' and dur > 0 group by name",
                             "select name, count(*) n from slice where category = 'nvtx' and dur = 0 group by name")
    check_no_errors(ranges[0])
    told = records(run, 'Nvtx')
    begun = [record for record in told if record['what_name'] in ('push', 'start')]
    check_equal(sum(int(row['n']) for row in ranges[1]), len(begun), 'ranges')
    check_equal(sum(int(row['n']) for row in ranges[2]), len([record for record in told if record['what_name'] == 'mark']), 'marks')


def test_slices_that_cross_are_not_lost():
    """Kernels of one stream that overlap as CUPTI tells them, and NVTX ranges that cross calls: each keeps its length."""
    run = traced([program('drv_linked')], {'SIMGPU_CUPTI': 'drop=3'})
    errors, kernels = trace_processor(ours(run.output), ERRORS, "select name, sum(dur) ns from slice where category = 'kernel' group by name")
    check_no_errors(errors)
    check_equal({row['name']: int(row['ns']) for row in kernels}, kernels_of_report(run.output), 'kernel times')


def test_a_window_and_a_rank():
    path = KEPT[2]
    whole, = trace_processor(ours(path), "select count(*) n from slice where category = 'kernel'")
    one, = trace_processor(exported(path, 'perfetto', scratch('one.pftrace'), '--rank', '1'), "select count(*) n from slice where category = 'kernel'")
    wanted = sum(row['launches'] for row in report(path, 'kernels', options=('--rank', '1'))['sections']['kernels']['rows'])
    check_equal((int(one[0]['n']), int(whole[0]['n'])), (wanted, device_records(path)['DeviceKernel']), 'kernels of rank 1, of all')
    late, = trace_processor(exported(KEPT[0], 'perfetto', scratch('late.pftrace'), '--from', '60ms'), "select count(*) n from slice where category in ('driver', 'runtime')")
    check_equal(int(late[0]['n']), sum(row['calls'] for row in report(KEPT[0], 'api', options=('--from', '60ms'))['sections']['api']['rows']), 'calls from 60 ms on')


def test_what_cannot_be_asked():
    for code, words, options in ((2, '--format is missing', ()), (2, "'perfeto' is none of", ('--format', 'perfeto')), (2, '--from', ('--format', 'perfetto', '--from', 'noon')),
                                 (3, 'no process of rank 9', ('--format', 'perfetto', '--rank', '9'))):
        got, out, err = gputrace('export', KEPT[0], '-o', scratch('none'), *options, rc=None)
        check_equal((got, out), (code, ''), err)
        check(words in err and not os.path.exists(scratch('none')), words, err)
    check("did you mean 'perfetto'?" in gputrace('export', KEPT[0], '--format', 'perfeto', rc=None)[2], 'the nearest word')
    code, out, err = gputrace('export', KEPT[0], '--format', 'perfetto', cwd=scratch(), rc=None)
    check(code == 0 and os.path.getsize(scratch('train.pftrace')) > 1000, 'a name of its own', err, os.listdir(scratch()))


main()
