#include "analysis/words/record_words.h"

#include "trace/record.h"

namespace gputrace {
namespace {

constexpr ValueWord kLaunchFlags[] = {
    {kLaunchPerThread, "PerThread"},          {kLaunchCaptured, "Captured"}, {kLaunchCooperative, "Cooperative"},
    {kLaunchProgrammatic, "Programmatic"},    {kLaunchLegacy, "Legacy"},     {kLaunchMultiDevice, "MultiDevice"},
    {kLaunchCaptureUnknown, "CaptureUnknown"}};
constexpr ValueWord kGraphInstantiateFlags[] = {{1, "Update"}, {2, "Unreadable"}};
constexpr ValueWord kGraphNodeFlags[] = {{1, "SetOnExec"}, {2, "Disabled"}, {4, "InChildGraph"}};
constexpr ValueWord kContextFactsFlags[] = {{1, "Primary"}};
constexpr ValueWord kGraphNodeKinds[] = {{0, "kernel"},         {1, "memcpy"},       {2, "memset"},
                                         {3, "host"},           {4, "graph"},        {5, "empty"},
                                         {6, "wait-event"},     {7, "event-record"}, {8, "semaphore-signal"},
                                         {9, "semaphore-wait"}, {10, "mem-alloc"},   {11, "mem-free"},
                                         {12, "batch-mem-op"},  {13, "conditional"}};
constexpr ValueWord kCopyKinds[] = {{1, "HtoD"}, {2, "DtoH"}, {3, "DtoD"}, {4, "PtoP"},
                                    {5, "HtoH"}, {6, "AtoX"}, {7, "XtoA"}};
constexpr ValueWord kAllocKinds[] = {{1, "device"}, {2, "managed"},     {3, "host"},       {4, "host-registered"},
                                     {5, "pool"},   {6, "vmm-reserve"}, {7, "vmm-create"}, {8, "vmm-map"},
                                     {9, "array"},  {10, "ipc"}};
constexpr ValueWord kCallMemories[] = {{1, "device"},   {2, "host"},    {3, "pinned"},
                                       {4, "pageable"}, {5, "managed"}, {6, "array"}};
constexpr ValueWord kFunctionGetKinds[] = {{1, "function"}, {2, "kernel"}};
constexpr ValueWord kNoteWhats[] = {{1, "option"}, {2, "device"}, {3, "interception"}, {4, "sidecar"}, {5, "other"}};
constexpr ValueWord kGapReasons[] = {{0, "ring-full"},   {1, "no-slot"}, {2, "nested"}, {3, "no-sidecar"},
                                     {4, "overwritten"}, {5, "disk"},    {6, "lost"}};
constexpr ValueWord kSyncWhats[] = {{1, "context"}, {2, "stream"}, {3, "event"}};
constexpr ValueWord kStreamOrderWhats[] = {{1, "event-record"}, {2, "stream-wait-event"}, {3, "host-function"},
                                           {4, "wait-value"},   {5, "write-value"},       {6, "batch-mem-op"}};
constexpr ValueWord kObjectCallWhats[] = {{1, "created"},  {2, "destroyed"}, {3, "current"}, {4, "retained"},
                                          {5, "released"}, {6, "begun"},     {7, "ended"},   {8, "queried"}};
constexpr ValueWord kObjectCallKinds[] = {{1, "stream"}, {2, "event"},  {3, "context"}, {4, "graph"}, {5, "graph-exec"},
                                          {6, "pool"},   {7, "module"}, {8, "library"}, {9, "link"},  {10, "capture"}};
constexpr ValueWord kModuleLoadImages[] = {{1, "cubin"}, {2, "fatbin"}, {3, "ptx"}, {4, "file"}, {5, "lto-ir"}};
constexpr ValueWord kModuleLoadWhats[] = {{1, "module"}, {2, "library"}, {3, "link"}, {4, "unload"}};
constexpr ValueWord kNvtxWhats[] = {{1, "mark"}, {2, "push"}, {3, "pop"}, {4, "start"}, {5, "end"}};
constexpr ValueWord kNvtxPayloadTypes[] = {{1, "uint64"}, {2, "int64"}, {3, "double"},  {4, "uint32"},
                                           {5, "int32"},  {6, "float"}, {256, "schema"}};
constexpr ValueWord kNvtxFlags[] = {{kNvtxOpenBefore, "OpenBefore"}, {kNvtxMessageNotKept, "MessageNotKept"}};
constexpr ValueWord kNvtxNameWhats[] = {{1, "domain"},  {2, "category"}, {3, "thread"}, {4, "stream"},  {5, "event"},
                                        {6, "context"}, {7, "device"},   {8, "schema"}, {9, "resource"}};
constexpr ValueWord kDeviceStateStates[] = {{1, "never"},   {2, "on"},     {3, "paused"},
                                            {4, "yielded"}, {5, "failed"}, {6, "ended"}};
constexpr ValueWord kDeviceLossReasons[] = {{1, "cupti-dropped"}, {2, "zero-time"}, {3, "impossible"},
                                            {4, "no-buffer"},     {5, "ring-full"}, {6, "unreadable"}};
constexpr ValueWord kDeviceCopyKinds[] = {{1, "HtoD"}, {2, "DtoH"}, {3, "HtoA"}, {4, "AtoH"}, {5, "AtoA"},
                                          {6, "AtoD"}, {7, "DtoA"}, {8, "DtoD"}, {9, "HtoH"}, {10, "PtoP"}};
constexpr ValueWord kDeviceMemories[] = {{1, "pageable"}, {2, "pinned"},        {3, "device"},        {4, "array"},
                                         {5, "managed"},  {6, "device-static"}, {7, "managed-static"}};
constexpr ValueWord kDeviceSyncKinds[] = {{1, "event"}, {2, "stream-wait-event"}, {3, "stream"}, {4, "context"}};
constexpr ValueWord kDeviceApiLevels[] = {{1, "driver"}, {2, "runtime"}};
constexpr ValueWord kDeviceOverheadKinds[] = {{1, "driver-compiler"},
                                              {1 << 16, "buffer-flush"},
                                              {2 << 16, "instrumentation"},
                                              {3 << 16, "resource"},
                                              {4 << 16, "module-loading"},
                                              {5 << 16, "lazy-function-loading"},
                                              {6 << 16, "command-buffer-full"},
                                              {7 << 16, "buffer-request"},
                                              {8 << 16, "uvm-init"},
                                              {kOverheadOwnThread, "gputrace-thread"},
                                              {kOverheadOwnSetup, "gputrace-setup"}};
constexpr ValueWord kDeviceJitKinds[] = {{1, "ptx-to-cubin"}, {2, "nvvm-to-ptx"}};
constexpr ValueWord kDeviceJitOperations[] = {{1, "cache-load"}, {2, "cache-store"}, {3, "compile"}};
constexpr ValueWord kDevicePoolOperations[] = {{1, "created"}, {2, "destroyed"}, {3, "trimmed"}};
constexpr ValueWord kDeviceEnvironmentKinds[] = {{1, "speed"}, {2, "temperature"}, {3, "power"}, {4, "cooling"}};
constexpr ValueWord kDeviceKernelFlags[] = {{kDeviceLaunched, "DeviceLaunched"}};
constexpr ValueWord kCodeImageKinds[] = {{1, "cubin"}, {2, "fatbin"}, {3, "ptx"}, {4, "file"}};
constexpr ValueWord kCodeImageStates[] = {
    {1, "in-file"}, {2, "copied"}, {3, "over-budget"}, {4, "unreadable"}, {5, "no-room"}};
constexpr ValueWord kMatrixInstructions[] = {
    {kHmma, "HMMA"},       {kImma, "IMMA"},       {kBmma, "BMMA"},       {kDmma, "DMMA"},       {kQmma, "QMMA"},
    {kOmma, "OMMA"},       {kHgmma, "HGMMA"},     {kIgmma, "IGMMA"},     {kBgmma, "BGMMA"},     {kQgmma, "QGMMA"},
    {kUtchmma, "UTCHMMA"}, {kUtcimma, "UTCIMMA"}, {kUtcqmma, "UTCQMMA"}, {kUtcomma, "UTCOMMA"}, {kUtcmma, "UTCMMA"}};
constexpr ValueWord kInputTypes[] = {{kFp64, "fp64"}, {kFp32, "fp32"}, {kTf32, "tf32"}, {kBf16, "bf16"},
                                     {kFp16, "fp16"}, {kFp8, "fp8"},   {kFp6, "fp6"},   {kFp4, "fp4"},
                                     {kInt8, "int8"}, {kInt4, "int4"}, {kB1, "b1"}};
constexpr ValueWord kCodeKernelFlags[] = {{kCodeScanned, "Scanned"},
                                          {kCodePtxOnly, "PtxOnly"},
                                          {kCodeTma, "Tma"},
                                          {kCodeAsyncCopy, "AsyncCopy"},
                                          {kCodeIncomplete, "Incomplete"},
                                          {kCodePrecisionPart, "PrecisionPart"},
                                          {kCodeArchitectureVariant, "ArchitectureVariant"},
                                          {kCodeFamilyVariant, "FamilyVariant"}};
constexpr ValueWord kCodeScanStates[] = {{1, "scanned"},     {2, "no-match"}, {3, "broken"},    {4, "missing"},
                                         {5, "changed"},     {6, "crashed"},  {7, "timed-out"}, {8, "not-finished"},
                                         {9, "pieces-lost"}, {10, "too-many"}};
constexpr ValueWord kMatmulFlags[] = {{kTransposeA, "TransposeA"},
                                      {kTransposeB, "TransposeB"},
                                      {kConjugateA, "ConjugateA"},
                                      {kConjugateB, "ConjugateB"},
                                      {kPointerBatch, "PointerBatch"},
                                      {kStrided, "Strided"},
                                      {kSparse, "Sparse"},
                                      {kComplex, "Complex"}};
constexpr ValueWord kConvolutionWhats[] = {{1, "forward"}, {2, "backward-data"}, {3, "backward-filter"}, {4, "graph"}};
constexpr ValueWord kCollectiveWhats[] = {{1, "all-reduce"},     {2, "broadcast"}, {3, "reduce"}, {4, "all-gather"},
                                          {5, "reduce-scatter"}, {6, "send"},      {7, "recv"},   {8, "all-to-all"},
                                          {9, "gather"},         {10, "scatter"}};

struct FieldRow {
  std::string_view record, field;
  FieldWords words;
};
constexpr FieldRow kFields[] = {
    {"KernelLaunch", "flags", {true, kLaunchFlags}},
    {"GraphLaunch", "flags", {true, kLaunchFlags}},
    {"Copy", "flags", {true, kLaunchFlags}},
    {"Memset", "flags", {true, kLaunchFlags}},
    {"Alloc", "launch_flags", {true, kLaunchFlags}},
    {"Free", "launch_flags", {true, kLaunchFlags}},
    {"Sync", "flags", {true, kLaunchFlags}},
    {"StreamOrder", "flags", {true, kLaunchFlags}},
    {"GraphInstantiate", "flags", {true, kGraphInstantiateFlags}},
    {"GraphNode", "flags", {true, kGraphNodeFlags}},
    {"ContextFacts", "flags", {true, kContextFactsFlags}},
    {"GraphNode", "kind", {false, kGraphNodeKinds}},
    {"Copy", "kind", {false, kCopyKinds}},
    {"Copy", "source_memory", {false, kCallMemories}},
    {"Copy", "destination_memory", {false, kCallMemories}},
    {"GraphNode", "copy_kind", {false, kCopyKinds}},
    {"Alloc", "kind", {false, kAllocKinds}},
    {"Free", "kind", {false, kAllocKinds}},
    {"FunctionGet", "kind", {false, kFunctionGetKinds}},
    {"Gap", "reason", {false, kGapReasons}},
    {"Note", "what", {false, kNoteWhats}},
    {"Sync", "what", {false, kSyncWhats}},
    {"StreamOrder", "what", {false, kStreamOrderWhats}},
    {"ObjectCall", "what", {false, kObjectCallWhats}},
    {"ObjectCall", "kind", {false, kObjectCallKinds}},
    {"ModuleLoad", "image", {false, kModuleLoadImages}},
    {"ModuleLoad", "what", {false, kModuleLoadWhats}},
    {"Nvtx", "what", {false, kNvtxWhats}},
    {"Nvtx", "payload_type", {false, kNvtxPayloadTypes}},
    {"Nvtx", "flags", {true, kNvtxFlags}},
    {"NvtxName", "what", {false, kNvtxNameWhats}},
    {"DeviceState", "state", {false, kDeviceStateStates}},
    {"DeviceLoss", "reason", {false, kDeviceLossReasons}},
    {"DeviceCopy", "kind", {false, kDeviceCopyKinds}},
    {"DeviceCopy", "source_memory", {false, kDeviceMemories}},
    {"DeviceCopy", "destination_memory", {false, kDeviceMemories}},
    {"DeviceMemset", "memory", {false, kDeviceMemories}},
    {"DeviceSync", "kind", {false, kDeviceSyncKinds}},
    {"DeviceApi", "level", {false, kDeviceApiLevels}},
    {"DeviceOverhead", "kind", {false, kDeviceOverheadKinds}},
    {"DeviceJit", "kind", {false, kDeviceJitKinds}},
    {"DeviceJit", "operation", {false, kDeviceJitOperations}},
    {"DevicePool", "operation", {false, kDevicePoolOperations}},
    {"DeviceEnvironment", "kind", {false, kDeviceEnvironmentKinds}},
    {"DeviceKernel", "flags", {true, kDeviceKernelFlags}},
    {"CodeImage", "kind", {false, kCodeImageKinds}},
    {"CodeImage", "state", {false, kCodeImageStates}},
    {"CodeKernel", "mma", {true, kMatrixInstructions}},
    {"CodeKernel", "precision", {true, kInputTypes}},
    {"CodeKernel", "flags", {true, kCodeKernelFlags}},
    {"CodeScan", "state", {false, kCodeScanStates}},
    {"Matmul", "flags", {true, kMatmulFlags}},
    {"Convolution", "what", {false, kConvolutionWhats}},
    {"Collective", "what", {false, kCollectiveWhats}},
};

}  // namespace

FieldWords field_words(std::string_view record, std::string_view field) {
  for (const FieldRow& row : kFields) {
    if (row.record == record && row.field == field) return row.words;
  }
  return {};
}

std::span<const ValueWord> matrix_instruction_words() { return kMatrixInstructions; }

std::span<const ValueWord> input_type_words() { return kInputTypes; }

}  // namespace gputrace
