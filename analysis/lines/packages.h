// Installed packages that their path does not show to be any: of a framework that was built in its checkout, and what was installed into a
// folder of its own ("pip install --target").
#pragma once

#include "analysis/facts/facts.h"

namespace gputrace {

// Sets SourceFrame::package of the process's frames, once all of them are known.
void find_packages(ProcessTrace& process);

}  // namespace gputrace
