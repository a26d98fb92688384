#include "interpose/nvtx/nvtx_store.h"

#include <cstring>

#include "base/mapped_memory.h"
#include "interpose/definition/facts.h"

namespace gputrace {
namespace {

constexpr u32 kStrings = 1u << 14, kStringPlaces = 2 * kStrings;
constexpr u32 kDomains = 1024;
constexpr u32 kNames = 8192;
constexpr u32 kMessages = 1u << 16, kMostMessages = kMessages / 4 * 3;
constexpr u64 kTextBytes = 4u << 20;
constexpr u64 kLongest = 64u << 10;

struct Named {
  std::atomic<NvtxString*> name;  // set last
  const NvtxDomain* domain;
  u64 object;
  NvtxNamed what;
  std::atomic<u64> recorded_in;  // the newest session that has it
};
struct Message {
  std::atomic<u64> key;  // hash of the content; 0: free
  std::atomic<u64> id;
};

struct Store {
  NvtxString strings[kStrings];
  std::atomic<u32> string_places[kStringPlaces];  // index + 1
  NvtxDomain domains[kDomains];
  Named names[kNames];
  Message messages[kMessages];
  std::atomic<u32> string_count, domain_count, name_count, message_count;
  std::atomic<u64> text_used;
  char texts[kTextBytes];
};
constinit std::atomic<Store*> store_pointer{nullptr};

Store& store() { return *store_pointer.load(std::memory_order_relaxed); }

u64 fold(u64 a, u64 b) {
  __extension__ using u128 = unsigned __int128;
  const auto product = static_cast<u128>(a) * b;
  return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

template <typename T>
u64 load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Of the content; in this process only.
u64 hash_of(const char* text, u64 length) {
  constexpr u64 kA = 0x9e3779b97f4a7c15ull, kB = 0xd6e8feb86659fd93ull;
  u64 hash = length * kA;
  u64 left = length;
  for (; left > 8; left -= 8, text += 8) hash = fold(hash ^ load<u64>(text), kB);
  u64 tail = 0;
  if (left >= 4) {
    tail = load<u32>(text) | load<u32>(text + left - 4) << 32;
  } else if (left) {
    tail = static_cast<unsigned char>(text[0]) | u64{static_cast<unsigned char>(text[left / 2])} << 8 |
           u64{static_cast<unsigned char>(text[left - 1])} << 16;
  }
  hash = fold(hash ^ tail, kB);
  return hash ? hash : 1;
}

// Next free index of an array that only grows; `most`: there is none.
u32 append(std::atomic<u32>& count, u32 most) {
  u32 index = count.load(std::memory_order_relaxed);
  while (index < most && !count.compare_exchange_weak(index, index + 1, std::memory_order_relaxed)) {
  }
  return index;
}

NvtxString* make_string(const char* text, u64 length, bool passing) {
  Store& all = store();
  if (passing && (all.text_used.load(std::memory_order_relaxed) > kTextBytes / 2 ||
                  all.string_count.load(std::memory_order_relaxed) > kStrings / 2))
    return nullptr;
  u64 at = all.text_used.load(std::memory_order_relaxed);
  do {
    if (at + length + 1 > kTextBytes) return nullptr;
  } while (!all.text_used.compare_exchange_weak(at, at + length + 1, std::memory_order_relaxed));
  const u32 index = append(all.string_count, kStrings);
  if (index == kStrings) return nullptr;
  std::memcpy(all.texts + at, text, length);
  NvtxString& string = all.strings[index];
  string.id = text_id(text, length);
  string.text = all.texts + at;
  string.length = static_cast<u32>(length);
  return &string;
}

bool same(const NvtxString& string, const char* text, u64 length) {
  return string.length == length && std::memcmp(string.text, text, length) == 0;
}

bool record_text(const FinishedCall& call, const char* text, u64 length) {
  const Definitions lock;
  return lock.held() && define_text(call, text, length) != 0;
}

void record_name(const FinishedCall& call, Named& named, NvtxString& name) {
  if (named.recorded_in.load(std::memory_order_relaxed) == call.generation) return;
  NvtxName record{};
  record.domain = nvtx_domain_id(call, named.domain);
  record.name = nvtx_text_id(call, name);
  record.object = named.object;
  record.what = static_cast<u32>(named.what);
  const Definitions lock;
  if (!lock.held()) return;  // recorded with the next session's, or never: names are hints
  if (named.recorded_in.exchange(call.generation, std::memory_order_relaxed) != call.generation) define(call, record);
}

// True while this thread records.
bool in_session(u64& generation) {
  generation = gate_generation();
  return generation >= kFirstGeneration && thread_state.generation == generation;
}

// Cold: the first use of a message in a session.
__attribute__((noinline)) u64 new_message(const FinishedCall& call, const char* text, u64 length, u64 key, u32& flags) {
  Store& all = store();
  if (all.message_count.load(std::memory_order_relaxed) >= kMostMessages || !record_text(call, text, length)) {
    flags |= kNvtxMessageNotKept;
    return 0;
  }
  const u64 id = text_id(text, length);
  for (u32 at = static_cast<u32>(key % kMessages);; at = (at + 1) % kMessages) {
    u64 there = 0;
    if (!all.messages[at].key.compare_exchange_strong(there, key, std::memory_order_relaxed)) {
      if (there == key) return id;
      continue;
    }
    all.message_count.fetch_add(1, std::memory_order_relaxed);
    all.messages[at].id.store(id, std::memory_order_release);
    return id;
  }
}

}  // namespace

bool nvtx_store_open() { return store_pointer.load(std::memory_order_relaxed) != nullptr; }

bool nvtx_open_store() {
  if (nvtx_store_open()) return true;
  Store* const made = map_memory<Store>(sizeof(Store));
  if (!made) return false;
  made->string_count.store(1, std::memory_order_relaxed);  // the first is the lost one
  made->strings[0].text = "";
  Store* none = nullptr;
  if (!store_pointer.compare_exchange_strong(none, made, std::memory_order_release)) unmap_memory(made, sizeof(Store));
  return true;
}

NvtxString* nvtx_keep(const char* text, u64 length, bool passing) {
  Store& all = store();
  if (length > kLongest) length = kLongest;
  if (!length) return nullptr;
  const u64 hash = hash_of(text, length);
  u32 at = static_cast<u32>(hash % kStringPlaces);
  NvtxString* made = nullptr;
  for (u32 steps = 0; steps < kStringPlaces; ++steps) {
    u32 place = all.string_places[at].load(std::memory_order_acquire);
    if (!place) {
      if (!made) made = make_string(text, length, passing);
      if (!made) return nullptr;
      const u32 own = static_cast<u32>(made - all.strings) + 1;
      if (all.string_places[at].compare_exchange_strong(place, own, std::memory_order_acq_rel)) return made;
    }
    if (same(all.strings[place - 1], text, length)) return &all.strings[place - 1];
    at = (at + 1) % kStringPlaces;
  }
  return made;
}

template <typename T, u32 kCount>
static T* entry_of(T (&entries)[kCount], const void* handle) {
  const u64 offset = reinterpret_cast<u64>(handle) - reinterpret_cast<u64>(entries);
  return offset < sizeof entries && offset % sizeof(T) == 0 ? &entries[offset / sizeof(T)] : nullptr;
}
NvtxString* nvtx_string_of(const void* handle) { return entry_of(store().strings, handle); }
NvtxDomain* nvtx_domain_of(const void* handle) { return entry_of(store().domains, handle); }
void* nvtx_lost_string() { return &store().strings[0]; }

static NvtxString* keep_literal(const char* text) { return nvtx_keep(text, std::strlen(text)); }

NvtxDomain* nvtx_domain(const char* name, u64 length) {
  Store& all = store();
  NvtxString* kept = nvtx_keep(name, length);
  if (!kept) kept = keep_literal("(a domain without a name, or one too many)");
  const u32 count = all.domain_count.load(std::memory_order_acquire);
  for (u32 i = 0; i < count; ++i) {
    if (all.domains[i].name.load(std::memory_order_acquire) == kept) return &all.domains[i];
  }
  u32 index = append(all.domain_count, kDomains - 1);
  NvtxDomain& domain = all.domains[index];  // the last one is for all that found no room
  if (index == kDomains - 1) kept = keep_literal("(more domains than are kept)");
  domain.name.store(kept, std::memory_order_release);
  if (kept) nvtx_name(NvtxNamed::Domain, &domain, 0, kept->text, kept->length);
  return &domain;
}

void nvtx_name(NvtxNamed what, const void* domain, u64 object, const char* name, u64 length) {
  Store& all = store();
  NvtxString* kept = nvtx_keep(name, length);
  if (!kept) return;
  const NvtxDomain* of = nvtx_domain_of(domain);
  const u32 count = all.name_count.load(std::memory_order_acquire);
  for (u32 i = 0; i < count; ++i) {  // the same again: every object that includes the headers names its own
    const Named& named = all.names[i];
    if (named.name.load(std::memory_order_acquire) == kept && named.domain == of && named.object == object &&
        named.what == what)
      return;
  }
  const u32 index = append(all.name_count, kNames);
  if (index == kNames) return;
  Named& named = all.names[index];
  named.domain = of;
  named.object = object;
  named.what = what;
  named.name.store(kept, std::memory_order_release);
  if (u64 generation; in_session(generation)) record_name(nvtx_moment(generation, record_ticks()), named, *kept);
}

void nvtx_record_names(const FinishedCall& call) {
  if (!nvtx_store_open()) return;
  Store& all = store();
  const u32 count = all.name_count.load(std::memory_order_acquire);
  for (u32 i = 0; i < count; ++i) {
    if (NvtxString* name = all.names[i].name.load(std::memory_order_acquire)) record_name(call, all.names[i], *name);
  }
}

u64 nvtx_text_id(const FinishedCall& call, NvtxString& string) {
  if (string.recorded_in.load(std::memory_order_relaxed) != call.generation) {
    if (!string.length || !record_text(call, string.text, string.length)) return 0;
    string.recorded_in.store(call.generation, std::memory_order_relaxed);
  }
  return string.id;
}

u64 nvtx_domain_id(const FinishedCall& call, const void* domain) {
  if (!domain) return 0;
  const NvtxDomain* known = nvtx_domain_of(domain);
  NvtxString* name = known ? known->name.load(std::memory_order_acquire) : nullptr;
  if (!name) return 0;
  nvtx_text_id(call, *name);
  return name->id;  // in any case: without its name it is still not the default domain
}

u64 nvtx_message_id(const FinishedCall& call, const char* text, u64 length, u32& flags) {
  if (!length) return 0;
  if (length > kLongest) length = kLongest;
  const u64 key = hash_of(text, length);
  const Message* messages = store().messages;
  for (u32 at = static_cast<u32>(key % kMessages);; at = (at + 1) % kMessages) {
    const u64 there = messages[at].key.load(std::memory_order_relaxed);
    if (there == key) {
      const u64 id = messages[at].id.load(std::memory_order_acquire);
      return id ? id : text_id(text, length);  // another thread is about to store it
    }
    if (!there) return new_message(call, text, length, key, flags);
  }
}

void nvtx_forget_messages() {
  if (!nvtx_store_open()) return;
  Store& all = store();
  if (!all.message_count.load(std::memory_order_relaxed)) return;
  std::memset(static_cast<void*>(all.messages), 0, sizeof all.messages);
  all.message_count.store(0, std::memory_order_relaxed);
}

u64 utf8_of_wide(const wchar_t* text, char* out, u64 capacity) {
  u64 size = 0;
  for (; text && *text; ++text) {
    u32 c = static_cast<u32>(static_cast<std::make_unsigned_t<wchar_t>>(*text));
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    const u32 extra = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    if (size + extra + 2 > capacity) break;
    static constexpr u32 kLead[] = {0, 0xc0, 0xe0, 0xf0};
    out[size++] = static_cast<char>(kLead[extra] | c >> (6 * extra));
    for (u32 i = extra; i-- > 0;) out[size++] = static_cast<char>(0x80 | (c >> (6 * i) & 0x3f));
  }
  out[size] = 0;
  return size;
}

}  // namespace gputrace
