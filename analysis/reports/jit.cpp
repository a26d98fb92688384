// Loading of machine code: modules, libraries, links; PTX is compiled by the driver within the load.
#include <map>

#include "analysis/reports/list.h"

namespace gputrace {
namespace {

Value image_name(ImageKind image) {
  switch (image) {
    case ImageKind::Cubin:
      return "cubin";
    case ImageKind::Fatbin:
      return "fatbin";
    case ImageKind::Ptx:
      return "ptx";
    case ImageKind::File:
      return "file";
    case ImageKind::LtoIr:
      return "lto-ir";
    case ImageKind::Unknown:
      return {};
  }
  return {};
}

std::string what_name(ModuleWhat what, ImageKind image) {
  if (what == ModuleWhat::Link) return "link";
  if (image == ImageKind::Ptx) return "ptx";
  return what == ModuleWhat::Library ? "library" : "module";
}

}  // namespace

Table jit_report(const LoadedTrace& trace) {
  std::map<std::pair<ModuleWhat, ImageKind>, ModuleLoads> rows;
  for (const ProcessTrace& process : trace.processes) {
    for (const ModuleLoads& loads : process.module_loads) {
      ModuleLoads& row = rows[{loads.what, loads.image}];
      row.bytes += loads.bytes;
      row.count += loads.count;
      row.total_ns += loads.total_ns;
      row.max_ns = std::max(row.max_ns, loads.max_ns);
    }
  }
  Table table;
  table.section = "jit";
  table.title = "Loading and compiling machine code";
  table.columns = {{"what", Unit::Text},   {"image", Unit::Text},     {"bytes", Unit::Bytes},
                   {"count", Unit::Count}, {"total_ns", Unit::Nanos}, {"max_ns", Unit::Nanos}};
  table.notes = {
      "host time in the loading calls; work that the driver puts off until a kernel's first launch is in that launch"};
  for (const auto& [key, row] : rows) {
    table.rows.push_back({what_name(key.first, key.second), image_name(key.second),
                          row.bytes ? number(row.bytes) : Value(), number(row.count), number(row.total_ns),
                          number(row.max_ns)});
  }
  sort_table(table, "total_ns");
  return table;
}

}  // namespace gputrace
