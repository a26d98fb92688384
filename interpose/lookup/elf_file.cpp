#include "interpose/lookup/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "base/mapped_memory.h"
#include "base/raw_syscall.h"

namespace gputrace {
namespace {

constexpr u32 kMostFiles = 64, kPathSize = 1024;
constexpr u64 kMostBytes = 512ull << 20;  // of a file that are looked through

class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const long file = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer(path), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const long size = raw_syscall(SYS_lseek, file, 0, 2 /* SEEK_END */);
    if (size > static_cast<long>(sizeof(Elf64_Ehdr))) {
      const long mapped = raw_syscall(SYS_mmap, 0, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (!raw_failed(mapped)) data_ = reinterpret_cast<const char*>(mapped), size_ = static_cast<u64>(size);
    }
    raw_syscall(SYS_close, file);
  }
  ~MappedFile() {
    if (data_) unmap_memory(data_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  // nullptr: not there as a whole.
  template <typename T>
  const T* at(u64 offset, u64 count = 1) const {
    if (offset > size_ || count > (size_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(data_ + offset);
  }
  const char* text(u64 offset) const {
    return offset < size_ && std::memchr(data_ + offset, 0, size_ - offset) ? data_ + offset : nullptr;
  }
  bool contains(const char* word) const {
    return data_ && memmem(data_, size_ < kMostBytes ? size_ : kMostBytes, word, std::strlen(word));
  }

 private:
  const char* data_ = nullptr;
  u64 size_ = 0;
};

struct Dynamic {
  static constexpr u32 kMostNeeded = 64;
  const char* needed[kMostNeeded];
  u32 count = 0;
  const char* run_path = nullptr;
};

// Where a virtual address lies in the file; 0: nowhere.
u64 offset_of(const Elf64_Phdr* segments, u32 count, u64 address) {
  for (u32 i = 0; i < count; ++i) {
    const Elf64_Phdr& part = segments[i];
    if (part.p_type == PT_LOAD && address >= part.p_vaddr && address < part.p_vaddr + part.p_filesz)
      return part.p_offset + (address - part.p_vaddr);
  }
  return 0;
}

bool read_dynamic(const MappedFile& file, Dynamic& dynamic) {
  const auto* header = file.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  const u32 count = header->e_phnum;
  const auto* segments = file.at<Elf64_Phdr>(header->e_phoff, count);
  if (!segments) return false;
  for (u32 i = 0; i < count; ++i) {
    if (segments[i].p_type != PT_DYNAMIC) continue;
    const u64 entries = segments[i].p_filesz / sizeof(Elf64_Dyn);
    const auto* entry = file.at<Elf64_Dyn>(segments[i].p_offset, entries);
    if (!entry) return false;
    u64 strings = 0;
    for (u64 j = 0; j < entries && entry[j].d_tag != DT_NULL; ++j) {
      if (entry[j].d_tag == DT_STRTAB) strings = offset_of(segments, count, entry[j].d_un.d_ptr);
    }
    for (u64 j = 0; strings && j < entries && entry[j].d_tag != DT_NULL; ++j) {
      const auto tag = entry[j].d_tag;
      const char* text =
          tag == DT_NEEDED || tag == DT_RUNPATH || tag == DT_RPATH ? file.text(strings + entry[j].d_un.d_val) : nullptr;
      if (!text) continue;
      if (tag != DT_NEEDED)
        dynamic.run_path = text;
      else if (dynamic.count < Dynamic::kMostNeeded)
        dynamic.needed[dynamic.count++] = text;
    }
  }
  return true;
}

bool names_cuda(const MappedFile& file) {
  static constexpr const char* kWords[] = {"libcuda.so", "libcudart.so", "libcudnn",      "libcublas",
                                           "libnccl.so", "libcufft.so",  "libcusparse.so"};
  for (const char* word : kWords) {
    if (file.contains(word)) return true;
  }
  return false;
}

// The files that are looked at, one after the other: what one needs comes behind it.
struct Queue {
  char paths[kMostFiles][kPathSize];
  u32 count = 0;

  void add(const char* folder, u64 length, const char* name) {
    const u64 size = std::strlen(name) + 1;
    if (count == kMostFiles || length + 1 + size > kPathSize) return;
    char* path = paths[count];
    std::memcpy(path, folder, length);
    path[length] = '/';
    std::memcpy(path + length + 1, name, size);
    for (u32 i = 0; i < count; ++i) {
      if (std::strcmp(paths[i], path) == 0) return;
    }
    if (raw_syscall(SYS_faccessat, AT_FDCWD, raw_pointer(path), 4 /* R_OK */) == 0) ++count;
  }
};

void add_needed(Queue& queue, const char* path, const Dynamic& dynamic) {
  const char* slash = std::strrchr(path, '/');
  const u64 origin = static_cast<u64>(slash - path);
  for (u32 i = 0; i < dynamic.count; ++i) {
    const char* name = dynamic.needed[i];
    if (const char* last = std::strrchr(name, '/')) {
      queue.add(name, static_cast<u64>(last - name), last + 1);
      continue;
    }
    queue.add(path, origin, name);
    for (const char* folder = dynamic.run_path; folder && *folder;) {
      const char* end = strchrnul(folder, ':');
      constexpr char kOrigin[] = "$ORIGIN";
      char full[kPathSize];
      u64 length = static_cast<u64>(end - folder);
      if (length >= sizeof kOrigin - 1 && std::memcmp(folder, kOrigin, sizeof kOrigin - 1) == 0) {
        const u64 rest = length - (sizeof kOrigin - 1);
        if (origin + rest < sizeof full) {
          std::memcpy(full, path, origin);
          std::memcpy(full + origin, folder + sizeof kOrigin - 1, rest);
          queue.add(full, origin + rest, name);
        }
      } else {
        queue.add(folder, length, name);
      }
      folder = *end ? end + 1 : end;
    }
  }
}

}  // namespace

bool file_reaches_cuda(const char* path) {
  if (!path || !std::strchr(path, '/') || std::strlen(path) >= kPathSize) return false;
  Queue* const memory = map_memory<Queue>(sizeof(Queue));
  if (!memory) return false;
  Queue& queue = *memory;  // zeroed: empty
  std::strcpy(queue.paths[queue.count++], path);
  bool reaches = false;
  for (u32 i = 0; i < queue.count && !reaches; ++i) {
    const MappedFile file(queue.paths[i]);
    Dynamic dynamic;
    if (!read_dynamic(file, dynamic)) continue;
    reaches = names_cuda(file);
    if (!reaches) add_needed(queue, queue.paths[i], dynamic);
  }
  unmap_memory(memory, sizeof(Queue));
  return reaches;
}

}  // namespace gputrace
