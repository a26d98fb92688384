// Environment variables: a copy of the few that the library reads, taken once before other threads exist, and a way to
// look at the others later, beside threads that change them. (getenv beside setenv crashes.) No allocation.
#pragma once

#include "base/types.h"

namespace gputrace {

// Copies the GPUTRACE* variables, CUDA_HOME and CUDA_INJECTION64_PATH. Called by the constructor, or by the first traced
// call where that came earlier. Idempotent.
void copy_environment();
// The copied value, or nullptr. Lives for ever.
const char* copied_variable(const char* name);
// The copied GPUTRACE* variables as NAME=VALUE, one after the other; before the first comes nullptr, after the last too.
const char* next_copied(const char* entry);
// Calls visit(name, name length, value) for each of them.
void visit_copied_variables(void (*visit)(const char* name, u32 name_length, const char* value, void* data),
                            void* data);

// The variables as they are now, copied into `memory` as a list that ends with nullptr; what does not fit is left out.
// Other threads may change them meanwhile: they are read as another process would read them, so what is freed is missing
// and no crash. nullptr: the kernel does not allow that; then only what was copied at the start is known.
char** read_environment(char* memory, u32 capacity);

struct Rank {
  i32 rank = -1;
  i32 local_rank = -1;
};
// What the rank variables of a list say. Launchers set them after exec too, so the list is to be a new one.
Rank read_rank(char* const* variables);

}  // namespace gputrace
