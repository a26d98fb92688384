#include "cli/simgpu_choice.h"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/fd.h"
#include "cli/options.h"
#include "cli/target.h"

namespace gputrace {
namespace {

constexpr int kNewest = 13;

// What is simulated, by the sonames that programs of each major ask for; preloaded in this order. A soname that stands in one column only has
// another number in the other.
struct SimulatedLibrary {
  const char* of_12;
  const char* of_13;
};
constexpr SimulatedLibrary kLibraries[] = {
    {"libcuda.so.1", "libcuda.so.1"},
    {"libcudart.so.12", "libcudart.so.13"},
    {"libcupti.so.12", "libcupti.so.13"},
    {"libnvidia-ml.so.1", "libnvidia-ml.so.1"},
    {"libcublasLt.so.12", "libcublasLt.so.13"},
    {"libcublas.so.12", "libcublas.so.13"},
    {"libcudnn.so.9", "libcudnn.so.9"},
    {"libcudnn.so.8", ""},
    {"libcufft.so.11", "libcufft.so.12"},
    {"libcufftw.so.11", "libcufftw.so.12"},
    {"libcurand.so.10", "libcurand.so.10"},
    {"libcusparse.so.12", "libcusparse.so.12"},
    {"libcusolver.so.11", "libcusolver.so.12"},
    {"libcusolverMg.so.11", "libcusolverMg.so.12"},
    {"libcusparseLt.so.0", "libcusparseLt.so.0"},
    {"libnccl.so.2", "libnccl.so.2"},
    {"libnvshmem_host.so.3", "libnvshmem_host.so.3"},
    {"libcufile.so.0", "libcufile.so.0"},
};
constexpr unsigned kEssential = 3;  // the first ones, which are no stand-ins

struct Found {
  int major;
  std::string reason;
};

bool begins_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// 12 for libcudart.so.12 and for libcublas.so.12; nothing for what both majors have, and for all else.
std::optional<int> major_of(const std::string& soname) {
  for (const SimulatedLibrary& library : kLibraries) {
    if (std::string(library.of_12) == library.of_13) continue;
    if (*library.of_12 != '\0' && begins_with(soname, library.of_12)) return 12;
    if (*library.of_13 != '\0' && begins_with(soname, library.of_13)) return 13;
  }
  return std::nullopt;
}

std::optional<Found> by_links(const Target& target, const Places& places) {
  for (const std::string& object : linked_objects(target, places.simgpu + ":" + variable("LD_LIBRARY_PATH"))) {
    const std::string name = base_name(object);
    if (const auto major = major_of(name))
      return Found{*major, base_name(target.interpreter.empty() ? target.path : target.interpreter) +
                               " is linked against " + name};
  }
  return std::nullopt;
}

bool any_file(const std::string& pattern) {
  glob_t found{};
  const bool any = glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0;
  globfree(&found);
  return any;
}

// `cuda: Optional[str] = '12.1'`, as PyTorch says it.
std::optional<int> torch_major(const std::string& folder) {
  const Fd file(open((folder + "/torch/version.py").c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096] = {};
  if (!file || read(file.get(), text, sizeof text - 1) <= 0) return std::nullopt;
  for (const std::string& line : split(text, '\n')) {
    if (!begins_with(line, "cuda")) continue;
    const std::size_t quote = line.find('\'');
    if (quote != std::string::npos) return std::atoi(line.c_str() + quote + 1);
  }
  return std::nullopt;
}

std::optional<Found> by_packages(const Target& target) {
  for (const std::string& folder : package_folders(target)) {
    const auto any = [&](const char* library, const char* wheel) {
      return any_file(folder + library) || any_file(folder + wheel);
    };
    const bool of_12 = any("/nvidia/cuda_runtime/lib/libcudart.so.12*", "/nvidia_cuda_runtime_cu12-*");
    const bool of_13 = any("/nvidia/cu13/lib/libcudart.so.13*", "/nvidia_cuda_runtime-13*");
    if (of_12 != of_13) return Found{of_12 ? 12 : 13, "the CUDA wheels of " + folder};
    const int torch = torch_major(folder).value_or(0);
    if (torch == 12 || torch == 13) return Found{torch, "PyTorch in " + folder};
    if (of_12) return Found{kNewest, "wheels of CUDA 12 and 13 are in " + folder};
  }
  return std::nullopt;
}

// The programs that the command names: the first word's, then those of the other words, as wrappers have them.
std::vector<Target> programs_of(const Arguments& command) {
  constexpr std::size_t kMostPrograms = 16;
  std::vector<Target> programs;
  const auto add = [&](const std::string& word) {
    if (programs.size() == kMostPrograms || word.empty() || word[0] == '-') return;
    const Target target = inspect_target(word);
    if (!target.path.empty()) programs.push_back(target);
  };
  for (const std::string& argument : command) {
    add(argument);
    if (argument.find(' ') == std::string::npos) continue;
    for (const std::string& word : split(argument, ' ')) add(word);
  }
  return programs;
}

Found find_major(const TraceOptions& options, const Places& places, const Arguments& command) {
  if (options.simgpu != "auto") return {std::atoi(options.simgpu.c_str()), "--simgpu=" + options.simgpu};
  std::vector<Target> programs = programs_of(command);
  for (const Target& program : programs) {
    if (const auto found = by_links(program, places)) return *found;
  }
  programs.push_back(inspect_target("python3"));  // what a script that is no program would run
  for (const Target& program : programs) {
    if (const auto found = by_packages(program)) return *found;
  }
  return {kNewest, "nothing tells another"};
}

}  // namespace

SimgpuChoice choose_simgpu(const TraceOptions& options, const Places& places, const Arguments& command) {
  SimgpuChoice choice;
  if (options.simgpu.empty() || places.simgpu.empty()) return choice;
  const Found found = find_major(options, places, command);
  choice.major = found.major;
  choice.reason = found.reason;
  choice.complete = true;
  unsigned row = 0;
  for (const SimulatedLibrary& library : kLibraries) {
    const std::string name = found.major == 12 ? library.of_12 : library.of_13;
    const std::string path = places.simgpu + "/" + name;
    const bool there = !name.empty() && access(path.c_str(), R_OK) == 0;
    if (there) choice.preloads.push_back(path);
    if (row++ < kEssential && !there) choice.complete = false;
  }
  return choice;
}

std::string what_is_incomplete(const SimgpuChoice& choice) {
  const std::string major = std::to_string(choice.major);
  return "the simulated GPU was built without the runtime and CUPTI of CUDA " + major +
         ", which the program seems to want (" + choice.reason +
         "): it will load NVIDIA's, which does not run here; fix: build with -Dcuda" +
         (choice.major == 12 ? "12" : "") + "=DIR, or --simgpu=" + (choice.major == 12 ? "13" : "12");
}

std::string names_of_preloads(const SimgpuChoice& choice) {
  std::string names;
  for (const std::string& path : choice.preloads) names += (names.empty() ? "" : " ") + base_name(path);
  return names;
}

}  // namespace gputrace
