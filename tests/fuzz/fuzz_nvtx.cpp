// What NVTX hands to its tool comes from headers of any age in any object of the program: shorter structs, types that
// nobody defined, handles that are none, ranges that never close, before, in and after a session. Nothing is read past
// the size that a struct says, and what is recorded can be read.
//
// The input is a list of steps: {what, small choices}, then an attribute struct of the size that it says, then a text.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "interpose/definition/facts.h"
#include "interpose/hot/session.h"
#include "interpose/nvtx/nvtx.h"
#include "interpose/nvtx/nvtx_events.h"
#include "interpose/nvtx/nvtx_open.h"
#include "interpose/session/window.h"
#include "ringbuf/consumer.h"
#include "ringbuf/segment_create.h"
#include "ringbuf/segment_view.h"
#include "tests/fuzz/input.h"

namespace gputrace {

// Instead of the interposer around it.
bool enter_session() {
  const u64 generation = gate_generation();
  if (generation < kFirstGeneration) return false;
  join_session(generation);
  nvtx_thread_joined(generation);
  return true;
}
void set_capture_range(bool, Ticks) {}
u64 refresh_context(FinishedCall) { return 0; }
Definitions::Definitions() : held_(begin_definition()) {}
u64 define_text(const FinishedCall&, const char* text, u64 length) { return text_id(text, length); }

}  // namespace gputrace

namespace {

using namespace gputrace;
using namespace gputrace::nvtx_abi;

struct Step {
  u8 what, domain, message, size, text;
};

struct CheckingSink final : RecordSink {
  void thread_began(const RingThread&) override {}
  void records(const RingThread&, u64, u32, const u8* data, u32 size) override {
    for (u32 at = 0; at < size;) {
      RecordHeader header;
      std::memcpy(&header, data + at, sizeof header);
      if (header.type == static_cast<u16>(RecordType::Nvtx)) {
        Nvtx record;
        if (header.size != sizeof record) std::abort();
        std::memcpy(&record, data + at, sizeof record);
        if (record.what < 1 || record.what > static_cast<u32>(NvtxAct::End) || record.header.end < record.header.begin)
          std::abort();
      }
      at += header.size;
    }
  }
  void thread_ended(const RingThread&) override {}
};

class Session {
 public:
  Session() {
    request_.budget = kMinSegment;
    request_.clock = ClockKind::Monotonic;
    if (!plan_segment(request_, header_)) std::abort();
    gate.generation.store(kGateIdle);
    thread_state = ThreadState{};
  }
  ~Session() { close(); }

  void open(const Options& options) {
    close();
    std::memset(memory_, 0, kMinSegment);
    begin_segment(memory_, header_, request_);
    static std::vector<SlotLedger> ledgers;
    ledgers.assign(header_.slot_count, {});
    adopt_segment(memory_, ledgers.data());
    nvtx_session_begins(options, false);
    gate.generation.store(++generation_ + kFirstGeneration);
    open_ = true;
  }
  void close() {
    if (!open_) return;
    open_ = false;
    nvtx_thread_ended();
    leave_session();
    gate.generation.store(kGateIdle);
    const auto view = SegmentView::over(memory_, kMinSegment);
    if (!view) std::abort();
    CheckingSink sink;
    Consumer consumer(view.value(), sink);
    if (!Consumer::acquire(view.value(), 1)) std::abort();
    consumer.drain();
    consumer.drain_last();
  }

 private:
  static inline char* const memory_ =
      static_cast<char*>(mmap(nullptr, kMinSegment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  static inline u64 generation_ = 0;
  SegmentRequest request_;
  SegmentHeader header_{};
  bool open_ = false;
};

// Handles that were given out, and some that were not.
struct Handles {
  std::vector<const void*> known{nullptr, reinterpret_cast<const void*>(8), &known};
  const void* of(u8 choice) const { return known[choice % known.size()]; }
  void add(const void* handle) {
    if (known.size() < 32) known.push_back(handle);
  }
};

struct Program {
  Session session;
  Handles domains, strings;
  std::vector<u64> ranges{0, 1, ~0ull};
  std::string text;
  std::wstring wide;

  // A struct that lies at the end of its memory: a read past its size is one past the memory.
  std::unique_ptr<u8[]> attributes(Input& input, const Step& step) {
    const std::size_t size = std::min<std::size_t>(std::max<std::size_t>(step.size % 64, 4), sizeof(EventAttributes));
    std::unique_ptr<u8[]> bytes(new u8[size]());
    EventAttributes whole{};
    input.take(&whole, std::min(input.left, sizeof whole));
    whole.size = static_cast<u16>(size);
    // Pointers are the program's to keep sound; all the rest may be anything.
    whole.message_type = static_cast<i32>(step.message % 5);
    whole.message = whole.message_type == kAscii     ? static_cast<const void*>(text.c_str())
                    : whole.message_type == kUnicode ? static_cast<const void*>(wide.c_str())
                                                     : strings.of(step.message / 5);
    static const PayloadData kData{7, 0, nullptr};
    if (whole.payload_type == kPayloadExtended || step.message >= 250) {
      whole.payload_type = kPayloadExtended;
      whole.payload = step.message % 2 ? reinterpret_cast<u64>(&kData) : 0;
    }
    std::memcpy(bytes.get(), &whole, size);
    return bytes;
  }

  void read_text(Input& input, u8 length) {
    text.assign(std::min<std::size_t>(length, input.left), '\0');
    input.take(text.data(), text.size());
    wide.assign(text.begin(), text.end());
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
      wide[i] = static_cast<wchar_t>(text[i] * 0x10101 + text[i + 1]);
    if (length > 250) text.append(70'000, 'x');
  }

  void run(Input& input, const Step& step) {
    const void* domain = domains.of(step.domain);
    const auto given = attributes(input, step);
    const NvtxEvent event = nvtx_event(domain, reinterpret_cast<const EventAttributes*>(given.get()));
    const NvtxPayload payload{step.size, step.text};
    switch (step.what % 12) {
      case 0:
        return nvtx_mark(event);
      case 1:
        return nvtx_push(event);
      case 2:
        return nvtx_pop(domain, payload);
      case 3:
        return ranges.push_back(nvtx_start(event));
      case 4:
        return nvtx_end(ranges[step.size % ranges.size()], domain, payload);
      case 5:
        return domains.add(nvtx_domain(text.data(), text.size()));
      case 6:
        return strings.add(nvtx_keep(text.data(), text.size()));
      case 7:
        return nvtx_name(static_cast<NvtxNamed>(1 + step.size % 8), domain, step.message, text.data(), text.size());
      case 8:
        return session.close();
      case 9:
        return nvtx_mark(nvtx_event(domain, nullptr));
      case 10:
        return strings.add(nvtx_lost_string());
      default: {
        Options options;
        static constexpr const char* kDomains[] = {"", "*", "d"};
        options.capture = step.size % 2 ? CaptureMode::Nvtx : CaptureMode::All;
        captured = text;
        options.capture_range = captured.data();
        options.capture_range_length = static_cast<u32>(captured.size());
        options.capture_domain = kDomains[step.size / 2 % 3];
        return session.open(options);
      }
    }
  }
  std::string captured;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (!nvtx_open_store()) return 0;
  Input input{data, size};
  Program program;
  Step step;
  while (input.take(&step, sizeof step)) {
    program.read_text(input, step.text);
    program.run(input, step);
  }
  program.session.close();
  nvtx_forget_pushed();
  nvtx_forget_started();
  return 0;
}
