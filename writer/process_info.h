// The Info text of a trace: what the traced process says of itself, redacted, and what the sidecar adds.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringbuf/segment.h"
#include "writer/host.h"
#include "writer/output.h"

namespace gputrace {

using InfoLines = std::vector<std::pair<std::string, std::string>>;

InfoLines parse_info(std::string_view text);
std::string format_info(const InfoLines& lines);
std::string_view find_info(const InfoLines& lines, std::string_view key);

// argv: redacted, its arguments still joined by the byte 0x1f. Everything else as it is.
void redact_info(InfoLines& lines);

OutputNames name_output(const InfoLines& lines, const SegmentHeader& header, const Environment& environment);

// Facts about host, rank, job and the environment as far as it may be written.
void add_host_info(InfoLines& lines, const SegmentHeader& header, const OutputNames& names,
                   const Environment& environment, char** variables);

}  // namespace gputrace
