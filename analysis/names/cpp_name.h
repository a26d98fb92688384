// The parts of a demangled C++ name: text only, any text is answered, nothing throws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gputrace {

struct CppName {
  std::string scope;                   // "at::native::", without template arguments; "" for none
  std::string leaf;                    // "reduce_kernel"
  std::vector<std::string> arguments;  // template arguments of the leaf
  bool is_template = false;            // anywhere in the qualified name
};

// "void a::b<1, c<2> >::f<3>(int)": scope "a::b::", leaf "f", arguments {"3"}.
CppName split_cpp_name(std::string_view demangled);

// The template arguments of the first `name<` in the text; empty where it is not there.
std::vector<std::string> arguments_of(std::string_view text, std::string_view name);

// Lower-case words, split at everything but letters and digits and where the case changes: " radix sort kernel ".
std::string words_of(std::string_view text);

}  // namespace gputrace
