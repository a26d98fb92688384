// The functions that libgputrace-host.so stands before. Each calls what is behind it once, with its arguments as they are, and keeps
// errno as that left it. The real call runs in a frame without cleanups: pthread_cancel and longjmp pass through.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <type_traits>

#include "base/clock.h"
#include "interpose/host/connect.h"
#include "interpose/host/descriptors.h"
#include "interpose/host/host_sums.h"
#include "interpose/host/real_functions.h"

namespace gputrace::host {
namespace {

constexpr Nanos kLeastWait = 2'000;       // ns; what is shorter is no wait: a lock that was free
constexpr Nanos kLeastTold = 20'000;      // reading a stack takes about one microsecond
constexpr u64 kLeastToldBytes = 8 << 10;  // as copying that does; what Python's own buffers hold

// Written by the thread that begins a session, before it sets these two.
constinit HostConnection connection{};
constinit std::atomic<bool> files_on{false}, waits_on{false};

void add_wait_of(WaitFor what, Nanos length) {
  if (length < kLeastWait) return;
  add_wait(length >= kLeastTold ? connection.frame() : 0, what, length);
}

void add_descriptor_wait(DescriptorKind kind, Nanos length) {
  if (kind == DescriptorKind::Pipe) return add_wait_of(WaitFor::Pipe, length);
  if (kind == DescriptorKind::Socket) return add_wait_of(WaitFor::Socket, length);
  if (kind == DescriptorKind::Terminal) return add_wait_of(WaitFor::Terminal, length);
}

// A call that is to be counted; `at` is 0 where it is not.
struct Begun {
  Nanos at = 0;
  bool files = false, waits = false;
};

// Meanwhile another thread may have forbidden system calls to all.
bool is_counted(const Begun& begun) { return begun.at != 0 && connection.wanted(); }

Begun begin(bool files) {
  const Begun begun{0, files && files_on.load(std::memory_order_acquire), waits_on.load(std::memory_order_acquire)};
  if (!(begun.files || begun.waits) || !connection.wanted()) return {};
  return {monotonic_nanos(), begun.files, begun.waits};
}
Begun begin_file() { return begin(true); }
Begun begin_wait() { return begin(false); }

u32 frame_of_file_call(u64 bytes, Nanos length) {
  return length >= kLeastTold || bytes >= kLeastToldBytes ? connection.frame() : 0;
}

void end_file(const Begun& begun, FileCall call, int descriptor, u64 bytes) {
  if (!is_counted(begun)) return;
  const Nanos length = monotonic_nanos() - begun.at;
  if (begun.files) {
    const Descriptor file = describe(descriptor);
    add_file(file.path, frame_of_file_call(bytes, length), call, bytes, length);
    if (begun.waits) add_descriptor_wait(file.kind, length);
  } else if (length >= kLeastWait) {
    add_descriptor_wait(kind_of(descriptor), length);
  }
}

void end_open(const Begun& begun, FileCall call, int descriptor) {
  forget(descriptor);
  if (!begun.files || descriptor < 0 || !is_counted(begun)) return;
  const Nanos length = monotonic_nanos() - begun.at;
  add_file(describe(descriptor).path, frame_of_file_call(0, length), call, 0, length);
}

void end_wait(const Begun& begun, WaitFor what) {
  if (is_counted(begun)) add_wait_of(what, monotonic_nanos() - begun.at);
}

// CPython waits for condition variables, and for mutexes, for its lock alone; its other locks are semaphores.
bool is_interpreter(const void* caller) {
  const u64 at = reinterpret_cast<u64>(caller);
  return at >= connection.interpreter_begin && at < connection.interpreter_end;
}
WaitFor condition_of(const void* caller) {
  return is_interpreter(caller) ? WaitFor::InterpreterLock : WaitFor::Condition;
}
WaitFor lock_of(const void* caller) { return is_interpreter(caller) ? WaitFor::InterpreterLock : WaitFor::Mutex; }

template <typename Result>
u64 bytes_of(Result moved) {
  return static_cast<i64>(moved) > 0 ? static_cast<u64>(moved) : 0;
}

// Of a stream that has none (memory, a cookie) fileno sets errno: the one call of libc's here that does.
int descriptor_of(FILE* file) {
  const auto real = reinterpret_cast<int (*)(FILE*)>(find_real(Function::fileno));
  if (!real || !file) return -1;
  const int error = errno, descriptor = real(file);
  errno = error;
  return descriptor;
}

}  // namespace

void connect_to(const HostConnection& to) {
  files_on.store(false, std::memory_order_release);
  waits_on.store(false, std::memory_order_release);
  connection = to;
  set_table(to.table, to.table_size);
  files_on.store(to.files && to.table, std::memory_order_release);
  waits_on.store(to.waits && to.table, std::memory_order_release);
}

}  // namespace gputrace::host

using namespace gputrace;
using namespace gputrace::host;

// glibc before 2.34 has some of them in libpthread alone: a program without it may have a weak reference, which has come to us.
template <typename Result>
Result nobody_has_it() {
  errno = ENOSYS;
  if constexpr (std::is_pointer_v<Result>)
    return nullptr;
  else
    return static_cast<Result>(-1);
}

#define GT_EXPORT extern "C" __attribute__((visibility("default")))

GT_EXPORT void gputrace_host_connect(const HostConnection* to) { connect_to(*to); }

__attribute__((constructor)) static void gputrace_host_loaded() { find_all_real(); }

// Declared under a name of its own: libc's headers say what they promise of theirs (noexcept, nonnull), and may replace them by macros.
#define GT_HOST(Result, name, parameters)                        \
  GT_EXPORT Result gputrace_before_##name parameters asm(#name); \
  GT_EXPORT Result gputrace_before_##name parameters
#define GT_REAL(Result, name, parameters) reinterpret_cast<Result(*) parameters>(find_real(Function::name))

// ------------------------------------------------------------------ files
#define GT_FILE(Result, name, parameters, arguments, call, descriptor, bytes) \
  GT_HOST(Result, name, parameters) {                                         \
    const auto real = GT_REAL(Result, name, parameters);                      \
    if (!real) [[unlikely]]                                                   \
      return nobody_has_it<Result>();                                         \
    const Begun begun = begin_file();                                         \
    const Result got = real arguments;                                        \
    if (begun.at != 0) end_file(begun, FileCall::call, descriptor, bytes);    \
    return got;                                                               \
  }

GT_FILE(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size), Read, fd, bytes_of(got))
GT_FILE(ssize_t, __read_chk, (int fd, void* to, size_t size, size_t room), (fd, to, size, room), Read, fd,
        bytes_of(got))
GT_FILE(ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at), Pread, fd, bytes_of(got))
GT_FILE(ssize_t, pread64, (int fd, void* to, size_t size, off_t at), (fd, to, size, at), Pread, fd, bytes_of(got))
GT_FILE(ssize_t, __pread_chk, (int fd, void* to, size_t size, off_t at, size_t room), (fd, to, size, at, room), Pread,
        fd, bytes_of(got))
GT_FILE(ssize_t, __pread64_chk, (int fd, void* to, size_t size, off_t at, size_t room), (fd, to, size, at, room), Pread,
        fd, bytes_of(got))
GT_FILE(ssize_t, readv, (int fd, const iovec* to, int count), (fd, to, count), Readv, fd, bytes_of(got))
GT_FILE(ssize_t, preadv, (int fd, const iovec* to, int count, off_t at), (fd, to, count, at), Preadv, fd, bytes_of(got))
GT_FILE(ssize_t, preadv64, (int fd, const iovec* to, int count, off_t at), (fd, to, count, at), Preadv, fd,
        bytes_of(got))
GT_FILE(ssize_t, write, (int fd, const void* from, size_t size), (fd, from, size), Write, fd, bytes_of(got))
GT_FILE(ssize_t, pwrite, (int fd, const void* from, size_t size, off_t at), (fd, from, size, at), Pwrite, fd,
        bytes_of(got))
GT_FILE(ssize_t, pwrite64, (int fd, const void* from, size_t size, off_t at), (fd, from, size, at), Pwrite, fd,
        bytes_of(got))
GT_FILE(ssize_t, writev, (int fd, const iovec* from, int count), (fd, from, count), Writev, fd, bytes_of(got))
GT_FILE(ssize_t, pwritev, (int fd, const iovec* from, int count, off_t at), (fd, from, count, at), Pwritev, fd,
        bytes_of(got))
GT_FILE(ssize_t, pwritev64, (int fd, const iovec* from, int count, off_t at), (fd, from, count, at), Pwritev, fd,
        bytes_of(got))
GT_FILE(size_t, fread, (void* to, size_t each, size_t count, FILE* file), (to, each, count, file), Fread,
        descriptor_of(file), got* each)
GT_FILE(size_t, fread_unlocked, (void* to, size_t each, size_t count, FILE* file), (to, each, count, file), Fread,
        descriptor_of(file), got* each)
GT_FILE(size_t, __fread_chk, (void* to, size_t room, size_t each, size_t count, FILE* file),
        (to, room, each, count, file), Fread, descriptor_of(file), got* each)
GT_FILE(size_t, fwrite, (const void* from, size_t each, size_t count, FILE* file), (from, each, count, file), Fwrite,
        descriptor_of(file), got* each)
GT_FILE(size_t, fwrite_unlocked, (const void* from, size_t each, size_t count, FILE* file), (from, each, count, file),
        Fwrite, descriptor_of(file), got* each)
GT_FILE(int, fsync, (int fd), (fd), Fsync, fd, 0)
GT_FILE(int, fdatasync, (int fd), (fd), Fdatasync, fd, 0)

// The mode is there only with O_CREAT or O_TMPFILE; what is not there is passed on unread by libc, too.
#define GT_OPEN(name, parameters, typed, arguments, last)                        \
  GT_HOST(int, name, parameters) {                                               \
    va_list more;                                                                \
    va_start(more, last);                                                        \
    const bool has_mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; \
    const mode_t mode = has_mode ? va_arg(more, mode_t) : 0;                     \
    va_end(more);                                                                \
    const auto real = reinterpret_cast<int(*) typed>(find_real(Function::name)); \
    if (!real) [[unlikely]]                                                      \
      return nobody_has_it<int>();                                               \
    const Begun begun = begin_file();                                            \
    const int got = real arguments;                                              \
    end_open(begun, FileCall::Open, got);                                        \
    return got;                                                                  \
  }
GT_OPEN(open, (const char* path, int flags, ...), (const char*, int, ...), (path, flags, mode), flags)
GT_OPEN(open64, (const char* path, int flags, ...), (const char*, int, ...), (path, flags, mode), flags)
GT_OPEN(openat, (int folder, const char* path, int flags, ...), (int, const char*, int, ...),
        (folder, path, flags, mode), flags)
GT_OPEN(openat64, (int folder, const char* path, int flags, ...), (int, const char*, int, ...),
        (folder, path, flags, mode), flags)

#define GT_FOPEN(name)                                                  \
  GT_HOST(FILE*, name, (const char* path, const char* mode)) {          \
    const auto real = GT_REAL(FILE*, name, (const char*, const char*)); \
    if (!real) [[unlikely]]                                             \
      return nobody_has_it<FILE*>();                                    \
    const Begun begun = begin_file();                                   \
    FILE* const got = real(path, mode);                                 \
    if (got) end_open(begun, FileCall::Fopen, descriptor_of(got));      \
    return got;                                                         \
  }
GT_FOPEN(fopen)
GT_FOPEN(fopen64)

GT_HOST(int, close, (int fd)) {
  forget(fd);
  const auto real = GT_REAL(int, close, (int));
  return real ? real(fd) : nobody_has_it<int>();
}

// ------------------------------------------------------------------ waits
#define GT_WAIT(Result, name, parameters, arguments, what) \
  GT_HOST(Result, name, parameters) {                      \
    const auto real = GT_REAL(Result, name, parameters);   \
    if (!real) [[unlikely]]                                \
      return nobody_has_it<Result>();                      \
    const Begun begun = begin_wait();                      \
    const Result got = real arguments;                     \
    end_wait(begun, what);                                 \
    return got;                                            \
  }
#define GT_CALLER condition_of(__builtin_return_address(0))

GT_WAIT(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex), (condition, mutex), GT_CALLER)
GT_WAIT(int, pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* until),
        (condition, mutex, until), GT_CALLER)
GT_WAIT(int, pthread_cond_clockwait,
        (pthread_cond_t * condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until),
        (condition, mutex, clock, until), GT_CALLER)
GT_WAIT(int, pthread_join, (pthread_t thread, void** result), (thread, result), WaitFor::Thread)
GT_WAIT(int, sem_wait, (sem_t * semaphore), (semaphore), WaitFor::Semaphore)
GT_WAIT(int, sem_timedwait, (sem_t * semaphore, const timespec* until), (semaphore, until), WaitFor::Semaphore)
GT_WAIT(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const timespec* until), (semaphore, clock, until),
        WaitFor::Semaphore)
GT_WAIT(int, poll, (pollfd * of, nfds_t count, int time), (of, count, time),
        count != 0 ? WaitFor::Descriptors : WaitFor::Sleep)
GT_WAIT(int, __poll_chk, (pollfd * of, nfds_t count, int time, size_t room), (of, count, time, room),
        count != 0 ? WaitFor::Descriptors : WaitFor::Sleep)
GT_WAIT(int, ppoll, (pollfd * of, nfds_t count, const timespec* time, const sigset_t* mask), (of, count, time, mask),
        count != 0 ? WaitFor::Descriptors : WaitFor::Sleep)
GT_WAIT(int, select, (int count, fd_set* in, fd_set* out, fd_set* other, timeval* time), (count, in, out, other, time),
        count != 0 ? WaitFor::Descriptors : WaitFor::Sleep)
GT_WAIT(int, pselect, (int count, fd_set* in, fd_set* out, fd_set* other, const timespec* time, const sigset_t* mask),
        (count, in, out, other, time, mask), count != 0 ? WaitFor::Descriptors : WaitFor::Sleep)
GT_WAIT(int, epoll_wait, (int of, epoll_event* events, int most, int time), (of, events, most, time),
        WaitFor::Descriptors)
GT_WAIT(int, epoll_pwait, (int of, epoll_event* events, int most, int time, const sigset_t* mask),
        (of, events, most, time, mask), WaitFor::Descriptors)
GT_WAIT(int, nanosleep, (const timespec* time, timespec* left), (time, left), WaitFor::Sleep)
GT_WAIT(int, clock_nanosleep, (clockid_t clock, int flags, const timespec* time, timespec* left),
        (clock, flags, time, left), WaitFor::Sleep)
GT_WAIT(int, usleep, (useconds_t time), (time), WaitFor::Sleep)
GT_WAIT(unsigned, sleep, (unsigned time), (time), WaitFor::Sleep)
GT_WAIT(ssize_t, recv, (int fd, void* to, size_t size, int flags), (fd, to, size, flags), WaitFor::Socket)
GT_WAIT(ssize_t, recvfrom, (int fd, void* to, size_t size, int flags, sockaddr* from, socklen_t* length),
        (fd, to, size, flags, from, length), WaitFor::Socket)
GT_WAIT(ssize_t, recvmsg, (int fd, msghdr* to, int flags), (fd, to, flags), WaitFor::Socket)
GT_WAIT(int, accept, (int fd, sockaddr* from, socklen_t* length), (fd, from, length), WaitFor::Socket)
GT_WAIT(int, accept4, (int fd, sockaddr* from, socklen_t* length, int flags), (fd, from, length, flags),
        WaitFor::Socket)
GT_WAIT(int, connect, (int fd, const sockaddr* to, socklen_t length), (fd, to, length), WaitFor::Socket)

// Only one that is held is waited for. What pthread_mutex_trylock answers of one that is free, or whose owner died, is what
// pthread_mutex_lock would.
GT_HOST(int, pthread_mutex_lock, (pthread_mutex_t * mutex)) {
  const auto real = GT_REAL(int, pthread_mutex_lock, (pthread_mutex_t*));
  if (!real) return ENOSYS;
  const auto try_lock = GT_REAL(int, pthread_mutex_trylock, (pthread_mutex_t*));
  if (!try_lock || !waits_on.load(std::memory_order_acquire)) return real(mutex);
  if (const int tried = try_lock(mutex); tried != EBUSY) return tried;
  const Begun begun = begin_wait();
  const int result = real(mutex);
  end_wait(begun, lock_of(__builtin_return_address(0)));
  return result;
}
