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

// ------------------------------------------------------------------ device activity
enum DeviceKernelFlags : u32 { kDeviceLaunched = 1 };
// DeviceOverhead::kind beyond CUPTI's own: what gputrace itself took. Their sum is its measured cost.
enum DeviceOverheadOwn : u32 {
  // CPU time of the collector's thread since the last such record; ends when it was read.
  kOverheadOwnThread = 0x40000000,
  // Opening and enabling CUPTI, on the program's thread.
  kOverheadOwnSetup = 0x40000001,
};
enum class DeviceCollection : u32 {
  Never = 1,    // not collected: not wanted, no library, or it failed at the start
  On = 2,       // from here on
  Paused = 3,   // outside the window
  Yielded = 4,  // another client uses CUPTI
  Failed = 5,   // a call failed: off for good
  Ended = 6,    // flushed at the process's end: nothing is missing after this
};
enum class DeviceLossReason : u32 {
  CuptiDropped = 1,  // cuptiActivityGetNumDroppedRecords
  ZeroTime = 2,      // a start or end of 0
  Impossible = 3,    // ends before it starts, or lies outside of the process's life
  NoBuffer = 4,      // our buffers were all in use
  RingFull = 5,      // the sidecar did not drain in time
  Unknown = 6,       // a record that could not be read
};

// ------------------------------------------------------------------ NVTX
enum class NvtxWhat : u32 { Mark = 1, Push = 2, Pop = 3, Start = 4, End = 5 };
enum class NvtxNamed : u32 {
  Domain = 1,
  Category = 2,
  Thread = 3,
  Stream = 4,
  Event = 5,
  Context = 6,
  Device = 7,
  Schema = 8,
  Resource = 9,
};
enum NvtxFlags : u32 {
  // The range was open already when this thread's part of the trace began: its true begin is not known.
  kNvtxOpenBefore = 1,
  kNvtxMessageNotKept = 2,  // it had a message, which was one too many to be kept
};

// ------------------------------------------------------------------ machine code
enum class CodeState : u32 {
  InFile = 1,      // by reference: path, offset, bytes
  Copied = 2,      // CodeBytes records hold it
  OverBudget = 3,  // not kept: the budget for copies was used up, or it is larger than one copy may be
  Unreadable = 4,  // not kept: its size could not be told, or it could not be read
  NoRoom = 5,      // not kept: the ring had no room for a copy at that moment
};
enum class CodeScanState : u32 {
  Scanned = 1,      // its kernels are known
  NoMatch = 2,      // it was read: nothing in it runs on the process's devices
  Broken = 3,       // nothing in it could be read
  Missing = 4,      // its file could not be opened or read
  Changed = 5,      // its file is not what was loaded
  Crashed = 6,      // the scanner died of it
  TimedOut = 7,     // the scan took too long
  NotFinished = 8,  // the time after the program's end was up
  PiecesLost = 9,   // pieces of its copy did not arrive
  TooMany = 10,     // a bound of the scanner was reached: images, kernels or bytes
};
enum MmaClass : u64 {  // collection.md 5.2; one bit per mnemonic
  kHmma = 1,
  kImma = 2,
  kBmma = 4,
  kDmma = 8,
  kQmma = 16,
  kOmma = 32,
  kHgmma = 64,
  kIgmma = 128,
  kBgmma = 256,
  kQgmma = 512,
  kUtchmma = 1024,
  kUtcimma = 2048,
  kUtcqmma = 4096,
  kUtcomma = 8192,
  kUtcmma = 16384,  // tcgen05 of a kind that the encoding did not tell
};
enum PrecisionBits : u64 {
  kFp64 = 1,
  kTf32 = 2,
  kBf16 = 4,
  kFp16 = 8,
  kFp8 = 16,
  kFp6 = 32,
  kFp4 = 64,
  kInt8 = 128,
  kInt4 = 256,
  kB1 = 512,
  kFp32 = 1024,
};
enum CodeKernelFlags : u32 {
  kCodeScanned = 1,               // machine code was read: mma and the counts are facts
  kCodePtxOnly = 2,               // only PTX: mma is what its text says, the driver compiles it
  kCodeTma = 4,                   // uses the tensor memory accelerator (UBLKCP, UTMALDG ...)
  kCodeAsyncCopy = 8,             // uses cp.async (LDGSTS)
  kCodeIncomplete = 16,           // calls through pointers or to functions outside of the image
  kCodePrecisionPart = 32,        // some matrix instructions whose input type could not be told
  kCodeArchitectureVariant = 64,  // sm_90a: code for exactly that chip
  kCodeFamilyVariant = 128,       // sm_100f: code for its family
};

// ------------------------------------------------------------------ library calls
enum MatmulFlags : u32 {
  kTransposeA = 1,
  kTransposeB = 2,
  kConjugateA = 4,
  kConjugateB = 8,
  kPointerBatch = 16,  // a, b, c are arrays of pointers
  kStrided = 32,       // a strided batch
  kSparse = 64,        // one operand is sparse
  kComplex = 128,
};
enum class ConvolutionWhat : u32 { Forward = 1, BackwardData = 2, BackwardFilter = 3, Graph = 4 };
enum class CollectiveWhat : u32 {
  AllReduce = 1,
  Broadcast = 2,
  Reduce = 3,
  AllGather = 4,
  ReduceScatter = 5,
  Send = 6,
  Recv = 7,
  AllToAll = 8,
  Gather = 9,
  Scatter = 10,
};

}  // namespace gputrace
