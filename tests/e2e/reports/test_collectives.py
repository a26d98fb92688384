# meson: timeout=240
# Collectives, by a stand-in of NCCL whose ranks really meet: operations, bytes and times against the truth, alone and in groups; ranks that
# come late are waited for, and the report says for whom.
import collections

from harness import *

PROGRAMS = os.path.join(BUILD, 'tests/programs/libs')
LIBS = {'GPUTRACE_COLLECT': 'api,device,libs'}
US = 1000


def collectives(ranks, rounds, late=0, times='', launcher='RANK=$r', collect=LIBS):
    """All ranks at once, as children of one shell."""
    path = os.path.join(PROGRAMS, 'libs_collectives')
    path = path if os.access(path, os.X_OK) else skip('not built: libs_collectives')
    one = f'{launcher} {path} ranks={ranks} rank=$r rounds={rounds} late={late} id={scratch("id")} || test $? = 3 || exit 9'
    script = f'for r in {" ".join(map(str, range(ranks)))}; do ({one}) & pids="$pids $!"; done; for p in $pids; do wait $p || exit 9; done; exit 3'
    environment = {'LD_LIBRARY_PATH': places.simgpu, **({'SIMGPU_KERNEL_TIME': times} if times else {})}
    plain = untraced(['sh', '-c', script], environment)
    if os.path.exists(scratch('id')):
        os.unlink(scratch('id'))
    run = traced(['sh', '-c', script], {**collect, **environment})
    same_output(plain, run)
    check_equal(run.returncode, 3, 'exit code of all ranks')
    return run


def close(got, wanted, what, slack=4):
    check(got is not None and abs(got - wanted) <= slack, f'{what}: {got} is not {wanted} (± {slack})')


def kernels_by_rank(run, symbol):
    """Times of the kernels with that in their name, in launch order."""
    ranks = {row['pid']: row['rank'] for row in report(run, 'run')['sections']['run']['rows']}
    found = collections.defaultdict(list)
    for line in sorted(run.truth_of('kernel'), key=lambda line: line['seq']):
        if symbol in line['symbol']:
            found[ranks[line['pid']]].append(line['end_ns'] - line['start_ns'])
    return found


def test_one_rank():
    run = collectives(1, 3, times='AllReduce=40us,AllGather=9us,Broadcast=5us,SendRecv=16us')
    comm = {(row['op'], row['dtype']): row for row in rows(run, 'comm')}
    check_equal({key: (row['count'], row['bytes']) for key, row in comm.items()}, {
        ('AllReduce', 'fp32'): (3, 3 * 4 << 20), ('AllGather', 'fp16'): (1, 8192), ('Broadcast', 'int8'): (1, 1000), ('AllReduce', 'fp64'): (2, 32000),
        ('ReduceScatter', 'fp32'): (1, 2000), ('Send', 'fp32'): (1, 8192), ('Recv', 'fp32'): (1, 8192)}, 'operations and bytes')
    close(comm['AllReduce', 'fp32']['total_ns'], 120 * US, 'three of their own')
    close(comm['AllReduce', 'fp64']['total_ns'] + comm['ReduceScatter', 'fp32']['total_ns'], 40 * US, 'a group: one kernel')
    close(comm['ReduceScatter', 'fp32']['total_ns'], 40 * US * 2000 / 34000, 'shared out by bytes', 2)
    close(comm['Send', 'fp32']['total_ns'] + comm['Recv', 'fp32']['total_ns'], 16 * US, 'send and receive')
    check(all(row['wait_ns'] is None and row['transfer_ns'] is None for row in comm.values()), 'one rank knows nothing of waits', comm)
    check_equal({row['ranks'] for row in comm.values()}, {1}, 'size, asked for after the split as well')
    check_equal(len({row['communicator'] for row in comm.values()}), 2, 'the communicator and its split')
    check_equal(len(records(run, 'Collective')), 10, 'each call once')
    check_conservation(run)


def test_ranks_are_matched():
    ranks, rounds = 4, 10
    run = collectives(ranks, rounds, late=10_000, times='AllReduce=40us')  # us: more than a turn of the scheduler
    whole = report(run)
    table = whole['sections']['comm']['rows']
    check_equal(len(table), ranks * 7, 'a row a rank, operation and type')
    times = kernels_by_rank(run, 'AllReduce')
    shortest = [min(times[rank][i] for rank in range(ranks)) for i in range(rounds + 1)]
    check(all(40 * US <= time < 4000 * US for time in shortest), 'who comes last waits for nobody', shortest)
    for row in table:
        if (row['op'], row['dtype']) != ('AllReduce', 'fp32'):
            continue
        own = sum(times[row['rank']][:rounds])
        close(row['total_ns'], own, f'rank {row["rank"]}: total', 4 * rounds)
        close(row['transfer_ns'], sum(shortest[:rounds]), f'rank {row["rank"]}: transfer = the shortest', 4 * rounds)
        close(row['wait_ns'], own - sum(shortest[:rounds]), f'rank {row["rank"]}: wait', 8 * rounds)
        algorithm = (rounds * 4 << 20) / (row['transfer_ns'] * 1e-9)
        check(abs(row['algo_bandwidth'] - algorithm) <= algorithm * 1e-9 + 1, 'algorithm bandwidth', row)
        check(abs(row['bus_bandwidth'] - algorithm * 1.5) <= algorithm * 1e-9 + 2, 'bus bandwidth: 2(n-1)/n', row)
    waits = [finding for finding in whole['findings'] if finding['id'] == 'collective-wait']
    most = max(waits, key=lambda finding: finding['evidence']['wait_ns'])
    of_all = next(row['communicator'] for row in table if row['op'] == 'AllReduce')
    waited = [sum(row['wait_ns'] or 0 for row in table if row['rank'] == rank and row['communicator'] == of_all) for rank in range(ranks)]
    last = waited.index(min(waited))  # 3, unless another one had no processor for longer
    check_equal(most['evidence']['last_rank'], last, 'who comes last')
    gather = [row for row in table if row['op'] == 'AllGather']
    check_equal({(row['ranks'], row['bytes']) for row in gather}, {(4, 4096 * 2 * 4)}, 'the split communicator is the same on all ranks')
    check(all(row['wait_ns'] is not None for row in gather), 'and its operations are matched', gather)
    check(all(row['wait_ns'] is None for row in table if row['op'] in ('Send', 'Recv')), 'point to point has no i-th on every rank')
    one = report(run.traces[0], 'comm')['sections']['comm']['rows']
    check(all(row['wait_ns'] is None for row in one), 'a rank alone is not matched', one)
    alone = [finding['id'] for finding in report(run.traces[0])['findings']]
    check('collective-wait' not in alone, 'nothing is said of waiting where the others are not known', alone)


def test_the_communicator_tells_ranks_where_no_launcher_does():
    """As under torch.multiprocessing.spawn: no variable says which rank a process is, and calls of libraries are not collected."""
    run = collectives(3, 4, launcher='', collect={'GPUTRACE_COLLECT': 'api,device'})
    check(not [record for record in dump(run) if record.get('level') == 'library'], 'no call of a library is recorded')
    check_equal(sorted((record['rank'], record['ranks']) for record in records(run, 'Communicator')), [(0, 3), (1, 3), (2, 3)], 'what they made')
    ranks = {row['pid']: row['rank'] for row in rows(run, 'run')}
    check_equal(sorted(ranks.values()), [0, 1, 2], 'each is one')
    for pid, rank in ranks.items():
        command = next(row['command'] for row in rows(run, 'run') if row['pid'] == pid)
        check(f' rank={rank} ' in command, 'the one that it made itself', rank, command)
    only = report(run, 'run', options=['--rank', '1'])['sections']['run']['rows']
    check_equal([row['rank'] for row in only], [1], 'of that rank')
    gputrace('export', '--format', 'chrome', '--rank', '2', '-o', scratch('rank.json'), run.output)
    with open(scratch('rank.json'), encoding='utf-8') as file:
        names = [event['args']['name'] for event in json.load(file)['traceEvents'] if event.get('name') == 'process_name']
    check_equal({name.split(' ')[1] for name in names if name.startswith('rank ')}, {'2'}, 'an export of one rank has that one alone')
    notes = [row['text'] for row in rows(run, 'quality-notes') if 'communicator' in row['text']]
    check_equal(len(notes), 3, 'and it is said where that comes from')
    check('comm' not in report(run)['sections'], 'operations are not collected')
    check_conservation(run)


def test_bandwidth_is_that_of_the_ring():
    run = collectives(2, 5)
    own = [row for row in rows(run, 'comm') if (row['op'], row['dtype']) == ('AllReduce', 'fp32')]
    check_equal(len(own), 2, 'two ranks')
    ring = (4 << 20) / (50 << 30) * 1e9 + 4 * US  # 2(n-1)/n of the bytes, two hops, 2 us to start
    for row in own:
        close(row['transfer_ns'], 5 * ring, 'what the ring takes', 60 * US)


main()
