// The process that reads machine code for the sidecar: started before the sidecar is confined, it lives beside it.
//   · Each image is read, unpacked and scanned in a worker of its own, one at a time: niced, limited in memory and time,
//     confined. Whatever an image does to its worker, the server says so and goes on with the next.
//   · An image is scanned when the first of its kernels is asked for, for the architectures of the process's devices;
//     its kernels stay known, so that later names are answered at once. Kernels that nobody asks for are not recorded.
//   · Ends when the sidecar closes its pipe, after what was asked for is answered; dies with the sidecar.
#pragma once

#include <span>

#include "base/fd.h"
#include "trace/record.h"
#include "writer/code/requests.h"

namespace gputrace {

inline constexpr std::size_t kMaxServedKernels = 400'000;  // about 40 MB
inline constexpr std::size_t kMaxServedImages = 65'536;

// Returns when there is nothing left to do.
void serve_code(Fd requests, Fd answers);

// One image, in this process: calls nothing but `write`, with whole records; the last one is the CodeScan.
void scan_image(const CodeImageRequest& image, std::span<const u32> devices, std::size_t most_kernels,
                void (*write)(const void* record, std::size_t size, void* to), void* to);

}  // namespace gputrace
