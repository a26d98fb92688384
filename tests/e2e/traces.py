"""What gputrace says of a trace, and what every trace must say."""
import collections
import json

from artefacts import places
from cases import check, check_equal
from processes import Run, environment, run_command

def gputrace(*arguments, rc=0, timeout=120, env=None, stdin=None, **options):
    """(stdout, stderr) as text of `gputrace ARGUMENTS`; rc None accepts any exit code, and then (rc, stdout, stderr) comes back."""
    (code, out, err), _ = run_command([places.gputrace, *map(str, arguments)], environment(**(env or {})), timeout, stdin, **options)
    out, err = out.decode(errors='replace'), err.decode(errors='replace')
    if rc is None:
        return code, out, err
    check(code == rc, f'gputrace {" ".join(map(str, arguments))}: exit code {code}, wanted {rc}', err[:2000], out[:500])
    return out, err


def report(run, *sections, options=()):
    """The report as JSON: of a Run, a path or a list of paths."""
    paths = [run.output] if isinstance(run, Run) else [run] if isinstance(run, str) else list(run)
    chosen = ['--section', ','.join(sections)] if sections else []
    return json.loads(gputrace('report', *paths, '--json', *chosen, *options)[0])


def rows(run, section):
    return report(run, section)['sections'][section]['rows']


def metrics(run):
    """The overview as {metric: value}."""
    return {row['metric']: row['value'] for row in rows(run, 'overview')}


def dump(run):
    """Every record of a trace as a dict: `record` (its type), `call`, `result`, `tid`, `begin_ns`, `end_ns`, its fields, and `trace` (the file)."""
    paths = run.traces if isinstance(run, Run) else [run] if isinstance(run, str) else list(run)
    records = []
    for path in paths:
        records += [{'trace': path, **json.loads(line)} for line in gputrace('dump', '--json', path)[0].splitlines()]
    return records


def records(run, *types):
    return [record for record in dump(run) if record['record'] in types]


# --------------------------------------------------------------------------------------------------- what a trace must say
def same_output(plain, run):
    """Exit code, stdout and stderr are what they are without us."""
    for what in ('returncode', 'stdout', 'stderr'):
        check(getattr(plain, what) == getattr(run, what), f'{what} is the same with and without us', getattr(plain, what), getattr(run, what))


def _plain_launches(truth):
    """Truth lines of kernels that a launch call of their own started (not a graph, not a capture), in call order."""
    return [line for line in truth if line['op'] == 'kernel' and line.get('graph') is None]


def check_launches_against_truth(run):
    """Call by call and thread by thread: the same launches in the same order, with the same geometry, and times that enclose
    the driver's own. Returns how many there were."""
    wanted = collections.defaultdict(list)
    for line in _plain_launches(run.truth):
        wanted[line['tid']].append(line)
    got = collections.defaultdict(list)
    for record in records(run, 'KernelLaunch'):
        if record.get('result', 0) == 0 and not int(record.get('flags') or 0) & 2:  # 2: captured
            got[record['tid']].append(record)
    check_equal({tid: len(lines) for tid, lines in got.items()}, {tid: len(lines) for tid, lines in wanted.items()}, 'launches per thread')
    total = 0
    for tid, lines in wanted.items():
        lines.sort(key=lambda line: line['seq'])
        for line, record in zip(lines, sorted(got[tid], key=lambda record: record['begin_ns'])):
            geometry = [[record[f'{what}_{axis}'] for axis in 'xyz'] for what in ('grid', 'block')]
            check([list(line['grid']), list(line['block']), line['dynamic_shared_bytes']] == [*geometry, record['dynamic_shared_bytes']],
                  'grid, block and dynamic shared memory of a launch', line, record)
            check_encloses(record, line)
            total += 1
    return total


CLOCK_SLACK_NS = 2000  # TSC to CLOCK_MONOTONIC: the reader interpolates between anchors


def check_encloses(record, line):
    """Trace begin <= truth begin <= truth end <= trace end, within the error of the clock conversion."""
    check(record['begin_ns'] - CLOCK_SLACK_NS <= line['call_begin_ns'] and line['call_end_ns'] <= record['end_ns'] + CLOCK_SLACK_NS,
          'the trace encloses the call as the driver saw it', line, record)


def check_conservation(run):
    """Seen = stored + dropped for every thread, and, where the last counters are there, stored is what the file really holds.
    Returns (seen, stored, dropped)."""
    answer = report(run, 'quality')
    threads, coverage = answer['sections']['quality']['rows'], answer['coverage']
    check(threads, 'the quality section has a row per thread')
    sums = collections.Counter()
    by_thread = collections.defaultdict(lambda: collections.Counter())
    for row in threads:
        key = (row['pid'], row['tid'], row.get('slot'), row.get('incarnation'))
        by_thread[key]['seen'] = max(by_thread[key]['seen'], row['seen'] or 0)
        by_thread[key]['stored'] = max(by_thread[key]['stored'], row['stored'] or 0)
        by_thread[key]['dropped'] += row['dropped'] or 0
    for key, row in by_thread.items():
        check(row['seen'] == row['stored'] + row['dropped'], f'seen = stored + dropped for thread {key}', dict(row))
        sums.update(row)
    separate = len({row['pid'] for row in threads}) == len(run.traces)  # images of one process that follow each other are not
    if all(row['exact'] for row in threads) and not coverage['truncated'] and separate:
        check_equal(coverage['records'] + coverage['unknown_records'], sums['stored'], 'records in the files, and stored by the counters')
    return sums['seen'], sums['stored'], sums['dropped']


def truth_calls(run, pid=None):
    """{documented name: number of successful and failed calls} from the truth. Needs SIMGPU_TRUTH_CALLS=1; one call counts once,
    however many operations it caused."""
    seen = {(line['pid'], line['seq']): line['call'] for line in run.truth if pid in (None, line['pid'])}
    return collections.Counter(seen.values())
