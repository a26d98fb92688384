#include "simgpu/libs/nccl/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace simlibs {
namespace {

// A float of few bits: sign, kExponent bits, kMantissa bits. Rounds to the nearest, ties to even.
template <typename Bits, int kExponent, int kMantissa, bool kInfinities>
struct SmallFloat {
  Bits bits;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kSignAt = kExponent + kMantissa;
  static constexpr unsigned kTopExponent = (1u << kExponent) - 1, kMantissaMask = (1u << kMantissa) - 1;

  float value() const {
    const unsigned exponent = static_cast<unsigned>(bits >> kMantissa) & kTopExponent;
    const unsigned mantissa = bits & kMantissaMask;
    const float sign = bits >> kSignAt & 1 ? -1.0f : 1.0f;
    const bool special = exponent == kTopExponent && (kInfinities || mantissa == kMantissaMask);
    if (special && kInfinities && mantissa == 0) return sign * std::numeric_limits<float>::infinity();
    if (special) return std::numeric_limits<float>::quiet_NaN();
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissa);
    return sign *
           std::ldexp(static_cast<float>(mantissa | 1u << kMantissa), static_cast<int>(exponent) - kBias - kMantissa);
  }
  static SmallFloat from(float value) {
    const unsigned sign = std::signbit(value) ? 1u << kSignAt : 0;
    const unsigned none = kTopExponent << kMantissa | kMantissaMask;
    if (std::isnan(value)) return {static_cast<Bits>(sign | none)};
    const float size = std::fabs(value);
    int exponent = 0;
    std::frexp(size, &exponent);  // size = [0.5, 1) · 2^exponent
    exponent = std::max(exponent - 1, 1 - kBias);
    const double steps = std::nearbyint(std::ldexp(static_cast<double>(size), kMantissa - exponent));
    // A mantissa that was rounded up to a power of two carries into the exponent by itself.
    const double all = steps + std::ldexp(exponent + kBias - 1, kMantissa);
    const double highest = kInfinities ? kTopExponent << kMantissa : none - 1;
    if (std::isinf(size) || all > highest)
      return {static_cast<Bits>(sign | (kInfinities ? kTopExponent << kMantissa : none - 1))};
    return {static_cast<Bits>(sign | static_cast<unsigned>(all))};
  }
};
using Half = SmallFloat<uint16_t, 5, 10, true>;
using Float8e4m3 = SmallFloat<uint8_t, 4, 3, false>;
using Float8e5m2 = SmallFloat<uint8_t, 5, 2, true>;

// The upper half of a float.
struct Bfloat16 {
  uint16_t bits;
  float value() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static Bfloat16 from(float value) {
    const auto whole = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) return {static_cast<uint16_t>(whole >> 16 | 0x40)};
    return {static_cast<uint16_t>((whole + 0x7fff + (whole >> 16 & 1)) >> 16)};
  }
};

// How a type is calculated with.
template <typename T>
struct Calculated {
  using Number = T;
  static T in(T value) { return value; }
  static T out(T value) { return value; }
};
template <typename T>
requires requires(T t) { t.bits; }
struct Calculated<T> {
  using Number = float;
  static float in(T value) { return value.value(); }
  static T out(float value) { return T::from(value); }
};

template <typename Visit>
auto with_type(ncclDataType_t type, Visit&& visit) {
  switch (static_cast<int>(type)) {
    case ncclInt8:
      return visit(int8_t{});
    case ncclUint8:
      return visit(uint8_t{});
    case ncclInt32:
      return visit(int32_t{});
    case ncclUint32:
      return visit(uint32_t{});
    case ncclInt64:
      return visit(int64_t{});
    case ncclUint64:
      return visit(uint64_t{});
    case ncclFloat16:
      return visit(Half{});
    case ncclFloat64:
      return visit(double{});
    case ncclBfloat16:
      return visit(Bfloat16{});
    case ncclFloat8e4m3:
      return visit(Float8e4m3{});
    case ncclFloat8e5m2:
      return visit(Float8e5m2{});
    default:
      return visit(float{});
  }
}

// Whole numbers wrap around.
template <typename T>
T combined(ncclRedOp_t op, T a, T b) {
  if (op == ncclMax) return std::max(a, b);
  if (op == ncclMin) return std::min(a, b);
  if constexpr (std::is_integral_v<T>) {
    using Wide = uint64_t;
    return static_cast<T>(op == ncclProd ? static_cast<Wide>(a) * static_cast<Wide>(b)
                                         : static_cast<Wide>(a) + static_cast<Wide>(b));
  } else {
    return op == ncclProd ? a * b : a + b;
  }
}

}  // namespace

size_t size_of(ncclDataType_t type) {
  if (static_cast<int>(type) < 0 || static_cast<int>(type) >= ncclNumTypes) return 0;
  return with_type(type, [](auto zero) { return sizeof zero; });
}

const char* word_of(ncclDataType_t type) {
  static const char* const words[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                      "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
  return words[static_cast<size_t>(type)];
}

double scalar_of(ncclDataType_t type, const void* scalar) {
  return with_type(type, [scalar](auto value) {
    std::memcpy(&value, scalar, sizeof value);
    return static_cast<double>(Calculated<decltype(value)>::in(value));
  });
}

void take_in(ncclDataType_t type, const Reduction& how, bool first, void* sum, const void* numbers, size_t count) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    using C = Calculated<T>;
    using Number = typename C::Number;
    auto* to = static_cast<T*>(sum);
    const auto* from = static_cast<const T*>(numbers);
    if (first && !how.scaled) return void(std::memcpy(to, from, count * sizeof(T)));
    const auto factor = static_cast<Number>(how.factor);
    for (size_t i = 0; i < count; ++i) {
      Number value = C::in(from[i]);
      if (how.scaled) value = static_cast<Number>(value * factor);
      to[i] = C::out(first ? value : combined<Number>(how.op, C::in(to[i]), value));
    }
  });
}

void finish(ncclDataType_t type, const Reduction& how, int ranks, void* sum, size_t count) {
  if (how.op != ncclAvg) return;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    using C = Calculated<T>;
    auto* to = static_cast<T*>(sum);
    for (size_t i = 0; i < count; ++i) {
      to[i] = C::out(static_cast<typename C::Number>(C::in(to[i]) / static_cast<typename C::Number>(ranks)));
    }
  });
}

}  // namespace simlibs
