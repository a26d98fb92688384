#include "analysis/export/formats.h"

namespace gputrace {

#define GT_EXPORT(format) extern const ExportFormat format##_export;
#include "analysis/export/list.def"

std::span<const ExportFormat* const> all_exports() {
  static constexpr const ExportFormat* kFormats[] = {
#define GT_EXPORT(format) &format##_export,
#include "analysis/export/list.def"
  };
  return kFormats;
}

const ExportFormat* find_export(const std::string& name) {
  for (const ExportFormat* format : all_exports()) {
    if (name == format->name) return format;
  }
  return nullptr;
}

}  // namespace gputrace
