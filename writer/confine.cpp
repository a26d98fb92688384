#include "writer/confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <vector>

#include "base/types.h"

namespace gputrace {
namespace {

#if defined(__x86_64__)
constexpr u32 kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr u32 kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr u32 kArchitecture = 0;
#endif

constexpr u32 kX32 = 0x40000000;  // the numbers of x32, for the same architecture

// Refused with EPERM. A list of what is refused, not of what is allowed: a new libc may need a call that nobody knows
// yet.
constexpr u32 kRefused[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_writev,
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_kill,
    SYS_tkill,
    SYS_setuid,
    SYS_setgid,
    SYS_mount,
    SYS_umount2,
    SYS_renameat,
    SYS_clone,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_init_module,
    SYS_kexec_load,
    SYS_finit_module,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setgroups,
    SYS_capset,
    SYS_unshare,
    SYS_setns,
    SYS_chroot,
    SYS_pivot_root,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_userfaultfd,
    SYS_open_by_handle_at,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mknodat,
    SYS_fchownat,
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
    SYS_process_madvise,
#endif
#ifdef SYS_open_tree
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
#endif
#ifdef SYS_clone3
    SYS_clone3,
#endif
#ifdef SYS_unlink
    SYS_link,
    SYS_symlink,
    SYS_mknod,
    SYS_chown,
    SYS_lchown,
    SYS_unlink,
    SYS_rename,
    SYS_fork,
    SYS_vfork,
#endif
#ifdef SYS_renameat2
    SYS_renameat2,
#endif
#ifdef SYS_pidfd_send_signal
    SYS_pidfd_send_signal,
#endif
};

}  // namespace

void confine(int ring_directory, bool reads_processes) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !kArchitecture) return;
  std::vector<u32> refused(std::begin(kRefused), std::end(kRefused));
  if (ring_directory < 0) refused.push_back(SYS_unlinkat);
  if (!reads_processes) refused.push_back(SYS_process_vm_readv);
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),  // another table of calls: int 0x80
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#ifdef __x86_64__
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
#endif
  };
  constexpr std::size_t kAfterList = 3;  // instructions before the refusal
  for (std::size_t i = 0; i < refused.size(); ++i)
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], static_cast<u8>(refused.size() - i + kAfterList), 0));
  // unlinkat: below that one directory, never with another one's descriptor or the working directory.
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlinkat, 0, 2));
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)));  // its low half
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<u32>(ring_directory), 0, 1));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  (void)::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

}  // namespace gputrace
