"""What 2,000 threads at a time, of 20 launches each, cost: processor time of the program, beside the same untraced and beside a client of CUPTI that
does nothing but read its records. The driver and CUPTI are simulated: what is between the client and untraced is CUPTI's own part.
"""
import os
import shutil
import statistics

from bench import Table, built, harness, scratch

ROUNDS = 21
COMMAND = ['threads=2000', 'alive=2000', 'launches=20']


def processor_seconds(program, env):
    """Of the program alone: the sidecar is nobody's child."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(('GPUTRACE', 'SIMGPU_', 'LD_', 'GT_'))}
    null = os.open(os.devnull, os.O_RDWR)
    pid = os.posix_spawn(program, [program, *COMMAND], {**variables, **env}, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    os.close(null)
    _, status, used = os.wait4(pid, 0)
    if status or harness.wait_for_orphans(60):
        raise SystemExit(f'bench: {program}: status {status}')
    return used.ru_utime + used.ru_stime


def main():
    program, simgpu = built('thread_calls'), harness.places.simgpu
    base = {'LD_LIBRARY_PATH': simgpu}
    output = os.path.join(scratch.name, 'threads')
    traced = {**base, 'LD_PRELOAD': harness.places.library, 'GPUTRACE_OUTPUT': output}
    modes = {'untraced': base, 'a client of CUPTI that only reads': {**base, 'LD_PRELOAD': built('libcupti_client.so')},
             'api': {**traced, 'GPUTRACE_COLLECT': 'api'}, 'api, device': {**traced, 'GPUTRACE_COLLECT': 'api,device'}}
    seconds = {name: [] for name in modes}
    for _ in range(ROUNDS):
        for name, env in modes.items():
            seconds[name].append(processor_seconds(program, env))
            shutil.rmtree(output, ignore_errors=True)
    middle = {name: statistics.median(each) for name, each in seconds.items()}
    table = Table(f'threads: processor time of 2,000 threads of 20 launches (median of {ROUNDS} runs, in turn)')
    for name, each in middle.items():
        ratio = each / middle['untraced']
        goal = '<= 1.2 times' if name in ('api', 'api, device') else ''
        table.add(name, f'{each * 1000:.0f} ms, {ratio:.2f} times', goal, ratio <= 1.2 if goal else None)
    table.add('api, device: beside that client', f"{middle['api, device'] / middle['a client of CUPTI that only reads']:.2f} times", '<= 1.2 times', middle['api, device'] <= 1.2 * middle['a client of CUPTI that only reads'])
    table.show()


main()
