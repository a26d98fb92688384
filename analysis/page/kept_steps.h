// The steps of a run as bytes, kept beside its events: with them a part of the run costs one reading of the traces instead of two.
//   · What is read is not trusted: what stands for no steps is nothing.
#pragma once

#include <optional>
#include <string>

#include "analysis/events/events.h"

namespace gputrace {

std::string packed_steps(const RunSteps& steps);
std::optional<RunSteps> steps_in(const std::string& bytes);

}  // namespace gputrace
