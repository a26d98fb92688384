// CUDA graphs: one row per graph that was instantiated, in the order in which they came.
#include "analysis/reports/list.h"

namespace gputrace {

Table graphs_report(const LoadedTrace& trace) {
  Table table;
  table.section = "graphs";
  table.title = "CUDA graphs";
  table.columns = {
      {"graph", Unit::Text},           {"nodes", Unit::Count},           {"kernel_nodes", Unit::Count},
      {"instantiations", Unit::Count}, {"updates", Unit::Count},         {"launches", Unit::Count},
      {"api_mean_ns", Unit::Nanos},    {"device_total_ns", Unit::Nanos}, {"pid", Unit::None, Hint::Detail}};
  table.notes = {"api = host time in the launch call; nodes of the newest version, those of child graphs included",
                 "device_total needs device timing, which is not collected in this version"};
  for (const ProcessTrace& process : trace.processes) {
    for (std::size_t i = 0; i < process.graphs.size(); ++i) {
      const Graph& graph = process.graphs[i];
      std::string name = "graph " + std::to_string(i + 1);
      if (trace.processes.size() > 1) name = std::to_string(process.who.pid) + " " + name;
      const bool known = !graph.unreadable;
      table.rows.push_back({name,
                            known ? number(graph.nodes) : Value(),
                            known ? number(graph.kernel_nodes) : Value(),
                            number(graph.instantiations),
                            number(graph.updates),
                            number(graph.launches),
                            graph.launches ? number(graph.launch_calls.mean()) : Value(),
                            {},
                            static_cast<i64>(process.who.pid)});
    }
  }
  sort_table(table, "launches");
  return table;
}

}  // namespace gputrace
