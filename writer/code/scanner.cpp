#include "writer/code/scanner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/clock.h"
#include "writer/code/server.h"

namespace gputrace {
namespace {

constexpr std::size_t kMaxQueue = 96u << 20;

// Nothing of the sidecar's but the two pipes and the standard descriptors.
void keep_only(int first, int second) {
  const int a = ::fcntl(first, F_DUPFD, 64), b = ::fcntl(second, F_DUPFD, 64);
  if (::dup2(a, 3) != 3 || ::dup2(b, 4) != 4) ::_exit(1);
  if (::syscall(SYS_close_range, 5, ~0u, 0) == 0) return;
  for (int fd = 5; fd < 4096; ++fd) ::close(fd);
}

[[noreturn]] void be_the_server(int requests, int answers, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  ::prctl(PR_SET_NAME, "gputrace-code");
  keep_only(requests, answers);
  (void)!::chdir("/");
  // Where memory is short this goes first, never the program.
  if (const Fd score{::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)}; score)
    (void)!::write(score.get(), "1000", 4);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  try {
    serve_code(Fd(3), Fd(4));
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

CodeScanner::~CodeScanner() {
  to_.reset();
  from_.reset();
  if (child_ > 0)
    (void)::waitpid(child_, nullptr, done_ ? 0 : WNOHANG);  // one that has said its last word ends at once
}

bool CodeScanner::start() {
  int requests[2], answers[2];
  if (::pipe2(requests, O_CLOEXEC) != 0) return false;
  Fd request_read(requests[0]), request_write(requests[1]);
  if (::pipe2(answers, O_CLOEXEC) != 0) return false;
  Fd answer_read(answers[0]), answer_write(answers[1]);
  const pid_t self = ::getpid();
  child_ = ::fork();
  if (child_ == 0) be_the_server(request_read.get(), answer_write.get(), self);
  if (child_ < 0) return false;
  (void)::fcntl(request_write.get(), F_SETPIPE_SZ, 1 << 20);  // copied images come in one piece
  ::fcntl(request_write.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(answer_read.get(), F_SETFL, O_NONBLOCK);
  to_ = std::move(request_write);
  from_ = std::move(answer_read);
  return true;
}

void CodeScanner::device(u32 capability) { send(CodeMessage::Device, &capability, sizeof capability); }

void CodeScanner::kernel(u64 image, u64 name) {
  if (!scanned_.count(image)) open_.insert(image);
  const CodeKernelMessage message{image, name};
  send(CodeMessage::Kernel, &message, sizeof message);
}

void CodeScanner::image(CodeImageRequest&& image) {
  CodeImageMessage message{};
  message.id = image.id;
  message.offset = image.offset;
  message.bytes = image.bytes;
  message.check = image.check;
  message.kind = image.kind;
  message.path_size = static_cast<u32>(image.path.size());
  message.build_id_size = static_cast<u32>(image.build_id.size());
  message.content_size = static_cast<u32>(image.content.size());
  std::string bytes(reinterpret_cast<const char*>(&message), sizeof message);
  bytes += image.path;
  bytes += image.build_id;
  bytes.append(reinterpret_cast<const char*>(image.content.data()), image.content.size());
  send(CodeMessage::Image, bytes.data(), bytes.size());
}

void CodeScanner::send(CodeMessage what, const void* data, std::size_t size) {
  if (!to_ || dead_ || queue_.size() - sent_ + size > kMaxQueue) return;
  const CodeMessageHeader header{what, static_cast<u32>(size)};
  queue_.append(reinterpret_cast<const char*>(&header), sizeof header);
  queue_.append(static_cast<const char*>(data), size);
}

void CodeScanner::lose() {
  dead_ = true;
  to_.reset();
  std::string().swap(queue_);
  sent_ = 0;
}

void CodeScanner::pump() {
  while (to_ && sent_ < queue_.size()) {
    const ssize_t put = ::write(to_.get(), queue_.data() + sent_, queue_.size() - sent_);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put <= 0) return lose();
    sent_ += static_cast<std::size_t>(put);
  }
  if (sent_ == queue_.size()) {
    queue_.clear();
    if (queue_.capacity() > (1u << 20)) std::string().swap(queue_);
    sent_ = 0;
  } else if (sent_ > (4u << 20)) {
    queue_.erase(0, sent_);
    sent_ = 0;
  }
}

void CodeScanner::read_answers(const Sink& sink) {
  char buffer[16384];
  while (from_) {
    const ssize_t got = ::read(from_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      from_.reset();
      lose();
      break;
    }
    answers_.append(buffer, static_cast<std::size_t>(got));
  }
  std::size_t at = 0;
  RecordHeader header;
  while (answers_.size() - at >= sizeof header) {
    std::memcpy(&header, answers_.data() + at, sizeof header);
    const bool kernel = header.type == static_cast<u16>(RecordType::CodeKernel) && header.size == sizeof(CodeKernel);
    const bool scan = header.type == static_cast<u16>(RecordType::CodeScan) && header.size == sizeof(CodeScan);
    if (!kernel && !scan) {  // no answer of ours
      from_.reset();
      lose();
      answers_.clear();
      return;
    }
    if (answers_.size() - at < header.size) break;
    alignas(8) char record[std::max(sizeof(CodeKernel), sizeof(CodeScan))];
    std::memcpy(record, answers_.data() + at, header.size);
    at += header.size;
    if (scan) {
      const u64 image = reinterpret_cast<const CodeScan*>(record)->image;
      if (!image) {
        done_ = true;
        continue;
      }
      open_.erase(image);
      scanned_.insert(image);
    }
    sink(*reinterpret_cast<const RecordHeader*>(record));
  }
  answers_.erase(0, at);
}

void CodeScanner::exchange(const Sink& sink) {
  if (!from_) return;
  pump();
  read_answers(sink);
}

void CodeScanner::finish(Nanos deadline, const Sink& sink) {
  while (from_ && !done_) {
    exchange(sink);
    if (queue_.empty()) to_.reset();
    const Nanos left = deadline - monotonic_nanos();
    if (left <= 0 || !from_ || done_) break;
    pollfd waits[2] = {{from_.get(), POLLIN, 0}, {to_.get(), POLLOUT, 0}};
    (void)::poll(waits, to_ ? 2 : 1, static_cast<int>(std::min<Nanos>(left / 1'000'000 + 1, 1000)));
  }
  if (!done_) {
    for (const u64 image : open_) {
      CodeScan scan{};
      scan.header.type = static_cast<u16>(RecordType::CodeScan);
      scan.header.size = sizeof scan;
      scan.image = image;
      scan.state = static_cast<u32>(dead_ ? CodeScanState::Crashed : CodeScanState::NotFinished);
      sink(scan.header);
    }
    open_.clear();
  }
  to_.reset();
  from_.reset();
}

}  // namespace gputrace
