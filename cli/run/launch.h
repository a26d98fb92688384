// Runs a program as its parent would want to see it: same terminal, same process group, same signals, same end.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gputrace {

struct Ending {
  int exec_error = 0;  // errno: it never ran
  int exit_code = 0;
  int signal = 0;  // it was killed by this signal
  int pid = 0;
  int status = 0;  // of wait()
};

// Starts the command with these variables set and waits for its end.
//   · The child is in our process group: the terminal's signals reach it without us. Signals sent to us alone are
//     passed on to it.
//   · Its signal mask and dispositions are those that we were started with.
Ending launch(const std::vector<std::string>& command,
              const std::vector<std::pair<std::string, std::string>>& variables);

// Ends this program as the child ended: by the same signal (without a second core file), else by its exit code.
[[noreturn]] void end_as(const Ending& ending);

}  // namespace gputrace
