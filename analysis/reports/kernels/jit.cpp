// Loading of machine code: modules, libraries, links; PTX is compiled by the driver within the load.
#include <algorithm>
#include <map>

#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"

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

std::string what_name(ModuleAct what, ImageKind image) {
  if (what == ModuleAct::Link) return "link";
  if (image == ImageKind::Ptx) return "ptx";
  return what == ModuleAct::Library ? "library" : "module";
}

// CUpti_ActivityJitOperationType, CUpti_ActivityJitEntryType.
std::string operation_name(u32 operation) {
  static constexpr const char* kNames[] = {"jit", "cache load", "cache store", "compile"};
  return kNames[operation < 4 ? operation : 0];
}
Value entry_name(u32 kind) {
  if (kind == 1) return std::string("ptx to cubin");
  if (kind == 2) return std::string("nvvm ir to ptx");
  return {};
}

// What the driver did within those calls, as CUPTI tells it.
void add_driver_rows(const LoadedRun& run, Table& table) {
  std::map<std::pair<u32, u32>, DeviceJitSum> rows;
  for (const ProcessTrace& process : run.processes) {
    for (const DeviceJitSum& sum : process.device.jit) {
      DeviceJitSum& row = rows[{sum.operation, sum.kind}];
      row.count += sum.count, row.bytes += sum.bytes, row.total_ns += sum.total_ns;
      row.max_ns = std::max(row.max_ns, sum.max_ns);
    }
  }
  for (const auto& [key, row] : rows) {
    table.rows.push_back({operation_name(key.first), entry_name(key.second), row.bytes ? number(row.bytes) : Value(),
                          number(row.count), number(row.total_ns), number(row.max_ns), Value()});
  }
  if (!rows.empty())
    table.notes.push_back(
        "compile, cache load, cache store: the driver's own work, within the calls of the other rows");
}

void fill_jit(const LoadedRun& run, Table& table) {
  std::map<std::pair<ModuleAct, ImageKind>, ModuleLoads> rows;
  std::map<std::pair<ModuleAct, ImageKind>, NamedAmounts> sites;
  const FileNames files(run);
  for (const ProcessTrace& process : run.processes) {
    for (const ModuleLoads& loads : process.module_loads) {
      ModuleLoads& row = rows[{loads.what, loads.image}];
      row.bytes += loads.bytes;
      row.count += loads.count;
      row.total_ns += loads.total_ns;
      row.max_ns = std::max(row.max_ns, loads.max_ns);
      add_sites(process, loads.time_by_origin, files, sites[{loads.what, loads.image}]);
    }
  }
  for (const auto& [key, row] : rows) {
    table.rows.push_back({what_name(key.first, key.second), image_name(key.second),
                          row.bytes ? number(row.bytes) : Value(), number(row.count), number(row.total_ns),
                          number(row.max_ns), text_or_null(sites[key].most())});
  }
  add_driver_rows(run, table);
  sort_table(table, "total_ns");
}

}  // namespace

extern constexpr SectionReport jit_report = {
    .section = "jit",
    .title = "Loading and compiling machine code",
    .answers = "modules, libraries, PTX, links: size and load time; what the driver compiled or took from its cache",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls},
    .columns = {{"what", Unit::Text},
                {"image", Unit::Text},
                {"bytes", Unit::Bytes},
                {"count", Unit::Count},
                {"total_ns", Unit::Nanos},
                {"max_ns", Unit::Nanos},
                {"site", Unit::Text}},
    .notes = {"site = the line that loaded longest; times are of the host, in the loading calls; work that the driver "
              "puts off until a kernel's first launch is in that "
              "launch"},
    .fill = fill_jit,
    .of_all_devices = true,
};

}  // namespace gputrace
