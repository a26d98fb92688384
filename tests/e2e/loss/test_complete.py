# meson: serial timeout=240
# A trace is complete only if nothing is missing; what was not drained is counted; `--strict` exits 4 for each of it.
from against_truth import *

QUICK = {'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None}


def check_incomplete(path, *words):
    said = report(path)
    coverage = said['coverage']
    check(coverage['complete'] is False and any(all(word in clause for word in words) for clause in coverage['missing']), 'what is missing', coverage)
    text = gputrace('report', path)[0]
    check(', incomplete' in text and ', complete' not in text, 'in the text', text[:600])
    code, _, err = gputrace('report', path, '--strict', rc=None)
    check(code == 4 and words[0] in err, '--strict', code, err)
    return said


def test_complete():
    run = traced([program('drv_linked')], {'GPUTRACE_COLLECT': 'api,nvtx'})
    coverage = report(run)['coverage']
    check_equal((coverage['complete'], coverage['missing']), (True, []), 'nothing is missing')
    check(', complete' in gputrace('report', run.output)[0], 'in the text')
    gputrace('report', run.output, '--strict')
    forget_run()
    run = traced([program('drv_linked')])
    check_equal(report(run)['coverage']['missing'], [], 'nothing is missing with device records')


def test_a_killed_process():
    process = start([program('drv_loop'), 'threads=1', 'progress=' + scratch('p')], traced_environment({**QUICK, 'GPUTRACE_COLLECT': 'api', 'SIMGPU_CALL_TIME': '10us'}))
    wait_until(lambda: glob.glob(scratch('trace', '*.gtrace')), 'a trace')
    time.sleep(0.1)
    process.kill()
    finish(process)
    check(not wait_for_orphans(), 'the sidecar ends')
    check_incomplete(scratch('trace'), '1 process was killed')


def test_lost_device_records():
    run = traced([program('drv_linked')], {'SIMGPU_CUPTI': 'drop=3'})
    check_incomplete(run.output, 'device record')
    forget_run()
    run = traced([program('drv_linked')], {'SIMGPU_CUPTI': 'zero=3'})
    check_incomplete(run.output, 'no usable time')


def test_device_records_that_did_not_come():
    text = f'import os, sys; sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r}); from driver import Driver; d = Driver(); k = d.kernel("step")\n' \
           'for i in range(50): d.launch(k)\nos._exit(0)'
    run = traced([sys.executable, '-c', text], {'SIMGPU_KERNEL_TIME': 'step=20ms'})
    said = check_incomplete(run.output, 'device collection was not ended')
    kernels = said['sections']['kernels']['rows'][0]
    check(kernels['launches'] == 50, 'all launches', kernels)


def test_definitions_come_before_calls():
    # Many kernels, and calls until the limit is reached: every kernel that is in a call that was stored has its name.
    for limit in ('300K', '200K'):
        run = traced([program('drv_loop'), 'calls=300000', 'threads=2', 'call=launch'], {**QUICK, 'GPUTRACE_BUFFER': '32M', 'GPUTRACE_MAX_SIZE': limit})
        check(os.path.getsize(run.trace) <= int(limit[:-1]) << 10, f'{limit}: the limit holds', os.path.getsize(run.trace))
        said = check_incomplete(run.output, 'records were dropped')
        rows_ = said['sections']['kernels']['rows']
        check(rows_ and all(row['symbol'] for row in rows_), f'{limit}: kernels have their names', rows_)
        definitions = [row for row in said['sections']['quality']['rows'] if row['tid'] == 0]
        check(definitions and all(row['dropped'] == 0 and row['stored'] == row['seen'] > 0 for row in definitions), f'{limit}: all definitions', definitions)
        forget_run()


def count_of(progress):
    try:
        with open(progress, 'rb') as file:
            return int.from_bytes(file.read(8), 'little')
    except OSError:
        return 0


def test_what_was_not_drained_is_counted():
    # Both die, or the sidecar alone, before it has written its first records (which it does every half second): all of them are counted,
    # as of its last look at the counters.
    for how in ('both', 'sidecar'):
        progress = scratch(how + '.progress')
        process = start([program('drv_loop'), 'threads=1', f'progress={progress}'],
                        traced_environment({**QUICK, 'GPUTRACE_COLLECT': 'api', 'SIMGPU_CALL_TIME': '2us', 'GPUTRACE_BUFFER': '64M'}, scratch(how)))
        sidecar = wait_until(lambda: [pid for pid in children() if pid != process.pid], 'a sidecar')[0]
        wait_until(lambda: count_of(progress) > 5000, 'calls', 30)
        time.sleep(0.1)
        os.kill(sidecar, signal.SIGKILL)
        at_death = count_of(progress)
        if how == 'both':
            process.kill()
        else:
            time.sleep(0.05)
            process.kill()
        finish(process)
        wait_for_orphans(5)
        said = check_incomplete(scratch(how), 'not written to the end')
        launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
        known = launches + said['coverage']['dropped']
        check(known > at_death / 2, f'{how}: counted to the last look', known, launches, at_death)
        check(any('is not known' in remark for remark in said['coverage']['remarks']), f'{how}: what came later is not known, and said', said['coverage'])


main()
