// Prints docs/trace-format.md from the schema and the structs of trace/file.h. A rule test holds the document against
// this output.
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "trace/codec/transform.h"
#include "trace/file.h"
#include "trace/schema.h"

using namespace gputrace;

namespace {

struct Member {
  const char* name;
  std::size_t offset, size;
  const char* doc;
};

void print_struct(const char* title, std::size_t size, std::initializer_list<Member> members) {
  std::printf("### %s (%zu bytes)\n\n| offset | size | field | meaning |\n|---|---|---|---|\n", title, size);
  for (const Member& member : members)
    std::printf("| %zu | %zu | `%s` | %s |\n", member.offset, member.size, member.name, member.doc);
  std::printf("\n");
}

#define GT_MEMBER(Struct, member, doc) \
  { #member, offsetof(Struct, member), sizeof(Struct::member), doc }

void print_introduction() {
  std::printf(
      "# The trace file, version %u.%u\n\n"
      "Generated from `trace/records.def` and `trace/file.h` by `trace/format_doc`; a test keeps it so. Everything is "
      "little endian and naturally\n"
      "aligned; there is no padding inside structs.\n\n"
      "```\n"
      "FileHeader | Chunk | Chunk | ...      Chunk: ChunkHeader, stored_size bytes of payload, zeros up to the next "
      "multiple of 8\n"
      "```\n\n"
      "- **Append-only.** No chunk is ever changed, and nothing is moved at the end: a file can be read while it is "
      "written, and after its writer was killed.\n"
      "- **Found again.** A reader that meets something that is no chunk looks for the next `GTCK` on an 8-byte border "
      "whose `header_check` is right.\n"
      "- **Compatible.** A reader refuses a newer major by name and reads a newer minor. It skips chunk kinds and "
      "record types that it does not know, and\n"
      "  counts them; it takes the missing end of a short record as zeros and ignores the longer tail of a long one. "
      "Ids are never used twice; fields are only\n"
      "  appended. In every version, magic, major, minor and `header_size` are where they are, and the last 8 bytes of "
      "the file header are its checksum.\n"
      "- **Checksums** are XXH3-64.\n\n",
      kFileMajor, kFileMinor);
}

void print_file_header() {
  std::printf("## File header\n\n");
  print_struct(
      "FileHeader", sizeof(FileHeader),
      {GT_MEMBER(FileHeader, magic, "`GPUTRACE`"), GT_MEMBER(FileHeader, major, "1"), GT_MEMBER(FileHeader, minor, "0"),
       GT_MEMBER(FileHeader, header_size, "of this header"), GT_MEMBER(FileHeader, random_id, "of the traced process"),
       GT_MEMBER(FileHeader, start_time,
                 "of the process, in clock ticks after boot (`/proc/PID/stat` field 22); 0: not known"),
       GT_MEMBER(FileHeader, pid_namespace, "inode of `/proc/PID/ns/pid`; 0: not known"),
       GT_MEMBER(FileHeader, pid, "as the process saw itself"),
       GT_MEMBER(FileHeader, clock, "1: TSC; 2: CLOCK_MONOTONIC (ticks are nanoseconds)"),
       GT_MEMBER(FileHeader, boot_id, "the kernel's boot id"),
       GT_MEMBER(FileHeader, checksum, "of the bytes before it")});
}

void print_chunk_header() {
  std::printf("## Chunks\n\n");
  print_struct(
      "ChunkHeader", sizeof(ChunkHeader),
      {GT_MEMBER(ChunkHeader, magic, "`GTCK`"), GT_MEMBER(ChunkHeader, kind, "see below"),
       GT_MEMBER(ChunkHeader, encoding, "see below"),
       GT_MEMBER(ChunkHeader, checksum, "of this header from `sequence` on, and of the stored payload"),
       GT_MEMBER(ChunkHeader, sequence, "0, 1, 2 ... in the file"),
       GT_MEMBER(ChunkHeader, stored_size, "bytes of the payload in the file, without padding"),
       GT_MEMBER(ChunkHeader, raw_size, "bytes after decoding"),
       GT_MEMBER(ChunkHeader, slot, "records: the thread is (slot, incarnation)"),
       GT_MEMBER(ChunkHeader, incarnation, "records: see slot"),
       GT_MEMBER(ChunkHeader, first_record,
                 "records: ordinal of the first one within its thread; a jump means records overwritten or lost"),
       GT_MEMBER(ChunkHeader, record_count, "records: how many"),
       GT_MEMBER(ChunkHeader, header_check,
                 "low 32 bits of XXH3-64 over this header with `checksum` and `header_check` set to 0"),
       GT_MEMBER(ChunkHeader, begin,
                 "records: smallest begin that is not 0; else when the chunk was written, 0 where not known"),
       GT_MEMBER(ChunkHeader, end, "records: largest end; else as `begin`")});
  std::printf(
      "A reader refuses chunks whose `raw_size` or `stored_size` is more than %u bytes.\n\n"
      "| kind | | payload |\n|---|---|---|\n"
      "| 1 | Schema | text: what records, fields, their words and calls are; see [Schema text](#schema-text) |\n"
      "| 2 | Info | lines `KEY TAB VALUE`, in values `\\t` `\\n` `\\\\` are escaped; a key that comes again replaces, "
      "or, where it may repeat, adds |\n"
      "| 3 | Thread | ThreadEntry[]; newest wins |\n"
      "| 4 | Records | whole records of one thread, in its order |\n"
      "| 5 | Anchors | Anchor[] |\n"
      "| 6 | Health | HealthEntry[], cumulative; newest of a thread wins; slot %u is the process as a whole |\n"
      "| 7 | InFlight | InFlightEntry[]: calls that were open when the process ended |\n"
      "| 8 | End | EndEntry; absent when the writer was killed, or still writes; behind it stands only what was read "
      "of machine code after the program's end, with the counters of that |\n"
      "| 9 | Counters | HealthEntry of the process, written anew in its place while the program runs: what was seen by "
      "`begin`, for files without an End |\n\n"
      "| encoding | |\n|---|---|\n"
      "| 0 | the bytes as they are |\n"
      "| 1 | one zstd frame |\n"
      "| 2 | records, transformed, then one zstd frame |\n\n",
      kMaxChunkRaw, kProcessSlot);
}

// "0 ring-full, 1 no-slot ...": the words of an enumeration where it is no field of a record.
std::string words_of(const EnumSchema& schema) {
  std::string text;
  for (u32 i = 0; i < schema.value_count; ++i) {
    text += text.empty() ? "" : ", ";
    text += std::to_string(schema.values[i].number) + " " + schema.values[i].word;
  }
  return text;
}

void print_entries() {
  const std::string reasons = "by DropReason: " + words_of(schema_of(DropReason{})) + "; the rest is reserved";
  print_struct(
      "ThreadEntry", sizeof(ThreadEntry),
      {GT_MEMBER(ThreadEntry, slot, "0: definitions, written by any thread"),
       GT_MEMBER(ThreadEntry, incarnation, "which thread of that slot"),
       GT_MEMBER(ThreadEntry, tid, "kernel thread id as the process saw it; 0: definitions, or not known"),
       GT_MEMBER(ThreadEntry, reserved, "0"), GT_MEMBER(ThreadEntry, begin, "ticks of its first record"),
       GT_MEMBER(ThreadEntry, end, "ticks; 0: alive"), GT_MEMBER(ThreadEntry, name, "thread name, zero-padded")});
  print_struct(
      "Anchor", sizeof(Anchor),
      {GT_MEMBER(Anchor, ticks, "record clock"), GT_MEMBER(Anchor, monotonic_ns, "CLOCK_MONOTONIC at that instant"),
       GT_MEMBER(Anchor, realtime_ns, "CLOCK_REALTIME at that instant"),
       GT_MEMBER(Anchor, width_ns, "the readings are within half of this of each other")});
  print_struct(
      "HealthEntry", sizeof(HealthEntry),
      {GT_MEMBER(HealthEntry, slot, ""), GT_MEMBER(HealthEntry, incarnation, ""), GT_MEMBER(HealthEntry, tid, ""),
       GT_MEMBER(HealthEntry, reserved, "0"), GT_MEMBER(HealthEntry, seen, "records that the thread wanted to write"),
       GT_MEMBER(HealthEntry, stored, "records in this file so far"),
       GT_MEMBER(HealthEntry, dropped, reasons.c_str())});
  std::printf(
      "In the last Health of a file with an End, `seen` = `stored` + the sum of `dropped`, for each thread and for the "
      "process.\n\n");
  print_struct("InFlightEntry", sizeof(InFlightEntry),
               {GT_MEMBER(InFlightEntry, slot, ""), GT_MEMBER(InFlightEntry, incarnation, ""),
                GT_MEMBER(InFlightEntry, tid, ""), GT_MEMBER(InFlightEntry, call, "id of the call"),
                GT_MEMBER(InFlightEntry, begin, "ticks"), GT_MEMBER(InFlightEntry, argument, "its main argument"),
                GT_MEMBER(InFlightEntry, depth, "0: outermost"), GT_MEMBER(InFlightEntry, reserved, "0")});
  print_struct(
      "EndEntry", sizeof(EndEntry),
      {GT_MEMBER(
           EndEntry, reason,
           "1 exited, 2 vanished (no exit handler ran, nobody saw how), 3 signalled, 4 replaced by exec, 5 stopped, 6 "
           "error of the sidecar"),
       GT_MEMBER(EndEntry, detail, "exit code (-1: nobody could read it), signal or errno"),
       GT_MEMBER(EndEntry, monotonic_ns, "when it was found to be gone"), GT_MEMBER(EndEntry, realtime_ns, "")});
}

void print_transform() {
  std::printf(
      "## Encoding 2\n\n"
      "The records of the chunk are taken apart into columns and put together again without loss; see "
      "`trace/codec/transform.h`. After the zstd frame:\n\n"
      "```\n"
      "u32 records, u32 classes                       a class: records of one (type, size); at most %u\n"
      "per class: u16 type, u16 size, u32 count\n"
      "u8 class[records]                              only when classes > 1: the order\n"
      "column: end                                    of all records in order: zigzag difference to the record before "
      "(to 0 for the first)\n"
      "column: duration                               of all records in order: end - begin\n"
      "per class: column of call | result << 16, then one column for each further 8 bytes after the record header\n\n"
      "column: u8 mode, u8 mask, u64 base, then for every bit b of mask, ascending, u8 plane[rows]\n"
      "        value = the bytes of the planes at their places b, other bytes 0\n"
      "        mode 0: row = base ^ value         mode 1: row = row before (first: base) + unzigzag(value)\n"
      "zigzag(d) = d << 1 ^ (d < 0 ? ~0 : 0), in 64 bits, wrapping\n"
      "```\n\n",
      kMaxTransformClasses);
}

void print_schema_text() {
  std::printf(
      "## Schema text\n\n"
      "```\n"
      "enum NAME \"doc\"                             numbers of which a field holds one\n"
      "flags NAME \"doc\"                            bits of which a field holds any\n"
      "value ENUM NUMBER WORD \"doc\"                of either; the doc may be missing\n"
      "record ID NAME SIZE CLASS \"doc\"\n"
      "field RECORD NAME TYPE OFFSET UNIT \"doc\"    a unit may be the NAME of an enum or of flags\n"
      "call ID NAME LEVEL VARIANT\n"
      "```\n\n"
      "`CLASS` is a word of [RecordClass](#recordclass). `NAME` of a call is the documented name without suffixes, "
      "`VARIANT` the exported one, `LEVEL` one of `driver`,\n"
      "`runtime`, `library`. Names and words are letters, digits and any of `_-.+`; docs hold no quotes and no line "
      "ends.\n\n"
      "- Files of 0.1 have no `enum`, `flags` and `value` lines and no `CLASS`, and their units are `enum` and `flags` "
      "alone: a reader then takes its own words.\n"
      "- A newer writer may add lines of a new kind, which a reader skips, words before the doc, or at the end of a "
      "line "
      "that has none, and values, whose words\n"
      "  every reader shows. A record of a type that a reader does not know is to it what its class says.\n"
      "- A number is never used twice in an enumeration, and never changes its meaning.\n\n");
}

void print_words() {
  std::printf("## Words\n\nThe numbers of records, in the order in which their words are shown.\n\n");
  for (u32 i = 0; i < kEnumSchemaCount; ++i) {
    const EnumSchema& schema = kEnumSchemas[i];
    std::printf("### %s\n\n%s%s\n\n| number | word | meaning |\n|---|---|---|\n", schema.name, schema.doc,
                schema.flags ? " (flags)" : "");
    for (u32 v = 0; v < schema.value_count; ++v) {
      const ValueSchema& value = schema.values[v];
      std::printf("| %llu | %s | %s |\n", static_cast<unsigned long long>(value.number), value.word, value.doc);
    }
    std::printf("\n");
  }
}

// A unit that is an enumeration leads to it.
std::string unit_text(const char* unit) {
  for (u32 i = 0; i < kEnumSchemaCount; ++i) {
    if (std::strcmp(unit, kEnumSchemas[i].name) != 0) continue;
    std::string anchor = unit;
    for (char& c : anchor) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return std::string("[").append(unit).append("](#").append(anchor).append(")");
  }
  return unit;
}

void print_records() {
  std::printf(
      "## Records\n\n"
      "Every record begins with RecordHeader: `u16 type`, `u16 size` (of the whole record, a multiple of 8), `u16 "
      "call` (id, 0: none), `u16 result`\n"
      "(0: success), `u64 begin`, `u64 end` (ticks). Fields below follow at their offsets.\n\n");
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    const RecordSchema& record = kRecordSchemas[i];
    std::printf("### %u %s (%u bytes, %s)\n\n%s\n\n| offset | type | field | unit | meaning |\n|---|---|---|---|---|\n",
                record.type, record.name, record.size, word_of(record.record_class), record.doc);
    for (u32 f = 0; f < record.field_count; ++f) {
      const FieldSchema& field = record.fields[f];
      std::printf("| %u | %s | `%s` | %s | %s |\n", field.offset, field.type, field.name, unit_text(field.unit).c_str(),
                  field.doc);
    }
    std::printf("\n");
  }
}

}  // namespace

int main() {
  print_introduction();
  print_file_header();
  print_chunk_header();
  print_entries();
  print_transform();
  print_schema_text();
  print_words();
  print_records();
  return 0;
}
