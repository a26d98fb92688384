#include "writer/code/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <unordered_set>

#include "base/clock.h"
#include "writer/confine.h"

namespace gputrace {
namespace {

constexpr u64 kWorkerMemory = 768ull << 20;  // an unpacked image, and what is known of it
constexpr rlim_t kWorkerSeconds = 30;
constexpr Nanos kWorkerWall = 120'000'000'000;  // where it waits for a slow file system

void limit(__rlimit_resource what, rlim_t value) {
  const rlimit wanted{value, value};
  (void)::setrlimit(what, &wanted);
}

bool write_all(int to, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size) {
    const ssize_t put = ::write(to, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

// Gathers small records into large writes.
struct Pipe {
  int to;
  std::vector<u8> bytes;
  void flush() {
    (void)write_all(to, bytes.data(), bytes.size());
    bytes.clear();
  }
  static void write(const void* record, std::size_t size, void* pipe) {
    auto& self = *static_cast<Pipe*>(pipe);
    const u8* from = static_cast<const u8*>(record);
    self.bytes.insert(self.bytes.end(), from, from + size);
    if (self.bytes.size() > 60'000) self.flush();
  }
};

struct ServedImage {
  CodeImageRequest request;
  bool known = false;               // the request has come
  bool queued = false;              // waits for a worker, or has one
  std::size_t devices = 0;          // how many of the process's devices it was scanned for
  std::vector<CodeKernel> kernels;  // sorted by name
  std::unordered_set<u64> asked;    // names
};

class Server {
 public:
  Server(Fd requests, Fd answers) : requests_(std::move(requests)), answers_(std::move(answers)) {}

  void run() {
    while (!lost_) {
      start_worker();
      if (over_ && worker_ < 0) break;
      wait();
    }
    CodeScan last{};  // image 0: everything that can be answered is
    last.header.type = static_cast<u16>(RecordType::CodeScan);
    last.header.size = sizeof last;
    answer(last);
  }

 private:
  template <typename Record>
  void answer(const Record& record) {
    lost_ = lost_ || !write_all(answers_.get(), &record, sizeof record);
  }
  void fail(u64 image, CodeScanState state) {
    CodeScan scan{};
    scan.header.type = static_cast<u16>(RecordType::CodeScan);
    scan.header.size = sizeof scan;
    scan.image = image;
    scan.state = static_cast<u32>(state);
    answer(scan);
  }

  void wait() {
    pollfd waits[2] = {{over_ ? -1 : requests_.get(), POLLIN, 0}, {from_worker_.get(), POLLIN, 0}};
    const int ready = ::poll(waits, 2, worker_ < 0 ? -1 : 1000);
    if (waits[0].revents) read_requests();
    if (waits[1].revents) read_worker();
    if (ready >= 0 && worker_ >= 0 && monotonic_nanos() > worker_begin_ + kWorkerWall && !killed_) {
      killed_ = true;
      ::kill(worker_, SIGKILL);
    }
  }

  // ---------------------------------------------------------------- requests
  void read_requests() {
    const std::size_t had = input_.size();
    input_.resize(had + (64u << 10));
    const ssize_t got = ::read(requests_.get(), input_.data() + had, input_.size() - had);
    input_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && errno != EINTR)) over_ = true;
    std::size_t at = 0;
    CodeMessageHeader header;
    while (input_.size() - at >= sizeof header) {
      std::memcpy(&header, input_.data() + at, sizeof header);
      if (header.size > kMaxCodeMessage) {
        over_ = lost_ = true;  // not one of ours
        return;
      }
      if (input_.size() - at - sizeof header < header.size) break;
      on_message(header.what, input_.data() + at + sizeof header, header.size);
      at += sizeof header + header.size;
    }
    input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void on_message(CodeMessage what, const u8* data, std::size_t size) {
    if (what == CodeMessage::Device && size == sizeof(u32)) {
      u32 capability;
      std::memcpy(&capability, data, sizeof capability);
      if (std::find(devices_.begin(), devices_.end(), capability) != devices_.end()) return;
      devices_.push_back(capability);
      for (auto& [id, image] : images_) enqueue(id, image);
    } else if (what == CodeMessage::Kernel && size == sizeof(CodeKernelMessage)) {
      CodeKernelMessage message;
      std::memcpy(&message, data, sizeof message);
      on_kernel(message);
    } else if (what == CodeMessage::Image && size >= sizeof(CodeImageMessage)) {
      on_image(data, size);
    }
  }

  void on_image(const u8* data, std::size_t size) {
    CodeImageMessage message;
    std::memcpy(&message, data, sizeof message);
    const std::size_t texts = std::size_t{message.path_size} + message.build_id_size;
    if (size != sizeof message + texts + message.content_size) return;
    if (images_.size() >= kMaxServedImages) return fail(message.id, CodeScanState::TooMany);
    const char* text = reinterpret_cast<const char*>(data) + sizeof message;
    ServedImage& image = images_[message.id];
    image.request = {message.id,
                     message.kind,
                     message.offset,
                     message.bytes,
                     message.check,
                     std::string(text, message.path_size),
                     std::string(text + message.path_size, message.build_id_size),
                     std::vector<u8>(data + sizeof message + texts, data + size)};
    image.known = true;
    enqueue(message.id, image);
  }

  void on_kernel(const CodeKernelMessage& message) {
    if (!images_.count(message.image) && images_.size() >= kMaxServedImages) return;
    ServedImage& image = images_[message.image];
    if (!image.asked.insert(message.name).second) return;
    tell(message.name, image.kernels);
    enqueue(message.image, image);
  }

  // What is known of a name, out of kernels that are sorted by it.
  void tell(u64 name, const std::vector<CodeKernel>& kernels) {
    auto at = std::lower_bound(kernels.begin(), kernels.end(), name,
                               [](const CodeKernel& kernel, u64 wanted) { return kernel.name < wanted; });
    for (; at != kernels.end() && at->name == name; ++at) answer(*at);
  }

  // If there is something to scan it for.
  void enqueue(u64 id, ServedImage& image) {
    if (!image.known || image.queued || image.asked.empty() || image.devices >= devices_.size()) return;
    image.queued = true;
    queue_.push_back(id);
  }

  // ---------------------------------------------------------------- workers
  void start_worker() {
    while (worker_ < 0 && !queue_.empty() && !lost_) {
      const u64 id = queue_.front();
      queue_.pop_front();
      ServedImage& image = images_[id];
      const std::vector<u32> devices(devices_.begin() + static_cast<std::ptrdiff_t>(image.devices), devices_.end());
      image.devices = devices_.size();
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) {
        image.queued = false;
        fail(id, CodeScanState::Crashed);
        continue;
      }
      from_worker_ = Fd(ends[0]);
      Fd to(ends[1]);
      worker_begin_ = monotonic_nanos();
      worker_ = ::fork();
      if (worker_ == 0) work(image.request, devices, to.get());
      working_on_ = id;
      killed_ = finished_ = false;
      output_.clear();
      if (worker_ < 0) {
        from_worker_.reset();
        image.queued = false;
        fail(id, CodeScanState::Crashed);
      }
    }
  }

  [[noreturn]] void work(const CodeImageRequest& image, const std::vector<u32>& devices, int to) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    requests_.reset();
    answers_.reset();
    from_worker_.reset();
    // While the program runs, only where nothing else wants the processor; once it has ended, somebody waits for the answers.
    if (!over_) ::setpriority(PRIO_PROCESS, 0, 19);
    limit(RLIMIT_CPU, kWorkerSeconds);
#ifndef __SANITIZE_ADDRESS__  // its shadow is larger
    limit(RLIMIT_DATA, kWorkerMemory);
#endif
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    confine();
    Pipe pipe{to, {}};
    const std::size_t room = kMaxServedKernels - std::min(kMaxServedKernels, served_);
    try {
      scan_image(image, devices, room, Pipe::write, &pipe);
    } catch (...) {
      ::_exit(1);
    }
    pipe.flush();
    ::_exit(0);
  }

  void read_worker() {
    const std::size_t had = output_.size();
    output_.resize(had + (64u << 10));
    const ssize_t got = ::read(from_worker_.get(), output_.data() + had, output_.size() - had);
    output_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    take_records();
    if (got == 0 || (got < 0 && errno != EINTR)) end_worker();
  }

  void take_records() {
    std::size_t at = 0;
    RecordHeader header;
    while (output_.size() - at >= sizeof header) {
      std::memcpy(&header, output_.data() + at, sizeof header);
      if (header.type == static_cast<u16>(RecordType::CodeKernel) && header.size == sizeof(CodeKernel)) {
        if (output_.size() - at < sizeof(CodeKernel)) break;
        CodeKernel kernel;
        std::memcpy(&kernel, output_.data() + at, sizeof kernel);
        kernel.image = working_on_;
        if (served_ + found_.size() < kMaxServedKernels) found_.push_back(kernel);
        at += sizeof kernel;
      } else if (header.type == static_cast<u16>(RecordType::CodeScan) && header.size == sizeof(CodeScan)) {
        if (output_.size() - at < sizeof(CodeScan)) break;
        std::memcpy(&scan_, output_.data() + at, sizeof scan_);
        scan_.image = working_on_;
        finished_ = true;
        at += sizeof scan_;
      } else {
        at = output_.size();  // a worker that was taken over: nothing of it is believed any more
        finished_ = false;
        ::kill(worker_, SIGKILL);
      }
    }
    output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // Its kernels are known from now on; those that were asked for are recorded, then how it went.
  void end_worker() {
    int status = 0;
    rusage used{};
    while (::wait4(worker_, &status, 0, &used) < 0 && errno == EINTR) {
    }
    worker_ = -1;
    from_worker_.reset();
    ServedImage& image = images_[working_on_];
    image.queued = false;
    if (finished_) {
      std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
      for (const u64 name : image.asked) tell(name, found_);
      served_ += found_.size();
      image.kernels.insert(image.kernels.end(), found_.begin(), found_.end());
      std::stable_sort(image.kernels.begin(), image.kernels.end(),
                       [](const auto& a, const auto& b) { return a.name < b.name; });
      answer(scan_);
    } else {
      const bool out_of_time = killed_ || used.ru_utime.tv_sec + used.ru_stime.tv_sec >= long{kWorkerSeconds} - 1;
      fail(working_on_, out_of_time ? CodeScanState::TimedOut : CodeScanState::Crashed);
    }
    found_.clear();
    enqueue(working_on_, image);  // a device that came meanwhile
  }

  Fd requests_, answers_;
  std::vector<u8> input_, output_;
  std::vector<u32> devices_;
  std::map<u64, ServedImage> images_;
  std::deque<u64> queue_;
  std::size_t served_ = 0;
  bool over_ = false;  // no request comes any more
  bool lost_ = false;  // nobody reads the answers
  // The one worker.
  pid_t worker_ = -1;
  Fd from_worker_;
  u64 working_on_ = 0;
  Nanos worker_begin_ = 0;
  bool killed_ = false, finished_ = false;
  CodeScan scan_{};
  std::vector<CodeKernel> found_;
};

}  // namespace

void serve_code(Fd requests, Fd answers) { Server(std::move(requests), std::move(answers)).run(); }

}  // namespace gputrace
