#pragma once
// What the machine code of each kernel says: matrix instructions, their input types, the floating-point mix of the
// rest. Static facts: an instruction that is there need not be executed.
//   · Pure, untrusted input: every offset is checked, nothing is guessed; what cannot be known is a flag or absent.
//   · No state: any thread may call anything. Time: one pass over the code; memory: one unpacked image at a time.
//   · A kernel's facts hold its own code and that of the device functions it calls (CALL targets and relocations inside
//     of the image); calls that cannot be followed set kCodeIncomplete.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trace/record.h"

namespace gputrace {

struct KernelScan {
  std::string_view symbol;         // valid during the callback only
  std::uint32_t architecture = 0;  // 10 x major + minor; of PTX: its .target
  std::uint64_t mma = 0;           // MmaClass bits
  std::uint64_t precision = 0;     // PrecisionBits: input types of the matrix instructions
  std::uint32_t flags = 0;         // CodeKernelFlags
  std::uint32_t instructions = 0;  // of machine code; of PTX 0
  std::uint32_t mma_instructions = 0;
  std::uint32_t fp64 = 0, fp32 = 0, fp16 = 0, bf16 = 0;  // the rest's floating-point mix, by instructions; PTX's too
  std::optional<std::uint32_t> registers, static_shared_bytes, local_bytes, max_threads;
};

struct ScanTotals {
  std::size_t images = 0, kernels = 0;
  std::uint64_t code_bytes = 0;  // machine code read
  std::size_t failures = 0;      // cubins and PTX texts that could not be read; the others were
  std::string first_failure;
};

// Calls `found` for each kernel of an image: a cubin, a PTX text, or a fatbin (each entry; of one kernel in several
// entries, several calls). `devices`, if not empty (90 for 9.0): only what a driver would load on one of these, and PTX
// only for a device that no cubin serves. False if nothing could be read.
bool for_each_kernel_code(std::span<const std::byte> image, std::span<const std::uint32_t> devices,
                          const std::function<void(const KernelScan&)>& found, ScanTotals* totals = nullptr);

}  // namespace gputrace
