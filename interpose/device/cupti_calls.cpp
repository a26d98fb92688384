#include "interpose/device/cupti_calls.h"

#include <dlfcn.h>

#include <cstring>

#include "cupti/loader.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/elf_lookup.h"
#include "ringbuf/producer.h"

namespace gputrace {
namespace {

using Result = u32;
constexpr Result kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED: there is no CUPTI behind the name

#define GT_CUPTI_CALLS(X)                   \
  X(cuptiSubscribe)                         \
  X(cuptiSubscribe_v2)                      \
  X(cuptiUnsubscribe)                       \
  X(cuptiFinalize)                          \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityRegisterCallbacks_v2)      \
  X(cuptiActivityRegisterTimestampCallback) \
  X(cuptiSetThreadIdType)                   \
  X(cuptiActivitySetAttribute)              \
  X(cuptiActivitySetAttribute_v2)           \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityEnableAndDump)             \
  X(cuptiActivityDisable)                   \
  X(cuptiActivityEnableContext)             \
  X(cuptiActivityDisableContext)            \
  X(cuptiActivityEnableDriverApi)           \
  X(cuptiActivityEnableRuntimeApi)          \
  X(cuptiActivityEnable_v2)                 \
  X(cuptiActivityEnableAndDump_v2)          \
  X(cuptiActivityDisable_v2)                \
  X(cuptiActivityEnableDriverApi_v2)        \
  X(cuptiActivityEnableRuntimeApi_v2)

enum Entry : u32 {
#define GT_CUPTI_CALL(name) kEntry_##name,
  GT_CUPTI_CALLS(GT_CUPTI_CALL)
#undef GT_CUPTI_CALL
      kEntries
};
constexpr const char* kNames[kEntries] = {
#define GT_CUPTI_CALL(name) #name,
    GT_CUPTI_CALLS(GT_CUPTI_CALL)
#undef GT_CUPTI_CALL
};
constinit std::atomic<void*> reals[kEntries]{};

template <typename Function>
Function real_of(Entry entry) {
  void* real = reals[entry].load(std::memory_order_relaxed);
  if (!real) {
    ErrnoGuard guard;
    real = find_function(ObjectRole::Cupti, kNames[entry]);
    if (real) {
      keep_loaded(real);
      reals[entry].store(real, std::memory_order_relaxed);
    }
  }
  return reinterpret_cast<Function>(real);
}

// A call of ours, or one that CUPTI makes to itself.
bool is_internal(const void* caller) {
  if (thread_state.busy == kUntraced) return true;
  ErrnoGuard guard;
  return lies_in(caller, ObjectRole::Cupti);
}

void coming(CuptiClientCall call) {
  ErrnoGuard guard;
  device_client_calls(call);
}
void done(CuptiClientCall call, u64 what, Result result) {
  ErrnoGuard guard;
  device_client_called(call, what, result);
}

template <typename... Parameters>
Result pass(Entry entry, CuptiClientCall call, u64 what, const void* caller, Parameters... arguments) {
  const auto real = real_of<Result (*)(Parameters...)>(entry);
  if (!real) return kNotInitialized;
  if (is_internal(caller)) return real(arguments...);
  coming(call);
  const Result result = real(arguments...);
  done(call, what, result);
  return result;
}

void* libc_dlsym(void* handle, const char* name) {
  const auto ask = reinterpret_cast<void* (*)(void*, const char*)>(find_libc_function("dlsym"));
  return ask ? ask(handle, name) : nullptr;
}

}  // namespace
}  // namespace gputrace

#define GT_EXPORT extern "C" __attribute__((visibility("default")))
#define GT_CALLER __builtin_return_address(0)

GT_EXPORT gputrace::Result cuptiSubscribe(void** subscriber, void* callback, void* user) {
  using namespace gputrace;
  return pass(kEntry_cuptiSubscribe, CuptiClientCall::Subscribe, 0, GT_CALLER, subscriber, callback, user);
}
GT_EXPORT gputrace::Result cuptiSubscribe_v2(void** subscriber, void* callback, void* user, void* parameters) {
  using namespace gputrace;
  return pass(kEntry_cuptiSubscribe_v2, CuptiClientCall::Subscribe, 0, GT_CALLER, subscriber, callback, user,
              parameters);
}
GT_EXPORT gputrace::Result cuptiUnsubscribe(void* subscriber) {
  using namespace gputrace;
  return pass(kEntry_cuptiUnsubscribe, CuptiClientCall::Unsubscribe, reinterpret_cast<u64>(subscriber), GT_CALLER,
              subscriber);
}
GT_EXPORT gputrace::Result cuptiFinalize() {
  using namespace gputrace;
  return pass(kEntry_cuptiFinalize, CuptiClientCall::Finalize, 0, GT_CALLER);
}
GT_EXPORT gputrace::Result cuptiActivityRegisterCallbacks(void* requested, void* completed) {
  using namespace gputrace;
  const auto real = real_of<Result (*)(void*, void*)>(kEntry_cuptiActivityRegisterCallbacks);
  if (!real) return kNotInitialized;
  if (is_internal(GT_CALLER)) return real(requested, completed);
  coming(CuptiClientCall::Register);
  {
    ErrnoGuard guard;
    device_client_callbacks(&requested, &completed);
  }
  const Result result = real(requested, completed);
  done(CuptiClientCall::Register, 0, result);
  return result;
}
GT_EXPORT gputrace::Result cuptiActivityRegisterTimestampCallback(void* clock) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityRegisterTimestampCallback, CuptiClientCall::Clock, 0, GT_CALLER, clock);
}
GT_EXPORT gputrace::Result cuptiSetThreadIdType(gputrace::u32 type) {
  using namespace gputrace;
  return pass(kEntry_cuptiSetThreadIdType, CuptiClientCall::Configure, 0, GT_CALLER, type);
}
GT_EXPORT gputrace::Result cuptiActivitySetAttribute(gputrace::u32 attribute, std::size_t* size, void* value) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivitySetAttribute, CuptiClientCall::Configure, 0, GT_CALLER, attribute, size, value);
}
GT_EXPORT gputrace::Result cuptiActivityEnable(gputrace::u32 kind) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnable, CuptiClientCall::Enable, client_kind(kind), GT_CALLER, kind);
}
GT_EXPORT gputrace::Result cuptiActivityEnableAndDump(gputrace::u32 kind) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnableAndDump, CuptiClientCall::Enable, client_kind(kind), GT_CALLER, kind);
}
GT_EXPORT gputrace::Result cuptiActivityDisable(gputrace::u32 kind) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityDisable, CuptiClientCall::Disable, client_kind(kind), GT_CALLER, kind);
}
GT_EXPORT gputrace::Result cuptiActivityEnableContext(void* context, gputrace::u32 kind) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnableContext, CuptiClientCall::Enable,
              client_kind(kind, reinterpret_cast<u64>(context)), GT_CALLER, context, kind);
}
GT_EXPORT gputrace::Result cuptiActivityDisableContext(void* context, gputrace::u32 kind) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityDisableContext, CuptiClientCall::Disable,
              client_kind(kind, reinterpret_cast<u64>(context)), GT_CALLER, context, kind);
}
GT_EXPORT gputrace::Result cuptiActivityEnableDriverApi(gputrace::u32 function, gputrace::u8 enable) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnableDriverApi, enable ? CuptiClientCall::Enable : CuptiClientCall::Disable,
              client_function(false, function), GT_CALLER, function, enable);
}
GT_EXPORT gputrace::Result cuptiActivityEnableRuntimeApi(gputrace::u32 function, gputrace::u8 enable) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnableRuntimeApi, enable ? CuptiClientCall::Enable : CuptiClientCall::Disable,
              client_function(true, function), GT_CALLER, function, enable);
}

// From 13.2 on, for one subscriber.
GT_EXPORT gputrace::Result cuptiActivityRegisterCallbacks_v2(void* subscriber, void* requested, void* completed) {
  using namespace gputrace;
  const Result result = pass(kEntry_cuptiActivityRegisterCallbacks_v2, CuptiClientCall::Register, 0, GT_CALLER,
                             subscriber, requested, completed);
  if (result == 0) device_client_registered_own();
  return result;
}
GT_EXPORT gputrace::Result cuptiActivitySetAttribute_v2(void* subscriber, gputrace::u32 attribute, std::size_t* size,
                                                        void* value) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivitySetAttribute_v2, CuptiClientCall::Configure, 0, GT_CALLER, subscriber, attribute,
              size, value);
}
GT_EXPORT gputrace::Result cuptiActivityEnable_v2(void* subscriber, gputrace::u32 kind, void* configuration) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnable_v2, CuptiClientCall::Enable,
              client_kind(kind, reinterpret_cast<u64>(subscriber)), GT_CALLER, subscriber, kind, configuration);
}
GT_EXPORT gputrace::Result cuptiActivityEnableAndDump_v2(void* subscriber, gputrace::u32 kind, void* configuration) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnableAndDump_v2, CuptiClientCall::Enable,
              client_kind(kind, reinterpret_cast<u64>(subscriber)), GT_CALLER, subscriber, kind, configuration);
}
GT_EXPORT gputrace::Result cuptiActivityDisable_v2(void* subscriber, gputrace::u32 kind, void* configuration) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityDisable_v2, CuptiClientCall::Disable,
              client_kind(kind, reinterpret_cast<u64>(subscriber)), GT_CALLER, subscriber, kind, configuration);
}
GT_EXPORT gputrace::Result cuptiActivityEnableDriverApi_v2(void* subscriber, gputrace::u32 function,
                                                           gputrace::u8 enable) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnableDriverApi_v2, enable ? CuptiClientCall::Enable : CuptiClientCall::Disable,
              client_function(false, function, reinterpret_cast<u64>(subscriber)), GT_CALLER, subscriber, function,
              enable);
}
GT_EXPORT gputrace::Result cuptiActivityEnableRuntimeApi_v2(void* subscriber, gputrace::u32 function,
                                                            gputrace::u8 enable) {
  using namespace gputrace;
  return pass(kEntry_cuptiActivityEnableRuntimeApi_v2, enable ? CuptiClientCall::Enable : CuptiClientCall::Disable,
              client_function(true, function, reinterpret_cast<u64>(subscriber)), GT_CALLER, subscriber, function,
              enable);
}

namespace gputrace {
namespace {

void* const kWrappers[kEntries] = {
#define GT_CUPTI_CALL(name) reinterpret_cast<void*>(::name),
    GT_CUPTI_CALLS(GT_CUPTI_CALL)
#undef GT_CUPTI_CALL
};

// Two libcuptis in one process: a wrapper reaches one. The other one's functions are handed out as they are.
void* substitute(u32 entry, void* real) {
  keep_loaded(real);
  void* known = nullptr;
  if (!reals[entry].compare_exchange_strong(known, real, std::memory_order_relaxed) && known != real) return real;
  return kWrappers[entry];
}

}  // namespace

DlsymAnswer answer_cupti(void* handle, const char* name, void* caller) {
  u32 entry = 0;
  while (entry < kEntries && std::strcmp(kNames[entry], name) != 0) ++entry;
  if (entry == kEntries) return {nullptr, 0};
  ErrnoGuard guard;
  const bool by_cupti = lies_in(caller, ObjectRole::Cupti);
  const bool global = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
  void* real = libc_dlsym(global ? RTLD_NEXT : handle, name);
  if (real && is_ours(real)) real = libc_dlsym(RTLD_NEXT, name);
  if (!real) return {nullptr, 1};  // as it would be without us, dlerror() included
  if (by_cupti || !lies_in(real, ObjectRole::Cupti)) return {real, 1};
  return {substitute(entry, real), 1};
}

}  // namespace gputrace
