// The records of records.def as structs, and the words their enum and flag fields use.
// A struct here is bit for bit what the producer writes and what the file holds: little endian, naturally aligned, no
// padding.
#pragma once

#include <type_traits>

#include "base/types.h"

namespace gputrace {

// The first 24 bytes of every record.
struct RecordHeader {
  u16 type;    // RecordType
  u16 size;    // whole record in bytes, a multiple of 8
  u16 call;    // id of the intercepted call (the trace's schema names it); 0: none
  u16 result;  // what the call returned (CUresult, cudaError_t); 0 is success
  Ticks begin;
  Ticks end;  // 0: the call was in flight when the trace ended
};
static_assert(sizeof(RecordHeader) == 24);

enum class RecordType : u16 {
#define GT_RECORD(Name, id, doc) Name = id,
#define GT_FIELD(type, name, unit, doc)
#define GT_END(Name)
#include "trace/records.def"
};

#define GT_RECORD(Name, id, doc)                          \
  struct Name {                                           \
    static constexpr RecordType kType = RecordType::Name; \
    RecordHeader header;
#define GT_FIELD(type, name, unit, doc) type name;
#define GT_END(Name) \
  }                  \
  ;
#include "trace/records.def"

#define GT_RECORD(Name, id, doc) static_assert(std::is_trivially_copyable_v<Name> && sizeof(Name) % 8 == 0 && sizeof(Name) ==  sizeof(RecordHeader)
#define GT_FIELD(type, name, unit, doc) +sizeof(type)
#define GT_END(Name) , #Name " has padding");
#include "trace/records.def"

// Never renumber: files hold these values.
enum LaunchFlags : u32 {
  kLaunchPerThread = 1,  // the _ptsz or _ptds variant: NULL means the per-thread default stream
  kLaunchCaptured = 2,   // under stream capture: nothing ran now
  kLaunchCooperative = 4,
  kLaunchProgrammatic = 8,  // programmatic stream serialization or event (PDL): may start before its predecessor ends
  kLaunchLegacy = 16,       // cuLaunch, cuLaunchGrid: block and shared size were set by earlier calls
  kLaunchMultiDevice = 32,  // one of the launches of cuLaunchCooperativeKernelMultiDevice
  kLaunchCaptureUnknown = 64,  // whether the stream was capturing is not known
};
enum class CopyKind : u8 { Unknown = 0, HtoD = 1, DtoH = 2, DtoD = 3, PtoP = 4, HtoH = 5, AtoX = 6, XtoA = 7 };
enum class MemoryKind : u8 { Unknown = 0, Device = 1, Host = 2, Pinned = 3, Pageable = 4, Managed = 5, Array = 6 };
enum class AllocKind : u32 {
  Device = 1,
  Managed = 2,
  Host = 3,
  HostRegistered = 4,
  Pool = 5,
  VmmReserve = 6,
  VmmCreate = 7,
  VmmMap = 8,
  Array = 9,
  Ipc = 10,
};
enum class SyncWhat : u32 { Context = 1, Stream = 2, Event = 3 };
enum class OrderWhat : u32 {
  EventRecord = 1,
  StreamWaitEvent = 2,
  HostFunction = 3,
  WaitValue = 4,
  WriteValue = 5,
  BatchMemOp = 6
};
enum class ObjectKind : u32 {
  Stream = 1,
  Event = 2,
  Context = 3,
  Graph = 4,
  GraphExec = 5,
  Pool = 6,
  Module = 7,
  Library = 8,
  Link = 9,
  Capture = 10
};
enum class ObjectWhat : u32 {
  Created = 1,
  Destroyed = 2,
  Current = 3,
  Retained = 4,
  Released = 5,
  Begun = 6,
  Ended = 7,
  Queried = 8
};
enum class ImageKind : u32 { Unknown = 0, Cubin = 1, Fatbin = 2, Ptx = 3, File = 4, LtoIr = 5 };
enum class ModuleWhat : u32 { Module = 1, Library = 2, Link = 3, Unload = 4 };
enum class FunctionKind : u32 { Function = 1, Kernel = 2 };
enum class NoteWhat : u32 { Option = 1, Device = 2, Interception = 3, Sidecar = 4, Other = 5 };

// Why a record that was seen is not in the file. Also the index into ThreadSlot::dropped.
enum class DropReason : u32 {
  RingFull = 0,     // no free block
  NoSlot = 1,       // more threads at once than the segment has slots
  Nested = 2,       // a signal handler made a CUDA call while this thread was writing a record
  NoSidecar = 3,    // nobody drains, and the ring is full
  Overwritten = 4,  // flight recorder: the newest took its place (told by the reader of the segment)
  Disk = 5,         // the disk was full or GPUTRACE_MAX_SIZE was reached (told by the sidecar)
  Lost = 6,         // committed, but the segment went with the process and the sidecar (told by the reader)
};
inline constexpr u32 kDropReasons = 8;  // words reserved in the segment and in the file

}  // namespace gputrace
