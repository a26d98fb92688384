// Watches the definitions on their way into the trace for what the code scanner must know: devices, images, and which
// kernels the program asked for. The one place of the sidecar that looks into records; it changes none of them.
//   · The producer may be hostile: sizes are checked, what is kept is bounded, what does not fit is left out.
//   · One thread.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ringbuf/consumer.h"
#include "writer/code/requests.h"

namespace gputrace {

class CodeWatch final : public RecordSink {
 public:
  // Hands everything on to `next`, unchanged.
  CodeWatch(RecordSink& next, CodeRequests& requests) : next_(next), requests_(requests) {}

  void thread_began(const RingThread& thread) override { next_.thread_began(thread); }
  void records(const RingThread& thread, u64 first_record, u32 count, const u8* data, u32 size) override;
  void thread_ended(const RingThread& thread) override { next_.thread_ended(thread); }
  // Asks for nothing any more; hands on as before.
  void stop() { stopped_ = true; }

 private:
  void look(const RecordHeader& record);
  void on_text(const RecordHeader& record);
  void on_bytes(const RecordHeader& record);
  void on_image(const RecordHeader& record);
  void on_function(const RecordHeader& record);

  struct Copy {
    std::vector<u8> bytes;
    u64 total = 0;
    bool whole = true;  // no piece is missing so far
  };

  RecordSink& next_;
  CodeRequests& requests_;
  bool stopped_ = false;
  std::unordered_map<u64, std::string> texts_;  // paths and build ids
  u64 text_bytes_ = 0;
  std::unordered_map<u64, Copy> copies_;  // images that are arriving
  u64 copied_ = 0;                        // bytes of copies, arriving and handed on
  std::unordered_map<u64, bool> images_;  // ids that were handed on
  std::unordered_map<u64, std::vector<u64>> modules_;
};

}  // namespace gputrace
