#include "cli/run/memory_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "cli/small_files.h"

namespace gputrace {
namespace {

constexpr Nanos kKnownFor = 1'000'000'000;  // so long a process is believed to be the one that was looked up
constexpr u32 kMostAncestors = 256;

i32 parent_of(i32 process) {
  const std::string text = read_file("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_end = text.rfind(')');  // the name may hold one
  i32 parent = 0;
  if (name_end == std::string::npos || std::sscanf(text.c_str() + name_end + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

}  // namespace

MemoryServer::MemoryServer() : file_(::memfd_create("gtmemory", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  // Sealed: nobody who has it open can take away what is mapped here.
  if (!file_ || ::ftruncate(file_.get(), sizeof(MemoryDesks)) != 0 ||
      ::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return;
  void* const mapped = ::mmap(nullptr, sizeof(MemoryDesks), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) return;
  desks_ = static_cast<MemoryDesks*>(mapped);
  desks_->version = MemoryDesks::kVersion;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the business of the thread that waits for the program
  try {
    thread_ = std::thread([this] { serve(); });
    path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
  } catch (const std::system_error&) {  // no thread to be had: nothing is served
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

MemoryServer::~MemoryServer() {
  over_ = true;
  if (thread_.joinable()) {
    desks_->bell.fetch_add(1);
    futex_wake(desks_->bell);
    thread_.join();
  }
  if (desks_) ::munmap(desks_, sizeof *desks_);
}

void MemoryServer::serve() {
  while (!over_) {
    const u32 bell = desks_->bell.load();
    bool any = false;
    for (u32 i = 0; i < MemoryDesks::kCount; ++i) {
      MemoryDesk& desk = desks_->desk[i];
      if (desk.owner.load(std::memory_order_relaxed) == 0 ||
          desk.state.load(std::memory_order_acquire) != static_cast<u32>(DeskState::Asked))
        continue;
      answer(desk, desks_->paper[i]);
      any = true;
    }
    if (!any && !over_) futex_wait(desks_->bell, bell, nullptr);
  }
}

void MemoryServer::answer(MemoryDesk& desk, DeskPaper& paper) {
  const Nanos begin = clock_nanos(CLOCK_THREAD_CPUTIME_ID);
  desk.result = read_for(desk, paper);
  desk.cpu.fetch_add(static_cast<u64>(clock_nanos(CLOCK_THREAD_CPUTIME_ID) - begin), std::memory_order_relaxed);
  desk.state.store(static_cast<u32>(DeskState::Answered), std::memory_order_release);
  futex_wake(desk.state);
}

// Each word of the desk is read once: its owner could change it meanwhile.
i64 MemoryServer::read_for(const MemoryDesk& desk, DeskPaper& paper) {
  const i32 process = *static_cast<const volatile i32*>(&desk.process);
  const u32 pieces = *static_cast<const volatile u32*>(&desk.pieces);
  if (pieces == 0 || pieces > MemoryDesk::kMostPieces) return -EINVAL;
  if (!comes_from_here(process)) return -EPERM;
  std::vector<iovec> there;
  there.reserve(pieces);
  u64 total = 0;
  for (u32 i = 0; i < pieces; ++i) {
    const volatile MemoryDesk::Piece& asked = paper.piece[i];
    const u64 address = asked.address, size = asked.size;
    if (size > MemoryDesk::kMostBytes - total) return -EINVAL;
    there.push_back({reinterpret_cast<void*>(address), size});
    total += size;
  }
  const iovec here{paper.bytes, total};
  const ssize_t got = ::process_vm_readv(process, &here, 1, there.data(), there.size(), 0);
  return got < 0 ? -errno : got;
}

bool MemoryServer::comes_from_here(i32 process) {
  const Nanos now = monotonic_nanos();
  for (const Known& known : known_)
    if (known.process == process && now < known.until) return true;
  const i32 own = ::getpid();
  i32 at = process;
  for (u32 i = 0; i < kMostAncestors && at > 1 && at != own; ++i) at = parent_of(at);
  if (at != own || process == own) return false;
  known_[next_known_++ % std::size(known_)] = {process, now + kKnownFor};
  return true;
}

}  // namespace gputrace
