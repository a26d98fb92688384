# meson: timeout=600
# The matrix of hosts: programs that nobody here wrote, with and without the library, byte for byte: exit code, stdout, stderr. A host whose program is
# not installed is skipped. (In files of their own: valgrind and gdb's child, test_debuggers; musl, TSan, MSan, test_strange_hosts; ASan, a second
# interposer, test_coexist; supervisors, test_strange_hosts; ffmpeg and hashcat, test_real_programs.)

import shlex

from small_programs import *

LAUNCHES = 21  # of drv_linked


def needs(*names):
    for name in names:
        if not shutil.which(name):
            skip(f'{name} is not installed')


def needs_root():
    if os.geteuid() != 0:
        skip('needs root')


def written(name, text, mode=0o755):
    with open(scratch(name), 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(scratch(name), mode)
    return scratch(name)


def check_same(command, env=None, said=lambda output: output, **options):
    """Without us, with us switched off, and with us; `said`: what of the output can be compared. Returns the traced run."""
    def what(run):
        return run.returncode, said(run.stdout), said(run.stderr)
    options = {'timeout': 240, **options}
    plain = what(untraced(command, env, **options))
    check(0 <= plain[0] < 126 and (plain[1] or plain[2] or not plain[0]), 'it runs without us', plain)
    check_equal(what(untraced(command, {**(env or {}), 'GPUTRACE': '0', 'LD_PRELOAD': places.library}, **options)), plain, 'with us switched off')
    run = traced(command, {**CALLS, **(env or {})}, **options)
    check_equal(what(run), plain, 'with us')
    return run


# ---------------------------------------------------------------------------------------------------- hosts without CUDA
SHELL = r'''
count=0
for word in one two three; do count=$((count + 1)); (echo "sub $word"; exit $count) || echo "code $?"; done
echo "$(echo inner | tr a-z A-Z | rev)" `expr 6 \* 7`
sleep 0.05 & wait $! && echo waited
trap 'echo trapped' EXIT
{ echo out; echo err >&2; } 2>&1 | sort | cat
{ /bin/sh -c 'kill -9 $$'; } 2>/dev/null; echo "killed $?"
no-such-program-here; echo "missing $?"
cat <<TXT
here $count
TXT
'''


def shell(name, *command):
    def host():
        needs(name)
        return [*(command or (name,)), written('script', SHELL)]
    return host


def fish():
    needs('fish')
    return ['fish', '--no-config', written('script', 'for word in one two\n  echo (echo $word | rev)\nend\ntrue | cat; and echo fine\nsh -c "exit 3"; echo $status\n')]


def make():
    needs('make', 'cc')
    os.makedirs(scratch('tree'))
    rules = 'all: $(addsuffix .o,$(NAMES))\n\t@cat *.txt | sort\n%.o: %.c\n\t@$(CC) -c -O1 $< -o $@ && echo made $@ > $*.txt\n'
    written('tree/Makefile', 'NAMES = ' + ' '.join(f'part{i}' for i in range(12)) + '\n' + rules)
    for i in range(12):
        written(f'tree/part{i}.c', f'int part{i}(int a) {{ return a * {i}; }}\n')
    return ['sh', '-c', 'rm -f *.o *.txt; make -j4 --no-print-directory && size part3.o && cc -shared *.o -o all.so && nm -D --defined-only all.so | wc -l'], {}, {'cwd': scratch('tree')}


def git():
    needs('git')
    text = r'''
set -e
rm -rf repo copy; git init -q -b main repo; cd repo
for i in 1 2 3; do echo $i > file$i; git add .; git commit -q -m "change $i"; done
git log --format='%h %s' --stat; git gc -q; git fsck; git branch other; git checkout -q other; git rebase -q main
cd ..; git clone -q repo copy; git -C copy rev-parse HEAD; git -C copy no-such-verb || echo "code $?"
'''
    who = {f'GIT_{whom}_{what}': value for whom in ('AUTHOR', 'COMMITTER') for what, value in
           (('NAME', 'ann'), ('EMAIL', 'a@b'), ('DATE', '2020-01-01T00:00:00Z'))}
    return ['sh', written('script', text)], {**who, 'HOME': scratch(), 'GIT_CONFIG_NOSYSTEM': '1'}, {'cwd': scratch()}


def perl():
    needs('perl')
    return ['perl', written('script', r'''
use strict; $| = 1;
$SIG{CHLD} = 'DEFAULT'; my $sum = 0;
for my $i (1 .. 5) { my $pid = fork // die; if (!$pid) { exit $i; } waitpid $pid, 0; $sum += $? >> 8; }
print "$sum ", `echo from perl`, system("exit 3") >> 8, "\n";
open my $pipe, '-|', 'sort', $0 or die; my @lines = <$pipe>; close $pipe; print scalar(@lines), "\n";
local $SIG{ALRM} = sub { print "alarm\n" }; alarm 1; select undef, undef, undef, 2;
exec 'sh', '-c', 'echo last; exit 4';
''')]


def ruby():
    needs('ruby')
    return ['ruby', written('script', "puts (1..4).map { |i| Thread.new { i * i } }.map(&:value).sum\npid = fork { exit! 5 }\nProcess.wait pid\n"
                                      "puts $?.exitstatus, `echo child`, IO.popen(['sort'], 'r+') { |p| p.puts 'b', 'a'; p.close_write; p.read }\n")]


def lua():
    needs('lua5.4')
    return ['lua5.4', written('script', 'print(io.popen("echo child"):read("a"), os.execute("exit 3"))\n')]


def tcl():
    needs('tclsh')
    return ['tclsh', written('script', 'puts [exec echo child | tr a-z A-Z]\nputs [catch {exec sh -c "exit 3"} text]\nputs $text\n')]


def node():
    needs('node')
    return ['node', written('main.js', r'''
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const child = require('child_process');
if (!isMainThread) { parentPort.postMessage(workerData * 2); }
else if (process.argv[2] === 'forked') { process.send({ sum: 5 }); process.disconnect(); }
else (async () => {
  const doubled = await Promise.all([1, 2, 3].map(n => new Promise(done => new Worker(__filename, { workerData: n }).on('message', done))));
  console.log(doubled, child.execSync('echo shell').toString(), child.spawnSync(process.execPath, ['-e', 'process.exit(7)']).status);
  const message = await new Promise(done => child.fork(__filename, ['forked']).on('message', done));
  console.log(message);
  require('fs').readFile(__filename, (error, data) => { console.log(data.length > 100); process.exitCode = 3; });
})();
''')]


def java():
    needs('javac', 'java')
    source = written('Main.java', r'''
public class Main {
  public static void main(String[] words) throws Exception {
    java.util.concurrent.ExecutorService pool = java.util.concurrent.Executors.newFixedThreadPool(8);
    java.util.List<java.util.concurrent.Future<Integer>> all = new java.util.ArrayList<>();
    for (int i = 0; i < 40; ++i) { final int n = i; all.add(pool.submit(() -> n * n)); }
    int sum = 0;
    for (java.util.concurrent.Future<Integer> one : all) sum += one.get();
    pool.shutdown();
    Process child = new ProcessBuilder("sh", "-c", "echo child; exit 3").redirectErrorStream(true).start();
    System.out.println(sum + " " + new String(child.getInputStream().readAllBytes()).trim() + " " + child.waitFor());
    try { Object nothing = null; nothing.hashCode(); } catch (NullPointerException expected) { System.out.println("caught"); }
    System.exit(5);
  }
}
''')
    subprocess.run(['javac', '-d', scratch(), source], check=True, timeout=240, stdin=subprocess.DEVNULL)
    return ['java', '-Xmx256m', '-cp', scratch(), 'Main']


def setuid_program():
    needs('setpriv')
    needs_root()
    binary = compiled('setuid.c', '#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) { printf("%d %d %d\\n", (int)getuid(), (int)geteuid(), '
                                  'getenv("LD_PRELOAD") != 0); return system("exit 3") >> 8; }\n')
    os.chmod(scratch(), 0o755)
    os.chmod(binary, 0o4755)
    return ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', binary]


def file_capabilities():
    needs('setpriv', 'setcap')
    needs_root()
    binary = compiled('able.c', '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", (int)geteuid()); return 3; }\n')
    os.chmod(scratch(), 0o755)
    if subprocess.run(['setcap', 'cap_net_raw=ep', binary], check=False, capture_output=True).returncode:
        skip('this file system has no file capabilities')
    return ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', binary]


def static_program():
    return [compiled('static.c', '#include <stdio.h>\nint main(void) { puts("static"); return 3; }\n', '-static')]


def go_static():
    return [built_by_go('package main\nimport ("fmt"; "os"; "os/exec"; "sync")\nfunc main() {\n var group sync.WaitGroup\n sums := make([]int, 50)\n'
                        ' for i := range sums { group.Add(1); go func(i int) { defer group.Done(); sums[i] = i * i }(i) }\n group.Wait()\n sum := 0\n'
                        ' for _, one := range sums { sum += one }\n out, err := exec.Command("sh", "-c", "echo child").Output()\n fmt.Println(sum, string(out), err)\n os.Exit(3)\n}\n', '0')]


WITHOUT_CUDA = {
    'sh': shell('sh'), 'bash': shell('bash', 'bash', '--norc'), 'dash': shell('dash'), 'zsh': shell('zsh', 'zsh', '-f'), 'busybox_sh': shell('busybox', 'busybox', 'sh'),
    'fish': fish, 'make': make, 'git': git, 'perl': perl, 'ruby': ruby, 'lua': lua, 'tcl': tcl, 'node': node, 'java': java, 'setuid_program': setuid_program,
    'file_capabilities': file_capabilities, 'static_program': static_program, 'go_static': go_static,
}


# --------------------------------------------------------------------------------------------------- what carries a CUDA program
def carried_by(*words, root=False):
    """WORDS CUDA-PROGRAM: as the program alone, and its launches are in the trace."""
    def host():
        needs(words[0])
        if root:
            needs_root()
            probe = subprocess.run([*words, 'true'], check=False, capture_output=True, stdin=subprocess.DEVNULL, cwd=scratch())
            if probe.returncode:
                skip(f'{" ".join(words)}: {probe.stderr.decode(errors="replace").strip()[:100]}')
        return [*words, program('drv_linked')]
    return host


def strace():
    needs('strace')
    return ['strace', '-f', '-qq', '-o', '/dev/null', program('drv_linked')]


def gdb():
    needs('gdb')
    # The program writes elsewhere: gdb writes "[" and then the rest of a line, and what came in between went with that line.
    output = scratch('of the program')
    asked = ['gdb', '-nx', '-q', '-batch', '-ex', 'set confirm off', '-ex', 'set debuginfod enabled off', '-ex', f"run > '{output}'", '--args', program('drv_linked')]
    return (['sh', '-c', f'{shlex.join(asked)}; status=$?; cat {shlex.quote(output)}; exit $status'], {},
            {'said': lambda output: re.sub(rb'(?m)^\[.*\n|^warning: Error disabling address.*\n|0x[0-9a-f]+|\d+', b'', output)})


def xargs():
    needs('xargs')
    return ['sh', '-c', 'echo | xargs -P 2 ' + program('drv_linked')]


def find_exec():
    needs('find')
    return ['find', '/dev/null', '-exec', program('drv_linked'), ';']


def audited():
    audit = compiled('audit.c', '#define _GNU_SOURCE\n#include <link.h>\nunsigned la_version(unsigned version) { return version; }\n'
                                'unsigned la_objopen(struct link_map* map, Lmid_t id, uintptr_t* cookie) { return LA_FLG_BINDTO | LA_FLG_BINDFROM; }\n', '-shared', '-fPIC')
    return [program('drv_linked')], {'LD_AUDIT': audit}


def undefined_behaviour_sanitizer():
    try:
        binary = compiled('ubsan.c', CUDA + f'int main(int count, char** words) {{ int big = 2147483647; return launch({LAUNCHES}) + (big + count > 0 ? 0 : 3); }}\n',
                          '-fsanitize=undefined', '-lcuda')
    except Failed as error:
        skip(f'no -fsanitize=undefined: {str(error)[:100]}')
    return [binary]


def library_namespaces():
    """What is opened in a namespace of its own is another copy of everything, the driver too: it is not seen, and the program's own calls are."""
    text = CUDA + f'''
#define __USE_GNU
#include <dlfcn.h>
int main(void) {{
  void* other = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
  double (*root)(double) = other ? (double (*)(double))dlsym(other, "sqrt") : 0;
  printf("%d\\n", root ? (int)root(49.0) : -1);
  return launch({LAUNCHES}) || dlclose(other);
}}
'''
    return [compiled('namespaces.c', text.replace('#include <cuda.h>', '#define _GNU_SOURCE\n#include <cuda.h>'), '-lcuda', '-ldl')]


def allocator(pattern):
    def host():
        found = glob.glob('/usr/lib/*/' + pattern) + glob.glob('/usr/local/lib/' + pattern)
        if not found:
            skip(f'{pattern} is not installed')
        # Linked, as such programs are; a preloaded one is tried in test_coexist.
        return [compiled('allocating.c', CUDA + f'#include <stdlib.h>\nint main(void) {{ for (int i = 0; i < 1000; ++i) free(malloc(i * 100)); return launch({LAUNCHES}); }}\n',
                         '-lcuda', '-Wl,--no-as-needed', found[0])]
    return host


DLOPEN = 'void* cuda = dlopen("libcuda.so.1", 2); int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit"); int (*count)(int*) = (int (*)(int*))dlsym(cuda, "cuDeviceGetCount");'


def built_by_go(text, cgo):
    needs('go', 'cc')
    source = written('main.go', text)
    # A cache beside the build: the language's library is compiled once.
    env = {**os.environ, 'GOCACHE': os.path.join(BUILD, 'e2e-go-cache'), 'GO111MODULE': 'off', 'CGO_ENABLED': cgo, 'GOFLAGS': '', 'HOME': scratch(), 'GOTOOLCHAIN': 'local'}
    done = subprocess.run(['go', 'build', '-o', scratch('main'), source], env=env, cwd=scratch(), check=False, capture_output=True, timeout=500)
    check(done.returncode == 0, 'go builds it', done.stderr[-1000:])
    return scratch('main')


WITH_CUDA = {
    'env': carried_by('env', 'A=b'), 'timeout': carried_by('timeout', '60'), 'nohup': carried_by('nohup'), 'nice': carried_by('nice', '-n', '5'),
    'setsid': carried_by('setsid', '-w'), 'taskset': carried_by('taskset', '1'), 'stdbuf': carried_by('stdbuf', '-oL'), 'setarch': carried_by('setarch', '-R'),
    'prlimit': carried_by('prlimit', '--nofile=64'), 'flock': carried_by('flock', '/dev/null'), 'chroot': carried_by('chroot', '/', root=True),
    'no_new_privileges': carried_by('setpriv', '--no-new-privs', root=True),
    'user_namespace': carried_by('unshare', '--user', '--map-root-user', root=True), 'mount_namespace': carried_by('unshare', '--mount', root=True),
    'network_namespace': carried_by('unshare', '--net', root=True), 'ipc_and_uts_namespace': carried_by('unshare', '--ipc', '--uts', root=True),
    'cgroup_namespace': carried_by('unshare', '--cgroup', root=True),
    'strace': strace, 'gdb': gdb, 'xargs': xargs, 'find_exec': find_exec, 'ld_audit': audited, 'undefined_behaviour_sanitizer': undefined_behaviour_sanitizer,
    'dlmopen': library_namespaces, 'jemalloc': allocator('libjemalloc.so.2'), 'tcmalloc': allocator('libtcmalloc_minimal.so.4'), 'mimalloc': allocator('libmimalloc.so.2*'),
}


def arguments(made):
    """(command, environment, options) of what a host gives: the command alone, or more."""
    return made + ({}, {})[len(made) - 1:] if isinstance(made, tuple) else (made, {}, {})




def of_table(table, with_cuda):
    def one(host):
        def test():
            command, env, options = arguments(host())
            run = check_same(command, env, **options)
            if with_cuda:
                check_equal(metrics(run)['launches'], LAUNCHES, 'launches')
                check_conservation(run)
            else:
                check(not os.path.exists(run.output), 'nothing was made')
        return test
    globals().update({f'test_{name}': one(host) for name, host in table.items()})


of_table(WITHOUT_CUDA, False)
of_table(WITH_CUDA, True)


def test_programs_of_32_bits():
    try:
        binary = compiled('narrow.c', '#include <stdio.h>\nint main(void) { printf("%d\\n", (int)sizeof(void*)); return 3; }\n', '-m32')
    except Failed:
        skip('no compiler for 32 bits (gcc-multilib)')
    plain, run = untraced([binary]), traced([binary])
    check_equal((run.returncode, run.stdout, plain.stderr), (3, b'4\n', b''), 'as without us')
    # The loader's own line, which only a library for both could spare: docs/LIMITS.md.
    check(all(line.startswith(b'ERROR: ld.so: object ') and b'wrong ELF class' in line for line in run.stderr.splitlines()), "the loader's line alone", run.stderr)


PYTHON = r'''
import ctypes, multiprocessing, os, subprocess, sys, threading

def work(number, answers):
    cuda = ctypes.CDLL('libcuda.so.1')
    count = ctypes.c_int()
    answers.put((number, cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value > 0))

if __name__ == '__main__':
    # While there is one thread: from 3.12 on a fork with more is warned of.
    pid = os.fork()
    if not pid:
        os._exit(9)
    print(os.waitpid(pid, 0)[1] >> 8, flush=True)
    for method in ('fork', 'spawn', 'forkserver'):
        context = multiprocessing.get_context(method)
        answers = context.Queue()
        workers = [context.Process(target=work, args=(i, answers)) for i in range(2)]
        for worker in workers:
            worker.start()
        print(method, sorted(answers.get() for _ in workers))
        for worker in workers:
            worker.join()
        print([worker.exitcode for worker in workers])
        with context.Pool(2) as pool:
            print(pool.map(abs, range(-3, 3)))
    print(subprocess.check_output([sys.executable, '-c', 'print(6 * 7)'], close_fds=True), subprocess.call('exit 3', shell=True), os.popen('echo popen').read())
    threads = [threading.Thread(target=lambda: None) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stderr.write('last\n')
    sys.exit(4)
'''


def pythons():
    found = {}
    for minor in range(6, 16):
        for path in sorted(glob.glob(os.path.expanduser(f'~/.pyenv/versions/3.{minor}.*/bin/python3'))) + [shutil.which(f'python3.{minor}') or '', '/usr/bin/python3']:
            if path and os.path.exists(path) and 'shims' not in path and f'3.{minor}' in os.path.realpath(path) and minor not in found:
                found[minor] = path
    return found


def of_python(minor):
    def test():
        path = pythons().get(minor) or skip(f'python3.{minor} is not installed')
        script = written('main.py', PYTHON)
        command = [path, '-W', 'always::DeprecationWarning', script]
        plain = untraced(command)
        check(plain.returncode == 4, 'it runs without us', plain.stderr)
        run = traced(command, CALLS)
        check_equal((run.returncode, run.stdout, run.stderr), (plain.returncode, plain.stdout, plain.stderr), 'with us')
        check_equal({row['call']: row['calls'] for row in rows(run, 'api')}, {'cuInit': 6}, 'calls of the six workers')
        check_equal(len(run.traces), 6, 'a trace for each worker, and none for the others')
    return test


for _minor in range(8, 14):
    globals()[f'test_python3_{_minor}'] = of_python(_minor)


def calls_in_threads(binary):
    run = check_same([binary])
    check_equal({row['call']: row['calls'] for row in rows(run, 'api')}, {'cuInit': 9}, 'calls of main and eight threads')


def test_go_with_c():
    calls_in_threads(built_by_go('package main\n/*\n#cgo LDFLAGS: -ldl\n#include <dlfcn.h>\nstatic int ask(void) { int n = 0; ' + DLOPEN + ' return init(0) || count(&n) ? -1 : n; }\n*/\n'
                                 'import "C"\nimport ("fmt"; "os"; "os/exec"; "runtime"; "sync")\nfunc main() {\n C.ask()\n var group sync.WaitGroup\n bad := make([]bool, 8)\n'
                                 ' for i := range bad { group.Add(1); go func(i int) { defer group.Done(); runtime.LockOSThread(); bad[i] = C.ask() < 1 }(i) }\n group.Wait()\n'
                                 ' out, _ := exec.Command("echo", "child").Output()\n fmt.Print(bad, string(out))\n func() { defer func() { fmt.Println(recover()) }(); var none *int; *none = 1 }()\n os.Exit(0)\n}\n', '1'))


def test_rust():
    needs('rustc', 'cc')
    source = written('main.rs', r'''
use std::ffi::{c_char, c_int, c_uint, c_void};
extern "C" { fn dlopen(name: *const c_char, mode: c_int) -> *mut c_void; fn dlsym(from: *mut c_void, name: *const c_char) -> *mut c_void; }
fn ask() -> c_int {
    unsafe {
        let cuda = dlopen(b"libcuda.so.1\0".as_ptr() as *const c_char, 2);
        let init: extern "C" fn(c_uint) -> c_int = std::mem::transmute(dlsym(cuda, b"cuInit\0".as_ptr() as *const c_char));
        let count: extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(dlsym(cuda, b"cuDeviceGetCount\0".as_ptr() as *const c_char));
        let mut n = 0;
        init(0) + count(&mut n)
    }
}
fn main() {
    ask();
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(ask)).collect();
    let bad: c_int = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let child = std::process::Command::new("sh").arg("-c").arg("echo child; exit 3").output().unwrap();
    println!("{} {} {:?}", bad, String::from_utf8_lossy(&child.stdout), child.status.code());
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| panic!("here"));
    println!("{}", caught.is_err());
}
''')
    done = subprocess.run(['rustc', '-O', '-o', scratch('main'), source, '-ldl'], check=False, capture_output=True, timeout=240, cwd=scratch())
    if done.returncode:
        skip(f'rustc does not build here: {done.stderr.decode(errors="replace")[-200:]}')
    calls_in_threads(scratch('main'))


main()
