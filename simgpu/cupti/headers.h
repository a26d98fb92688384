// The toolkit's CUPTI headers. Included before the driver's: cupti.h cannot stand what driver/life/cuda_api.h does to
// cuda.h.
#pragma once

#include <cupti.h>
