#include "cli/anonymize/pseudonyms.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "trace/info_text.h"

namespace gputrace {
namespace {

constexpr std::size_t kLongestPath = 4096;  // a longer one is taken as one name

// By NameKind. Sentences are ours, with names of the program's in them; paths are named part by part.
constexpr const char* kKindWords[] = {"kernel", "op",     "function", "name",     "range", "domain",
                                      "thread", "device", "build",    "sentence", "host",  "boot",
                                      "uuid",   "job",    "argument", "value",    "text"};

struct Keepable {
  const char* word;
  NameKind kind;
};
constexpr Keepable kKeepable[] = {{"kernels", NameKind::Kernel},
                                  {"operations", NameKind::Operation},
                                  {"functions", NameKind::Function},
                                  {"paths", NameKind::Path},
                                  {"ranges", NameKind::Range}};

// Parts of paths that are no names of anybody's: reports tell a program's lines from a library's by them.
constexpr std::string_view kCommonParts[] = {"",
                                             ".",
                                             "..",
                                             "*",
                                             "bin",
                                             "dev",
                                             "dist-packages",
                                             "etc",
                                             "home",
                                             "lib",
                                             "lib32",
                                             "lib64",
                                             "local",
                                             "opt",
                                             "proc",
                                             "root",
                                             "run",
                                             "sbin",
                                             "site-packages",
                                             "sys",
                                             "tmp",
                                             "usr",
                                             "var",
                                             "multiprocessing",
                                             "popen_fork.py",
                                             "spawn.py",
                                             "forkserver.py",
                                             "process.py",
                                             "(pipe)",
                                             "(socket)",
                                             "<string>",
                                             "<stdin>",
                                             "<built-in>"};

constexpr std::string_view kEndings[] = {".py", ".so",  ".cubin", ".ptx",  ".fatbin", ".gtrace", ".ring", ".c",
                                         ".cc", ".cpp", ".cu",    ".json", ".txt",    ".bin",    ".pt",   ".npy"};

// Threads that libraries name, by which reports tell what they are for.
constexpr std::string_view kCommonThreads[] = {"gputrace-", "pt_autograd_", "pt_data_worker", "definitions"};

// What Python itself calls code, by which reports tell whose line it is; alone, or as the last part of a name.
constexpr std::string_view kCommonFunctions[] = {"<module>",   "<lambda>",           "<listcomp>",        "<genexpr>",
                                                 "_bootstrap", "__torch_function__", "__torch_dispatch__"};

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// python3, python3.11
bool is_python(std::string_view part) {
  return part.starts_with("python3") && part.size() <= 10 &&
         std::all_of(part.begin() + 7, part.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

bool is_common(std::string_view part) {
  return std::find(std::begin(kCommonParts), std::end(kCommonParts), part) != std::end(kCommonParts) || is_python(part);
}

// ".py"; of libraries with the numbers behind it: ".so.13". What follows a name's last dot may be anything: it is kept where it is one of few.
std::string_view ending_of(std::string_view part) {
  std::string_view front = part;
  for (std::size_t dot = front.rfind('.'); dot != std::string_view::npos && all_digits(front.substr(dot + 1));
       dot = front.rfind('.'))
    front = front.substr(0, dot);
  if (front.size() > 3 && front.substr(front.size() - 3) == ".so") return part.substr(front.size() - 3);
  const std::size_t dot = part.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view ending = part.substr(dot);
  return std::find(std::begin(kEndings), std::end(kEndings), ending) == std::end(kEndings) ? std::string_view{}
                                                                                           : ending;
}

}  // namespace

bool Pseudonyms::keep(const std::string& word) {
  for (const Keepable& one : kKeepable) {
    if (word == one.word) return kept_.insert(one.kind), true;
  }
  return false;
}

std::vector<std::string> Pseudonyms::keepable() {
  std::vector<std::string> words;
  for (const Keepable& one : kKeepable) words.emplace_back(one.word);
  return words;
}

u64 Pseudonyms::numbered(const std::string& word, std::string_view original) {
  auto& of_kind = numbers_[word];
  const auto [found, is_new] = of_kind.try_emplace(std::string(original), of_kind.size() + 1);
  if (is_new && original.size() > 2) known_.try_emplace(found->first, word + "_" + std::to_string(found->second));
  return found->second;
}

u64 Pseudonyms::number(NameKind kind, std::string_view original) {
  return numbered(kKindWords[static_cast<u8>(kind)], original);
}

std::string Pseudonyms::named(const char* word, std::string_view original) {
  return std::string(word) + "_" + std::to_string(numbered(word, original));
}

std::string Pseudonyms::part(std::string_view original) {
  if (is_common(original)) return std::string(original);
  const std::string_view ending = ending_of(original);
  std::string_view stem = original.substr(0, original.size() - ending.size());
  if (stem.size() > 2 && stem.front() == '<' && stem.back() == '>') {  // code that is in no file
    const std::string_view frozen = stem.starts_with("<frozen ") ? "<frozen " : "<";
    stem = stem.substr(frozen.size(), stem.size() - frozen.size() - 1);
    return std::string(frozen) + named("name", stem) + ">";
  }
  constexpr std::string_view kInductor = "torchinductor_";  // then the user's name
  if (stem.starts_with(kInductor)) return std::string(kInductor) + named("name", stem.substr(kInductor.size()));
  return named("name", stem) + std::string(ending);
}

std::string Pseudonyms::path(std::string_view original) {
  if (original.size() > kLongestPath) return named("name", original);
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t slash = std::min(original.find('/', at), original.size());
    out += part(original.substr(at, slash - at));
    if (slash == original.size()) return out;
    out += '/';
    at = slash + 1;
  }
}

std::string Pseudonyms::function(std::string_view original) {
  const std::size_t dot = original.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? original : original.substr(dot + 1);
  const char* const word = kKindWords[static_cast<u8>(NameKind::Function)];
  if (std::find(std::begin(kCommonFunctions), std::end(kCommonFunctions), last) == std::end(kCommonFunctions))
    return named(word, original);
  return dot == std::string_view::npos ? std::string(last)
                                       : named(word, original.substr(0, dot)) + "." + std::string(last);
}

// The words are ours but for what they quote: paths, and names that are known from elsewhere.
std::string Pseudonyms::sentence(std::string_view original) {
  constexpr std::string_view kBetween = " \t\n'\"`()[]{}<>,;:=@";
  std::string out;
  for (std::size_t at = 0; at < original.size();) {
    const std::size_t end = std::min(original.find_first_of(kBetween, at), original.size());
    const std::string_view word = original.substr(at, end - at);
    const auto known = known_.find(std::string(word));
    if (word.find('/') != std::string_view::npos)
      out += path(word);
    else if (known != known_.end())
      out += known->second;
    else
      out += word;
    if (end < original.size()) out += original[end];
    at = end + 1;
  }
  return out;
}

std::string Pseudonyms::of(NameKind kind, std::string_view original) {
  if (original.empty() || kept_.count(kind)) return std::string(original);
  switch (kind) {
    case NameKind::Path:
      return path(original);
    case NameKind::Sentence:
      return sentence(original);
    case NameKind::Device:  // a product
      return std::string(original);
    case NameKind::Thread:
      for (const std::string_view common : kCommonThreads) {
        if (original.starts_with(common)) return std::string(original);
      }
      break;
    case NameKind::Function:
      return function(original);
    case NameKind::Argument:
    case NameKind::Value:
      if (all_digits(original)) return std::string(original);
      if (original.front() == '/') return path(original);
      break;
    default:
      break;
  }
  return named(kKindWords[static_cast<u8>(kind)], original);
}

bool Pseudonyms::read(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return false;
    const std::string word(line.substr(0, first));
    if (std::find(std::begin(kKindWords), std::end(kKindWords), word) == std::end(kKindWords)) return false;
    // Numbers come in their order: each is the next one of its kind.
    if (line.substr(first + 1, second - first - 1) != std::to_string(numbers_[word].size() + 1)) return false;
    numbered(word, unescaped(line.substr(second + 1)));
  }
  return true;
}

std::string Pseudonyms::text() const {
  std::string out;
  for (const char* word : kKindWords) {
    const auto of_kind = numbers_.find(word);
    if (of_kind == numbers_.end()) continue;
    std::vector<const std::string*> originals(of_kind->second.size());
    for (const auto& [original, number] : of_kind->second) originals[number - 1] = &original;
    for (std::size_t i = 0; i < originals.size(); ++i) {
      out += std::string(word) + "\t";
      append_info_line(out, std::to_string(i + 1), *originals[i]);
    }
  }
  return out;
}

}  // namespace gputrace
