// Completion: one script a shell, with the words of all verbs in it, so that pressing TAB starts no program.
//   · An option's value called FILE or DIR completes to those; one with known words to these, by comma where it is a list.
//   · What follows "--" (and the first word of `run` that is no option) is a command of its own.
#include <fmt/format.h>

#include "cli/documents/documents.h"

namespace gputrace {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Without a list that the menu has anyway: a menu has one line for it.
std::string brief(const OptionReference& option) {
  const std::size_t list = option.help.find(':');
  return option.values.empty() || list == std::string::npos ? option.help : option.help.substr(0, list);
}

const char* kind_of(const OptionReference& option) {
  if (!option.values.empty()) return option.list ? "list" : "word";
  if (option.value == "FILE") return "file";
  if (option.value == "DIR") return "dir";
  return "any";
}

std::string all_names(const VerbReference& verb) {
  std::string names;
  for (const OptionReference& option : verb.options) names += (names.empty() ? "" : " ") + joined(option.names, " ");
  return names;
}

const char* const kBashHead = R"(# bash completion of gputrace, made from the program's own tables.

_gputrace_answer() {  # WORDS PREFIX: the words that begin so, each behind what stands before the last comma of PREFIX
  local before=
  [[ $3 != list || $2 != *,* ]] || before=${2%,*},
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${2#"$before"}")
}

_gputrace_value() {  # KIND WORDS PREFIX
  case $1 in
    file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$3") ;;
    dir) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$3") ;;
    word | list) _gputrace_answer "$2" "$3" "$1"; [[ $1 != list ]] || compopt -o nospace ;;
  esac
}

)";

const char* const kBashTail = R"(
_gputrace() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb= at kind words command=
  COMPREPLY=()
  if [[ $word == '=' ]]; then word=; elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((at = 1; at < COMP_CWORD; ++at)); do
    case ${COMP_WORDS[at]} in
      --) [[ $verb ]] && command=$((at + 1)) && break ;;
      -*) _gputrace_option "$verb" "${COMP_WORDS[at]}"; [[ ! $kind || ${COMP_WORDS[at + 1]} == '=' || $kind == *'?' ]] || ((++at)) ;;
      '=') ((++at)) ;;
      *) if [[ ! $verb ]]; then verb=${COMP_WORDS[at]}; elif [[ $verb == run ]]; then command=$at; break; fi ;;
    esac
  done
  if [[ $command ]]; then
    if ((COMP_CWORD == command)); then mapfile -t COMPREPLY < <(compgen -c -- "$word")
    else compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
    return
  fi
  if [[ $before == -* ]]; then
    _gputrace_option "$verb" "$before"
    if [[ $kind && ($kind != *'?' || ${COMP_WORDS[COMP_CWORD]} == '=' || ${COMP_WORDS[COMP_CWORD - 1]} == '=') ]]; then
      _gputrace_value "${kind%'?'}" "$words" "$word"
      return
    fi
  fi
  _gputrace_options "$verb"
  if [[ $word == -* || ! $verb ]]; then _gputrace_answer "$words" "$word"
  elif [[ $verb == run ]]; then mapfile -t COMPREPLY < <(compgen -c -- "$word")
  else compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
}

complete -F _gputrace gputrace
)";

std::string zsh_text(const std::string& text) {
  std::string safe = replaced(text, "'", "'\\''");
  for (const char* special : {"[", "]", ":"}) safe = replaced(safe, special, std::string("\\") + special);
  return safe;
}

std::string zsh_option(const OptionReference& option) {
  std::string names = option.names.size() == 1 ? option.names[0] : "";
  const std::string exclusive = option.names.size() == 1 ? "" : "(" + joined(option.names, " ") + ")";
  const char* equals = option.optional ? "=-" : "";
  std::string action;
  if (!option.value.empty()) {
    const std::string kind = kind_of(option), words = zsh_text(joined(option.values, " "));
    const std::string what = kind == "file"   ? "_files"
                             : kind == "dir"  ? "_files -/"
                             : kind == "word" ? "(" + words + ")"
                             : kind == "list" ? "_sequence compadd - " + words
                                              : " ";
    action = (option.optional ? "::" : ":") + zsh_text(option.value) + ":" + what;
  }
  const std::string about = "[" + zsh_text(brief(option)) + "]";
  if (!names.empty()) {
    const bool dashes = !option.value.empty() && !option.optional && names.size() > 2;
    return fmt::format("'{}{}{}{}'", names, dashes ? "=" : equals, about, action);
  }
  std::vector<std::string> each;
  for (const std::string& name : option.names)
    each.push_back(name + (!option.value.empty() && name.size() > 2 ? "=" : !option.value.empty() ? "+" : ""));
  return fmt::format("'{}'{{{}}}'{}{}'", exclusive, joined(each, ","), about, action);
}

std::string fish_text(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

}  // namespace

std::string bash_completion(const std::vector<DescribedVerb>& verbs) {
  std::string text = kBashHead;
  text += "_gputrace_options() {  # VERB: its options, in `words`\n  case $1 in\n";
  std::string names;
  for (const DescribedVerb& verb : verbs) {
    names += verb.name + " ";
    text += fmt::format("    {}) words='{}{}' ;;\n", verb.name, all_names(verb.reference),
                        verb.reference.command ? " --" : "");
  }
  text += fmt::format("    *) words='{}-h --help --version --color -q -v' ;;\n  esac\n}}\n\n", names);
  text +=
      "_gputrace_option() {  # VERB OPTION: of its value `kind` (with ?: behind = alone) and `words`; none: no value\n"
      "  kind= words=\n  case $1:$2 in\n";
  for (const DescribedVerb& verb : verbs) {
    for (const OptionReference& option : verb.reference.options) {
      if (option.value.empty()) continue;
      std::vector<std::string> keys;
      for (const std::string& name : option.names) keys.push_back(verb.name + ":" + name);
      text += fmt::format("    {}) kind='{}{}' words='{}' ;;\n", joined(keys, " | "), kind_of(option),
                          option.optional ? "?" : "", joined(option.values, " "));
    }
  }
  text += "    :--color) kind=word words='auto always never' ;;\n  esac\n}\n";
  return text + kBashTail;
}

std::string zsh_completion(const std::vector<DescribedVerb>& verbs) {
  std::string text =
      "#compdef gputrace\n# zsh completion of gputrace, made from the program's own tables.\n\n"
      "_gputrace() {\n  local context state line curcontext=$curcontext\n  typeset -A opt_args\n"
      "  _arguments -C '(- *)'{-h,--help}'[print help and exit]' '(- *)--version[print the version and exit]' \\\n"
      "    '--color=[colours]:WHEN:(auto always never)' '-q[say less]' '-v[say more]' '1: :->verb' '*:: :->rest'\n"
      "  case $state in\n    verb)\n      local verbs=(\n";
  for (const DescribedVerb& verb : verbs) text += fmt::format("        '{}:{}'\n", verb.name, zsh_text(verb.line));
  text += "      )\n      _describe verb verbs ;;\n    rest)\n      case $words[1] in\n";
  for (const DescribedVerb& verb : verbs) {
    text += fmt::format("        {})\n          _arguments -s", verb.name);
    for (const OptionReference& option : verb.reference.options) text += " \\\n            " + zsh_option(option);
    if (verb.reference.command)
      text += " \\\n            '(-)1:command: _command_names -e' '*::argument: _normal'";
    else if (!verb.reference.paths.empty())
      text += " \\\n            '*:trace:_files'";
    text += " ;;\n";
  }
  return text + "      esac ;;\n  esac\n}\n\n_gputrace \"$@\"\n";
}

std::string fish_completion(const std::vector<DescribedVerb>& verbs) {
  std::string text = "# fish completion of gputrace, made from the program's own tables.\n\n";
  const std::string none = "-n __fish_use_subcommand";
  for (const DescribedVerb& verb : verbs)
    text += fmt::format("complete -c gputrace {} -f -a {} -d {}\n", none, verb.name, fish_text(verb.line));
  text += fmt::format(
      "complete -c gputrace {0} -s h -l help -d 'print help and exit'\n"
      "complete -c gputrace {0} -l version -d 'print the version and exit'\n",
      none);
  for (const DescribedVerb& verb : verbs) {
    text += "\n";
    for (const OptionReference& option : verb.reference.options) {
      text += fmt::format("complete -c gputrace -n '__fish_seen_subcommand_from {}'", verb.name);
      for (const std::string& name : option.names)
        text += name.size() == 2 ? " -s " + name.substr(1) : " -l " + name.substr(2);
      const std::string kind = option.value.empty() ? "" : kind_of(option);
      const std::string words = joined(option.values, " ");
      if (kind == "word") text += (option.optional ? " -f -a " : " -x -a ") + fish_text(words);
      if (kind == "list") text += " -x -a " + fish_text("(__fish_append , " + words + ")");
      if (kind == "dir") text += " -x -a '(__fish_complete_directories)'";
      if (kind == "file") text += " -r";
      if (kind == "any") text += " -x";
      text += " -d " + fish_text(brief(option)) + "\n";
    }
    if (verb.reference.command)
      text += fmt::format(
          "complete -c gputrace -n '__fish_seen_subcommand_from {}' -x -a '(__fish_complete_subcommand "
          "--fcs-skip=2)'\n",
          verb.name);
  }
  return text;
}

}  // namespace gputrace
