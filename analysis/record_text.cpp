#include "analysis/record_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "analysis/render/safe_text.h"

namespace gputrace {
namespace {

// Words of enum and flag fields: record and field name, value or bit, word.
struct Word {
  std::string_view record, field;
  u64 value;
  std::string_view word;
  bool flag;
};
constexpr Word kWords[] = {
    {"", "flags", kLaunchPerThread, "PerThread", true},
    {"", "flags", kLaunchCaptured, "Captured", true},
    {"KernelLaunch", "flags", kLaunchCooperative, "Cooperative", true},
    {"KernelLaunch", "flags", kLaunchProgrammatic, "Programmatic", true},
    {"KernelLaunch", "flags", kLaunchLegacy, "Legacy", true},
    {"KernelLaunch", "flags", kLaunchMultiDevice, "MultiDevice", true},
    {"", "flags", kLaunchCaptureUnknown, "CaptureUnknown", true},
    {"", "launch_flags", kLaunchPerThread, "PerThread", true},
    {"", "launch_flags", kLaunchCaptured, "Captured", true},
    {"GraphInstantiate", "flags", 1, "Update", true},
    {"GraphInstantiate", "flags", 2, "Unreadable", true},
    {"GraphNode", "flags", 1, "SetOnExec", true},
    {"GraphNode", "flags", 2, "Disabled", true},
    {"GraphNode", "flags", 4, "InChildGraph", true},
    {"ContextFacts", "flags", 1, "Primary", true},
    {"GraphNode", "kind", 0, "kernel", false},
    {"GraphNode", "kind", 1, "memcpy", false},
    {"GraphNode", "kind", 2, "memset", false},
    {"GraphNode", "kind", 3, "host", false},
    {"GraphNode", "kind", 4, "graph", false},
    {"GraphNode", "kind", 5, "empty", false},
    {"GraphNode", "kind", 6, "wait-event", false},
    {"GraphNode", "kind", 7, "event-record", false},
    {"GraphNode", "kind", 10, "mem-alloc", false},
    {"GraphNode", "kind", 11, "mem-free", false},
    {"GraphNode", "kind", 13, "conditional", false},
    {"Copy", "kind", 1, "HtoD", false},
    {"Copy", "kind", 2, "DtoH", false},
    {"Copy", "kind", 3, "DtoD", false},
    {"Copy", "kind", 4, "PtoP", false},
    {"Copy", "kind", 5, "HtoH", false},
    {"Copy", "kind", 6, "AtoX", false},
    {"Copy", "kind", 7, "XtoA", false},
    {"Alloc", "kind", 1, "device", false},
    {"Alloc", "kind", 2, "managed", false},
    {"Alloc", "kind", 3, "host", false},
    {"Alloc", "kind", 4, "host-registered", false},
    {"Alloc", "kind", 5, "pool", false},
    {"Alloc", "kind", 6, "vmm-reserve", false},
    {"Alloc", "kind", 7, "vmm-create", false},
    {"Alloc", "kind", 8, "vmm-map", false},
    {"Alloc", "kind", 9, "array", false},
    {"Alloc", "kind", 10, "ipc", false},
    {"Sync", "what", 1, "context", false},
    {"Sync", "what", 2, "stream", false},
    {"Sync", "what", 3, "event", false},
    {"StreamOrder", "what", 1, "event-record", false},
    {"StreamOrder", "what", 2, "stream-wait-event", false},
    {"StreamOrder", "what", 3, "host-function", false},
    {"StreamOrder", "what", 4, "wait-value", false},
    {"StreamOrder", "what", 5, "write-value", false},
    {"StreamOrder", "what", 6, "batch-mem-op", false},
    {"ObjectCall", "what", 1, "created", false},
    {"ObjectCall", "what", 2, "destroyed", false},
    {"ObjectCall", "what", 3, "current", false},
    {"ObjectCall", "what", 4, "retained", false},
    {"ObjectCall", "what", 5, "released", false},
    {"ObjectCall", "what", 6, "begun", false},
    {"ObjectCall", "what", 7, "ended", false},
    {"ObjectCall", "what", 8, "queried", false},
    {"ObjectCall", "kind", 1, "stream", false},
    {"ObjectCall", "kind", 2, "event", false},
    {"ObjectCall", "kind", 3, "context", false},
    {"ObjectCall", "kind", 4, "graph", false},
    {"ObjectCall", "kind", 5, "graph-exec", false},
    {"ObjectCall", "kind", 6, "pool", false},
    {"ObjectCall", "kind", 7, "module", false},
    {"ObjectCall", "kind", 8, "library", false},
    {"ObjectCall", "kind", 9, "link", false},
    {"ObjectCall", "kind", 10, "capture", false},
    {"ModuleLoad", "image", 1, "cubin", false},
    {"ModuleLoad", "image", 2, "fatbin", false},
    {"ModuleLoad", "image", 3, "ptx", false},
    {"ModuleLoad", "image", 4, "file", false},
    {"ModuleLoad", "image", 5, "lto-ir", false},
    {"ModuleLoad", "what", 1, "module", false},
    {"ModuleLoad", "what", 2, "library", false},
    {"ModuleLoad", "what", 3, "link", false},
    {"ModuleLoad", "what", 4, "unload", false},
    {"Nvtx", "what", 1, "mark", false},
    {"Nvtx", "what", 2, "push", false},
    {"Nvtx", "what", 3, "pop", false},
    {"Nvtx", "what", 4, "start", false},
    {"Nvtx", "what", 5, "end", false},
    {"Nvtx", "payload_type", 1, "uint64", false},
    {"Nvtx", "payload_type", 2, "int64", false},
    {"Nvtx", "payload_type", 3, "double", false},
    {"Nvtx", "payload_type", 4, "uint32", false},
    {"Nvtx", "payload_type", 5, "int32", false},
    {"Nvtx", "payload_type", 6, "float", false},
    {"Nvtx", "payload_type", 256, "schema", false},
    {"Nvtx", "flags", kNvtxOpenBefore, "OpenBefore", true},
    {"Nvtx", "flags", kNvtxMessageNotKept, "MessageNotKept", true},
    {"NvtxName", "what", 1, "domain", false},
    {"NvtxName", "what", 2, "category", false},
    {"NvtxName", "what", 3, "thread", false},
    {"NvtxName", "what", 4, "stream", false},
    {"NvtxName", "what", 5, "event", false},
    {"NvtxName", "what", 6, "context", false},
    {"NvtxName", "what", 7, "device", false},
    {"NvtxName", "what", 8, "schema", false},
    {"NvtxName", "what", 9, "resource", false},
    {"DeviceState", "state", 1, "never", false},
    {"DeviceState", "state", 2, "on", false},
    {"DeviceState", "state", 3, "paused", false},
    {"DeviceState", "state", 4, "yielded", false},
    {"DeviceState", "state", 5, "failed", false},
    {"DeviceState", "state", 6, "ended", false},
    {"DeviceLoss", "reason", 1, "cupti-dropped", false},
    {"DeviceLoss", "reason", 2, "zero-time", false},
    {"DeviceLoss", "reason", 3, "impossible", false},
    {"DeviceLoss", "reason", 4, "no-buffer", false},
    {"DeviceLoss", "reason", 5, "ring-full", false},
    {"DeviceLoss", "reason", 6, "unreadable", false},
    {"DeviceCopy", "kind", 1, "HtoD", false},
    {"DeviceCopy", "kind", 2, "DtoH", false},
    {"DeviceCopy", "kind", 3, "HtoA", false},
    {"DeviceCopy", "kind", 4, "AtoH", false},
    {"DeviceCopy", "kind", 5, "AtoA", false},
    {"DeviceCopy", "kind", 6, "AtoD", false},
    {"DeviceCopy", "kind", 7, "DtoA", false},
    {"DeviceCopy", "kind", 8, "DtoD", false},
    {"DeviceCopy", "kind", 9, "HtoH", false},
    {"DeviceCopy", "kind", 10, "PtoP", false},
    {"DeviceCopy", "source_memory", 1, "pageable", false},
    {"DeviceCopy", "source_memory", 2, "pinned", false},
    {"DeviceCopy", "source_memory", 3, "device", false},
    {"DeviceCopy", "source_memory", 4, "array", false},
    {"DeviceCopy", "source_memory", 5, "managed", false},
    {"DeviceCopy", "source_memory", 6, "device-static", false},
    {"DeviceCopy", "source_memory", 7, "managed-static", false},
    {"DeviceCopy", "destination_memory", 1, "pageable", false},
    {"DeviceCopy", "destination_memory", 2, "pinned", false},
    {"DeviceCopy", "destination_memory", 3, "device", false},
    {"DeviceCopy", "destination_memory", 4, "array", false},
    {"DeviceCopy", "destination_memory", 5, "managed", false},
    {"DeviceCopy", "destination_memory", 6, "device-static", false},
    {"DeviceCopy", "destination_memory", 7, "managed-static", false},
    {"DeviceMemset", "memory", 1, "pageable", false},
    {"DeviceMemset", "memory", 2, "pinned", false},
    {"DeviceMemset", "memory", 3, "device", false},
    {"DeviceMemset", "memory", 4, "array", false},
    {"DeviceMemset", "memory", 5, "managed", false},
    {"DeviceMemset", "memory", 6, "device-static", false},
    {"DeviceMemset", "memory", 7, "managed-static", false},
    {"DeviceSync", "kind", 1, "event", false},
    {"DeviceSync", "kind", 2, "stream-wait-event", false},
    {"DeviceSync", "kind", 3, "stream", false},
    {"DeviceSync", "kind", 4, "context", false},
    {"DeviceApi", "level", 1, "driver", false},
    {"DeviceApi", "level", 2, "runtime", false},
    {"DeviceOverhead", "kind", 1, "driver-compiler", false},
    {"DeviceOverhead", "kind", 1 << 16, "buffer-flush", false},
    {"DeviceOverhead", "kind", 2 << 16, "instrumentation", false},
    {"DeviceOverhead", "kind", 3 << 16, "resource", false},
    {"DeviceOverhead", "kind", 4 << 16, "module-loading", false},
    {"DeviceOverhead", "kind", 5 << 16, "lazy-function-loading", false},
    {"DeviceOverhead", "kind", 6 << 16, "command-buffer-full", false},
    {"DeviceOverhead", "kind", 7 << 16, "buffer-request", false},
    {"DeviceOverhead", "kind", 8 << 16, "uvm-init", false},
    {"DeviceOverhead", "kind", kOverheadOwnThread, "gputrace-thread", false},
    {"DeviceOverhead", "kind", kOverheadOwnSetup, "gputrace-setup", false},
    {"DeviceJit", "kind", 1, "ptx-to-cubin", false},
    {"DeviceJit", "kind", 2, "nvvm-to-ptx", false},
    {"DeviceJit", "operation", 1, "cache-load", false},
    {"DeviceJit", "operation", 2, "cache-store", false},
    {"DeviceJit", "operation", 3, "compile", false},
    {"DevicePool", "operation", 1, "created", false},
    {"DevicePool", "operation", 2, "destroyed", false},
    {"DevicePool", "operation", 3, "trimmed", false},
    {"DeviceEnvironment", "kind", 1, "speed", false},
    {"DeviceEnvironment", "kind", 2, "temperature", false},
    {"DeviceEnvironment", "kind", 3, "power", false},
    {"DeviceEnvironment", "kind", 4, "cooling", false},
    {"DeviceKernel", "flags", kDeviceLaunched, "DeviceLaunched", true},
    {"CodeImage", "kind", 1, "cubin", false},
    {"CodeImage", "kind", 2, "fatbin", false},
    {"CodeImage", "kind", 3, "ptx", false},
    {"CodeImage", "kind", 4, "file", false},
    {"CodeImage", "state", 1, "in-file", false},
    {"CodeImage", "state", 2, "copied", false},
    {"CodeImage", "state", 3, "over-budget", false},
    {"CodeImage", "state", 4, "unreadable", false},
    {"CodeImage", "state", 5, "no-room", false},
    {"CodeKernel", "mma", kHmma, "HMMA", true},
    {"CodeKernel", "mma", kImma, "IMMA", true},
    {"CodeKernel", "mma", kBmma, "BMMA", true},
    {"CodeKernel", "mma", kDmma, "DMMA", true},
    {"CodeKernel", "mma", kQmma, "QMMA", true},
    {"CodeKernel", "mma", kOmma, "OMMA", true},
    {"CodeKernel", "mma", kHgmma, "HGMMA", true},
    {"CodeKernel", "mma", kIgmma, "IGMMA", true},
    {"CodeKernel", "mma", kBgmma, "BGMMA", true},
    {"CodeKernel", "mma", kQgmma, "QGMMA", true},
    {"CodeKernel", "mma", kUtchmma, "UTCHMMA", true},
    {"CodeKernel", "mma", kUtcimma, "UTCIMMA", true},
    {"CodeKernel", "mma", kUtcqmma, "UTCQMMA", true},
    {"CodeKernel", "mma", kUtcomma, "UTCOMMA", true},
    {"CodeKernel", "mma", kUtcmma, "UTCMMA", true},
    {"CodeKernel", "precision", kFp64, "fp64", true},
    {"CodeKernel", "precision", kTf32, "tf32", true},
    {"CodeKernel", "precision", kBf16, "bf16", true},
    {"CodeKernel", "precision", kFp16, "fp16", true},
    {"CodeKernel", "precision", kFp8, "fp8", true},
    {"CodeKernel", "precision", kFp6, "fp6", true},
    {"CodeKernel", "precision", kFp4, "fp4", true},
    {"CodeKernel", "precision", kInt8, "int8", true},
    {"CodeKernel", "precision", kInt4, "int4", true},
    {"CodeKernel", "precision", kB1, "b1", true},
    {"CodeKernel", "precision", kFp32, "fp32", true},
    {"CodeKernel", "flags", kCodeScanned, "Scanned", true},
    {"CodeKernel", "flags", kCodePtxOnly, "PtxOnly", true},
    {"CodeKernel", "flags", kCodeTma, "Tma", true},
    {"CodeKernel", "flags", kCodeAsyncCopy, "AsyncCopy", true},
    {"CodeKernel", "flags", kCodeIncomplete, "Incomplete", true},
    {"CodeKernel", "flags", kCodePrecisionPart, "PrecisionPart", true},
    {"CodeKernel", "flags", kCodeArchitectureVariant, "ArchitectureVariant", true},
    {"CodeKernel", "flags", kCodeFamilyVariant, "FamilyVariant", true},
    {"CodeScan", "state", 1, "scanned", false},
    {"CodeScan", "state", 2, "no-match", false},
    {"CodeScan", "state", 3, "broken", false},
    {"CodeScan", "state", 4, "missing", false},
    {"CodeScan", "state", 5, "changed", false},
    {"CodeScan", "state", 6, "crashed", false},
    {"CodeScan", "state", 7, "timed-out", false},
    {"CodeScan", "state", 8, "not-finished", false},
    {"CodeScan", "state", 9, "pieces-lost", false},
    {"CodeScan", "state", 10, "too-many", false},
    {"Matmul", "flags", kTransposeA, "TransposeA", true},
    {"Matmul", "flags", kTransposeB, "TransposeB", true},
    {"Matmul", "flags", kConjugateA, "ConjugateA", true},
    {"Matmul", "flags", kConjugateB, "ConjugateB", true},
    {"Matmul", "flags", kPointerBatch, "PointerBatch", true},
    {"Matmul", "flags", kStrided, "Strided", true},
    {"Matmul", "flags", kSparse, "Sparse", true},
    {"Matmul", "flags", kComplex, "Complex", true},
    {"Convolution", "what", 1, "forward", false},
    {"Convolution", "what", 2, "backward-data", false},
    {"Convolution", "what", 3, "backward-filter", false},
    {"Convolution", "what", 4, "graph", false},
    {"Collective", "what", 1, "all-reduce", false},
    {"Collective", "what", 2, "broadcast", false},
    {"Collective", "what", 3, "reduce", false},
    {"Collective", "what", 4, "all-gather", false},
    {"Collective", "what", 5, "reduce-scatter", false},
    {"Collective", "what", 6, "send", false},
    {"Collective", "what", 7, "recv", false},
    {"Collective", "what", 8, "all-to-all", false},
    {"Collective", "what", 9, "gather", false},
    {"Collective", "what", 10, "scatter", false},
};

bool launch_flags_apply(std::string_view record) {
  for (const std::string_view prefix :
       {"GraphInstantiate", "GraphNode", "ContextFacts", "Alloc", "Device", "Nvtx", "Code", "Matmul"}) {
    if (record.substr(0, prefix.size()) == prefix) return false;
  }
  return true;
}

u64 read_bits(const u8* at, u32 size) {
  u64 bits = 0;
  std::memcpy(&bits, at, size);
  return bits;
}

// A JSON string; `value` is valid UTF-8.
void append_json(std::string_view value, std::string& out) {
  out += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    else
      out += c;
  }
  out += '"';
}

}  // namespace

RecordText::RecordText(const TraceReader& trace, bool json) : trace_(trace), clock_(trace.clock()), json_(json) {}

void RecordText::key(const std::string& name, std::string& out) {
  if (json_) {
    out += first_ ? "\"" : ",\"";
    out += name;
    out += "\":";
  } else {
    out += ' ';
    out += name;
    out += '=';
  }
  first_ = false;
}

void RecordText::text(std::string_view value, std::string& out) {
  bool ascii = !value.empty(), plain = ascii;
  for (const char c : value) {
    ascii = ascii && c >= 0x20 && c < 0x7f;
    plain = plain && c > 0x20 && c < 0x7f && c != '=' && c != '"';
  }
  if (json_) return ascii ? append_json(value, out) : append_json(valid_utf8(value), out);
  if (plain) {
    out += value;
    return;
  }
  out += '"';
  out += safe_text(value);
  out += '"';
}

void RecordText::integer(u64 bits, bool is_signed, u32 size, std::string& out) {
  if (is_signed) {
    const unsigned shift = 64 - size * 8;
    fmt::format_to(std::back_inserter(out), "{}", static_cast<i64>(bits << shift) >> shift);
  } else {
    fmt::format_to(std::back_inserter(out), "{}", bits);
  }
}

const std::vector<RecordText::FieldWords>& RecordText::words_of(const TraceRecordType& type) {
  const auto [it, fresh] = words_.try_emplace(type.type);
  if (!fresh) return it->second;
  for (const TraceField& field : type.fields) {
    FieldWords& words = it->second.emplace_back();
    if (field.unit != "flags" && field.unit != "enum") continue;
    for (const Word& word : kWords) {
      const bool here = word.record.empty() ? field.name == "launch_flags" || launch_flags_apply(type.name)
                                            : word.record == type.name;
      if (word.field == field.name && here) words.push_back({word.value, word.word, word.flag});
    }
  }
  return it->second;
}

void RecordText::names(const TraceField& field, const FieldWords& words, u64 value, std::string& out) {
  bool any = false;
  for (const FieldWord& word : words) {
    if (word.flag ? (value & word.value) == 0 : value != word.value) continue;
    if (!any) {
      key(field.name + "_name", out);
      if (json_) out += '"';
    } else {
      out += '|';
    }
    out += word.word;
    any = true;
  }
  if (any && json_) out += '"';
}

void RecordText::field(const TraceField& field, const FieldWords& words, const RecordHeader& record, std::string& out) {
  if (field.size == 0 || field.size > 8 || field.offset + field.size > record.size) return;
  if (field.name.compare(0, 8, "reserved") == 0) return;
  const u64 bits = read_bits(reinterpret_cast<const u8*>(&record) + field.offset, field.size);
  key(field.name, out);
  if (field.unit == "text") {
    const std::string_view value = trace_.texts().find(bits);
    if (value.data() == nullptr && json_)
      out += "null";
    else
      text(value, out);
    return;
  }
  const bool address = field.unit == "handle" || field.unit == "address";
  if (address && !json_)
    fmt::format_to(std::back_inserter(out), "0x{:x}", bits);
  else
    integer(bits, field.type[0] == 'i', field.size, out);
  if (!words.empty()) names(field, words, bits, out);
}

void RecordText::call(u16 id, std::string& out) {
  const auto [it, fresh] = calls_.try_emplace(id);
  if (fresh) {  // a call always stands behind another key
    const TraceCall* call = id ? trace_.schema().call(id) : nullptr;
    std::string& line = it->second;
    key("call", line);
    if (call)
      text(call->name, line);
    else if (json_ && id == 0)
      line += "null";
    else
      text(id ? "call " + std::to_string(id) : "-", line);
    if (call) {
      key("variant", line);
      text(call->variant, line);
      key("level", line);
      text(call->level, line);
    }
  }
  out += it->second;
}

void RecordText::append(const RecordHeader& record, u32 thread, std::string& out) {
  const TraceRecordType* type = trace_.schema().record(record.type);
  const i32 tid = trace_.threads()[thread].tid;
  const Nanos begin = record.begin ? clock_.nanos(record.begin) : 0;
  const Nanos end = record.end ? clock_.nanos(record.end) : 0;
  const std::string unknown = type ? "" : "record " + std::to_string(record.type);
  first_ = true;
  if (json_) {
    out += '{';
    key("record", out);
    text(type ? type->name : unknown, out);
  } else {
    out += type ? type->name : unknown;
  }
  key("tid", out);
  fmt::format_to(std::back_inserter(out), "{}", tid);
  call(record.call, out);
  key("result", out);
  fmt::format_to(std::back_inserter(out), "{}", record.result);
  key("begin_ns", out);
  fmt::format_to(std::back_inserter(out), "{}", begin);
  key("end_ns", out);
  fmt::format_to(std::back_inserter(out), "{}", end);
  if (type) {
    const std::vector<FieldWords>& words = words_of(*type);
    for (std::size_t i = 0; i < type->fields.size(); ++i) field(type->fields[i], words[i], record, out);
    if (record.type == static_cast<u16>(RecordType::Text) && record.size > sizeof(Text)) {
      const auto value = decode<Text>(record);
      const u64 room = record.size - sizeof(Text), left = value.total > value.offset ? value.total - value.offset : 0;
      key("piece", out);
      text({reinterpret_cast<const char*>(&record) + sizeof(Text), static_cast<std::size_t>(std::min(room, left))},
           out);
    }
  }
  out += json_ ? "}\n" : "\n";
}

void RecordText::append(const InFlightCallInfo& open, std::string& out) {
  first_ = true;
  if (json_) {
    out += '{';
    key("record", out);
    text("InFlight", out);
  } else {
    out += "InFlight";
  }
  key("tid", out);
  fmt::format_to(std::back_inserter(out), "{}", open.tid);
  call(static_cast<u16>(open.call), out);
  key("result", out);
  out += json_ ? "null" : "-";
  key("begin_ns", out);
  fmt::format_to(std::back_inserter(out), "{}", trace_.clock().nanos(open.begin));
  key("end_ns", out);
  out += json_ ? "null" : "-";
  key("argument", out);
  fmt::format_to(std::back_inserter(out), "{}", open.argument);
  key("depth", out);
  fmt::format_to(std::back_inserter(out), "{}", open.depth);
  out += json_ ? "}\n" : "\n";
}

}  // namespace gputrace
