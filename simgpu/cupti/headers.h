// The toolkit's CUPTI headers. Included before the driver's: cupti.h does not bear what driver/cuda_api.h does to
// cuda.h.
#pragma once

#include <cupti.h>
