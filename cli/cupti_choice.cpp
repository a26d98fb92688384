#include "cli/cupti_choice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "base/collect_parts.h"
#include "base/fd.h"
#include "cli/options.h"
#include "cupti/places.h"

namespace gputrace {
namespace {

constexpr u32 kMostCandidates = 32;

bool readable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

bool cache_knows(const std::string& name) {
  const Fd cache(open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC));
  std::string content;
  char piece[65536];
  for (ssize_t got; cache && content.size() < (16u << 20) && (got = read(cache.get(), piece, sizeof piece)) > 0;) {
    content.append(piece, static_cast<std::size_t>(got));
  }
  return content.find("/" + name + std::string(1, '\0')) != std::string::npos;
}

// What dlopen(name) would find: a path, the bare name where only the cache knows it, or nothing.
std::string find_by_loader(const TraceOptions& options, const Places& places, const std::string& name) {
  std::vector<std::string> folders;
  if (!options.simgpu.empty()) folders.push_back(places.simgpu);
  for (const std::string& folder : split(variable("LD_LIBRARY_PATH"), ':')) {
    if (!folder.empty()) folders.push_back(folder);
  }
  for (const char* usual : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
                            "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"}) {
    folders.emplace_back(usual);
  }
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (readable(path)) return path;
  }
  return cache_knows(name) ? name : "";
}

// libcuda.so.580.65 -> 13: a driver's version gives its CUDA version: 12 from 525 on, 13 from 580 on. Not known: 13.
u32 newest_major(const std::string& driver) {
  char real[PATH_MAX];
  const std::string file = base_name(realpath(driver.c_str(), real) ? real : driver);
  const std::string start = "libcuda.so.";
  if (file.compare(0, start.size(), start) != 0) return 13;
  const int version = std::atoi(file.c_str() + start.size());
  return version >= 300 && version < 580 ? 12 : 13;
}

CuptiChoice of_variable(const std::string& path) {
  CuptiChoice choice;
  choice.places.push_back({path, "GPUTRACE_CUPTI names it", readable(path)});
  const CuptiChoice::Place& place = choice.places[0];
  if (!place.found) {
    choice.reason = "GPUTRACE_CUPTI names " + path + ", which is not there";
    return choice;
  }
  choice.kind = CuptiChoice::Kind::Chosen;
  choice.path = path;
  choice.reason = place.reason;
  return choice;
}

bool begins_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.compare(0, prefix.size(), prefix) == 0; });
}

}  // namespace

std::string find_driver(const TraceOptions& options, const Places& places) {
  return find_by_loader(options, places, "libcuda.so.1");
}

CuptiChoice choose_cupti(const TraceOptions& options, const Places& places, const Target& target) {
  CuptiChoice choice;
  const std::string named = variable("GPUTRACE_CUPTI");
  const std::string parts = options.collect.empty() ? variable("GPUTRACE_COLLECT") : options.collect;
  const bool collected = collect::parts_of(parts.c_str()) & collect::kFromCupti;
  if (!collected || named == "off") {
    choice.kind = CuptiChoice::Kind::Off;
    choice.reason = named == "off" ? "GPUTRACE_CUPTI=off" : "device is left out of what is collected";
    return choice;
  }
  if (named[0] == '/') return of_variable(named);

  std::vector<std::string> loaded =
      linked_objects(target, (options.simgpu.empty() ? "" : places.simgpu + ":") + variable("LD_LIBRARY_PATH"));
  std::string runtime;
  for (const std::string& object : loaded) {
    if (base_name(object).compare(0, 12, "libcudart.so") == 0) runtime = object;
  }
  // As if something of them were loaded: an `import torch` comes before the first cuInit.
  const std::vector<std::string> packages = package_folders(target);
  for (const std::string& folder : packages) loaded.push_back(folder + "/");
  std::vector<const char*> paths;
  paths.reserve(loaded.size());
  for (const std::string& object : loaded) paths.push_back(object.c_str());
  const std::string driver = find_driver(options, places), home = variable("CUDA_HOME");
  CuptiSearch search;
  search.loaded = paths.data();
  search.loaded_count = static_cast<u32>(paths.size());
  search.driver_path = driver.find('/') == std::string::npos ? nullptr : driver.c_str();
  search.runtime_path = runtime.empty() ? nullptr : runtime.c_str();
  search.cuda_home = home.c_str();
  search.newest_major = newest_major(driver);
  std::vector<CuptiCandidate> candidates(kMostCandidates);
  candidates.resize(list_candidates(search, candidates.data(), kMostCandidates));
  for (const CuptiCandidate& candidate : candidates) {
    CuptiChoice::Place place{candidate.path, candidate.reason};
    if (candidate.loaded) place.reason = "the program is linked against it";
    if (begins_with_any(place.path, packages))
      place.reason = "the Python packages bring it, if one of them is loaded by then";
    if (place.path.find('/') == std::string::npos) {
      const std::string found = find_by_loader(options, places, place.path);
      place.found = !found.empty();
      if (place.found) place.path = found;
    } else {
      place.found = readable(place.path);
    }
    choice.places.push_back(place);
    if (choice.kind == CuptiChoice::Kind::Chosen || !place.found) continue;
    choice.kind = CuptiChoice::Kind::Chosen;
    choice.path = place.path;
    choice.reason = place.reason;
  }
  if (choice.kind == CuptiChoice::Kind::Absent) choice.reason = "no libcupti was found";
  return choice;
}

}  // namespace gputrace
