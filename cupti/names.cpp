#include "cupti/names.h"

#include <cstring>

#include "base/mapped_memory.h"

namespace gputrace {

bool KernelNames::prepare() {
  if (entries_) return true;
  if (failed_) return false;
  const u64 size = kEntries * sizeof(Entry) + kTextRoom;
  entries_ = map_memory<Entry>(size);
  failed_ = !entries_;
  if (failed_) return false;
  texts_ = reinterpret_cast<char*>(entries_ + kEntries);
  return true;
}

u64 KernelNames::id_of(const char* name, u64 (*define)(const char*, u64)) {
  if (!name || !*name) return 0;
  Entry* free = nullptr;
  if (prepare()) {
    const u32 start = static_cast<u32>((reinterpret_cast<u64>(name) * 0x9e3779b97f4a7c15ull) >> 51);
    static_assert(kEntries == 1u << (64 - 51));
    for (u32 i = 0; i < kProbes; ++i) {
      Entry& entry = entries_[(start + i) % kEntries];
      if (entry.name == name) {
        if (std::strcmp(entry.copy, name) == 0) return entry.id;
        free = &entry;  // the address has another name now
        break;
      }
      if (!entry.name) {
        free = &entry;
        break;
      }
    }
  }
  const u64 length = std::strlen(name);
  const u64 id = define(name, length);
  if (!id || !free || used_ + length + 1 > kTextRoom) return id;
  char* copy = texts_ + used_;
  std::memcpy(copy, name, length + 1);
  used_ += length + 1;
  *free = {name, copy, id};
  return id;
}

}  // namespace gputrace
