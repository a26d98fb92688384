// One line on standard error that says how far long work is; only on a terminal, and only where it takes long.
#pragma once

#include <string>

#include "base/types.h"

namespace gputrace {

class Progress {
 public:
  // `wanted` false: silent.
  Progress(std::string what, bool wanted);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& how_far);

 private:
  const std::string what_;
  const bool wanted_;
  const Nanos began_;
  bool shown_ = false;
};

}  // namespace gputrace
