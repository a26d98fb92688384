// A copy of the few environment variables that the library reads, taken once before other threads exist: getenv beside
// setenv in another thread crashes. No allocation.
#pragma once

#include "base/types.h"

namespace gputrace {

// Copies the GPUTRACE* variables. Called by the constructor, or by the first traced call where that came earlier.
// Idempotent.
void copy_environment(char* const* variables);
// The copied value, or nullptr. Lives for ever.
const char* copied_variable(const char* name);
// Calls visit(name, name length, value) for every copied variable.
void visit_copied_variables(void (*visit)(const char* name, u32 name_length, const char* value, void* data),
                            void* data);

struct Rank {
  i32 rank = -1;
  i32 local_rank = -1;
};
// The rank variables as they are now (launchers set them after exec). Reads `environ`: only inside the first CUDA call,
// where the driver reads its own variables anyway.
Rank read_rank();

}  // namespace gputrace
