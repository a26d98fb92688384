// Writes traces of at most 1 MiB that cost as much as their writer could think of: what is cheap to store (columns that count up
// compress to nothing) and dear to read. One file for each way, NAME.gtrace:
//   hostile_traces FOLDER [--mib=N] [--fill] [NAME...]        N: MiB instead of 1; --fill: noise behind the rest, up to the whole size
//   hostile_traces --list
// Ways made by hand (ways_of_*.cpp), and, for every type of record, one file in which everything is different from record to record
// and one in which everything is the same.
#include <cstdio>

#include "tests/programs/hostile/trace_maker.h"

namespace gputrace::hostile {
namespace {

bool is_word(std::string_view unit) {
  for (const char* plain :
       {"handle", "count", "bytes", "address", "text", "none", "index", "device_ns", "enum", "flags"})
    if (unit == plain) return false;
  return true;
}

Trace of_type(const RecordSchema& schema, bool distinct) {
  Trace trace = with_device();
  std::string texts;
  for (u64 i = 1; i < 3000; ++i) Trace::put_text(texts, i + 10, "text " + std::to_string(i));
  trace.chunk(0, texts);
  const RecordClass of = class_of(schema.type);
  const u32 slot = of == RecordClass::Definition ? 0 : of == RecordClass::Device ? 2 : 1;
  const u16 call = of == RecordClass::Call ? kOtherCall : of == RecordClass::Library ? kLibraryCall : 0;
  std::string record(schema.size, '\0');
  trace.fill_up(slot, [&](std::string& bytes, u64 i) {
    for (u32 f = 0; f < schema.field_count; ++f) {
      const auto& field = schema.fields[f];
      u64 value = distinct ? i + 1 : 1;
      if (is_word(field.unit)) value = distinct ? i % 7 : 1;
      if (std::string_view(field.unit) == "text") value = distinct ? 11 + i % 3000 : 1;
      if (std::string_view(field.unit) == "device_ns")
        value = static_cast<u64>(time_of(i)) + (std::string_view(field.name) == "finish" ? 20 : 0);
      std::memcpy(record.data() + field.offset, &value, std::min<std::size_t>(field.size, 8));
    }
    const RecordHeader header{schema.type, static_cast<u16>(record.size()), call,
                              0,           static_cast<Ticks>(time_of(i)),  static_cast<Ticks>(time_of(i) + 50)};
    std::memcpy(record.data(), &header, sizeof header);
    bytes += record;
  });
  return trace;
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (auto of : {ways_of_kernels, ways_of_calls, ways_of_texts, ways_of_chunks})
    for (Way& way : of()) all.push_back(std::move(way));
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    for (const bool distinct : {true, false}) {
      const RecordSchema& schema = kRecordSchemas[i];
      all.push_back({std::string(schema.name) + (distinct ? "_distinct" : "_same"),
                     [&schema, distinct] { return of_type(schema, distinct); }});
    }
  }
  return all;
}

}  // namespace
}  // namespace gputrace::hostile

int main(int argc, char** argv) {
  using namespace gputrace::hostile;
  if (argc < 2) return 2;
  std::vector<std::string> wanted(argv + 2, argv + argc);
  bool fill = false;
  for (; !wanted.empty() && wanted.front().starts_with("--"); wanted.erase(wanted.begin())) {
    if (wanted.front().starts_with("--mib="))
      most_bytes = static_cast<std::size_t>(std::stoul(wanted.front().substr(6))) << 20;
    fill = fill || wanted.front() == "--fill";
  }
  const bool list = std::strcmp(argv[1], "--list") == 0;
  for (const Way& way : ways()) {
    if (list)
      std::puts(way.name.c_str());
    else if (wanted.empty() || std::find(wanted.begin(), wanted.end(), way.name) != wanted.end())
      way.make().write(std::string(argv[1]) + "/" + way.name + ".gtrace", fill);
  }
}
