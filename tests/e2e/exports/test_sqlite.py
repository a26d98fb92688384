# meson: timeout=200
# The export in the tables of Nsight Systems: by Python's sqlite3 with queries as people write them for those.
import sqlite3

from exports_against import *
from harness import *

SUMMARY = '''SELECT s.value, COUNT(*), SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON k.demangledName = s.id
             GROUP BY s.value'''
CALLS = '''SELECT r.eventClass, s.value, COUNT(*), SUM(r.end - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON r.nameId = s.id
           GROUP BY r.eventClass, s.value'''
JOINED = '''SELECT k.start - r.start, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON k.correlationId = r.correlationId AND k.globalPid = r.globalTid / 0x1000000 * 0x1000000
            JOIN StringIds AS s ON r.nameId = s.id WHERE r.eventClass = 1'''


def opened(path, *options):
    return sqlite3.connect(exported(path, 'sqlite', scratch('x.sqlite'), *options))


def test_sums_are_those_of_the_report():
    for path in KEPT:
        file = opened(path)
        check_equal(file.execute('PRAGMA integrity_check').fetchall(), [('ok',)], 'a whole file')
        check_equal({name: nanos for name, _, nanos in file.execute(SUMMARY)}, kernels_of_report(path), f'{path}: kernels by name')
        calls = {(('runtime', 'driver')[kind], name): (count, nanos) for kind, name, count, nanos in file.execute(CALLS)}
        for name, count, nanos in file.execute('SELECT s.value, COUNT(*), SUM(end - start) FROM GPUTRACE_LIBRARY_CALLS AS c JOIN StringIds AS s ON c.nameId = s.id GROUP BY s.value'):
            calls['library', name] = (count, nanos)
        check_equal(calls, calls_of_report(path), f'{path}: calls')
        records = device_records(path)
        for table, record in (('MEMCPY', 'DeviceCopy'), ('MEMSET', 'DeviceMemset')):
            count, size = file.execute(f'SELECT COUNT(*), IFNULL(SUM(bytes), 0) FROM CUPTI_ACTIVITY_KIND_{table}').fetchone()
            check_equal((count, size), (records[record], records[record + ' bytes']), f'{path}: {table}')
        check_equal(file.execute('SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE').fetchone()[0], records['DeviceGraph'], f'{path}: graphs')
        idle = {row['cause']: row['total_ns'] for row in report(path, 'idle-causes')['sections']['idle-causes']['rows']}
        told = file.execute('SELECT IFNULL(SUM(end - start), 0) FROM GPUTRACE_IDLE').fetchone()[0]
        check(told >= max(idle.values(), default=0), f'{path}: idle time', told, idle)


def test_a_kernel_and_its_call_are_joined():
    path = KEPT[0]
    file = opened(path)
    joined = file.execute(JOINED).fetchall()
    kernels = device_records(path)['DeviceKernel']
    check_equal(len(joined), kernels, 'each kernel has one call')
    check(all(delay > 0 and 'Launch' in name for delay, name in joined), 'a launch that began before', joined[:3])


def test_who_and_where():
    path = KEPT[2]
    file = opened(path)
    wanted = {(row['pid'], str(row['rank'])) for row in report(path, 'run')['sections']['run']['rows']}
    check_equal({(pid // 0x1000000 % 0x1000000, rank) for pid, rank in file.execute('SELECT globalPid, rank FROM GPUTRACE_PROCESSES')}, wanted, 'processes')
    devices = report(path, 'devices')['sections']['devices']['rows']
    check_equal({row for row in file.execute('SELECT name, smCount, totalMemory FROM TARGET_INFO_GPU')}, {(row['name'], row['sms'], row['memory_bytes']) for row in devices}, 'devices')
    used = file.execute('SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN TARGET_INFO_CUDA_DEVICE AS d ON d.cudaId = k.deviceId AND d.pid = k.globalPid / 0x1000000 % 0x1000000').fetchone()[0]
    check_equal(used, file.execute('SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchone()[0], 'each kernel has its device')
    one = sqlite3.connect(exported(path, 'sqlite', scratch('one.sqlite'), '--rank', '1'))
    check_equal([rank for rank, in one.execute('SELECT rank FROM GPUTRACE_PROCESSES')], ['1'], 'one rank')
    words = dict(file.execute('SELECT id, label FROM ENUM_CUDA_MEMCPY_OPER').fetchall())
    kinds = {words[kind] for kind, in file.execute('SELECT DISTINCT copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY')}
    said = {row['kind'] for row in report(path, 'copies')['sections']['copies']['rows']} - {'memset'}
    check_equal(kinds, {{'HtoD': 'Host-to-Device', 'DtoH': 'Device-to-Host', 'DtoD': 'Device-to-Device', 'PtoP': 'Peer-to-Peer'}[kind] for kind in said}, 'kinds of copies')


def test_ranges_of_nvtx():
    run = traced([program('nvtx_c')])
    wanted = collections.defaultdict(lambda: (0, 0))
    for row in report(run, 'nvtx')['sections']['nvtx']['rows']:
        name = row['range'] or ''
        wanted[name] = tuple(map(sum, zip(wanted[name], (row['count'], row['total_ns']))))
    query = 'SELECT text, COUNT(*), SUM(end - start) FROM NVTX_EVENTS WHERE eventType IN (59, 60) AND end IS NOT NULL GROUP BY text'
    file = opened(run.output)
    check_equal({text: (count, nanos) for text, count, nanos in file.execute(query)}, dict(wanted), 'ranges and their time')
    domains = {row['domain'] for row in report(run, 'nvtx')['sections']['nvtx']['rows'] if row['domain']}
    named = {text for text, in file.execute('SELECT d.text FROM NVTX_EVENTS AS d WHERE d.eventType = 75')}
    check(domains and domains <= named, 'domains', domains, named)


def test_a_file_that_is_there_is_replaced_and_none_is_left_half():
    path = scratch('x.sqlite')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('something else')
    exported(KEPT[0], 'sqlite', path)
    check(sqlite3.connect(path).execute('SELECT COUNT(*) FROM StringIds').fetchone()[0] > 0, 'replaced')
    code, _, err = gputrace('export', KEPT[0], '--format', 'sqlite', '-o', scratch('no', 'such', 'x.sqlite'), rc=None)
    check(code == 1 and 'x.sqlite' in err, 'a folder that is not there', code, err)
    check_equal(gputrace('export', KEPT[0], '--format', 'sqlite', '-o', '-', rc=None)[0], 2, 'no stream')


main()
