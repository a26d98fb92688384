# meson: serial timeout=200
# The ring is full: seen = stored + dropped for each thread, the report says so first; the flight recorder keeps the newest.
from against_truth import *

CALLS_EACH, THREADS = 60_000, 4
COMMAND = ['calls=%d' % CALLS_EACH, 'threads=%d' % THREADS]
QUICK = {'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None, 'GPUTRACE_BUFFER': '1M'}


def stopped_sidecar(env, name='trace'):
    """The loop while the sidecar stands still; it goes on once the program has ended."""
    process = start([program('drv_loop'), *COMMAND, 'progress=' + scratch(name + '.progress')], traced_environment({**QUICK, **env}, scratch(name)))
    sidecar = wait_until(lambda: [pid for pid in children() if pid != process.pid], 'a sidecar')[0]
    os.kill(sidecar, signal.SIGSTOP)
    check_equal(finish(process)[0], 0, 'exit code')
    os.kill(sidecar, signal.SIGCONT)
    check(not wait_for_orphans(), 'the sidecar ends')
    return scratch(name)


def lines_of_dump(*paths):
    return gputrace('dump', *paths)[0].count('\n')


def check_sums(output):
    said = report(output)
    launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
    quality = [row for row in said['sections']['quality']['rows'] if row['tid'] is not None]
    for row in quality:
        check(row['seen'] == row['stored'] + row['dropped'], 'seen = stored + dropped', row)
    seen, stored, dropped = (sum(row[key] for row in quality) for key in ('seen', 'stored', 'dropped'))
    check_equal(lines_of_dump(output), stored, 'records in the file')
    check(seen >= CALLS_EACH * THREADS and dropped > 0, 'records were dropped', seen, stored, dropped)
    check_equal(said['coverage']['dropped'], dropped, 'the coverage')
    finding = said['findings'][0]
    check(finding['id'] == 'dropped-records', 'the report says it first', said['findings'])
    silent = {'idle-gaps', 'launch-bound'} & {finding['id'] for finding in said['findings']}
    check(not silent, 'what rests on lost records is not said', said['findings'])
    check(launches + dropped >= CALLS_EACH * THREADS >= launches, 'launches', launches, dropped)
    return said, quality


def test_full_with_a_sidecar_that_stands_still():
    said, quality = check_sums(stopped_sidecar({}))
    check(all(row['reason'] and 'ring full' in row['reason'] or 'no sidecar' in row['reason'] for row in quality if row['dropped']), 'the reason', quality)
    text = gputrace('report', scratch('trace'))[0]
    check('dropped' in text.splitlines()[0] + text.splitlines()[1] + text.splitlines()[2], 'at the top of the text report', text[:800])
    code, _, err = gputrace('report', scratch('trace'), '--strict', rc=None)
    check_equal(code, 4, f'--strict ({err!r})')
    gap = [record for record in dump(scratch('trace')) if record['record'] == 'Gap']
    check(sum(record['count'] for record in gap) <= said['coverage']['dropped'], 'gaps tell no more than was dropped', gap[:3])


def test_full_at_full_rate():
    run = traced([program('drv_loop'), *COMMAND], QUICK)
    check_equal(run.returncode, 0, 'exit code')
    seen, stored, dropped = check_conservation(run)
    launches = metrics(run)['launches']
    check(launches + dropped >= CALLS_EACH * THREADS >= launches, 'launches, stored and dropped', launches, dropped)
    check_equal(lines_of_dump(run.output), stored, 'the file holds what the counters say')


def test_flight_recorder_keeps_the_newest():
    # Without device records: kernels that are still queued when the program ends would move the end of the run.
    output = stopped_sidecar({'GPUTRACE_ON_FULL': 'overwrite', 'GPUTRACE_COLLECT': 'api'})
    said, quality = check_sums(output)
    check(any('overwritten' in row['reason'] for row in quality if row['dropped']), 'the reason', quality)
    records_ = [record for record in dump(output) if record['record'] == 'KernelLaunch']
    last = max(record['end_ns'] for record in records_)
    kept = collections.Counter(record['tid'] for record in records_)
    # The last launch of the program is there: nothing newer than what was kept was dropped.
    end = [row['end_ns'] for row in said['sections']['run']['rows']][0]
    check(end - last < 50_000_000, 'the newest records were kept', end, last, kept)
    dropping = stopped_sidecar({}, 'drop')
    first = min(record['begin_ns'] for record in dump(dropping) if record['record'] == 'KernelLaunch')
    begin = rows(dropping, 'run')[0]['begin_ns']
    check(first - begin < 1_000_000_000, 'with drop the oldest are kept', first, begin)


def test_max_size():
    env = {**QUICK, 'GPUTRACE_BUFFER': '32M', 'GPUTRACE_MAX_SIZE': '200K'}
    run = traced([program('drv_loop'), 'calls=300000', 'threads=2', 'call=launch'], env)
    check_equal(run.returncode, 0, 'exit code')
    check(os.path.getsize(run.trace) < 600 << 10, 'the file stops growing', os.path.getsize(run.trace))
    said = report(run)
    check(said['coverage']['dropped'] > 0, 'the rest is counted', said['coverage'])
    quality = said['sections']['quality']['rows']
    check(any('size limit' in (row['reason'] or '') for row in quality), 'the reason', quality)
    check_conservation(run)


main()
