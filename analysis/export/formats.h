// The export formats: one file and one row of list.def each.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "analysis/export/events.h"

namespace gputrace {

// Where a format's bytes go; false: they could not be written, stop.
using WriteBytes = std::function<bool(std::string_view)>;

struct ExportFormat {
  const char* name;
  const char* suffix;   // of the file, with the dot
  const char* readers;  // who reads it, in a few words
  std::unique_ptr<EventSink> (*make)(const WriteBytes& write);
  // Writes what is left. After the last event, once. The error is told by `write`.
  void (*finish)(EventSink& sink);
};

std::span<const ExportFormat* const> all_exports();
const ExportFormat* find_export(const std::string& name);  // nullptr: none of that name

}  // namespace gputrace
