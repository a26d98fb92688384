// What a kernel is called, and which machine code it comes from.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/facts/occupancy.h"
#include "analysis/names/categories.h"
#include "analysis/table/table.h"

namespace gputrace {

// The module as far as it is the same code: by hash, else by size and kind, else by handle.
std::string image_key(const ProcessTrace& process, u32 module);

// The symbol as loaded; null where nobody said it.
Value symbol_of(const Function& function);
// For people: demangled; the handle where the name is not known.
std::string display_name(const Function& function);

// What its name says, read once for each symbol; for a kernel without a name `brief` is its handle.
const KernelName& name_of(const Function& function);
// What is known of it besides its name.
KernelEvidence evidence_of(const Function& function);

// ns that kernels of the process took, where their times are known.
u64 kernel_time(const ProcessTrace& process);

// How a kernel in one shape sits on its device. What cannot be known is nothing: registers of PTX that nobody compiled,
// a device without facts, the waves of clusters (they are placed as a whole).
struct Residency {
  std::optional<Occupancy> occupancy;
  std::optional<Waves> waves;
};
Residency residency_of(const Device* device, const Function& function, const KernelShape& shape);

}  // namespace gputrace
