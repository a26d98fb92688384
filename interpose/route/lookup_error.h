// dlerror() after a look-up that we answered with "not found". libc's message names the object that asked libc, which was this
// library: the program is to read its own name, as without us.
#pragma once

namespace gputrace {

// A look-up of `caller`'s was answered with "not found", and libc, which we asked for it, has set its error. Any thread.
void not_found_for(const void* caller);

}  // namespace gputrace
