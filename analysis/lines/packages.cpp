#include "analysis/lines/packages.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "analysis/lines/sites.h"

namespace gputrace {
namespace {

// Files of frameworks, by which their folders are known: no program has one of its own called so. Up to the second slash it is the framework's.
constexpr std::string_view kSigns[] = {
    "/torch/nn/modules/module.py",
    "/torch/_ops.py",
    "/torch/_tensor.py",
    "/torch/optim/optimizer.py",
    "/torch/utils/data/_utils/",
    "/torch/utils/data/dataloader.py",
    "/torch/_dynamo/eval_frame.py",
    "/jax/_src/",
    "/tensorflow/python/",
    "/triton/runtime/jit.py",
    "/cupy/_core/",
    "/numba/cuda/",
    "/ray/_private/worker.py",
};

struct Folder {
  std::string path;  // that a file begins with: "/opt/pytorch/torch/"
  u16 package = 0;   // of it, where the package's name begins
  bool operator<(const Folder& other) const { return path < other.path; }
};

// Each frame is held against each of them, so they are few, whatever a file says.
class Folders {
 public:
  void add(std::string path, std::size_t package) {
    constexpr std::size_t kMost = 64;
    if (path.size() > 1 && path.front() == '/' && package <= 0xffff && all_.size() < kMost)
      all_.insert({std::move(path), static_cast<u16>(package)});
  }
  const std::set<Folder>& all() const { return all_; }

 private:
  std::set<Folder> all_;
};

void find_frameworks(const SourceFrames& frames, Folders& folders) {
  for (const SourceFrame& frame : frames) {
    if (frame.native || is_library_file(frame)) continue;
    for (const std::string_view sign : kSigns) {
      const std::size_t at = frame.file.find(sign);
      if (at != std::string::npos) folders.add(frame.file.substr(0, frame.file.find('/', at + 1) + 1), at + 1);
    }
  }
}

// A script that lies in such a folder itself (a function's code and what it needs, in one place) makes it no folder of packages.
bool runs_from(const SourceFrames& frames, const std::string& folder) {
  return std::any_of(frames.begin(), frames.end(), [&](const SourceFrame& frame) {
    return frame.parent == 0 && frame.function == "<module>" && frame.file.starts_with(folder) &&
           frame.file.ends_with(".py");
  });
}

void mark(SourceFrames& frames, const Folders& folders) {
  for (SourceFrame& frame : frames) {
    if (frame.native || is_library_file(frame)) continue;
    for (const Folder& folder : folders.all())
      if (frame.file.starts_with(folder.path)) frame.package = folder.package;
  }
}

}  // namespace

void find_packages(ProcessTrace& process) {
  Folders folders;
  find_frameworks(process.lines.frames, folders);
  find_frameworks(process.samples.frames, folders);
  for (const std::string& named : process.who.package_folders) {
    const std::string folder = named + "/";
    if (!runs_from(process.lines.frames, folder) && !runs_from(process.samples.frames, folder))
      folders.add(folder, folder.size());
  }
  if (folders.all().empty()) return;
  mark(process.lines.frames, folders);
  mark(process.samples.frames, folders);
}

}  // namespace gputrace
