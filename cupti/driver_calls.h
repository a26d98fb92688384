// The driver's calls that put work on a device or wait for it, by CUPTI's numbers (CUpti_driver_api_trace_cbid, an
// ABI): the only ones whose API records are asked for, because they carry the correlation id that device records bear.
#pragma once

#include "base/types.h"

namespace gputrace {

inline constexpr u32 kKeyCallbacks[] = {
    307, 442, 652, 653, 477, 478, 480, 115, 116, 117,  // cuLaunchKernel, Ex, Cooperative, cuLaunch*
    514, 515,                                          // cuGraphLaunch
    17, 121, 126, 440, 800,                            // cuCtxSynchronize, cuEventSynchronize, cuStreamSynchronize
    305, 306, 408, 418, 318, 319, 320, 321, 409, 410, 426, 427, 248,                           // cuMemcpy, Async, Peer
    43, 45, 47, 49, 51, 53, 54, 55, 56, 57, 58, 60, 62, 64, 66, 67, 68, 69,                    // cuMemcpyHtoD ... as
                                                                                               // they were before 3.2
    276, 277, 278, 279, 280, 281, 282, 283, 284, 285, 286, 287, 288, 289, 290, 291, 292, 293,  // _v2
    397, 398, 399, 400, 401, 402, 403, 404, 405, 406, 407, 419, 420, 421, 422, 423, 424, 425,  // _ptds, _ptsz
    71, 73, 75, 77, 79, 81, 216, 218, 220, 222, 224, 226,                                      // cuMemset
    249, 250, 251, 252, 253, 254, 411, 412, 413, 414, 415, 416, 428, 429, 430, 431, 432, 433, 776, 777, 778, 779, 796,
    797, 798, 799,  // cuMemcpyBatchAsync, cuMemcpy3DBatchAsync
};
inline constexpr u32 kFirstNewCallback = 700;  // from here on not every CUPTI 12 knows them

}  // namespace gputrace
