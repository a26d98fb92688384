#include "cupti/places.h"

#include <cstring>

#include "base/c_text.h"

namespace gputrace {
namespace {

bool is_cupti_file(const char* path) { return starts_with(file_name_of(path), "libcupti.so"); }

class Candidates {
 public:
  Candidates(CuptiCandidate* out, u32 capacity, u32 newest_major)
      : out_(out), capacity_(capacity), newest_major_(newest_major) {}

  void add(const char* folder, u64 folder_length, const char* file, const char* reason, bool loaded = false) {
    const u64 length = std::strlen(file);
    if (count_ == capacity_ || folder_length + length + 1 > sizeof out_->path) return;
    CuptiCandidate& candidate = out_[count_];
    std::memcpy(candidate.path, folder, folder_length);
    std::memcpy(candidate.path + folder_length, file, length + 1);
    candidate.reason = reason;
    candidate.loaded = loaded;
    for (u32 i = 0; i < count_; ++i) {
      if (std::strcmp(out_[i].path, candidate.path) == 0) return;
    }
    ++count_;
  }
  // Both names, the newer first, as far as the driver allows.
  void add_folder(const char* folder, u64 folder_length, const char* below, const char* reason) {
    char path[512];
    const u64 length = std::strlen(below);
    if (folder_length + length + 1 > sizeof path) return;
    std::memcpy(path, folder, folder_length);
    std::memcpy(path + folder_length, below, length);
    if (newest_major_ >= 13) add(path, folder_length + length, "libcupti.so.13", reason);
    add(path, folder_length + length, "libcupti.so.12", reason);
  }
  u32 count() const { return count_; }

 private:
  CuptiCandidate* out_;
  u32 capacity_;
  u32 newest_major_;
  u32 count_ = 0;
};

u64 folder_length(const char* path) { return static_cast<u64>(file_name_of(path) - path); }

// A driver in a system folder says nothing about CUPTI; one that lies elsewhere may bring its own.
bool is_system_folder(const char* path) {
  return starts_with(path, "/usr/") || starts_with(path, "/lib/") || starts_with(path, "/lib64/");
}

// .../site-packages/nvidia/cuda_runtime/lib/libcudart.so.12, .../torch/lib/libtorch_cuda.so -> .../site-packages/
u64 packages_root(const char* path) {
  const char* found = std::strstr(path, "/site-packages/");
  if (found) return static_cast<u64>(found - path) + std::strlen("/site-packages/");
  found = std::strstr(path, "/dist-packages/");
  return found ? static_cast<u64>(found - path) + std::strlen("/dist-packages/") : 0;
}

}  // namespace

u32 list_candidates(const CuptiSearch& search, CuptiCandidate* out, u32 capacity) {
  Candidates list(out, capacity, search.newest_major);
  for (u32 i = 0; i < search.loaded_count; ++i) {
    if (is_cupti_file(search.loaded[i])) list.add("", 0, search.loaded[i], "the program has loaded it", true);
  }
  if (search.driver_path && !is_system_folder(search.driver_path))
    list.add_folder(search.driver_path, folder_length(search.driver_path), "", "it lies beside the loaded driver");
  if (search.runtime_path)
    list.add_folder(search.runtime_path, folder_length(search.runtime_path), "", "it lies beside the loaded runtime");
  for (u32 i = 0; i < search.loaded_count; ++i) {
    const u64 root = packages_root(search.loaded[i]);
    if (!root) continue;
    list.add_folder(search.loaded[i], root, "nvidia/cu13/lib/", "the Python packages that are loaded bring it");
    list.add_folder(search.loaded[i], root, "nvidia/cuda_cupti/lib/", "the Python packages that are loaded bring it");
  }
  const char* homes[] = {search.cuda_home, "/usr/local/cuda"};
  for (const char* home : homes) {
    if (!home || !*home) continue;
    list.add_folder(home, std::strlen(home), "/extras/CUPTI/lib64/", "it belongs to the toolkit");
    list.add_folder(home, std::strlen(home), "/lib64/", "it belongs to the toolkit");
    list.add_folder(home, std::strlen(home), "/lib/", "it belongs to the toolkit");
  }
  list.add_folder("", 0, "", "the loader finds it");
  return list.count();
}

}  // namespace gputrace
