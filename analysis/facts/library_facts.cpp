#include "analysis/facts/library_facts.h"

#include <cmath>

namespace gputrace {
namespace {

// cudaDataType (library_types.h).
const char* cuda_type(i32 type) {
  static const char* const names[] = {
      "fp32",      "fp64",           "fp16",    "int8",           "complex32", "complex64",
      "complex16", "complex-int8",   "uint8",   "complex-uint8",  "int32",     "complex-int32",
      "uint32",    "complex-uint32", "bf16",    "complex-bf16",   "int4",      "complex-int4",
      "uint4",     "complex-uint4",  "int16",   "complex-int16",  "uint16",    "complex-uint16",
      "int64",     "complex-int64",  "uint64",  "complex-uint64", "fp8e4m3",   "fp8e5m2",
      "fp8ue8m0",  "fp6e2m3",        "fp6e3m2", "fp4e2m1"};
  return type >= 0 && type < static_cast<i32>(sizeof names / sizeof *names) ? names[type] : nullptr;
}

// cudnnDataType_t.
const char* cudnn_type(i32 type) {
  static const char* const names[] = {"fp32",    "fp64", "fp16",  "int8",    "int32",   "int8x4",  "uint8",   "uint8x4",
                                      "int8x32", "bf16", "int64", "boolean", "fp8e4m3", "fp8e5m2", "fast-fp8"};
  return type >= 0 && type < static_cast<i32>(sizeof names / sizeof *names) ? names[type] : nullptr;
}

// ncclDataType_t.
struct NcclType {
  const char* name;
  u32 bytes;
};
NcclType nccl_type(i32 type) {
  static const NcclType types[] = {{"int8", 1},  {"uint8", 1},  {"int32", 4},   {"uint32", 4},
                                   {"int64", 8}, {"uint64", 8}, {"fp16", 2},    {"fp32", 4},
                                   {"fp64", 8},  {"bf16", 2},   {"fp8e4m3", 1}, {"fp8e5m2", 1}};
  return type >= 0 && type < static_cast<i32>(sizeof types / sizeof *types) ? types[type] : NcclType{nullptr, 0};
}

const char* fft_type(i32 type) {
  switch (type) {
    case 0x29:
      return "C2C fp32";
    case 0x2a:
      return "R2C fp32";
    case 0x2c:
      return "C2R fp32";
    case 0x69:
      return "Z2Z fp64";
    case 0x6a:
      return "D2Z fp64";
    case 0x6c:
      return "Z2D fp64";
    default:
      return nullptr;
  }
}
bool real_transform(i32 type) { return type == 0x2a || type == 0x2c || type == 0x6a || type == 0x6c; }

std::string text(u64 value) { return std::to_string(value); }
std::string or_unknown(const char* name) { return name ? name : ""; }
const std::string kTimes = "×";

std::string convolution_text(const LibraryShape& shape) {
  if (!shape.input[0]) return "";
  const auto volume = [](u32 d, u32 h, u32 w) { return (d > 1 ? text(d) + kTimes : "") + text(h) + kTimes + text(w); };
  std::string out = text(shape.input[0]) + kTimes + text(shape.input[1]) + kTimes +
                    volume(shape.input[2], shape.input[3], shape.input[4]) + " * " + text(shape.filter[0]) + kTimes +
                    volume(shape.filter[1], shape.filter[2], shape.filter[3]);
  if (shape.filter[4] > 1) out += " / " + text(shape.filter[4]) + " groups";
  return out;
}

std::string convolution_arithmetic(const LibraryShape& shape) {
  const std::string type = or_unknown(cudnn_type(shape.type_a));
  if (type.rfind("fp8", 0) == 0) return "fp8";
  if (type.rfind("int8", 0) == 0 || type.rfind("uint8", 0) == 0) return "int8";
  // Default math (0) lets fp32 convolutions round to tf32; CUDNN_FMA_MATH (3) forbids it. Which was done is not told.
  if (type == "fp32") return shape.math_mode == 3 ? "fp32" : "";
  return type == "fp16" || type == "bf16" || type == "fp64" ? type : "";
}

// Of fp32 operands: cublasComputeType_t says in what they may be multiplied, else the handle's math mode.
std::string single_arithmetic(const LibraryShape& shape) {
  switch (shape.compute) {
    case 74:
      return "fp16";
    case 75:
      return "bf16";
    case 77:
      return "tf32";
    case 69:
      return "fp32";
    case 68:
    case -1:
    case 0:  // CUDA_R_32F, before CUDA 11
    case 4:
      if (shape.math_mode < 0) return "";
      return (shape.math_mode & 0xf) == 3 ? "tf32" : "fp32";
    default:
      return "";
  }
}

std::string product_arithmetic(const LibraryShape& shape) {
  if (shape.flags & kSparse) return "";
  if (shape.type_a != shape.type_b) {
    const bool fp8 = (shape.type_a == 28 || shape.type_a == 29) && (shape.type_b == 28 || shape.type_b == 29);
    return fp8 ? "fp8" : "";
  }
  switch (shape.type_a) {
    case 0:
    case 4:
      return single_arithmetic(shape);
    case 1:
    case 5:
      return "fp64";
    case 2:
    case 6:
      return "fp16";
    case 14:
    case 15:
      return "bf16";
    case 3:
    case 8:
      return "int8";
    case 28:
    case 29:
      return "fp8";
    case 31:
    case 32:
      return "fp6";
    case 33:
      return "fp4";
    default:
      return "";
  }
}

}  // namespace

std::string library_of(const std::string& call) {
  static const std::pair<const char*, const char*> libraries[] = {{"cublasLt", "cuBLASLt"}, {"cublas", "cuBLAS"},
                                                                  {"cudnn", "cuDNN"},       {"cusparse", "cuSPARSE"},
                                                                  {"cufft", "cuFFT"},       {"nccl", "NCCL"}};
  for (const auto& [prefix, name] : libraries) {
    if (call.rfind(prefix, 0) == 0) return name;
  }
  return "";
}

std::string shape_text(const LibraryShape& shape) {
  switch (shape.kind) {
    case LibraryKind::Matmul: {
      if (!shape.m && !shape.n && !shape.k) return "";
      const std::string product = text(shape.m) + kTimes + text(shape.n) + kTimes + text(shape.k);
      return shape.batch == 1 ? product : product + ", batch " + text(shape.batch);
    }
    case LibraryKind::Convolution:
      return convolution_text(shape);
    case LibraryKind::Fft: {
      if (!shape.m) return "";
      std::string size = text(shape.m);
      if (shape.n > 1 || shape.k > 1) size += kTimes + text(shape.n);
      if (shape.k > 1) size += kTimes + text(shape.k);
      return shape.batch == 1 ? size : size + ", batch " + text(shape.batch);
    }
    case LibraryKind::Collective:
      return text(shape.m);
    default:
      return "";
  }
}

std::string dtype_text(const LibraryShape& shape) {
  switch (shape.kind) {
    case LibraryKind::Matmul: {
      const std::string a = or_unknown(cuda_type(shape.type_a)), b = or_unknown(cuda_type(shape.type_b)),
                        c = or_unknown(cuda_type(shape.type_c));
      if (a == b && b == c) return a;
      return (a == b ? a : a + "," + b) + "→" + c;
    }
    case LibraryKind::Convolution:
      return or_unknown(cudnn_type(shape.type_a));
    case LibraryKind::Fft:
      return or_unknown(fft_type(shape.type_a));
    case LibraryKind::Collective:
      return or_unknown(nccl_type(shape.type_a).name);
    default:
      return "";
  }
}

std::string arithmetic_of(const LibraryShape& shape) {
  switch (shape.kind) {
    case LibraryKind::Matmul:
      return product_arithmetic(shape);
    case LibraryKind::Convolution:
      return convolution_arithmetic(shape);
    case LibraryKind::Fft:
      return (shape.type_a & 0xf0) == 0x60 ? "fp64" : (shape.type_a & 0xf0) == 0x20 ? "fp32" : "";
    default:
      return "";
  }
}

u64 flops_of(const LibraryShape& shape) {
  long double flops = 0;
  if (shape.kind == LibraryKind::Convolution) return shape.flops;
  if (shape.kind == LibraryKind::Matmul) {
    const long double each = (shape.flags & kComplex) ? 8 : 2;
    if (shape.flags & kSparse)
      flops = each * static_cast<long double>(shape.nonzeros) * static_cast<long double>(shape.n);
    else
      flops = each * static_cast<long double>(shape.m) * static_cast<long double>(shape.n) *
              static_cast<long double>(shape.k) * static_cast<long double>(shape.batch);
  }
  if (shape.kind == LibraryKind::Fft && shape.m && shape.batch) {
    const long double size = static_cast<long double>(shape.m) * static_cast<long double>(shape.n ? shape.n : 1) *
                             static_cast<long double>(shape.k ? shape.k : 1);
    flops = 5 * size * std::log2(size) * static_cast<long double>(shape.batch) / (real_transform(shape.type_a) ? 2 : 1);
  }
  return flops < 9.2e18L ? static_cast<u64>(std::llround(flops)) : 0;
}

u64 collective_bytes(const LibraryShape& shape, i32 ranks) {
  const u64 bytes = shape.m * nccl_type(shape.type_a).bytes;
  switch (static_cast<CollectiveKind>(shape.what)) {
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
    case CollectiveKind::Gather:
    case CollectiveKind::Scatter:
      return ranks > 0 ? bytes * static_cast<u64>(ranks) : 0;
    default:
      return bytes;
  }
}

double bus_factor(u32 what, i32 ranks) {
  if (ranks < 1) return 0;
  const double n = ranks;
  switch (static_cast<CollectiveKind>(what)) {
    case CollectiveKind::AllReduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
    case CollectiveKind::Gather:
    case CollectiveKind::Scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

const char* collective_name(u32 what) {
  static const char* const names[] = {"",     "AllReduce", "Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                      "Send", "Recv",      "AllToAll",  "Gather", "Scatter"};
  return what < sizeof names / sizeof *names ? names[what] : "";
}

bool is_plain_answer(std::string_view level, std::string_view call, u16 result) {
  constexpr u16 kDeinitialized = 4, kNotReady = 600;
  if (level == "library") return result == kNcclInProgress && call.starts_with("nccl");
  return result == kDeinitialized || result == kNotReady;
}

}  // namespace gputrace
