#include "analysis/words/safe_text.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/types.h"

namespace gputrace {
namespace {

struct Character {
  u32 code = 0;
  unsigned bytes = 0;  // 0: no UTF-8 here
};

Character next_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const unsigned length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (first >= 0xf5 || length == 0 || text.size() < length) return {};
  u32 code = first & (0x7f >> length);
  for (unsigned i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, length};
}

bool dangerous(u32 code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0xad || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
         (code >= 0xe0000 && code <= 0xe007f);
}

unsigned columns_of(u32 code) {
  if (code >= 0x300 && code <= 0x36f) return 0;
  const bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                    (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                    (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                    (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) ||
                    (code >= 0x20000 && code <= 0x3fffd);
  return wide ? 2 : 1;
}

void drop_anonymous(std::string& signature) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = signature.find(kAnonymous)) != std::string::npos;) signature.erase(at, kAnonymous.size());
}

void drop_return_type(std::string& signature) {
  if (signature.compare(0, 5, "void ") == 0) signature.erase(0, 5);
}

void drop_parameters(std::string& signature) {
  if (signature.empty() || signature.back() != ')') return;
  std::size_t depth = 0, at = signature.size();
  while (at-- > 0) {
    if (signature[at] == ')')
      ++depth;
    else if (signature[at] == '(' && --depth == 0)
      break;
  }
  if (at > 0 && at < signature.size()) signature.resize(at);
}

}  // namespace

std::string safe_text(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character next = next_character(text);
    char escaped[16];
    if (next.bytes == 0) {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(text[0]));
      safe += escaped;
      text.remove_prefix(1);
      continue;
    }
    if (dangerous(next.code)) {
      std::snprintf(escaped, sizeof escaped, next.code < 0x100 ? "\\x%02x" : "\\u%04x", next.code);
      safe += escaped;
    } else {
      safe.append(text.substr(0, next.bytes));
    }
    text.remove_prefix(next.bytes);
  }
  return safe;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Character next = next_character(text);
    if (next.bytes)
      valid.append(text.substr(0, next.bytes));
    else
      valid += "\xef\xbf\xbd";
    text.remove_prefix(next.bytes ? next.bytes : 1);
  }
  return valid;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character next = next_character(text);
    width += next.bytes ? columns_of(next.code) : 1;
    text.remove_prefix(next.bytes ? next.bytes : 1);
  }
  return width;
}

std::string shorten(std::string_view text, std::size_t width, std::string_view mark) {
  if (display_width(text) <= width) return std::string(text);
  const std::size_t mark_width = display_width(mark);
  if (width <= mark_width) return std::string(mark.substr(0, width));
  // Two thirds of what is left from the front, the rest from the end: kernel names differ at both.
  const std::size_t room = width - mark_width, front = room - room / 3;
  std::string head;
  std::size_t used = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const Character next = next_character(rest);
    const unsigned bytes = next.bytes ? next.bytes : 1, columns = next.bytes ? columns_of(next.code) : 1;
    if (used + columns > front) break;
    head.append(rest.substr(0, bytes));
    used += columns;
    rest.remove_prefix(bytes);
  }
  std::vector<std::string_view> characters;
  while (!rest.empty()) {
    const unsigned bytes = next_character(rest).bytes;
    characters.push_back(rest.substr(0, bytes ? bytes : 1));
    rest.remove_prefix(bytes ? bytes : 1);
  }
  std::string tail;
  for (auto it = characters.rbegin(); it != characters.rend(); ++it) {
    const std::size_t columns = display_width(*it);
    if (used + columns > room) break;
    tail.insert(0, *it);
    used += columns;
  }
  return head + std::string(mark) + tail;
}

std::string shorten_site(std::string_view text, std::size_t width, std::string_view mark) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view place = text.substr(0, text.find(' '));
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || place.find_first_not_of("0123456789", colon + 1) != std::string_view::npos)
    return shorten(text, width, mark);
  const std::size_t taken = display_width(place), mark_width = display_width(mark);
  constexpr std::size_t kLeast = 3;  // of the function's name: fewer columns tell nothing of it
  if (taken + 1 + mark_width + kLeast <= width)
    return std::string(place) + " " + shorten(text.substr(place.size() + 1), width - taken - 1, mark);
  if (taken <= width) return std::string(place);
  if (width <= mark_width) return std::string(mark.substr(0, width));
  std::size_t from = 0;
  while (from < place.size() && display_width(place.substr(from)) > width - mark_width) {
    const unsigned bytes = next_character(place.substr(from)).bytes;
    from += bytes ? bytes : 1;
  }
  return std::string(mark) + std::string(place.substr(from));
}

std::string shorten_signature(std::string_view text, std::size_t width, std::string_view mark) {
  std::string brief(text);
  for (void (*drop)(std::string&) : {drop_anonymous, drop_return_type, drop_parameters}) {
    if (display_width(brief) <= width) return brief;
    drop(brief);
  }
  return shorten(brief, width, mark);
}

std::string wrapped(std::string_view first, std::string_view text, std::size_t indent, std::size_t width) {
  constexpr std::size_t kNarrowest = 20;
  const std::size_t edge = std::max(width, indent + kNarrowest);
  std::string out(first);
  std::size_t used = display_width(first);
  bool fresh = true;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(' '), text.size());
    while (text.substr(end, 2) == " %") end = std::min(text.find(' ', end + 1), text.size());  // stays with its number
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!fresh && used + 1 + display_width(word) > edge) {
      out += '\n' + std::string(indent, ' ');
      used = indent;
      fresh = true;
    }
    if (!fresh) out += ' ', ++used;
    out += word;
    used += display_width(word);
    fresh = false;
  }
  return out + '\n';
}

std::string brief_signature(std::string_view text) {
  std::string brief(text);
  drop_anonymous(brief);
  drop_return_type(brief);
  drop_parameters(brief);
  return brief;
}

}  // namespace gputrace
