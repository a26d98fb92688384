#include "simgpu/libs/nccl/meeting.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace simlibs {
namespace {

constexpr uint64_t kMagic = 0x6c63636e6d6973;
constexpr uint64_t kFileBytes = uint64_t{1} << 62;  // sparse
constexpr uint64_t kCollectivesBegin = uint64_t{1} << 40;
constexpr uint64_t kPlaceBytes = uint64_t{1} << 40;  // of a collective; two a rank, up to 2048 ranks
constexpr uint64_t kMessagesBegin = uint64_t{1} << 53;
constexpr uint64_t kMessageBytes = uint64_t{1} << 37;  // two a pair
constexpr int kMostRanks = 2048;
constexpr size_t kWorthForgetting = size_t{1} << 20;  // smaller places keep their pages

struct Head {
  std::atomic<uint64_t> secret;
};
constexpr size_t kHeadBytes = 512;
static_assert(sizeof(Head) <= kHeadBytes);

size_t mapped_size(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return kHeadBytes + n * sizeof(RankLine) + n * n * sizeof(Pair);
}

uint64_t collective_place(int rank, uint64_t position) {
  return kCollectivesBegin + (static_cast<uint64_t>(rank) * 2 + position % 2) * kPlaceBytes;
}

uint64_t message_place(int from, int to, int ranks, uint64_t position) {
  const uint64_t pair = static_cast<uint64_t>(from) * static_cast<uint64_t>(ranks) + static_cast<uint64_t>(to);
  return kMessagesBegin + (pair * 2 + position % 2) * kMessageBytes;
}

bool write_all(int file, const void* data, size_t bytes, uint64_t at) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(file, from, bytes, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written, at += static_cast<uint64_t>(written), bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int file, void* data, size_t bytes, uint64_t at) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = pread(file, to, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got, at += static_cast<uint64_t>(got), bytes -= static_cast<size_t>(got);
  }
  return true;
}

void give_back(int file, uint64_t at, size_t bytes) {
  if (bytes < kWorthForgetting) return;
  (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at), static_cast<off_t>(bytes));
}

}  // namespace

bool Meeting::make(MeetingId& id) {
  const int file = memfd_create("simgpu-nccl", MFD_CLOEXEC);
  if (file < 0) return false;
  id = {kMagic, 0, getpid(), file};
  if (ftruncate(file, static_cast<off_t>(kFileBytes)) != 0 ||
      getrandom(&id.secret, sizeof id.secret, 0) != static_cast<ssize_t>(sizeof id.secret) ||
      !write_all(file, &id.secret, sizeof id.secret, 0)) {
    close(file);
    return false;
  }
  return true;
}

void Meeting::forget(const MeetingId& id) {
  uint64_t secret = 0;
  if (id.magic == kMagic && id.pid == getpid() && read_all(id.file, &secret, sizeof secret, 0) && secret == id.secret) {
    close(id.file);
  }
}

std::unique_ptr<Meeting> Meeting::open(const MeetingId& id, int rank, int ranks) {
  errno = EINVAL;
  if (id.magic != kMagic || ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) return nullptr;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", id.pid, id.file);
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const size_t bytes = mapped_size(ranks);
  uint64_t secret = 0;
  void* mapped = MAP_FAILED;
  if (read_all(file, &secret, sizeof secret, 0) && secret == id.secret) {
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (mapped == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  return std::unique_ptr<Meeting>(new Meeting(file, rank, ranks, mapped, bytes));
}

Meeting::Meeting(int file, int rank, int ranks, void* mapped, size_t bytes)
    : file_(file),
      rank_(rank),
      ranks_(ranks),
      mapped_(mapped),
      mapped_bytes_(bytes),
      lines_(reinterpret_cast<RankLine*>(static_cast<char*>(mapped) + kHeadBytes)),
      pairs_(reinterpret_cast<Pair*>(lines_ + ranks)),
      watched_(static_cast<size_t>(ranks), -1) {}

Meeting::~Meeting() {
  for (const int process : watched_) {
    if (process >= 0) close(process);
  }
  munmap(mapped_, mapped_bytes_);
  close(file_);
}

bool Meeting::announce(int device) {
  own().pid = getpid();
  own().device = device;
  auto absent = RankState::Absent;
  return own().state.compare_exchange_strong(absent, RankState::Present, std::memory_order_acq_rel);
}

bool Meeting::complete() {
  if (complete_.load(std::memory_order_acquire)) return true;
  for (int i = 0; i < ranks_; ++i) {
    if (line(i).state.load(std::memory_order_acquire) == RankState::Absent) return false;
  }
  complete_.store(true, std::memory_order_release);
  return true;
}

void Meeting::leave(RankState state) { own().state.store(state, std::memory_order_release); }

void Meeting::watch(int rank) {
  int& process = watched_[static_cast<size_t>(rank)];
  if (process < 0) process = static_cast<int>(syscall(SYS_pidfd_open, line(rank).pid, 0));
}

bool Meeting::lost_rank() {
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < ranks_; ++i) {
    if (i == rank_) continue;
    const RankState state = line(i).state.load(std::memory_order_acquire);
    if (state == RankState::Aborted) return true;
    if (state != RankState::Present) continue;
    watch(i);
    pollfd ended{watched_[static_cast<size_t>(i)], POLLIN, 0};
    const bool gone = ended.fd >= 0 ? poll(&ended, 1, 0) == 1 : kill(line(i).pid, 0) != 0 && errno == ESRCH;
    // It may have said goodbye in between.
    if (gone && line(i).state.load(std::memory_order_acquire) == RankState::Present) return true;
  }
  return false;
}

bool Meeting::write_collective(uint64_t position, const void* data, size_t bytes) {
  return write_all(file_, data, bytes, collective_place(rank_, position));
}

bool Meeting::read_collective(int rank, uint64_t position, size_t offset, void* data, size_t bytes) {
  return read_all(file_, data, bytes, collective_place(rank, position) + offset);
}

void Meeting::forget_collective(uint64_t position, size_t bytes) {
  give_back(file_, collective_place(rank_, position), bytes);
}

bool Meeting::write_message(int to, uint64_t position, const void* data, size_t bytes) {
  return write_all(file_, data, bytes, message_place(rank_, to, ranks_, position));
}

bool Meeting::read_message(int from, uint64_t position, void* data, size_t bytes) {
  return read_all(file_, data, bytes, message_place(from, rank_, ranks_, position));
}

void Meeting::forget_message(int from, uint64_t position, size_t bytes) {
  give_back(file_, message_place(from, rank_, ranks_, position), bytes);
}

}  // namespace simlibs
