// Text from traces on its way to a terminal: names are untrusted, so nothing of them may be taken as a command by the
// terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gputrace {

// Control characters (C0, DEL, C1), bidirectional and other invisible marks, line separators and bytes that are no
// UTF-8 come out as \xNN or \uNNNN.
std::string safe_text(std::string_view text);

// Bytes that are no UTF-8 become U+FFFD; all else stays. For JSON.
std::string valid_utf8(std::string_view text);

// Columns that safe text takes on a terminal.
std::size_t display_width(std::string_view text);

// At most `width` columns: what is cut out of the middle is replaced by `mark`. Never cuts a character in two.
std::string shorten(std::string_view text, std::size_t width, std::string_view mark);

// The same for the signature of a function: "(anonymous namespace)::", the return type and the parameters go before
// anything else does.
std::string shorten_signature(std::string_view text, std::size_t width, std::string_view mark);

// The same for a place in the source, "file.py:12 function": the line stays, the function's name goes before the begin of the file's.
std::string shorten_site(std::string_view text, std::size_t width, std::string_view mark);

// The words of `text` behind `first`, broken at `width`, each further line behind `indent` blanks; ends with a line
// end. Words longer than that stay whole, and so does a number with its %.
std::string wrapped(std::string_view first, std::string_view text, std::size_t indent, std::size_t width);

// A function's signature without those three.
std::string brief_signature(std::string_view text);

}  // namespace gputrace
