// CUDA graphs: one row per graph that was instantiated, in the order in which they came.
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

void fill_graphs(const LoadedRun& run, Table& table) {
  if (!device_collected(run)) table.notes.push_back("device times are not known: " + why_no_device_times(run));
  for (const ProcessTrace& process : run.processes) {
    for (std::size_t i = 0; i < process.graphs.size(); ++i) {
      const Graph& graph = process.graphs[i];
      std::string name = "graph " + std::to_string(i + 1);
      if (run.processes.size() > 1) name.insert(0, std::to_string(process.who.pid) + " ");
      const bool known = !graph.unreadable;
      const GraphTimes& times = graph.times;
      table.rows.push_back({name, known ? number(graph.nodes) : Value(), known ? number(graph.kernel_nodes) : Value(),
                            number(graph.instantiations), number(graph.updates), number(graph.launches),
                            graph.launches ? number(graph.launch_calls.mean()) : Value(),
                            times.replays ? number(times.device_ns) : Value(), mean(times.device_ns, times.replays),
                            mean(times.latency_ns, times.replays),
                            known && graph.launches ? mean(graph.launch_calls.mean(), graph.nodes) : Value(),
                            process.device.collected ? number(times.replays) : Value(),
                            static_cast<i64>(process.who.pid)});
    }
  }
  sort_table(table, "launches");
}

}  // namespace

extern constexpr SectionReport graphs_report = {
    .section = "graphs",
    .title = "CUDA graphs",
    .answers = "executable graphs: nodes, instantiations, updates, launches, time on the device, cost per node",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"graph", Unit::Text},
                {"nodes", Unit::Count},
                {"kernel_nodes", Unit::Count},
                {"instantiations", Unit::Count},
                {"updates", Unit::Count},
                {"launches", Unit::Count},
                {"api_mean_ns", Unit::Nanos},
                {"device_total_ns", Unit::Nanos},
                extra({"device_mean_ns", Unit::Nanos}),
                extra({"latency_mean_ns", Unit::Nanos}),
                extra({"api_per_node_ns", Unit::Nanos}),
                extra({"replays_timed", Unit::Count, Hint::Detail}),
                extra({"pid", Unit::None, Hint::Detail})},
    .notes =
        {"api = host time in the launch call; per node = that over the nodes; nodes of the newest version, those of "
         "child "
         "graphs included; device = from the first node's begin to the last node's end, latency = from the call to the "
         "first node's begin, of the replays that the device reported"},
    .fill = fill_graphs,
};

}  // namespace gputrace
