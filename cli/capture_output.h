// Runs a small helper program and takes what it prints; for doctor.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gputrace {

struct Captured {
  bool started = false;
  int error = 0;               // errno where it did not start
  int exit_code = -1;          // -1: killed, by us after `patience` or by a signal
  std::string output, errors;  // at most 64 KiB each
};

Captured capture_output(const std::vector<std::string>& command,
                        const std::vector<std::pair<std::string, std::string>>& variables, int patience_ms);

}  // namespace gputrace
