#include "cli/target.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

#include "base/fd.h"
#include "cli/places.h"

namespace gputrace {
namespace {

#if defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#else
constexpr unsigned kMachine = EM_X86_64;
#endif
constexpr unsigned kMostHeaders = 256;

std::string read_text(int fd, const Elf64_Phdr& part) {
  std::string text(std::min<std::size_t>(part.p_filesz, PATH_MAX), 0);
  const ssize_t size = pread(fd, text.data(), text.size(), static_cast<off_t>(part.p_offset));
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text.substr(0, text.find('\0'));
}

void inspect_elf(int fd, const unsigned char* head, Target& target) {
  target.elf = true;
  Elf64_Ehdr header;
  std::memcpy(&header, head, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    target.other_machine = true;
    return;
  }
  std::string loader;
  for (unsigned i = 0; i < header.e_phnum && i < kMostHeaders; ++i) {
    Elf64_Phdr part;
    if (pread(fd, &part, sizeof part, static_cast<off_t>(header.e_phoff + i * sizeof part)) !=
        static_cast<ssize_t>(sizeof part))
      return;
    if (part.p_type == PT_INTERP) loader = read_text(fd, part);
  }
  target.statically_linked = loader.empty();
  if (base_name(loader).rfind("ld-linux", 0) != 0) target.loader = loader;
}

// "#!/usr/bin/env python3" → what will really run.
std::string script_interpreter(const char* line, std::size_t size) {
  std::string text(line + 2, size - 2);
  text = text.substr(0, text.find('\n'));
  std::vector<std::string> words;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r", at)) != std::string::npos) {
    const std::size_t end = text.find_first_of(" \t\r", at);
    words.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end;
  }
  if (words.empty()) return "";
  std::size_t word = 0;
  if (base_name(words[0]) == "env") {
    for (word = 1; word < words.size() && (words[word][0] == '-' || words[word].find('=') != std::string::npos);)
      ++word;
  }
  return word < words.size() ? words[word] : words[0];
}

void inspect_file(const std::string& path, Target& target, bool follow_script) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about;
  if (!file || fstat(file.get(), &about) != 0) return;
  if (about.st_mode & (S_ISUID | S_ISGID)) target.secure = true;
  if (getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) target.secure = true;
  unsigned char head[256] = {};
  const ssize_t size = pread(file.get(), head, sizeof head, 0);
  if (size >= static_cast<ssize_t>(sizeof(Elf64_Ehdr)) && std::memcmp(head, ELFMAG, SELFMAG) == 0)
    return inspect_elf(file.get(), head, target);
  if (!follow_script || size < 3 || head[0] != '#' || head[1] != '!') return;
  target.secure = false;  // the kernel ignores these bits on scripts
  target.interpreter = find_in_path(script_interpreter(reinterpret_cast<char*>(head), static_cast<std::size_t>(size)));
  if (!target.interpreter.empty()) inspect_file(target.interpreter, target, false);
}

}  // namespace

Target inspect_target(const std::string& command) {
  Target target;
  target.path = find_in_path(command);
  if (!target.path.empty()) inspect_file(target.path, target, true);
  return target;
}

std::string why_unreachable(const Target& target) {
  const std::string& name = target.interpreter.empty() ? target.path : target.interpreter;
  if (target.statically_linked) return name + " is statically linked: LD_PRELOAD cannot reach it";
  if (target.secure)
    return name + " is setuid, setgid or has file capabilities: the loader ignores LD_PRELOAD for it and its children";
  if (target.other_machine) return name + " is built for another machine than this gputrace: it cannot be traced";
  if (!target.loader.empty())
    return name + " is built for another C library than glibc (" + target.loader + "): the library stays idle in it";
  return "";
}

}  // namespace gputrace
