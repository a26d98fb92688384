// Activity records come from a CUPTI that we did not choose: of any version, longer or shorter than its kind, with
// anything in it. What is made of one lies within its bytes, and is either a whole record of ours or none.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cupti/api.h"
#include "cupti/records.h"

namespace {

using namespace gputrace;

void check(const AnyDeviceRecord& out, const char* name, const RecordRules& rules) {
  if (class_of(out.header.type) != RecordClass::Device) std::abort();
  if (out.header.size < sizeof(RecordHeader) || out.header.size > sizeof out || out.header.size % 8) std::abort();
  if (name && static_cast<RecordType>(out.header.type) != RecordType::DeviceKernel) std::abort();
  if (static_cast<RecordType>(out.header.type) != RecordType::DeviceKernel) return;
  const DeviceKernel& kernel = out.kernel;
  if (kernel.start < rules.earliest || kernel.finish > rules.latest || kernel.finish < kernel.start) std::abort();
  if (kernel.queued > kernel.start || kernel.submitted > kernel.start) std::abort();
  if (!rules.latency && (kernel.queued || kernel.submitted)) std::abort();
}

}  // namespace

// {version, rules}, then the bytes of one record, which ends where its buffer does.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 2) return 0;
  static constexpr u32 kVersions[] = {0, 18, 19, 20, 24, 26, 28, 130001, 130300, ~0u};
  RecordRules rules;
  rules.version = kVersions[data[0] % 10];
  rules.latency = (data[1] & 1) != 0;
  if (data[1] & 2) rules.earliest = 1000;
  if (data[1] & 4) rules.latest = 1ull << 60;
  const std::size_t length = size - 2;
  // At any place: CUPTI promises eight bytes' alignment of its buffers' contents, nothing here should need it.
  const std::size_t shift = data[1] >> 5;
  const std::unique_ptr<u8[]> bytes(new u8[length + shift]);
  std::memcpy(bytes.get() + shift, data + 2, length);
  AnyDeviceRecord out;
  std::memset(static_cast<void*>(&out), 0xa5, sizeof out);
  const char* name = nullptr;
  if (parse_activity(bytes.get() + shift, length, rules, out, name) == ParseResult::Record) check(out, name, rules);
  (void)activity_kind(bytes.get() + shift, length);
  return 0;
}
