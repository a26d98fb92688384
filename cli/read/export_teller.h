// What verbs that go through the events of traces tell their user: how far they are, and what is missing.
#pragma once

#include "analysis/export/formats.h"
#include "cli/read/progress.h"

namespace gputrace {

class ExportTeller : public ExportProgress {
 public:
  // `what`: "exporting"; `wanted` false: silent.
  ExportTeller(const char* what, bool wanted) : progress_(what, wanted) {}
  void reached(u32 file, u32 files, u64 events) override;

 private:
  Progress progress_;
};

// A warning for each.
void warn_of_losses(const Exported& said);

}  // namespace gputrace
