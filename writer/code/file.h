// The bytes of an image that is kept by reference, if its file still holds what was loaded.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "trace/record.h"
#include "writer/code/requests.h"

namespace gputrace {

// Maps them, read-only, for the life of the process. Scanned: they are there. Else Missing or Changed.
CodeScanState map_image(const CodeImageRequest& image, std::span<const std::byte>& bytes);

// The build id in the notes of an ELF file, in hex; empty: it has none.
std::string build_id_of(int file);

}  // namespace gputrace
