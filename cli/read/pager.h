// Long output on a terminal goes through a pager, as git's does.
//   · GPUTRACE_PAGER, else PAGER, else `less -FRX` where there is one; empty or `cat`: none.
//   · While it lives, standard output is the pager's input. It ends with the pager, however the user leaves that.
#pragma once

#include <sys/types.h>

#include "base/fd.h"

namespace gputrace {

class Pager {
 public:
  // No pager where standard output is no terminal, or none is wanted or there: then output goes where it went.
  Pager();
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  // Closes the pager's input and waits until it ends.
  void finish();

 private:
  pid_t child_ = -1;
  Fd terminal_;  // standard output as it was
};

}  // namespace gputrace
