// The scan's bits are the trace's: what the sidecar copies needs no translation.
#include "cubin/sass.h"
#include "trace/record.h"

namespace gputrace {

static_assert(u64{kScanHmma} == kHmma && u64{kScanImma} == kImma && u64{kScanBmma} == kBmma && u64{kScanDmma} == kDmma);
static_assert(u64{kScanQmma} == kQmma && u64{kScanOmma} == kOmma && u64{kScanHgmma} == kHgmma);
static_assert(u64{kScanIgmma} == kIgmma && u64{kScanBgmma} == kBgmma && u64{kScanQgmma} == kQgmma);
static_assert(u64{kScanUtchmma} == kUtchmma && u64{kScanUtcimma} == kUtcimma && u64{kScanUtcqmma} == kUtcqmma);
static_assert(u64{kScanUtcomma} == kUtcomma && u64{kScanUtcmma} == kUtcmma);
static_assert(u64{kScanFp64} == kFp64 && u64{kScanTf32} == kTf32 && u64{kScanBf16} == kBf16 && u64{kScanFp16} == kFp16);
static_assert(u64{kScanFp8} == kFp8 && u64{kScanFp6} == kFp6 && u64{kScanFp4} == kFp4 && u64{kScanInt8} == kInt8);
static_assert(u64{kScanInt4} == kInt4 && u64{kScanB1} == kB1 && u64{kScanFp32} == kFp32);
static_assert(u32{kScanMachineCode} == kCodeScanned && u32{kScanPtxOnly} == kCodePtxOnly && u32{kScanTma} == kCodeTma);
static_assert(u32{kScanAsyncCopy} == kCodeAsyncCopy && u32{kScanIncomplete} == kCodeIncomplete);
static_assert(u32{kScanPrecisionPart} == kCodePrecisionPart);
static_assert(u32{kScanArchitectureVariant} == kCodeArchitectureVariant);
static_assert(u32{kScanFamilyVariant} == kCodeFamilyVariant);

}  // namespace gputrace
