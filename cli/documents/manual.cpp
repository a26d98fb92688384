// Manual pages in man(7).
#include <fmt/format.h>

#include "cli/documents/documents.h"
#include "cli/version_generated.h"

namespace gputrace {
namespace {

struct VariableReference {
  const char *name, *usual, *meaning;
};
constexpr VariableReference kManualVariables[] = {
#define GT_VARIABLE(name, usual, meaning) {#name, usual, meaning},
#include "cli/documents/variables.def"
};

// Text that no macro and no escape is read in.
std::string roff(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n'))
      safe += std::string("\\&") + c;
    else
      safe += c;
  }
  return safe;
}

// Lines that are indented are a list and stay as they are.
std::string paragraphs(const std::string& text) {
  std::string page = ".PP\n";
  bool list = false;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    if ((line[0] == ' ') != list) page += list ? ".fi\n" : ".nf\n", list = !list;
    page += roff(line) + "\n";
  }
  return page + (list ? ".fi\n" : "");
}

std::string heading(const std::string& name, const std::string& about) {
  return fmt::format(".TH {} 1 \"\" \"gputrace {}\" \"gputrace\"\n.SH NAME\n{} \\- {}\n", name, GPUTRACE_VERSION,
                     roff(name), roff(about));
}

std::string option_line(const OptionReference& option) {
  std::string line;
  for (const std::string& name : option.names) line += (line.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
  if (option.optional) return line + "[=\\fI" + roff(option.value) + "\\fR]";
  if (!option.value.empty()) line += " \\fI" + roff(option.value) + "\\fR";
  return line;
}

constexpr std::size_t kMostWords = 60;  // of a value; of more, as of the names of columns, no page has a list

// The words of a value that the help does not name.
std::string further_words(const OptionReference& option) {
  std::string words;
  if (option.values.size() > kMostWords) return words;
  for (const std::string& word : option.values) {
    if (option.help.find(word) != std::string::npos) continue;
    words += (words.empty() ? "" : ", ") + word;
  }
  return words;
}

void add_options(const VerbReference& verb, std::string& page) {
  page += ".SH OPTIONS\n";
  for (const OptionReference& option : verb.options) {
    page += ".TP\n" + option_line(option) + "\n" + roff(option.help) + ".\n";
    const std::string words = further_words(option);
    if (!words.empty()) page += "One of: " + roff(words) + ".\n";
  }
}

void add_exit_codes(bool run, std::string& page) {
  page += ".SH EXIT STATUS\n";
  if (run) {
    page += "That of the command; 125: our own failure, 126: the command cannot be executed, 127: it was not found.\n";
    return;
  }
  constexpr const char* kCodes[] = {"Success, also where a damaged file could be read in part.",
                                    "An error while running.",
                                    "Unknown verb, option, value, section or column.",
                                    "The input is missing, unreadable, no trace, of a newer version, or empty.",
                                    "Incomplete data under \\fB\\-\\-strict\\fR.",
                                    "A threshold was exceeded."};
  for (int code = 0; const char* text : kCodes) page += fmt::format(".TP\n{}\n{}\n", code++, text);
}

}  // namespace

std::string main_manual(const std::vector<DescribedVerb>& verbs) {
  std::string page = heading("gputrace", "trace unmodified CUDA programs and report on the traces");
  page +=
      ".SH SYNOPSIS\n.B gputrace run\n[\\fIOPTIONS\\fR] \\-\\- \\fICMD\\fR [\\fIARGUMENTS\\fR]\n.br\n"
      ".B gputrace\n\\fIVERB\\fR [\\fIOPTIONS\\fR] [\\fIPATH\\fR ...]\n"
      ".SH DESCRIPTION\nA library that is preloaded into a program records its CUDA calls and, through CUPTI, what the "
      "devices do; a process beside it writes them to a file. The analyzer reads such files. The program is not "
      "changed, not recompiled and not held up: where tracing fails, it goes on without.\n.PP\nWithout a "
      "\\fIPATH\\fR verbs read the newest directory named gputrace\\-* below the working directory.\n.SH VERBS\n";
  for (const DescribedVerb& verb : verbs)
    page += fmt::format(".TP\n\\fBgputrace {}\\fR\n{}.\n", roff(verb.name), roff(verb.line));
  page += ".SH ENVIRONMENT\nWhat the preloaded library reads; an option of \\fBgputrace run\\fR beats it.\n";
  for (const VariableReference& variable : kManualVariables)
    page += fmt::format(".TP\n\\fB{}\\fR (default: {})\n{}.\n", variable.name, roff(variable.usual),
                        roff(variable.meaning));
  add_exit_codes(false, page);
  page +=
      ".SH EXAMPLES\n.nf\ngputrace run \\-\\- python train.py\ngputrace report\ngputrace report \\-\\-html "
      "report.html\n.fi\n"
      ".SH SEE ALSO\n";
  for (const DescribedVerb& verb : verbs)
    page += fmt::format(".BR gputrace\\-{} (1){}\n", verb.name, &verb == &verbs.back() ? "" : ",");
  return page;
}

std::string verb_manual(const DescribedVerb& verb, const std::vector<DescribedVerb>& verbs) {
  std::string page = heading("gputrace-" + verb.name, verb.line);
  page +=
      fmt::format(".SH SYNOPSIS\n.B gputrace {}\n[\\fIOPTIONS\\fR]{}{}\n.SH DESCRIPTION\n{}\n", verb.name,
                  verb.reference.paths.empty() ? "" : " [\\fIPATH\\fR ...]",
                  verb.reference.command ? " \\-\\- \\fICMD\\fR [\\fIARGUMENTS\\fR]" : "", roff(verb.reference.about));
  if (!verb.reference.paths.empty()) page += ".PP\n\\fIPATH\\fR: " + roff(verb.reference.paths) + ".\n";
  if (!verb.reference.footer.empty()) page += paragraphs(verb.reference.footer);
  add_options(verb.reference, page);
  add_exit_codes(verb.name == "run", page);
  page += ".SH SEE ALSO\n.BR gputrace (1)";
  for (const DescribedVerb& other : verbs)
    if (other.name != verb.name) page += fmt::format(",\n.BR gputrace\\-{} (1)", other.name);
  return page + "\n";
}

}  // namespace gputrace
