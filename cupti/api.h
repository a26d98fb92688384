// CUPTI as far as it is used here, in words of our own: it is opened at run time, whatever its version, so nothing of
// the toolkit's headers may decide a size or a number. Numbers are CUPTI's ABI and do not change between versions.
#pragma once

#include "base/types.h"

namespace gputrace {

using CuptiResult = u32;
enum CuptiError : CuptiResult {
  kCuptiSuccess = 0,
  kCuptiMaxLimitReached = 12,
  kCuptiInvalidKind = 21,
  kCuptiMultipleSubscribers = 39,
};

enum CuptiKind : u32 {
  kKindMemcpy = 1,
  kKindMemset = 2,
  kKindKernel = 3,
  kKindDriver = 4,
  kKindRuntime = 5,
  kKindConcurrentKernel = 10,
  kKindOverhead = 17,
  kKindEnvironment = 20,
  kKindMemcpy2 = 22,
  kKindGraphTrace = 51,
  kKindJit = 52,
};

enum CuptiConstants : u32 {
  kAttributeZeroedBuffers = 5,  // CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
  kThreadIdSystem = 1,          // CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
  kFlushForced = 1,             // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
};

// cuptiGetVersion: 19 is 12.0 and 28 is 12.9; from 13.0 on major * 10000 + minor * 100 + patch.
inline constexpr u32 kCupti12_0 = 19, kCupti12_4 = 22;
inline constexpr u32 kCupti13_0 = 130000;

using CuptiBufferRequested = void (*)(u8** buffer, std::size_t* size, std::size_t* max_records);
using CuptiBufferCompleted = void (*)(void* context, u32 stream, u8* buffer, std::size_t size, std::size_t valid_size);
using CuptiCallback = void (*)(void* user, u32 domain, u32 callback, const void* data);

// Functions that every CUPTI from 12.0 on has.
#define GT_CUPTI_REQUIRED(X)                                                      \
  X(cuptiGetVersion, (u32 * version))                                             \
  X(cuptiGetTimestamp, (u64 * nanos))                                             \
  X(cuptiActivityEnable, (u32 kind))                                              \
  X(cuptiActivityDisable, (u32 kind))                                             \
  X(cuptiActivityRegisterCallbacks, (CuptiBufferRequested, CuptiBufferCompleted)) \
  X(cuptiActivityFlushAll, (u32 flag))                                            \
  X(cuptiActivityGetNextRecord, (u8 * buffer, std::size_t size, void** record))   \
  X(cuptiActivityGetNumDroppedRecords, (void* context, u32 stream, std::size_t* dropped))
// Null where this CUPTI does not have them.
#define GT_CUPTI_OPTIONAL(X)                                                           \
  X(cuptiSubscribe, (void** subscriber, CuptiCallback callback, void* user))           \
  X(cuptiUnsubscribe, (void* subscriber))                                              \
  X(cuptiEnableCallback, (u32 enable, void* subscriber, u32 domain, u32 callback))     \
  X(cuptiGetResultString, (CuptiResult result, const char** text))                     \
  X(cuptiSetThreadIdType, (u32 type))                                                  \
  X(cuptiGetThreadIdType, (u32 * type))                                                \
  X(cuptiActivitySetAttribute, (u32 attribute, std::size_t * value_size, void* value)) \
  X(cuptiActivityGetAttribute, (u32 attribute, std::size_t * value_size, void* value)) \
  X(cuptiActivityEnableLatencyTimestamps, (u8 enable))                                 \
  X(cuptiActivityEnableDriverApi, (u32 callback, u8 enable))                           \
  X(cuptiGetContextId, (void* context, u32* id))                                       \
  X(cuptiGetStreamIdEx, (void* context, void* stream, u8 per_thread, u32* id))         \
  X(cuptiGetGraphNodeId, (void* node, u64* id))                                        \
  X(cuptiGetGraphExecId, (void* exec, u32* id))

struct CuptiApi {
#define GT_CUPTI(name, parameters) CuptiResult(*name) parameters;
  GT_CUPTI_REQUIRED(GT_CUPTI)
  GT_CUPTI_OPTIONAL(GT_CUPTI)
#undef GT_CUPTI
};

}  // namespace gputrace
