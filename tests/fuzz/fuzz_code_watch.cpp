// The definitions come from a process that may be broken or hostile: whatever they say, the watch for machine code
// stays within its bounds, and what it hands on is consistent.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "trace/record.h"
#include "writer/code/watch.h"

namespace {

using namespace gputrace;

struct Nowhere final : RecordSink {
  void thread_began(const RingThread&) override {}
  void records(const RingThread&, u64, u32, const u8*, u32) override {}
  void thread_ended(const RingThread&) override {}
};

struct Checked final : CodeRequests {
  void device(u32 capability) override {
    if (capability > 999) std::abort();
  }
  void image(CodeImageRequest&& image) override {
    content += image.content.size();
    if (image.content.size() > kMaxCodeCopy || content > kMaxCopiedImages || image.path.size() > 4096) std::abort();
  }
  void kernel(u64, u64 name) override {
    if (!name) std::abort();
  }
  u64 content = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Nowhere next;
  Checked asked;
  CodeWatch watch(next, asked);
  RingThread definitions;
  std::vector<u64> aligned(size / 8 + 1);  // as the consumer gives them
  std::memcpy(aligned.data(), data, size);
  watch.records(definitions, 0, 1, reinterpret_cast<const u8*>(aligned.data()), static_cast<u32>(size));
  return 0;
}
