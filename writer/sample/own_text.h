// Texts of records that the sidecar makes itself. Their ids are not those that the process gives the same texts: each is written once in
// a file.
#pragma once

#include <string_view>
#include <unordered_set>

#include "base/types.h"
#include "writer/trace_sink.h"

namespace gputrace {

// The id of `text`, written as a Text record unless `known` has it; 0: it is empty. `space`: tells writers of texts apart.
u64 own_text(std::string_view text, u64 space, std::unordered_set<u64>& known, TraceSink& sink, Ticks now);

}  // namespace gputrace
