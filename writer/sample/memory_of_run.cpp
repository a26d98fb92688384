#include "writer/sample/memory_of_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace gputrace {
namespace {

// Draining waits as long: `run` answers within some 20 us where a processor is free.
constexpr Nanos kAnswerPatience = 5'000'000;

// Numbers of processes mean the same here and there.
bool is_in_our_namespace(i32 process) {
  struct stat own {
  }, other{};
  return ::stat("/proc/self/ns/pid", &own) == 0 &&
         ::stat(("/proc/" + std::to_string(process) + "/ns/pid").c_str(), &other) == 0 && own.st_ino == other.st_ino;
}

}  // namespace

std::unique_ptr<MemoryOfRun> MemoryOfRun::open(const Environment& environment) {
  const std::string path = environment("GPUTRACE_RUN_MEMORY");
  i32 run = 0;
  if (std::sscanf(path.c_str(), "/proc/%d/fd/", &run) != 1 || !is_in_our_namespace(run)) return nullptr;
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  // Sealed against shrinking: reading it cannot fault.
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || info.st_size != sizeof(MemoryDesks)) return nullptr;
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return nullptr;
  void* const mapped = ::mmap(nullptr, sizeof(MemoryDesks), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const desks = static_cast<MemoryDesks*>(mapped);
  std::unique_ptr<MemoryOfRun> made(new MemoryOfRun(desks, run));
  return desks->version == MemoryDesks::kVersion ? std::move(made) : nullptr;
}

MemoryOfRun::~MemoryOfRun() {
  if (desk_ && is_free()) desk_->owner.store(0, std::memory_order_release);
  ::munmap(desks_, sizeof *desks_);
}

// A desk whose sidecar was killed is free too, once its question is answered.
bool MemoryOfRun::take_desk() {
  const auto own = static_cast<u32>(::getpid());
  for (MemoryDesk& desk : desks_->desk) {
    u32 owner = desk.owner.load(std::memory_order_relaxed);
    if (owner != 0 && (process_stat(static_cast<i32>(owner)).known ||
                       desk.state.load(std::memory_order_acquire) == static_cast<u32>(DeskState::Asked)))
      continue;
    if (!desk.owner.compare_exchange_strong(owner, own, std::memory_order_acq_rel)) continue;
    desk_ = &desk;
    return true;
  }
  return false;
}

bool MemoryOfRun::is_free() {
  return desk_->state.load(std::memory_order_acquire) != static_cast<u32>(DeskState::Asked);
}

bool MemoryOfRun::wait_for_answer(Nanos length) {
  const Nanos until = monotonic_nanos() + length;
  while (!is_free()) {
    const Nanos left = until - monotonic_nanos();
    if (left <= 0) return false;
    const timespec pause{0, left};
    futex_wait(desk_->state, static_cast<u32>(DeskState::Asked), &pause);
  }
  return true;
}

ssize_t MemoryOfRun::read(i32 process, const iovec* here, const iovec* there, std::size_t count) {
  const auto fail = [](int error) { return errno = error, ssize_t{-1}; };
  if (over_) return fail(EPERM);
  if (!desk_ && !take_desk()) return fail(EPERM);
  if (!is_free()) {  // what was asked last is not answered
    over_ = !process_stat(run_).known;
    return fail(over_ ? EPERM : ETIMEDOUT);
  }
  DeskPaper& paper = desks_->paper[desk_ - desks_->desk];
  u64 wanted = 0;
  if (count > MemoryDesk::kMostPieces) return fail(EINVAL);
  for (std::size_t i = 0; i < count; ++i) {
    paper.piece[i] = {reinterpret_cast<u64>(there[i].iov_base), there[i].iov_len};
    wanted += there[i].iov_len;
  }
  if (wanted > MemoryDesk::kMostBytes) return fail(EINVAL);
  desk_->process = process;
  desk_->pieces = static_cast<u32>(count);
  const u64 cpu_before = desk_->cpu.load(std::memory_order_relaxed);
  desk_->state.store(static_cast<u32>(DeskState::Asked), std::memory_order_release);
  desks_->bell.fetch_add(1);
  futex_wake(desks_->bell);
  if (!wait_for_answer(kAnswerPatience)) return fail(ETIMEDOUT);
  cpu_ += static_cast<Nanos>(desk_->cpu.load(std::memory_order_relaxed) - cpu_before);
  const i64 got = desk_->result;
  if (got < 0) return fail(static_cast<int>(-got));
  if (static_cast<u64>(got) != wanted) return got;
  const u8* from = paper.bytes;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(here[i].iov_base, from, here[i].iov_len);
    from += here[i].iov_len;
  }
  return got;
}

}  // namespace gputrace
