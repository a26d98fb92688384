// The sidecar's end of the code scanner: starts its process, sends requests, takes answers. Never waits before
// finish(), and never for long there: a scanner that is slow or dead costs facts about kernels, nothing else.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>

#include "base/fd.h"
#include "trace/record.h"
#include "writer/code/requests.h"

namespace gputrace {

class CodeScanner final : public CodeRequests {
 public:
  using Sink = std::function<void(const RecordHeader& record)>;

  ~CodeScanner() override;
  // Forks: before confine(), and after SegmentView::keep_from_children(). False: there is no scanner, and every request
  // is answered by nothing.
  bool start();

  void device(u32 capability) override;
  void image(CodeImageRequest&& image) override;
  void kernel(u64 image, u64 name) override;

  // Sends what the pipe takes and gives the answers that are there to `sink`.
  void exchange(const Sink& sink);
  // Images that are asked for and not answered.
  std::size_t open() const { return open_.size(); }
  // No more requests: waits for the rest of the answers, at most until `deadline` (CLOCK_MONOTONIC). Images that are
  // still open then are recorded as CodeScan: not finished, or crashed.
  void finish(Nanos deadline, const Sink& sink);

 private:
  void send(CodeMessage what, const void* data, std::size_t size);
  void pump();
  void read_answers(const Sink& sink);
  void lose();

  Fd to_, from_;
  int child_ = -1;
  std::string queue_;
  std::size_t sent_ = 0;  // of queue_
  std::string answers_;
  std::unordered_set<u64> open_, scanned_;  // images: asked for, answered
  bool dead_ = false, done_ = false;
};

}  // namespace gputrace
