// What the machine code of a kernel says, beside its launches: found by (module, symbol), never by name alone.
//   · A module's images come from CodeImage, an image's kernels from CodeKernel (the scan of cubin/sass.h).
//   · A symbol may be there for several chips: the one that the device runs is picked as a driver would.
//   · Static: an instruction that is there need not be executed.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/record.h"
#include "trace/text_table.h"

namespace gputrace {

struct Device;
struct Function;
struct ModuleInstance;

// One kernel's code for one chip.
struct KernelCode {
  u32 architecture = 0;  // 10 x major + minor; of PTX: its target
  u32 flags = 0;         // CodeKernelFlags
  u64 mma = 0;           // MmaClass bits
  u64 precision = 0;     // PrecisionBits
  u32 instructions = 0, mma_instructions = 0;
  u32 fp64 = 0, fp32 = 0, fp16 = 0, bf16 = 0;
  i32 registers = -1, static_shared = -1, local_bytes = -1, max_threads = -1;
};

// Collects the records of one process and gives each function its code at the end of the pass.
class CodeTable {
 public:
  explicit CodeTable(const TextTable& texts) : texts_(texts) {}

  void kernel(const CodeKernel& record);
  // Sets Function::code; fills registers and sizes that the driver did not tell where all chips' code agrees.
  void link(const std::vector<ModuleInstance>& modules, std::vector<Function>& functions) const;

 private:
  const TextTable& texts_;
  std::unordered_map<u64, std::unordered_map<std::string, std::vector<KernelCode>>> images_;  // by id, then symbol
};

// The code of a function on a device (nullptr: not known which); nullptr where none is known, or which cannot be told.
const KernelCode* code_on(const Function& function, const Device* device);

// Whether it has matrix instructions. Nothing: no code is known, or none was found and some calls cannot be followed.
std::optional<bool> uses_tensor_cores(const KernelCode* code);
// The mnemonics of its matrix instructions: "HMMA", "HGMMA+HMMA"; "" where there are none or they are not known.
std::string tensor_core_kind(const KernelCode* code);
// Input type of the dominant arithmetic: of the matrix instructions where there are any (the widest of several types);
// else of what most floating-point instructions work in (on a tie the wider). "": none, or not told for all of them.
std::string code_precision(const KernelCode* code);

}  // namespace gputrace
