# meson: timeout=240
# Device records of the thinnest programs: each thing that ran, once, with the truth's times; on when asked for, off when not,
# and the reason in the trace.
from harness import *

STATES = {1: 'never', 2: 'on', 3: 'paused', 4: 'yielded', 5: 'failed', 6: 'ended'}


def has_simulated_cupti():
    if not os.path.exists(os.path.join(places.simgpu, 'libcupti.so.13')):
        skip('not built: simgpu/libcupti.so.13')


def states(run):
    found = sorted(records(run, 'DeviceState'), key=lambda record: record['begin_ns'])
    return [(STATES.get(record['state'], record['state']), record['reason'] or '') for record in found]


def words(run):
    return [state for state, _ in states(run)]


def clock(run):
    """CUPTI's clock minus CLOCK_MONOTONIC, and how far off it may be."""
    anchors = records(run, 'DeviceClock')
    check(len(anchors) >= 2, 'anchors at the start and at the end', anchors)
    differences = [anchor['device'] - (anchor['begin_ns'] + anchor['end_ns']) // 2 for anchor in anchors]
    width = max(anchor['end_ns'] - anchor['begin_ns'] for anchor in anchors)
    return sum(differences) // len(differences), max(differences) - min(differences) + width


def check_times(run, op, kind, wanted):
    offset, error = clock(run)
    truth = sorted((line['correlation'], line['start_ns'], line['end_ns']) for line in run.truth_of(op))
    seen = sorted((record['correlation'], record['start'] - offset, record['finish'] - offset) for record in records(run, kind))
    check_equal(len(truth), wanted, op)
    check_equal([entry[0] for entry in seen], [entry[0] for entry in truth], 'correlation ids')
    for (_, begin, end), (_, true_begin, true_end) in zip(seen, truth):
        check_equal(end - begin, true_end - true_begin, 'durations are exact')
        check(abs(begin - true_begin) <= error + 2000, 'times on the host clock', begin - true_begin, error)


def test_everything_that_ran():
    has_simulated_cupti()
    forget_run()
    run = traced([program('drv_linked')])
    check_equal(words(run), ['on', 'ended'], 'states')
    check('beside the loaded driver' in states(run)[0][1], 'why this library', states(run))
    check_times(run, 'kernel', 'DeviceKernel', 21)
    check_times(run, 'copy', 'DeviceCopy', len(run.truth_of('copy')))
    check_times(run, 'memset', 'DeviceMemset', len(run.truth_of('memset')))
    check_equal(len(records(run, 'DeviceLoss')), 0, 'losses')
    check_conservation(run)


def test_each_key_lies_within_its_call():
    has_simulated_cupti()
    forget_run()
    run = traced([program('drv_threads'), 'threads=20', 'alive=5'])
    offset, error = clock(run)
    keys = records(run, 'DeviceApi')
    kernels = {record['correlation'] for record in records(run, 'DeviceKernel')}
    launches = records(run, 'KernelLaunch')
    check_equal(len(launches), 60, 'launches')
    check_equal(len(kernels), 60, 'kernels, each with an id of its own')
    check(kernels <= {key['correlation'] for key in keys}, 'each kernel has a key')
    for launch in launches:
        inside = [key for key in keys if key['thread'] == launch['tid'] and key['correlation'] in kernels and
                  launch['begin_ns'] - error <= key['start'] - offset and key['finish'] - offset <= launch['end_ns'] + error]
        check_equal(len(inside), 1, f'one key within each launch ({launch})')


def test_switched_off():
    has_simulated_cupti()
    for env in ({'GPUTRACE_COLLECT': 'api'}, {'GPUTRACE_CUPTI': 'off'}):
        forget_run()
        run = traced([program('drv_linked')], env)
        check_equal(words(run), [], 'states')
        check_equal([record for record in dump(run) if record['record'].startswith('Device') and record['record'] != 'DeviceFacts'], [],
                    'device records')
        check_equal(len(records(run, 'KernelLaunch')), 21, 'launches')


def test_library_that_is_named():
    has_simulated_cupti()
    own = os.path.join(places.simgpu, 'libcupti.so.13')
    forget_run()
    run = traced([program('drv_linked')], {'GPUTRACE_CUPTI': own})
    check_equal(words(run), ['on', 'ended'], 'states')
    check('GPUTRACE_CUPTI' in states(run)[0][1], 'why', states(run))
    plain = untraced([program('drv_linked')])
    for name, reason in (('/nowhere/libcupti.so.13', 'no libcupti'), (os.path.join(places.simgpu, 'libcuda.so.1'), 'has no cupti')):
        forget_run()
        run = traced([program('drv_linked')], {'GPUTRACE_CUPTI': name})
        same_output(plain, run)
        check_equal(words(run), ['never'], 'states')
        check(reason in states(run)[0][1], 'why not', states(run))
        check_equal(len(records(run, 'KernelLaunch')), 21, 'launches')


def test_latency_stamps():
    has_simulated_cupti()
    forget_run()
    run = traced([program('drv_linked')], {'GPUTRACE_COLLECT': 'api,device,latency'})
    kernels = records(run, 'DeviceKernel')
    check_equal(len(kernels), 21, 'kernels')
    check(all(0 < record['queued'] <= record['submitted'] <= record['start'] for record in kernels), 'stamps', kernels[0])
    forget_run()
    run = traced([program('drv_linked')])
    check(all(record['queued'] == 0 == record['submitted'] for record in records(run, 'DeviceKernel')), 'none without')


def test_forked_child_leaves_cupti_alone():
    has_simulated_cupti()
    plain = untraced([program('drv_fork'), 'child=init'])
    forget_run()
    run = traced([program('drv_fork'), 'child=init'])
    same_output(plain, run)
    parents = [record for record in records(run, 'DeviceKernel')]
    check_equal(len({record['trace'] for record in parents}), 1, 'device records of the parent alone')
    check_equal(len(parents), 11, 'its kernels')


def test_fork_before_the_driver_was_used():
    has_simulated_cupti()
    plain = untraced([program('drv_fork'), 'child=init', 'when=before'])
    forget_run()
    run = traced([program('drv_fork'), 'child=init', 'when=before'])
    same_output(plain, run)
    check_equal(len({record['trace'] for record in records(run, 'DeviceState')}), 2, 'both collect')


WINDOW = r'''
#include <cuda.h>
#include <cudaProfiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define MUST(call) do { int r = (call); if (r) { fprintf(stderr, "%s: %d\n", #call, r); exit(70); } } while (0)
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";
int main(int argc, char** argv) {
  CUcontext context; CUmodule module; CUfunction step;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&module, ptx));
  MUST(cuModuleGetFunction(&step, module, "step"));
  if (argc > 2) usleep(300000);
  for (int round = 0; round < 5; ++round) {
    if (argc > 1 && (round == 1 || round == 3)) MUST(cuProfilerStart());
    for (int i = 0; i < 10 + round; ++i) MUST(cuLaunchKernel(step, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0));
    if (argc > 1 && (round == 1 || round == 3)) MUST(cuProfilerStop());
    MUST(cuCtxSynchronize());
    if (argc <= 1) usleep(300000);
  }
  return 0;
}
'''


def test_profiler_ranges_bound_collection():
    has_simulated_cupti()
    forget_run()
    run = traced([compiled('window.c', WINDOW, '-lcuda'), 'ranges'], {'GPUTRACE_CAPTURE': 'profiler-api'})
    check_equal(run.returncode, 0, run.stderr)
    check_equal(words(run), ['paused', 'on', 'paused', 'on', 'paused', 'ended'], 'states')
    check_equal(len(records(run, 'KernelLaunch')), 11 + 13, 'launches in the ranges')
    check_equal(len(records(run, 'DeviceKernel')), 11 + 13, 'kernels of the ranges, those that ran after their end too')


def test_time_before_the_window_is_no_cost_of_opening_it():
    has_simulated_cupti()
    forget_run()
    run = traced([compiled('window.c', WINDOW, '-lcuda'), 'ranges', 'late'], {'GPUTRACE_CAPTURE': 'profiler-api'})
    spent = [record['finish'] - record['start'] for record in records(run, 'DeviceOverhead') if record['kind_name'] == 'gputrace-setup']
    check(len(spent) == 3 and max(spent) < 200e6, 'opened once, switched on twice', spent)


def test_delay_and_duration_bound_collection():
    has_simulated_cupti()
    forget_run()
    run = traced([compiled('window.c', WINDOW, '-lcuda')], {'GPUTRACE_DELAY': '450ms', 'GPUTRACE_DURATION': '600ms'})
    check_equal(words(run), ['paused', 'on', 'paused', 'ended'], 'states')
    check_equal(len(records(run, 'KernelLaunch')), 12 + 13, 'launches in the window')
    check_equal(len(records(run, 'DeviceKernel')), 12 + 13, 'kernels in the window')


def test_every_record_is_delivered_or_counted():
    has_simulated_cupti()
    forget_run()
    calls = 300_000
    run = traced([program('drv_loop'), f'calls={calls}'], {'SIMGPU_CALL_TIME': 0, 'SIMGPU_LAUNCH_LATENCY': 0, 'SIMGPU_KERNEL_TIME': '.*=1us',
                                                           'GPUTRACE_BUFFER': '512K', 'SIMGPU_TRUTH': None})
    check_equal(run.returncode, 0, run.stderr)
    found = collections.Counter(record['record'] for record in dump(run))
    lost = sum(record['count'] for record in records(run, 'DeviceLoss'))
    check(found['DeviceKernel'] <= calls and found['DeviceApi'] <= calls + 8, 'none twice', found)
    missing = calls - found['DeviceKernel'] + max(0, calls - found['DeviceApi'])
    check(lost >= missing - 8 and (lost == 0) == (missing <= 0), 'what is missing is counted', found, lost, missing)


def test_every_failing_call_leaves_the_program_alone():
    has_simulated_cupti()
    plain = untraced([program('drv_linked')])
    for call in ('cuptiGetVersion', 'cuptiActivityRegisterCallbacks', 'cuptiActivityEnable', 'cuptiActivityFlushAll',
                 'cuptiActivityGetNextRecord', 'cuptiActivityGetNumDroppedRecords', 'cuptiGetTimestamp'):
        forget_run()
        run = traced([program('drv_linked')], {'SIMGPU_CUPTI': f'error={call}:1:999'})
        same_output(plain, run)
        state, reason = states(run)[-1]
        check(state == 'failed' and call in reason and '999' in reason, f'{call}: the reason', states(run))
        check_equal(len(records(run, 'KernelLaunch')), 21, 'calls are recorded all the same')
        check_conservation(run)


main()
