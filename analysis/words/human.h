// Values as people read them.
#pragma once

#include <string>

#include "analysis/table/table.h"

namespace gputrace {

// One value for people: "1.24 ms", "1.5 MiB", "12,345", "75.0 %", "-".
std::string human(const Value& value, Unit unit);
std::string human_count(u64 count);
std::string counted(u64 count, const char* one);  // "1 record", "2,014 records"
std::string human_bytes(u64 bytes);
std::string human_nanos(Nanos nanos);
std::string human_parts(const Parts& parts);   // "host 390us, copy 10us"
std::string human_large(const Value& number);  // "989.1 T": decimal prefixes
std::string triple(const u32 (&value)[3]);     // "8,1,1"

}  // namespace gputrace
