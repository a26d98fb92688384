// The toolkit's CUPTI headers. Included before the driver's: cupti.h cannot stand what driver/life/cuda_api.h does to
// cuda.h.
#pragma once

#include <cupti.h>

// The records that are written are the newest that the headers have: what CUDA 13 made longer is as long as 12's there.
#if CUPTI_API_VERSION < 130000
using CUpti_ActivityKernel10 = CUpti_ActivityKernel9;
using CUpti_ActivityMemoryPool3 = CUpti_ActivityMemoryPool2;
#endif
