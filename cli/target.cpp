#include "cli/target.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

#include "base/fd.h"
#include "cli/capture_output.h"
#include "cli/environment.h"
#include "cli/options.h"
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
  for (unsigned i = 0; i < header.e_phnum && i < kMostHeaders; ++i) {
    Elf64_Phdr part;
    if (pread(fd, &part, sizeof part, static_cast<off_t>(header.e_phoff + i * sizeof part)) !=
        static_cast<ssize_t>(sizeof part))
      return;
    if (part.p_type == PT_INTERP) target.loader = read_text(fd, part);
  }
  target.statically_linked = target.loader.empty();
  target.other_libc = !target.loader.empty() && base_name(target.loader).rfind("ld-linux", 0) != 0;
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
  if (target.other_libc)
    return name + " is built for another C library than glibc (" + target.loader + "): the library stays idle in it";
  return "";
}

std::vector<std::string> linked_objects(const Target& target, const std::string& library_path) {
  const std::string& program = target.interpreter.empty() ? target.path : target.interpreter;
  // Other loaders than the GNU C library's do not know the variable, and would run the program.
  const bool answers = target.loader.find("/ld-linux") != std::string::npos;
  if (!answers || target.secure || target.other_machine || program.empty()) return {};
  const Captured listed = capture_output(
      {program}, {{"LD_TRACE_LOADED_OBJECTS", "1"}, {"LD_PRELOAD", ""}, {"LD_LIBRARY_PATH", library_path}}, 500);
  std::vector<std::string> objects;
  for (const std::string& line : split(listed.started && listed.exit_code == 0 ? listed.output : "", '\n')) {
    const std::size_t begin = line.find('/'), end = line.rfind(" (");
    const std::size_t name = line.find_first_not_of(" \t"), absent = line.find(" => not found");
    if (begin != std::string::npos && end != std::string::npos && begin < end)
      objects.push_back(line.substr(begin, end - begin));
    else if (absent != std::string::npos && name < absent)
      objects.push_back(line.substr(name, absent - name));
  }
  return objects;
}

std::vector<std::string> package_folders(const Target& target) {
  const std::string& program = target.interpreter.empty() ? target.path : target.interpreter;
  std::vector<std::string> roots;
  if (base_name(program).compare(0, 6, "python") == 0) {
    const std::string folder = program.substr(0, program.find_last_of('/'));
    roots.push_back(folder.substr(0, folder.find_last_of('/')));
  }
  for (const char* active : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string root = variable(active); !root.empty()) roots.push_back(root);
  }
  std::vector<std::string> folders;
  for (const std::string& folder : split(variable("PYTHONPATH"), ':')) {
    if (!folder.empty()) folders.push_back(folder);
  }
  for (const std::string& root : roots) {
    for (const char* below :
         {"/lib/python3*/site-packages", "/lib/python3*/dist-packages", "/lib/python3/dist-packages"}) {
      glob_t found{};
      if (glob((root + below).c_str(), 0, nullptr, &found) == 0) {
        for (std::size_t i = 0; i < found.gl_pathc; ++i) folders.emplace_back(found.gl_pathv[i]);
      }
      globfree(&found);
    }
  }
  return folders;
}

}  // namespace gputrace
