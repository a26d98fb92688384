#include "interpose/native/native_stack.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/raw_syscall.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/lookup/elf_tables.h"
#include "interpose/settings/process_facts.h"

namespace gputrace {
namespace {

constexpr char kCarried[] = "gputrace/libgputrace-unwind.so";  // beside our library; without it the system's
constexpr char kLibrary[] = "libunwind.so.8";
constexpr u32 kOwnFrames = 16;  // that may stand between a call and the program's

using Backtrace = int (*)(void** addresses, int room);

constinit Backtrace backtrace_of_libunwind = nullptr;
constinit bool is_wanted = false;
constinit long opened_by = 0;  // process

long own_process() { return raw_syscall(SYS_getpid); }

// nullptr: it is not there, or is another library than it should be.
Backtrace open_libunwind() {
  const auto open = reinterpret_cast<void* (*)(const char*, int)>(find_libc_function("dlopen"));
  const auto symbol = reinterpret_cast<void* (*)(void*, const char*)>(find_libc_function("dlsym"));
  const auto error = reinterpret_cast<char* (*)()>(find_libc_function("dlerror"));
  if (!open || !symbol) return nullptr;
  constexpr int kForUsAlone = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
  char carried[1024 + sizeof kCarried];
  const u64 length = own_folder(carried, sizeof carried - sizeof kCarried);
  std::memcpy(carried + length, kCarried, sizeof kCarried);
  void* library = length ? open(carried, kForUsAlone) : nullptr;
  if (!library) library = open(kLibrary, kForUsAlone);
  const auto found = library ? reinterpret_cast<Backtrace>(symbol(library, "unw_backtrace")) : nullptr;
  if (!found && error) error();  // not the program's to find
  return found;
}

// For the object that holds an address.
struct Search {
  u64 address;
  NativePlace* place;
  bool named;
};

void read_build_id(const dl_phdr_info& object, BuildId& hex) {
  hex[0] = 0;
  for (u32 i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const auto* const notes = reinterpret_cast<const u8*>(object.dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_NOTE && build_id_in_notes(notes, segment.p_memsz, hex)) return;
  }
}

bool copy_path(const char* path, char (&copy)[1024]) {
  if (*path) {
    const u64 length = std::strlen(path);
    if (length >= sizeof copy) return false;
    std::memcpy(copy, path, length + 1);
    return true;
  }
  const long length =
      raw_syscall(SYS_readlink, raw_pointer("/proc/self/exe"), raw_pointer(copy), static_cast<long>(sizeof copy - 1));
  if (length <= 0) return copy[0] = 0, false;
  copy[length] = 0;
  return true;
}

bool look(const dl_phdr_info& object, const elf::Tables& tables, void* data) {
  Search& search = *static_cast<Search*>(data);
  if (search.address < tables.begin || search.address >= tables.end) return false;
  search.named = copy_path(object.dlpi_name, search.place->object);
  read_build_id(object, search.place->build_id);
  search.place->offset = search.address - object.dlpi_addr;
  return true;
}

int count_unloaded(dl_phdr_info* object, std::size_t, void* data) {
  *static_cast<u64*>(data) = object->dlpi_subs;
  return 1;
}

}  // namespace

void reset_native_stacks(bool wanted, InfoText& info) {
  is_wanted = false;
  if (!wanted) return;
  if (opened_by != 0 && opened_by != own_process())
    return info.add("not_collected", "stacks: not in a child of fork, whose parent had read native stacks");
  if (!backtrace_of_libunwind) backtrace_of_libunwind = open_libunwind();
  if (!backtrace_of_libunwind)
    return info.add("not_collected",
                    "stacks: lib/gputrace/libgputrace-unwind.so and libunwind.so.8 were not found (Debian: "
                    "libunwind8); no native stacks");
  opened_by = own_process();
  is_wanted = true;
}

bool native_stacks_are_read() { return is_wanted; }

u32 read_native_frames(u64* addresses) {
  void* found[kMostNativeFrames + kOwnFrames];
  const int count = backtrace_of_libunwind(found, kMostNativeFrames + kOwnFrames);
  int first = 0;
  while (first < count && is_ours(found[first])) ++first;
  u32 frames = 0;
  for (int i = first; i < count && frames < kMostNativeFrames; ++i)
    addresses[frames++] = reinterpret_cast<u64>(found[i]);
  return frames;
}

u64 unloaded_objects() {
  u64 count = 0;
  elf::iterate_objects(count_unloaded, &count);
  return count;
}

bool find_native_place(u64 address, NativePlace& place) {
  Search search{address - 1, &place, false};  // the call, which may be its function's last instruction
  return elf::visit_objects(look, &search) && search.named;
}

}  // namespace gputrace
