// One image to records. Runs in a worker: it may die of its input.
#include <algorithm>
#include <new>
#include <string>

#include "base/clock.h"
#include "cubin/sass.h"
#include "trace/string_id.h"
#include "writer/code/file.h"
#include "writer/code/server.h"

namespace gputrace {
namespace {

i32 or_unknown(const std::optional<std::uint32_t>& value) {
  return value && *value <= 0x7fffffffu ? static_cast<i32>(*value) : -1;
}

CodeKernel record_of(const KernelScan& kernel, u64 image) {
  CodeKernel record{};
  record.header.type = static_cast<u16>(RecordType::CodeKernel);
  record.header.size = sizeof record;
  record.image = image;
  record.name = text_id(kernel.symbol.data(), std::min<u64>(kernel.symbol.size(), kMaxTextLength));
  record.mma = kernel.mma;
  record.precision = kernel.precision;
  record.architecture = kernel.architecture;
  record.flags = kernel.flags;
  record.instructions = kernel.instructions;
  record.mma_instructions = kernel.mma_instructions;
  record.fp64 = kernel.fp64;
  record.fp32 = kernel.fp32;
  record.fp16 = kernel.fp16;
  record.bf16 = kernel.bf16;
  record.registers = or_unknown(kernel.registers);
  record.static_shared_bytes = or_unknown(kernel.static_shared_bytes);
  record.local_bytes = or_unknown(kernel.local_bytes);
  record.max_threads = or_unknown(kernel.max_threads);
  return record;
}

}  // namespace

void scan_image(const CodeImageRequest& image, std::span<const u32> devices, std::size_t most_kernels,
                void (*write)(const void* record, std::size_t size, void* to), void* to) {
  const Nanos begin = monotonic_nanos();
  CodeScan result{};
  result.header.type = static_cast<u16>(RecordType::CodeScan);
  result.header.size = sizeof result;
  result.image = image.id;
  CodeScanState state = CodeScanState::PiecesLost;
  std::span<const std::byte> bytes;
  if (!image.path.empty()) {
    state = map_image(image, bytes);
  } else if (!image.content.empty()) {
    bytes = std::as_bytes(std::span(image.content));
    state = CodeScanState::Scanned;
  }
  if (state == CodeScanState::Scanned) {
    ScanTotals totals;
    std::size_t found = 0;
    try {
      const auto tell = [&](const KernelScan& kernel) {
        if (found++ >= most_kernels) return;
        const CodeKernel record = record_of(kernel, image.id);
        write(&record, sizeof record, to);
      };
      const bool any = for_each_kernel_code(bytes, devices, tell, &totals);
      if (!any) state = totals.failures ? CodeScanState::Broken : CodeScanState::NoMatch;
      if (any && !found && !totals.images) state = CodeScanState::NoMatch;
      if (found > most_kernels) state = CodeScanState::TooMany;
    } catch (const std::bad_alloc&) {
      state = CodeScanState::TooMany;
    }
    result.failures = static_cast<u32>(totals.failures);
    result.kernels = static_cast<u32>(std::min(found, most_kernels));
    result.code_bytes = totals.code_bytes;
  }
  result.state = static_cast<u32>(state);
  result.took_us = static_cast<u32>((monotonic_nanos() - begin) / 1000);
  write(&result, sizeof result, to);
}

}  // namespace gputrace
