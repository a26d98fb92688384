#include "interpose/code/code_capture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "base/mapped_memory.h"
#include "base/raw_syscall.h"
#include "base/safe_read.h"
#include "interpose/code/code_extent.h"
#include "interpose/code/code_mapping.h"
#include "interpose/definition/facts.h"
#include "interpose/definition/own_work.h"
#include "interpose/hot/session.h"
#include "trace/code_check.h"

namespace gputrace {
namespace {

constexpr u32 kCodePiece = 4000;  // bytes of one CodeBytes record: four fit into a small block
constexpr u32 kKnownImages = 1u << 15;
constexpr u32 kKnownModules = 4096;
constexpr u32 kKnownRanges = 128;
constexpr u32 kPiecesAtOnce = 16;  // written under one hold of the lock

// What a range of addresses showed when the table of mappings was read. Only where the kernel cannot be asked about one
// address; what has changed since then is found out by CodeImage::check, outside.
struct KnownRange {
  u64 begin, end, offset;
  u64 path, build_id;  // text ids; path 0: memory only
};

struct KnownModule {
  CodeImage image;  // as it was recorded; module 0: free
  u64 library;      // of a module that a library gave; else 0
  u64 address;      // where an image lay that was not kept; 0: it was, or has been tried again
  u64 key;          // of its bytes
};

// All of it under the definition lock.
struct CaptureMemory {
  u64 keys[kKnownImages];  // 0: free
  u32 images[kKnownImages];
  KnownModule modules[kKnownModules];
  KnownRange ranges[kKnownRanges];
  u32 image_count, module_count, range_count;
  u32 free_module;  // no place before it is free
  u32 next_image;
  u64 copied;
};
constinit CaptureMemory* memory = nullptr;
constinit std::atomic<bool> enabled{false};
constinit std::atomic<u32> not_kept{0};  // images that may be tried again

u64 mix(u64 hash, u64 value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccdull;
  return hash ^ hash >> 32;
}

// ------------------------------------------------------------------ under the lock

// Place of a key in the table, or of the free place where it belongs; kKnownImages: there is none.
u32 place_of(u64 key) {
  u32 at = static_cast<u32>(key % kKnownImages);
  for (; memory->keys[at]; at = (at + 1) % kKnownImages) {
    if (memory->keys[at] == key) return at;
  }
  return memory->image_count > kKnownImages / 4 * 3 ? kKnownImages : at;
}

u32 known_image(u64 key) {
  const u32 at = place_of(key);
  return at < kKnownImages && memory->keys[at] ? memory->images[at] : 0;
}

void remember_image(u64 key, u32 image) {
  const u32 at = place_of(key);
  if (at == kKnownImages || memory->keys[at]) return;
  memory->keys[at] = key;
  memory->images[at] = image;
  ++memory->image_count;
}

void remember_module(const CodeImage& image, u64 library, u64 address, u64 key) {
  u32& at = memory->free_module;
  while (at < memory->module_count && memory->modules[at].image.module != 0) ++at;
  if (at == kKnownModules) return;
  if (at == memory->module_count) ++memory->module_count;
  memory->modules[at++] = {image, library, address, key};
  if (address) not_kept.fetch_add(1, std::memory_order_relaxed);
}

void tell(const FinishedCall& call, const CodeImage& image, u64 library = 0, u64 address = 0, u64 key = 0) {
  define(call.nameless(), image);
  remember_module(image, library, address, key);
}

// Bytes of records that the ring could take now.
u64 free_room() {
  u64 blocks = 0;
  for (u32 i = 0; i < producer.block_count; ++i)
    blocks += block_state(producer.block_states[i].load(std::memory_order_relaxed)) == BlockState::Free;
  return blocks * (producer.block_size - sizeof(BlockHeader));
}

bool write_piece(const FinishedCall& call, u64 image, u64 address, u64 offset, u64 bytes, u64 total) {
  const u32 size = static_cast<u32>(sizeof(CodeBytes) + align_up(bytes, 8));
  char* at = reserve_definition(size, call.end);
  if (!at) return false;
  CodeBytes& out = *reinterpret_cast<CodeBytes*>(at);
  out = {};
  fill_header(out, call);
  out.header.size = static_cast<u16>(size);
  out.image = image;
  out.offset = offset;
  out.total = total;
  std::memset(at + size - 8, 0, 8);
  std::memcpy(at + sizeof(CodeBytes), reinterpret_cast<const void*>(address + offset), bytes);
  commit_definition(at, size, call.generation);
  return true;
}

// ------------------------------------------------------------------ one image

struct Place {
  bool in_file = false;
  u64 offset = 0;  // of the image in the file
  u64 room = 0;    // bytes of the file behind it that are mapped
  u64 path = 0, build_id = 0;
};

bool find_known_range(u64 address, Place& place) {
  for (u32 i = 0; i < memory->range_count && i < kKnownRanges; ++i) {
    const KnownRange& range = memory->ranges[i];
    if (address < range.begin || address >= range.end) continue;
    place = {range.path != 0, range.offset + (address - range.begin), range.end - address, range.path, range.build_id};
    return true;
  }
  return false;
}

void name_place(const FinishedCall& call, u64 address, const Mapping& mapping, Place& place) {
  place.in_file = mapping.in_file;
  place.offset = mapping.offset + (address - mapping.begin);
  place.room = mapping.end - address;
  if (!mapping.in_file) return;
  place.path = define_text(call, mapping.path, std::strlen(mapping.path));
  place.build_id = define_text(call, mapping.build_id, std::strlen(mapping.build_id));
}

// Where an address lies. Nothing is held here while the table of mappings is read.
Place place_of_address(const FinishedCall& call, u64 address, u64 bytes) {
  Place place;
  Mapping mapping;
  const bool asked = query_mapping(address, mapping);
  if (asked && (!mapping.in_file || address + bytes <= mapping.end)) {
    if (Definitions lock; lock.held()) name_place(call, address, mapping, place);
    return place;
  }
  if (!asked) {
    Definitions lock;
    if (lock.held() && find_known_range(address, place) && (!place.in_file || bytes <= place.room)) return place;
  }
  place = {};
  if (!read_mapping(address, mapping)) return place;
  if (mapping.elf_base) read_build_id(mapping.elf_base, mapping.build_id);
  if (Definitions lock; lock.held()) {
    name_place(call, address, mapping, place);
    KnownRange& range = memory->ranges[memory->range_count++ % kKnownRanges];
    range = {mapping.begin, mapping.end, mapping.offset, place.path, place.build_id};
  }
  return place;
}

u64 check_of(u64 address, u64 bytes) {
  u8 head[64];
  const u64 got = read_memory(address, head, bytes < sizeof head ? bytes : sizeof head);
  return got ? code_head_check(head, got) : 0;
}

// What tells one place in a file from another. The check stands for what may have changed there.
u64 key_of(const CodeImage& image, const Place& place) {
  return mix(mix(mix(mix(mix(1, place.path), place.build_id), place.offset), image.bytes), image.check) | 1;
}

void record_reference(const FinishedCall& call, CodeImage& image, const Place& place) {
  image.state = static_cast<u32>(CodeState::InFile);
  image.path = place.path;
  image.build_id = place.build_id;
  image.offset = place.offset;
  const u64 key = key_of(image, place);
  Definitions lock;
  if (!lock.held()) return;
  image.image = known_image(key);
  if (!image.image) {
    image.image = ++memory->next_image;
    remember_image(key, static_cast<u32>(image.image));
  }
  tell(call, image);
}

u64 key_of_bytes(const void* at, u64 bytes) { return mix(XXH3_64bits(at, bytes), bytes) | 1; }

// Writes the pieces, letting go of the lock now and then. False: it was given up.
bool copy_pieces(const FinishedCall& call, u64 image, u64 address, u64 bytes) {
  for (u64 offset = 0; offset < bytes;) {
    Definitions lock;
    if (!lock.held()) return false;
    for (u32 i = 0; i < kPiecesAtOnce && offset < bytes; ++i) {
      const u64 piece = bytes - offset < kCodePiece ? bytes - offset : kCodePiece;
      if (!write_piece(call.nameless(), image, address, offset, piece, bytes)) return false;
      offset += piece;
    }
  }
  return true;
}

// What a copy may take: of all copies of the process, and of what is free in the ring, where the rest is the program's own records'.
struct CopyBounds {
  u64 budget, of_free, in;
};
constexpr CopyBounds kAtLoad{kCodeBudget, 1, 2}, kWhenWanted{kCodeBudgetOfWanted, 3, 4};

// Takes the room for a copy out of the budget. Unknown: go on and copy. Under the lock.
CodeState reserve_copy(const CodeImage& image, const CopyBounds& bounds) {
  if (memory->copied + image.bytes > bounds.budget) return CodeState::OverBudget;
  if (image.bytes + image.bytes / 16 > free_room() / bounds.in * bounds.of_free) return CodeState::NoRoom;
  memory->copied += image.bytes;
  return CodeState{};
}

// The same bytes are copied once.
CodeState begin_copy(CodeImage& image, u64 key) {
  Definitions lock;
  if (!lock.held()) return CodeState::NoRoom;
  image.image = known_image(key);
  if (image.image) return CodeState::Copied;
  image.image = ++memory->next_image;
  return reserve_copy(image, kAtLoad);
}

void record_copy(const FinishedCall& call, CodeImage& image, u64 address) {
  u64 key = 0;
  CodeState state = CodeState::OverBudget;
  if (image.bytes <= kMaxCodeCopy) {
    key = key_of_bytes(reinterpret_cast<const void*>(address), image.bytes);
    state = begin_copy(image, key);
  }
  const bool copy = state == CodeState{};
  if (copy) state = copy_pieces(call, image.image, address, image.bytes) ? CodeState::Copied : CodeState::NoRoom;
  image.state = static_cast<u32>(state);
  Definitions lock;
  if (!lock.held()) return;
  if (!image.image) image.image = ++memory->next_image;
  if (copy && state == CodeState::Copied) remember_image(key, static_cast<u32>(image.image));
  const bool again = key && state != CodeState::Copied;
  tell(call, image, 0, again ? address : 0, again ? key : 0);
}

// ------------------------------------------------------------------ an image that was not kept when it was loaded

// The next one of the module that may be tried again, which it then may not be any more, whatever module it is asked for by.
bool take_not_kept(u64 module, KnownModule& taken) {
  Definitions lock;
  if (!lock.held()) return false;
  KnownModule* const begin = memory->modules;
  KnownModule* const end = begin + memory->module_count;
  KnownModule* at = begin;
  while (at != end && (at->address == 0 || at->image.module != module)) ++at;
  if (at == end) return false;
  taken = *at;
  for (KnownModule* each = begin; each != end; ++each) {
    if (each->address == 0 || each->image.image != taken.image.image) continue;
    each->address = 0;
    not_kept.fetch_sub(1, std::memory_order_relaxed);
  }
  return true;
}

// For all modules whose image it is.
void tell_copied(const FinishedCall& call, const KnownModule& of) {
  Definitions lock;
  if (!lock.held()) return;
  remember_image(of.key, static_cast<u32>(of.image.image));
  for (u32 i = 0; i < memory->module_count; ++i) {
    CodeImage& image = memory->modules[i].image;
    if (image.module == 0 || image.image != of.image.image) continue;
    image.state = static_cast<u32>(CodeState::Copied);
    define(call.nameless(), image);
  }
}

// The program may have given back or changed that memory, and may be about to: it is read by a call that cannot fault, and must be what it was.
void copy_again(const FinishedCall& call, const KnownModule& known) {
  const u64 bytes = known.image.bytes;
  u8* const copy = map_memory<u8>(bytes);
  if (!copy) return;
  bool written = false;
  if (read_safely(known.address, copy, bytes) && key_of_bytes(copy, bytes) == known.key) {
    bool room = false;
    if (Definitions lock; lock.held()) room = reserve_copy(known.image, kWhenWanted) == CodeState{};
    written = room && copy_pieces(call, known.image.image, reinterpret_cast<u64>(copy), bytes);
  }
  unmap_memory(copy, bytes);
  if (written) tell_copied(call, known);
}

void capture(const FinishedCall& call, u64 module, const ImageExtent& extent) {
  CodeImage image{};
  image.module = module;
  image.bytes = extent.bytes;
  image.kind = static_cast<u32>(extent.kind);
  if (extent.bytes) {
    image.check = check_of(extent.address, extent.bytes);
    const Place place = place_of_address(call.nameless(), extent.address, extent.bytes);
    if (place.in_file && place.path && extent.bytes <= place.room) return record_reference(call, image, place);
    // A size that the memory does not bear out is not believed. Of what is too large to be copied nothing is tried.
    const bool sound = extent.bytes > kMaxCodeCopy || readable_bytes(extent.address, extent.bytes) == extent.bytes;
    if (!place.in_file && sound) return record_copy(call, image, extent.address);
  }
  image.state = static_cast<u32>(CodeState::Unreadable);
  Definitions lock;
  if (!lock.held()) return;
  image.image = ++memory->next_image;
  tell(call, image);
}

}  // namespace

bool reset_code_capture(bool wanted) {
  enabled.store(false, std::memory_order_relaxed);
  not_kept.store(0, std::memory_order_relaxed);
  if (!wanted) return true;
  if (memory)
    clear_memory(memory, sizeof(CaptureMemory));  // a parent's
  else
    memory = map_memory<CaptureMemory>(sizeof(CaptureMemory));
  enabled.store(memory != nullptr, std::memory_order_relaxed);
  return memory != nullptr;
}

void capture_images(const FinishedCall& call, u64 module, const ImageExtent* images, u32 count) {
  if (!enabled.load(std::memory_order_relaxed) || !call.ok() || !module) return;
  ErrnoGuard guard;
  for (u32 i = 0; i < count; ++i) capture(call, module, images[i]);
}

void capture_file(const FinishedCall& call, u64 module, const char* path) {
  if (!enabled.load(std::memory_order_relaxed) || !call.ok() || !module || !path) return;
  ErrnoGuard guard;
  char absolute[4096];
  const u64 length = strnlen(path, sizeof absolute);
  u64 at = 0;
  if (path[0] != '/') {
    const long got = raw_syscall(SYS_getcwd, raw_pointer(absolute), sizeof absolute);
    if (got <= 1) return;
    at = static_cast<u64>(got) - 1;
    if (absolute[at - 1] != '/') absolute[at++] = '/';
  }
  if (at + length >= sizeof absolute) return;
  std::memcpy(absolute + at, path, length);
  absolute[at + length] = 0;
  struct stat about {};
  CodeImage image{};
  image.module = module;
  image.kind = static_cast<u32>(ImageKind::File);
  if (raw_syscall(SYS_newfstatat, AT_FDCWD, raw_pointer(absolute), raw_pointer(&about), 0) == 0 &&
      S_ISREG(about.st_mode)) {
    image.bytes = static_cast<u64>(about.st_size);
    image.check = code_file_check(about);
  }
  Place place;
  if (Definitions lock; lock.held()) place.path = define_text(call.nameless(), absolute, at + length);
  if (place.path) record_reference(call, image, place);
}

void capture_library_module(const FinishedCall& call, u64 module, u64 library) {
  if (!enabled.load(std::memory_order_relaxed) || !call.ok() || !module || !library) return;
  ErrnoGuard guard;
  Definitions lock;
  if (!lock.held()) return;
  const u32 count = memory->module_count;
  for (u32 i = 0; i < count; ++i) {
    if (memory->modules[i].image.module == module) return;  // recorded already: the same handle is given each time
  }
  for (u32 i = 0; i < count; ++i) {
    if (memory->modules[i].image.module != library) continue;
    KnownModule known = memory->modules[i];
    known.image.module = module;
    tell(call, known.image, library, known.address, known.key);
  }
}

void code_wanted(const FinishedCall& call, u64 module) {
  if (!enabled.load(std::memory_order_relaxed) || !not_kept.load(std::memory_order_relaxed) || !call.ok()) return;
  ErrnoGuard guard;
  KnownModule known;
  if (!take_not_kept(module, known)) return;
  const OwnWorkScope work(call, OwnWorkKind::Code);
  do copy_again(call, known);
  while (take_not_kept(module, known));
}

void code_unloaded(u64 module) {
  if (!enabled.load(std::memory_order_relaxed)) return;
  ErrnoGuard guard;
  Definitions lock;
  if (!lock.held()) return;
  for (u32 i = 0; i < memory->module_count; ++i) {
    KnownModule& known = memory->modules[i];
    if (known.image.module != module && known.library != module) continue;
    if (known.address) not_kept.fetch_sub(1, std::memory_order_relaxed);
    known = {};
    if (i < memory->free_module) memory->free_module = i;
  }
}

}  // namespace gputrace
