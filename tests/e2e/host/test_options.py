# meson: timeout=300
# Every variable and option of this version: output tokens, ranks, windows, filters, sizes, values that cannot be used.
import random
import socket

from small_programs import *

HERE = os.path.join(SOURCE, 'tests', 'e2e')
LAUNCHES = 21


def traces_below(root):
    return sorted(glob.glob(os.path.join(root, '**', '*.gtrace'), recursive=True))


def loop_traced(env, count=1):
    """drv_linked with variables of its own; the trace files."""
    command = [program('drv_linked'), f'count={count}']
    plain = untraced(command, {key: value for key, value in env.items() if not key.startswith('GPUTRACE')})
    run = traced(command, env, output=env.get('GPUTRACE_OUTPUT'))
    same_output(plain, run)
    return run


def warnings_of(run):
    return [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'option']


def test_output_tokens():
    host = socket.gethostname()
    env = {'GPUTRACE_OUTPUT': scratch('h=%h p=%p r=%r l=%l j=%j e=%e q=%q{NAME} none=%q{NO_SUCH} %%'), 'NAME': 'a/b\x01c', 'RANK': '7', 'LOCAL_RANK': '3', 'SLURM_JOB_ID': '991'}
    run = traced([program('drv_linked')], env, output=scratch())
    check_equal(run.returncode, 0, 'exit code')
    found = traces_below(scratch())
    check_equal(len(found), 1, f'trace files in {os.listdir(scratch())}')
    folder, name = os.path.split(found[0])
    pid = int(re.fullmatch(rf'rank0007-drv_linked-{re.escape(host)}-(\d+)-[0-9a-f]+\.gtrace', name)[1])
    check_equal(os.path.basename(folder), f'h={host} p={pid} r=7 l=3 j=991 e=drv_linked q=a_b_c none= %', 'the tokens')


def test_time_and_number_tokens():
    began = time.time()
    for wanted in ('n=1', 'n=2', 'n=3'):
        run = traced([program('drv_linked'), 'count=1'], {'GPUTRACE_OUTPUT': scratch('dir', 'n=%n')}, output=scratch())
        check_equal(run.returncode, 0, 'exit code')
        check(len(traces_below(scratch('dir', wanted))) == 1, f'a new directory {wanted}', os.listdir(scratch('dir')))
    traced([program('drv_linked'), 'count=1'], {'GPUTRACE_OUTPUT': scratch('at-%t')}, output=scratch())
    found = [name for name in os.listdir(scratch()) if name.startswith('at-')]
    stamp = re.fullmatch(r'at-(\d{8})-?T?(\d{6})Z?', found[0])
    check(stamp, 'the UTC start', found)
    import calendar
    at = calendar.timegm(time.strptime(stamp[1] + stamp[2], '%Y%m%d%H%M%S'))
    check(began - 2 <= at <= time.time() + 2, 'it is now', at, began)


def test_default_output():
    run = traced([program('drv_linked')], {'GPUTRACE_OUTPUT': None, 'SLURM_JOB_ID': '17'}, output=scratch())
    check_equal(run.returncode, 0, 'exit code')
    check_equal([os.path.dirname(path) for path in traces_below(scratch())], [scratch('gputrace-17')], 'gputrace-%j where the program was started')
    check_equal(oct(os.stat(scratch('gputrace-17')).st_mode & 0o777), '0o700', 'mode of the directory')
    check_equal(oct(os.stat(traces_below(scratch())[0]).st_mode & 0o777), '0o600', 'mode of the file')
    said = gputrace('report', '--json', cwd=scratch())[0]
    check_equal({row['metric']: row['value'] for row in json.loads(said)['sections']['overview']['rows']}['launches'], LAUNCHES, 'report finds the newest here')


def test_relative_output_and_a_program_that_changes_its_folder():
    os.mkdir(scratch('elsewhere'))
    text = f'import os, sys; sys.path.insert(0, {HERE!r}); from driver import Driver; os.chdir({scratch("elsewhere")!r}); d = Driver(); d.launch(d.kernel("step"))'
    traced([sys.executable, '-c', text], {'GPUTRACE_OUTPUT': 'relative/deep'}, output=scratch())
    check_equal(len(traces_below(scratch())), 1, 'one trace')


def test_ranks():
    for name, local in (('RANK', 'LOCAL_RANK'), ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_LOCAL_RANK'), ('PMIX_RANK', 'LOCAL_RANK'), ('PMI_RANK', 'MPI_LOCALRANKID'),
                        ('MV2_COMM_WORLD_RANK', 'LOCAL_RANK')):
        run = loop_traced({name: '12', local: '4'})
        check(os.path.basename(run.trace).startswith('rank0012-'), f'{name}: rank in the name', run.trace)
        check_equal(rows(run, 'run')[0]['rank'], 12, f'{name}: rank in the report')
        forget_run()
    run = loop_traced({'SLURM_PROCID': '0', 'SLURM_NTASKS': '1'})
    check(not os.path.basename(run.trace).startswith('rank'), 'one Slurm task is no rank', run.trace)
    forget_run()
    run = loop_traced({'SLURM_PROCID': '3', 'SLURM_NTASKS': '4'})
    check(os.path.basename(run.trace).startswith('rank0003-'), 'Slurm task 3 of 4', run.trace)


def test_rank_filter():
    for selected, ranks in (('0,8-15', {'0', '8', '15'}), ('local0', set()), ('3', {'3'})):
        for rank in ('0', '3', '7', '8', '15', '16'):
            run = loop_traced({'RANK': rank, 'LOCAL_RANK': '1', 'GPUTRACE_RANKS': selected})
            check_equal(bool(run.traces if os.path.isdir(run.output) else []), rank in ranks, f'GPUTRACE_RANKS={selected}, rank {rank}')
            forget_run()
    run = loop_traced({'RANK': '5', 'LOCAL_RANK': '0', 'GPUTRACE_RANKS': 'local0'})
    check_equal(len(run.traces), 1, 'local rank 0')


def test_process_filter():
    for pattern, wanted in (('drv_.*', True), ('^drv_linked$', True), ('python', False), ('linked', True)):
        run = loop_traced({'GPUTRACE_PROCESS': pattern})
        check_equal(bool(run.traces if os.path.isdir(run.output) else []), wanted, f'GPUTRACE_PROCESS={pattern}')
        forget_run()


TIMED = r'''
import sys, time
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
k = d.kernel('step')
begin, sent = time.monotonic(), []
while time.monotonic() - begin < 1.6:
    d.launch(k)
    time.sleep(0.01)
print('done')
'''


def span_of(run):
    launches = [record['begin_ns'] for record in records(run, 'KernelLaunch')]
    truth = [line['call_begin_ns'] for line in run.truth_of('kernel')]
    first = min(line['call_begin_ns'] for line in run.truth)
    return [(min(launches) - first) / 1e9, (max(launches) - first) / 1e9], (max(truth) - first) / 1e9, len(launches), truth


def test_duration_and_delay():
    for env, begin, end in (({'GPUTRACE_DURATION': '600ms'}, 0, 0.6), ({'GPUTRACE_DELAY': '0.7'}, 0.7, None), ({'GPUTRACE_DELAY': '400ms', 'GPUTRACE_DURATION': '500ms'}, 0.4, 0.9)):
        run = traced([sys.executable, '-c', TIMED, HERE], {**CALLS, **env})
        check_equal((run.returncode, run.stdout), (0, b'done\n'), 'the program goes on to its end')
        (first, last), whole, count, truth = span_of(run)
        end = whole if end is None else end
        check(abs(first - begin) < 0.2 and abs(last - end) < 0.2, f'{env}: the window', first, last, whole)
        check(whole > 1.5, 'the program launched all the time', whole)
        zero = min(line['call_begin_ns'] for line in run.truth)
        inside = [at for at in truth if begin + 0.1 < (at - zero) / 1e9 < end - 0.1]
        check(len(inside) <= count <= len([at for at in truth if begin - 0.2 < (at - zero) / 1e9 < end + 0.2]), 'all launches of the window', len(inside), count)
        forget_run()


PROFILER = r'''
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
k = d.kernel('step')
def launch(n):
    for i in range(n): d.launch(k)
launch(5); d('cuProfilerStart'); launch(11); d('cuProfilerStop'); launch(7); d('cuProfilerStart'); launch(2); d('cuProfilerStop'); launch(3)
'''


def test_capture_by_the_profiler_api():
    run = traced([sys.executable, '-c', PROFILER, HERE], {'GPUTRACE_CAPTURE': 'profiler-api'})
    check_equal(run.returncode, 0, run.stderr)
    check_equal(metrics(run)['launches'], 13, 'launches between start and stop')
    calls = {row['call']: row['calls'] for row in rows(run, 'api')}
    check('cuModuleLoadData' not in calls and calls['cuLaunchKernel'] == 13, 'what was told of the time before is no call of the window', calls)
    forget_run()
    run = traced([sys.executable, '-c', PROFILER, HERE])
    check_equal(metrics(run)['launches'], 28, 'launches without it')
    forget_run()
    run = traced([sys.executable, '-c', PROFILER, HERE], mode='run', options=('--capture', 'profiler-api'))
    check_equal(metrics(run)['launches'], 13, 'with the option of run')


def test_kernels_keep_their_names_when_capture_begins_late():
    run = traced([sys.executable, '-c', PROFILER, HERE], {'GPUTRACE_CAPTURE': 'profiler-api'})
    check_equal({(row['symbol'], row['launches']) for row in rows(run, 'kernels')}, {('step', 13)}, 'named before the capture began')


def test_a_window_without_a_call():
    run = traced([sys.executable, '-c', PROFILER, HERE], {'GPUTRACE_DELAY': '1h'})
    screen = gputrace('report', run.output)[0]
    check('no CUDA call is in this trace' in screen and 'no call was made in the window' in screen and 'everything was flushed' not in screen, 'the screen', screen)


def test_values_that_cannot_be_used():
    for name, value in (('GPUTRACE_BUFFER', 'much'), ('GPUTRACE_BUFFER', '1'), ('GPUTRACE_BUFFER', '99999G'), ('GPUTRACE_DURATION', 'soon'), ('GPUTRACE_DELAY', '-5'), ('GPUTRACE_CAPTURE', 'maybe'),
                        ('GPUTRACE_ON_FULL', 'wait'), ('GPUTRACE_COLLECT', 'api,everything'), ('GPUTRACE_RANKS', '1-'), ('GPUTRACE_PROCESS', '('), ('GPUTRACE_MAX_SIZE', 'big'),
                        ('GPUTRACE_SHM', 'carrier-pigeon'), ('GPUTRACE_CAPTURE', 'manual'), ('GPUTRACE_KEEP', 'last'), ('GPUTRACE_SIGNAL', 'USR1'),
                        ('GPUTRACE_METRICS', 'textfile:/tmp/m'), ('GPUTRACE_CONFIG', '/tmp/c.toml')):
        run = loop_traced({name: value})
        check_equal(len(run.traces), 1, f'{name}={value}: it is traced all the same')
        said = warnings_of(run)
        check(any(name in text for text in said), f'{name}={value}: the report says so', said)
        check_equal(metrics(run)['launches'], 7, f'{name}={value}: everything is there')
        screen = re.sub(r'\s+', ' ', gputrace('report', run.output)[0])
        check(f'Note {name}' in screen, f'{name}={value}: so does the first screen', screen)
        forget_run()


def test_unknown_names():
    run = loop_traced({'GPUTRACE_BUFFFER': '64M', 'GPUTRACE_': 'x', 'GPUTRACEX': 'y'})
    said = warnings_of(run)
    check(any('GPUTRACE_BUFFFER' in text and 'GPUTRACE_BUFFER' in text.replace('GPUTRACE_BUFFFER', '') for text in said), 'the nearest name', said)
    check_equal(len([text for text in said if 'GPUTRACE_BUFFFER' in text]), 1, 'once')
    forget_run()
    run = loop_traced({'GPUTRACE_BUFFER': '8M', 'GPUTRACE_LOG': 'debug', 'GPUTRACE_CUPTI': 'off', 'GPUTRACE_GRAPHS': 'launch', 'GPUTRACE_KEEP': 'first'})
    check_equal([text for text in warnings_of(run) if 'not a variable' in text], [], 'known names')


def test_what_is_not_built_is_said():
    run = loop_traced({'GPUTRACE_COLLECT': 'api,memory,counters'})
    missing = {entry['what']: entry['why'] for entry in report(run)['coverage']['not_collected']}
    check('counters' in missing and 'not built' in missing['counters'], 'what was asked for and is not there', missing)
    check('api' not in missing and 'memory' not in missing, 'what is there', missing)
    check(not warnings_of(run), 'asking for it is no mistake', warnings_of(run))
    forget_run()
    run = loop_traced({})
    missing = {entry['what'] for entry in report(run)['coverage']['not_collected']}
    check(not {'nvtx', 'code', 'api'} & missing and 'latency' in missing, 'what the default has and has not', missing)


def test_log():
    run = loop_traced({'GPUTRACE_LOG': 'debug'})
    logs = [name for name in os.listdir(run.output) if name.endswith('.log')]
    check(logs, 'a log in the output directory', os.listdir(run.output))
    check(os.path.getsize(os.path.join(run.output, logs[0])) > 0, 'it says something')
    forget_run()
    run = loop_traced({})
    check_equal([name for name in os.listdir(run.output) if not name.endswith('.gtrace')], [], 'nothing but the trace without it')


def test_options_of_run():
    command = [program('drv_linked')]
    run = traced(command, mode='run', options=('-d', '5m', '--delay', '0', '--collect', 'api'))
    check_equal((run.returncode, metrics(run)['launches']), (0, LAUNCHES), 'launches')
    for bad in (('-d', 'soon'), ('--collect', 'nothing-like-it'), ('--capture', 'maybe'), ('--capture', 'steps:2-1'), ('--capture', 'steps:0-2'), ('--capture', 'steps:1-2-3'), ('--no-such',), ('--delay', 'x')):
        code, out, err = gputrace('run', *bad, '--', *command, rc=None)
        check_equal((code, out), (125, ''), f'run {bad}')
        check(err.startswith('gputrace: ') and bad[0].lstrip('-')[0] in err, 'a clear line', err)
    traced(command, {'GPUTRACE_OUTPUT': scratch('from-env')}, mode='run', output=scratch('other'))
    check(traces_below(scratch('other')) and not os.path.exists(scratch('from-env')), 'the option beats the environment')


# Made here, piece by piece: no scanner of sources takes them for real ones.
def secret(number):
    letters = random.Random(number)
    return 'aB3' + ''.join(letters.choice('abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789') for _ in range(33))


# Each as a program's argument(s); {} is the secret, one of its own for each.
PLANTED = [
    ['--token={}'], ['--token', '{}'], ['--api-key={}'], ['--db-password', '{} with blanks {}'], ['--password={} with blanks {}'], ['--pw', '{}'], ['-p', '{}'],
    ['-p{}'], ['-u', 'ann:{}'], ['-uann:{}'], ['--user=ann:{}'], ['--user', 'ann:{}'], ['-U', 'house\\ann%{}'], ['-b', 'session={}'], ['--cookie', 'a={}; b={}'],
    ['-H', 'Cookie: session={}; theme={}'], ['-H', 'Authorization: Bearer {}'], ['-H', 'Authorization: Basic {}'], ['-H', 'X-Api-Key: {}'], ['HF_TOKEN={}'],
    ['PGPASSWORD={}'], ['MYSQL_PWD={}'], ['https://ann:{}@host/path'], ['https://{}@host/path'], ['https://host/?access_token={}&a=b'], ['redis://:{}@host:6379/0'],
    ['x', 'AKIA{}'], ['npm_{}'], ['pypi-{}'], ['dckr_pat_{}'], ['AIza{}'], ['GOCSPX-{}'], ['ya29.{}'], ['1//0{}'], ['xoxb-{}'], ['xoxc-{}'], ['xapp-{}'],
    ['https://hooks.slack.com/services/T0/B0/{}'], ['SG.{}.{}'], ['hf_{}'], ['ghp_{}'], ['github_pat_{}'], ['glpat-{}'], ['sk-{}'], ['hvs.{}'], ['nvapi-{}'],
    ['-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n{}'], ['{{"auths": {{"host": {{"auth": "{}"}}}}}}'], ['{{"private_key": "{}", "n": 1}}'],
    ['DefaultEndpointsProtocol=https;AccountKey={};x=y'], ['eyJ{}.eyJ{}.{}'], ['sh -c mysql -u ann -p{} base'], ['bash -c "curl -u ann:{} host"'],
    ['run --password {} --lr 0.1'], ['run --password "{} {}" --lr 0.1'], ['a --token={} -v'],
]
KEPT = ['--lr=0.001', '--max-tokens=4096', '--tokenizer=gpt2', '-p8080', '-pthread', '/data/model-00001.safetensors', 's3://bucket/key', 'echo -n done']
VARIABLES = {'AWS_SECRET_ACCESS_KEY': '{}', 'HF_TOKEN': 'hf_{}', 'DATABASE_URL': 'postgres://ann:{}@host/db', 'NCCL_NET_PLUGIN': 'ann:{}@host', 'CUDA_CACHE_PATH': 'sk-{}',
             'CUDA_LOGIN': '{}', 'NCCL_COMM_ID': '{}', 'XLA_FLAGS': '--token={}', 'RANK_OF': '{}', 'CUBLAS_LICENSE': '{}', 'GPUTRACE_NOTHING': '{}'}


def test_secrets_are_not_kept():
    secrets = []

    def plant(text):
        def one(_):
            secrets.append(secret(len(secrets)))
            return secrets[-1]
        return re.sub(r'\{\{|\}\}|\{\}', lambda found: {'{{': '{', '}}': '}'}.get(found[0]) or one(found), text)

    arguments = [plant(word) for shape in PLANTED for word in shape] + KEPT
    variables = {name: plant(value) for name, value in VARIABLES.items()}
    check(len(PLANTED) >= 40 and len(set(secrets)) == len(secrets), 'many shapes, each with a secret of its own')
    run = traced([compiled('any_arguments.c', CUDA + 'int main(void) { return launch(3); }', '-lcuda'), *arguments], {**variables, 'CUDA_VISIBLE_DEVICES': '0', 'NCCL_DEBUG': 'INFO'})
    check_equal((run.returncode, metrics(run)['launches']), (0, 3), 'it runs')
    said = ''.join(gputrace(*words, run.output)[0] for words in (('report', '--json'), ('report', '--all'), ('dump',), ('dump', '--info'), ('dump', '--info', '--json')))
    with open(run.trace, 'rb') as file:
        said += file.read().decode('latin-1')
    found = [(number, text) for number, text in enumerate(secrets) if text in said or text[8:28] in said]
    check(not found, 'no secret in the report, in dump, in the file', [(text, next((word for word in arguments + list(variables.values()) if text in word), '')) for _, text in found])
    check(all(word in said for word in KEPT), 'what is none is there', [word for word in KEPT if word not in said])
    check('env.CUDA_VISIBLE_DEVICES' in said and 'env.NCCL_DEBUG' in said, 'variables of the list are there', said[:500])
    check(not any(f'env.{name}' in said for name in ('CUDA_LOGIN', 'NCCL_COMM_ID', 'RANK_OF', 'CUBLAS_LICENSE', 'HF_TOKEN', 'DATABASE_URL')), 'others are not')


main()
