// Which parts of a command line and of the environment may go into a trace.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gputrace {

// Replaces by *** what looks like a secret: values of names such as token, secret, password, api_key; user and password
// in URLs; JSON web tokens, keys of well-known services, long runs of hexadecimal or base64.
std::string redact(std::string_view text);

// The same for an argument list, where the value may be the argument after its name.
std::vector<std::string> redact_arguments(const std::vector<std::string>& arguments);

// Is this variable one whose value a trace may hold? What it may hold of the value: all of it, or *** where it is no number,
// word, list or path.
std::string environment_value(std::string_view value);
bool environment_allowed(std::string_view name);

}  // namespace gputrace
