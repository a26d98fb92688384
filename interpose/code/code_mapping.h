// What an address of this process shows: bytes of a file, or memory only. And whether memory may be read at all.
// Cold; no allocation, no lock: the loader is not asked.
#pragma once

#include "trace/build_id.h"

namespace gputrace {

struct Mapping {
  u64 begin = 0, end = 0;  // the mapping; where the text was read, with those that continue the file after it
  u64 offset = 0;          // of `begin` in the file
  u64 elf_base = 0;        // where the beginning of the same file is mapped; 0: nowhere that was seen
  bool readable = false;
  bool in_file = false;  // read-only bytes of a file that still has a name: the file can be read instead
  char path[1024] = "";
  BuildId build_id = "";  // hex; only where the kernel gives it
};

// Asks the kernel about one address (Linux 6.11 and later). False: it cannot be asked, or nothing is mapped there.
bool query_mapping(u64 address, Mapping& mapping);
// The same by reading all of /proc/self/maps; tests give it a text of their own.
bool read_mapping(u64 address, Mapping& mapping, const char* maps = "/proc/self/maps");

// The build id in the notes of an ELF file whose beginning is mapped at `base`, in hex. False: it has none.
bool read_build_id(u64 base, BuildId& hex);

// How many of `bytes` from `address` on can be read without a fault. A size that an image claims is tried with this
// before it is believed.
u64 readable_bytes(u64 address, u64 bytes);
// Copies what can be read; returns how much.
u64 read_memory(u64 address, void* out, u64 bytes);

}  // namespace gputrace
