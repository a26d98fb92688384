# meson: timeout=120
# Clocks, power and temperature: only where asked for; minimum, mean and maximum, and the time in which clocks were held down, as the
# simulated samples have them.
from timeline_truth import *

PROGRAM = f'''
import sys, time
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
k = d.kernel('step')
end = time.monotonic() + 0.4
while time.monotonic() < end:
    d.launch(k)
    time.sleep(0.002)
d('cuCtxSynchronize')
'''


def sampled(env):
    path = scratch('program.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(PROGRAM)
    env = {'SIMGPU_CLOCK': 'monotonic', **env}
    run = traced([sys.executable, path], env)
    same_output(untraced([sys.executable, path], env), run)
    return run


def test_numbers_are_those_of_the_samples():
    run = sampled({'GPUTRACE_COLLECT': 'api,device,environment', 'SIMGPU_DEVICES': '2'})
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    for record in records(run, 'DeviceEnvironment'):
        samples[record['device']][record['kind']].append(record)
    table = rows(run, 'environment')
    held, clocked = 0, 0
    check_equal({row['device'] for row in table}, set(samples), 'devices')
    for device, kinds in samples.items():
        speeds = sorted(kinds[1], key=lambda record: record['at'])
        count = len(speeds)
        check(count >= 5, 'samples over the run', count)
        check_equal([(s['first'], s['second'], s['third']) for s in speeds],
                    [(1755 - 15 * (n % 4), 2619, 4 if n % 4 == 3 else 0) for n in range(count)], 'speed samples as they were simulated')
        said = {row['what']: row for row in table if row['device'] == device}
        for what, values in (('SM clock, MHz', [1755 - 15 * (n % 4) for n in range(count)]), ('memory clock, MHz', [2619] * count),
                             ('temperature, C', [42 + n % 8 for n in range(count)]), ('power, W', [350 + n % 10 for n in range(count)])):
            row = said[what]
            check_equal((row['samples'], row['share']), (count, None), what)
            for name, wanted in (('min', min(values)), ('max', max(values)), ('mean', sum(values) / count)):
                check(abs(row[name] - wanted) < 1e-6, f'{name} of {what}', row, wanted)
        check_equal(said['power, W']['limit'], 700.0, 'limit')
        capped = sum(b['at'] - a['at'] for a, b in zip(speeds, speeds[1:]) if a['third'] == 4)
        span = speeds[-1]['at'] - speeds[0]['at']
        row = said['clocks low: power cap']
        check_equal(row['time_ns'], capped, 'time under the power cap')
        check(abs(row['share'] - capped / span) < 1e-9, 'share', row, capped, span)
        check_equal([what for what in said if what.startswith('clocks low')], ['clocks low: power cap'], 'reasons')
        held, clocked = held + capped, clocked + span
    check(abs(metrics(run)['clocks_held_down_ratio'] - held / clocked) < 1e-9, 'overview', metrics(run), held, clocked)


def test_not_asked_for_it_is_absent_with_the_reason():
    run = sampled({})
    check_equal(records(run, 'DeviceEnvironment'), [], 'no samples')
    answer = report(run)
    check('environment' not in answer['sections'], 'no section')
    check_equal([each['why'] for each in answer['coverage']['not_collected'] if each['what'] == 'environment'],
                ['not asked for (GPUTRACE_COLLECT): clocks, power, temperature'], 'why')
    check_equal(metrics(run)['clocks_held_down_ratio'], None, 'not known')


main()
