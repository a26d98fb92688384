#include "writer/process_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "writer/host.h"

namespace gputrace {
namespace {

constexpr Nanos kLookEvery = 500'000'000;
constexpr Nanos kPollWithoutPidfd = 20'000'000;

// struct pidfd_info of Linux 6.15 and PIDFD_GET_INFO: newer than the headers that we build with.
struct PidfdInfo {
  u64 mask;
  u64 cgroup;
  u32 ids[11];
  i32 exit_status;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr u64 kExitIsKnown = 8;
constexpr unsigned long kGetInfo = _IOWR(0xff, 11, PidfdInfo);

// Whether programs get the same addresses each time: of all (sysctl), or of those below a personality that is handed on, to us too.
bool addresses_are_fixed() {
  return (::personality(0xffffffff) & ADDR_NO_RANDOMIZE) ||
         read_small_file("/proc/sys/kernel/randomize_va_space", 16) == "0\n";
}

int open_pidfd(i32 pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#else
  (void)pid;
  return -1;
#endif
}

}  // namespace

ProcessWatch::ProcessWatch(Fd pidfd, i32 pid, u64 start_time, int segment)
    : pidfd_(std::move(pidfd)), pid_(pid), start_time_(start_time), segment_(segment) {
  if (!pidfd_ && pid_ > 0) {
    pidfd_.reset(open_pidfd(pid_));
    const ProcessStat stat = process_stat(pid_);
    if (stat.known && start_time_ && stat.start_time != start_time_)
      pidfd_.reset();  // the number belongs to somebody else by now
  }
  status_.reset(::open(("/proc/" + std::to_string(pid_) + "/status").c_str(), O_RDONLY | O_CLOEXEC));
  image_ = image();
  images_look_alike_ = addresses_are_fixed();
}

ProcessWatch::State ProcessWatch::wait(Nanos timeout_ns) {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  if (pidfd_) {
    pollfd watched{pidfd_.get(), POLLIN, 0};
    if (::ppoll(&watched, 1, &timeout, nullptr) > 0 && watched.revents) return ended();
  } else {
    const Nanos step = std::min(timeout_ns, kPollWithoutPidfd);
    const timespec shorter{0, static_cast<long>(step)};
    ::nanosleep(&shorter, nullptr);
  }
  const Nanos now = monotonic_nanos();
  if (now < next_look_) return State::Running;
  next_look_ = now + kLookEvery;
  if (!pidfd_ && gone()) return ended();
  const bool is_another = executed();
  next_look_ += (monotonic_nanos() - now) * 100;  // maps of thousands of lines: a hundredth of our time at most
  return is_another ? State::Executed : State::Running;
}

// What a parent that has not asked yet leaves to be seen. A status of 0 may stand for one that we may not know: then other files of the process
// are closed to us as well.
std::optional<int> ProcessWatch::status_of_zombie() const {
  const ProcessStat stat = process_stat(pid_);
  if (!stat.known || stat.state != 'Z' || (start_time_ && stat.start_time != start_time_)) return std::nullopt;
  if (stat.exit_status != 0 || !read_small_file("/proc/" + std::to_string(pid_) + "/io").empty())
    return stat.exit_status;
  return std::nullopt;
}

// First of all: its parent may ask any moment.
ProcessWatch::State ProcessWatch::ended() {
  seen_status_ = status_of_zombie();
  return State::Gone;
}

std::optional<int> ProcessWatch::status(Nanos deadline) const {
  if (seen_status_) return seen_status_;
  while (pidfd_) {
    PidfdInfo info{};
    info.mask = kExitIsKnown;
    if (::ioctl(pidfd_.get(), kGetInfo, &info) != 0) break;  // this kernel tells nothing, or (6.13, 6.14) no longer
    if (info.mask & kExitIsKnown) return info.exit_status;
    if (monotonic_nanos() >= deadline) break;
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return std::nullopt;
}

std::optional<u32> ProcessWatch::became() const {
  char text[1024];
  const ssize_t length = status_ ? ::pread(status_.get(), text, sizeof text - 1, 0) : -1;
  if (length <= 0) return std::nullopt;
  text[length] = 0;
  const char* line = std::strstr(text, "\nUid:");
  unsigned real = 0, effective = 0, saved = 0;
  if (!line || std::sscanf(line, "\nUid: %u %u %u", &real, &effective, &saved) != 3) return std::nullopt;
  const unsigned ours = ::geteuid();
  if (real == ours || effective == ours || saved == ours) return std::nullopt;
  return effective;
}

bool ProcessWatch::gone() const {
  const ProcessStat stat = process_stat(pid_);
  return !stat.known || stat.state == 'Z' || stat.state == 'X' || (start_time_ && stat.start_time != start_time_);
}

// A changed image is the sign; that the segment is no longer mapped is the proof.
bool ProcessWatch::executed() {
  if (image_.empty()) return false;
  const std::string now = image();
  if (now.empty() || (now == image_ && !images_look_alike_)) return false;
  if (maps_segment()) {
    image_ = now;  // it was renamed, or moved its own vectors; still the one that writes here
    return false;
  }
  return !image().empty();
}

// The auxiliary vector holds addresses that exec chooses anew, where they are chosen at random.
std::string ProcessWatch::image() const {
  const std::string process = "/proc/" + std::to_string(pid_);
  std::string vector = read_small_file(process + "/auxv", 4096);
  if (vector.empty()) return {};
  char link[4096];
  const ssize_t length = ::readlink((process + "/exe").c_str(), link, sizeof link);
  return vector.append(link, length > 0 ? static_cast<std::size_t>(length) : 0);
}

// True also where it cannot be known.
bool ProcessWatch::maps_segment() const {
  struct stat status {};
  if (::fstat(segment_, &status) != 0) return true;
  const std::string maps = read_small_file("/proc/" + std::to_string(pid_) + "/maps", 64 << 20);
  if (maps.empty()) return true;
  for (std::size_t at = 0; at < maps.size();) {
    const std::size_t end = std::min(maps.find('\n', at), maps.size());
    unsigned major_number = 0, minor_number = 0;
    u64 inode = 0;
    if (std::sscanf(maps.c_str() + at, "%*s %*s %*s %x:%x %" SCNu64, &major_number, &minor_number, &inode) == 3 &&
        inode == status.st_ino && makedev(major_number, minor_number) == status.st_dev)
      return true;
    at = end + 1;
  }
  return false;
}

}  // namespace gputrace
