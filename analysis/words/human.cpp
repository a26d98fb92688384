#include <fmt/format.h>

#include <cmath>

#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

// Four digits that matter.
std::string four_digits(double value) {
  const double size = std::fabs(value);
  if (size >= 999.95) return fmt::format("{:.0f}", value);
  if (size >= 99.995) return fmt::format("{:.1f}", value);
  if (size >= 9.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

}  // namespace

std::string human_count(u64 count) {
  const std::string digits = std::to_string(count);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string counted(u64 count, const char* one) { return human_count(count) + " " + one + (count == 1 ? "" : "s"); }

std::string human_bytes(u64 bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  while (value >= 1024 && unit < 6) value /= 1024, ++unit;
  return fmt::format("{} {}", four_digits(value), kUnits[unit]);
}

std::string human_nanos(Nanos nanos) {
  const u64 size = nanos < 0 ? 0 - static_cast<u64>(nanos) : static_cast<u64>(nanos);
  const double value = static_cast<double>(nanos);
  if (size < 1000) return fmt::format("{} ns", nanos);
  if (size < 1'000'000) return four_digits(value / 1e3) + " us";
  if (size < 1'000'000'000) return four_digits(value / 1e6) + " ms";
  return four_digits(value / 1e9) + " s";
}

std::string human_parts(const Parts& parts) {
  std::string text;
  for (const auto& [name, length] : parts.of) {
    static const char* const kUnits[] = {"ns", "us", "ms", "s"};
    double value = static_cast<double>(length);
    unsigned unit = 0;
    while (std::fabs(value) >= 1000 && unit < 3) value /= 1000, ++unit;
    text += fmt::format("{}{} {:.4g}{}", text.empty() ? "" : ", ", safe_text(name), value, kUnits[unit]);
  }
  return text;
}

std::string human_large(const Value& number) {
  const auto* whole = std::get_if<i64>(&number);
  const auto* real = std::get_if<double>(&number);
  if (!whole && !real) return human(number, Unit::Count);
  double value = whole ? static_cast<double>(*whole) : *real;
  static const char* const kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  unsigned prefix = 0;
  while (std::fabs(value) >= 999.95 && prefix < 6) value /= 1000, ++prefix;
  if (prefix == 0 && whole) return std::to_string(*whole);
  return four_digits(value) + kPrefixes[prefix];
}

std::string human(const Value& value, Unit unit) {
  if (is_null(value)) return "-";
  if (const auto* text = std::get_if<std::string>(&value)) return safe_text(*text);
  if (const auto* parts = std::get_if<Parts>(&value)) return human_parts(*parts);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "yes" : "no";
  const double real =
      std::holds_alternative<double>(value) ? std::get<double>(value) : static_cast<double>(std::get<i64>(value));
  const i64 whole = std::holds_alternative<i64>(value) ? std::get<i64>(value) : static_cast<i64>(real);
  switch (unit) {
    case Unit::Nanos:
      return human_nanos(whole);
    case Unit::Bytes:
      return whole < 0 ? std::to_string(whole) : human_bytes(static_cast<u64>(whole));
    case Unit::BytesPerSecond:
      return human_bytes(static_cast<u64>(real < 0 ? 0 : real)) + "/s";
    case Unit::Ratio:
      return fmt::format("{:.1f} %", real * 100);
    case Unit::Count:
      if (std::holds_alternative<i64>(value))
        return whole < 0 ? std::to_string(whole) : human_count(static_cast<u64>(whole));
      return fmt::format("{:.1f}", real);
    default:
      return std::holds_alternative<i64>(value) ? std::to_string(whole) : fmt::format("{:.3f}", real);
  }
}

std::string triple(const u32 (&value)[3]) {
  return std::to_string(value[0]) + "," + std::to_string(value[1]) + "," + std::to_string(value[2]);
}

}  // namespace gputrace
