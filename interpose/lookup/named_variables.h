// Variables that programs name like functions of CUDA: pointers that they fill at run time (cuew and the like do). The
// loader binds by name alone, so references to such a variable of a library have come to our function of that name, and
// the first write would end the program. They are bound again here, to the variable.
#pragma once

namespace gputrace {

// In every object that is loaded. One look-up an object where there is nothing to do; no system call then.
void bind_named_variables();
// The object that holds `caller` looks this function up: if it has a variable of that name, its variables are bound
// first. Any thread.
void bind_named_variables_of(const void* caller, const char* name);

}  // namespace gputrace
