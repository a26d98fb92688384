// gputrace env: the variables that `run` would set, for shells, batch scripts and containers.
#include <fmt/format.h>
#include <cstdio>

#include "analysis/words/safe_text.h"
#include "cli/cupti_choice.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/simgpu_choice.h"

namespace gputrace {

int env_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace env", "Prints the variables that trace a program: eval \"$(gputrace env)\".", globals);
  TraceOptions options;
  bool slurm = false, docker = false;
  add_trace_options(parser, options);
  parser.flag("--slurm", slurm, "one directory per job, on the shared scratch of the job");
  parser.flag("--docker", docker, "as options of docker run");
  parser.exclude("--docker", "--slurm");
  if (const auto code = parser.parse(arguments)) return *code;
  const Places places = find_places();
  if (const auto wrong = check_trace_options(options, places)) return fail(kUsage, *wrong);

  const std::string scratch = slurm ? "${SCRATCH:-$PWD}/gputrace-%j" : "gputrace-%j";
  const std::string folder = places.library.substr(0, places.library.find_last_of('/'));
  const std::string root = folder.substr(0, folder.find_last_of('/'));
  Output output("");
  if (!output.open()) return kRuntimeError;
  if (docker) output.write("-v " + shell_word(root + ":" + root + ":ro") + " -v \"$PWD\":/gputrace");
  const SimgpuChoice simulated = choose_simgpu(options, places, {});
  const std::string traces = options.output.empty() ? (docker ? "/gputrace/gputrace-%j" : scratch) : options.output;
  for (const auto& [name, value] : trace_variables(options, places, traces, simulated.preloads)) {
    if (docker) {
      output.write(fmt::format(" -e {}={}", name, shell_word(value)));
    } else if (name == "GPUTRACE_OUTPUT" && options.output.empty() && slurm) {
      output.write(fmt::format("export {}=\"{}\"\n", name, value));
    } else {
      output.write(fmt::format("export {}={}\n", name, shell_word(value)));
    }
  }
  if (docker) {
    output.write("\n");
  } else {  // last: an eval without quotes makes one line of all
    const CuptiChoice cupti = choose_cupti(options, places, Target{});
    if (simulated.major != 0)
      output.write("# simulated CUDA " + std::to_string(simulated.major) + ": " + safe_text(simulated.reason) + "\n");
    output.write("# device times: " + safe_text((cupti.path.empty() ? "" : cupti.path + ": ") + cupti.reason) + "\n");
  }
  return output.close();
}

}  // namespace gputrace
