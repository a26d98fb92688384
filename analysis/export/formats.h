// The export formats: one file and one row of list.def each.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "analysis/events/events.h"

namespace gputrace {

// Where a format's bytes go; false: they could not be written, stop.
using WriteBytes = std::function<bool(std::string_view)>;

// Where an export goes. Formats that are a file or a folder with a structure of its own write there themselves: nothing is at that path
// yet, its folder is there.
struct ExportTarget {
  WriteBytes write;  // Kind::Stream
  std::string path;  // Kind::File, Kind::Folder
};

struct ExportFormat {
  enum class Kind { Stream, File, Folder };

  const char* name;
  Kind kind = Kind::Stream;
  const char* suffix;   // of the file or folder, with the dot
  const char* readers;  // who reads it, in a few words
  std::unique_ptr<EventSink> (*make)(const ExportTarget& target);
  // Writes what is left. After the last event, once. What went wrong, of files and folders; of streams `write` tells.
  std::string (*finish)(EventSink& sink);
};

std::span<const ExportFormat* const> all_exports();
const ExportFormat* find_export(const std::string& name);  // nullptr: none of that name

}  // namespace gputrace
