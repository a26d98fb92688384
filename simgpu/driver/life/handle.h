// Handles of the driver: pointers into one reserved range of addresses, so that any value a program passes can be
// judged without touching memory that is not ours.
//   · An object is live from `create` to `retire`; `live<T>(handle)` returns null for anything else.
//   · The memory of an object returns to its size class when the last reference goes; it is never unmapped.
//   · Objects that work in flight still needs (a stream with queued host functions) are kept by `retain`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace simgpu {

constexpr uint64_t object_tag(const char (&text)[9]) {
  uint64_t tag = 0;
  for (int i = 0; i < 8; ++i) tag = tag << 8 | static_cast<unsigned char>(text[i]);
  return tag;
}

// First base of every handle type. A handle type T names `kTag` (object_tag of 8 characters) and `Handle` (CUstream,
// …).
struct Object {
  std::atomic<uint64_t> tag{0};
  std::atomic<uint32_t> references{1};
};

void* allocate_slot(size_t bytes) noexcept;  // null when the range is used up
void free_slot(void* slot, size_t bytes) noexcept;
bool in_handle_range(const void* p) noexcept;

template <class T, class... Args>
T* create(Args&&... args) {
  void* slot = allocate_slot(sizeof(T));
  if (slot == nullptr) return nullptr;
  T* object = new (slot) T(std::forward<Args>(args)...);
  object->tag.store(T::kTag, std::memory_order_release);
  return object;
}

// The object behind a handle, or null if the value is not a live T. Accepts any bit pattern.
template <class T, class Handle>
T* live(Handle handle) noexcept {
  auto* object = reinterpret_cast<T*>(handle);
  if (!in_handle_range(object)) return nullptr;
  return object->tag.load(std::memory_order_acquire) == T::kTag ? object : nullptr;
}

template <class T>
typename T::Handle handle_of(const T* object) noexcept {
  return reinterpret_cast<typename T::Handle>(const_cast<T*>(object));
}

template <class T>
void retain(T* object) noexcept {
  object->references.fetch_add(1, std::memory_order_relaxed);
}

template <class T>
void release(T* object) noexcept {
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  object->~T();
  free_slot(object, sizeof(T));
}

// The handle is dead from here on. True for the one caller that retired it: that one gives up the first reference.
template <class T>
bool retire(T* object) noexcept {
  uint64_t expected = T::kTag;
  if (!object->tag.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return false;
  release(object);
  return true;
}

}  // namespace simgpu
