#include "analysis/run/program.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "analysis/lines/sites.h"

namespace gputrace {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) != std::string::npos;) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// What Python's multiprocessing runs in a process that it started anew ("spawn", "forkserver"): the file of the outermost frame of the program's
// own within its, be there a package's between them (torch.multiprocessing.spawn); empty: none was seen.
std::string file_of_spawned(const SourceFrames& frames) {
  for (const SourceFrame& frame : frames) {
    if (is_library_file(frame) || frame.file.starts_with('<')) continue;  // "<string>": what is made while it runs
    for (u32 caller = frame.parent; caller != 0 && is_library_file(frames[caller]); caller = frames[caller].parent)
      if (begins_process(frames[caller])) return file_alone(frame.file);
  }
  return "";
}

// Of "…/site-packages/torch/_inductor/compile_worker/__main__.py" what python -m would be given; else the script's file.
std::string name_of_script(const std::string& path) {
  constexpr std::string_view kMain = "/__main__.py";
  if (path.size() <= kMain.size() || path.compare(path.size() - kMain.size(), kMain.size(), kMain) != 0)
    return file_alone(path);
  const std::string folder = path.substr(0, path.size() - kMain.size());
  std::string module(within_packages(folder));
  if (module.empty()) return file_alone(folder);
  std::replace(module.begin(), module.end(), '/', '.');
  return "python -m " + module;
}

}  // namespace

std::string program_name(const ProcessTrace& process) {
  if (!process.who.title.empty()) return process.who.title;
  const std::string executable = file_alone(process.who.executable);
  const std::vector<std::string> words = words_of(process.who.command);
  const bool python = is_interpreter(executable);
  if (python && process.who.command.find("from multiprocessing.") != std::string::npos) {
    std::string file = file_of_spawned(process.lines.frames);
    if (file.empty()) file = file_of_spawned(process.samples.frames);
    return file.empty() ? "python (multiprocessing)" : file + " (multiprocessing)";
  }
  for (std::size_t i = 1; python && i < words.size(); ++i) {
    if (words[i] == "-m" && i + 1 < words.size()) return "python -m " + words[i + 1];
    if (words[i] == "-c") return "python -c";
    if (words[i] == "-W" || words[i] == "-X")
      ++i;
    else if (words[i][0] != '-')
      return name_of_script(words[i]);
  }
  return executable;
}

}  // namespace gputrace
