# meson: timeout=120
# A process that gives up its user after its first CUDA call: what it does then is not written into that user's directory.
from small_programs import *

# words[1]: how; then five launches as the user that it began as, a pause, and seven more.
GIVING_UP = r"""
#define _GNU_SOURCE
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int change(const char* how) {
  if (!strcmp(how, "setuid")) return setuid(65534);
  if (!strcmp(how, "setresuid")) return setgroups(0, 0) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534);
  if (!strcmp(how, "raw")) return syscall(SYS_setresuid, 65534, 65534, 65534);
  if (!strcmp(how, "for-a-while")) return seteuid(65534);
  if (!strcmp(how, "group")) return setgroups(0, 0) || setgid(65534);
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0}};
  return !strcmp(how, "capabilities") ? syscall(SYS_capset, &header, none) : 0;
}
int main(int count, char** words) {
  CUdevice device; CUcontext context; CUmodule module; CUfunction function;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  int bad = 0;
  for (int i = 0; i < 5; ++i) bad |= cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
  bad |= change(words[1]) != 0;
  usleep(600000);
  if (!strcmp(words[1], "for-a-while")) bad |= seteuid(0);
  for (int i = 0; i < 7; ++i) bad |= cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
  usleep(50000);
  printf("%d %d %d %d\n", bad, (int)getuid(), (int)geteuid(), (int)getgid());
  return bad;
}
"""


def giving_up():
    if os.geteuid() != 0:
        skip('only root can become another user')
    return compiled('giving_up.c', CUDA + GIVING_UP, '-lcuda')


def run_of(binary, how):
    plain, run = both([binary, how])
    check_equal(run.returncode, 0, f'{how}: it does what it wants to')
    return run


def test_a_user_given_up_for_good():
    binary = giving_up()
    for how in ('setuid', 'setresuid', 'raw'):
        run = run_of(binary, how)
        coverage = report(run)['coverage']
        check_equal(metrics(run)['launches'], 5, f'{how}: launches before it')
        check(not coverage['complete'], f'{how}: not complete', coverage)
        check_conservation(run)
        check('after it gave up its user' in ' '.join(gputrace('report', run.output)[0].split()), f'{how}: it is said')
        check('gave up user 0 and is user 65534' in json.dumps(report(run)), f'{how}: and when')
        check_equal(gputrace('report', '--strict', run.output, rc=None)[0], 4, '--strict')
        forget_run()


def test_a_user_that_is_still_its_own():
    binary = giving_up()
    for how in ('none', 'for-a-while', 'group', 'capabilities'):
        run = run_of(binary, how)
        check_equal(metrics(run)['launches'], 12, f'{how}: launches')
        check(report(run)['coverage']['complete'], f'{how}: complete', report(run)['coverage'])
        forget_run()


main()
