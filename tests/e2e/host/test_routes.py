# meson: timeout=240
# Every route to the driver (linked, dlopen, cuGetProcAddress, runtimes, plugins, Python): every call in the trace once, call by call.
from against_truth import *

ROUTES = {
    'linked': ['drv_linked'],
    'dlopen_local': ['drv_dlopen'],
    'dlopen_global': ['drv_dlopen', 'mode=global'],
    'dlopen_deepbind': ['drv_dlopen', 'mode=deepbind'],
    'gpa_v1': ['drv_gpa', 'api=v1'],
    'gpa_v1_again': ['drv_gpa', 'api=v1', 'again=1', 'flags=1'],
    'gpa_v2': ['drv_gpa', 'api=v2'],
    'gpa_v2_again': ['drv_gpa', 'api=v2', 'again=1'],
    'gpa_v2_per_thread': ['drv_gpa', 'api=v2', 'again=1', 'flags=2'],
}
LAUNCHES = 21


def check_route(command, launches=LAUNCHES, env=None, **options):
    run = traced(command, {**CALLS, **(env or {})})
    same_output(untraced(command, env), run)
    check_call_by_call(run, **options)
    check_equal(check_launches_against_truth(run), launches, 'launches')
    check_equal(len([record for record in records(run, 'KernelLaunch') if record['level'] == 'driver']), launches, 'launch records')
    check_equal(metrics(run)['launches'], launches, 'launches in the report')
    _, _, dropped = check_conservation(run)
    check_equal(dropped, 0, 'dropped')
    return run


def _route_test(words):
    def test():
        check_route([program(words[0]), *words[1:]])
    return test


for _name, _words in ROUTES.items():
    globals()[f'test_{_name}'] = _route_test(_words)


def test_dlopen_by_absolute_path():
    check_route([program('drv_dlopen'), 'path=' + os.path.join(places.simgpu, 'libcuda.so.1')])


def test_per_thread_variants_are_named():
    run = check_route([program('drv_gpa'), 'api=v2', 'flags=2'])
    variants = {record['variant'] for record in records(run, 'KernelLaunch')}
    check_equal(variants, {'cuLaunchKernel_ptsz'}, 'the variant that was called')
    check(all(record['flags'] & PER_THREAD for record in records(run, 'KernelLaunch')), 'the per-thread flag')


def test_plugin_local():
    check_route([program('drv_plugin'), 'plugin=' + program_file('plugin_driver.so')])


def test_plugin_deepbind():
    check_route([program('drv_plugin'), 'plugin=' + program_file('plugin_driver.so'), 'mode=deepbind'])


def test_plugin_with_its_own_runtime_local():
    check_route([program('drv_plugin'), 'plugin=' + program_file('plugin_runtime.so')], compile_time_clusters={'any'})


def test_plugin_with_its_own_runtime_deepbind():
    check_route([program('drv_plugin'), 'plugin=' + program_file('plugin_runtime.so'), 'mode=deepbind'])


def test_constructor_before_ours():
    # The library's constructor runs before any of ours: its launches may pass untraced, all later ones are in the trace.
    command = [program('drv_ctor')]
    run = traced(command, CALLS)
    same_output(untraced(command), run)
    launched, seen = len(run.truth_of('kernel')), len(records(run, 'KernelLaunch'))
    counts = dict(re.findall(r'launches (before main|in main|at thread end|in atexit|in a static destructor|after main) (\d+)', run.stdout.decode()))
    check_equal(sum(map(int, counts.values())), launched, 'launches that the program counted')
    check_equal(seen, launched, 'all launches, those of the constructor too')
    check_launches_against_truth(run)
    check_conservation(run)


def test_python_local_global_deepbind():
    script = os.path.join(SOURCE, 'tests', 'programs', 'driver', 'drv_ctypes.py')
    for mode in ('local', 'global', 'deepbind'):
        forget_run()
        check_route([sys.executable, script, f'mode={mode}', 'count=11'], 11)


main()
