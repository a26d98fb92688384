#include "interpose/session/run_notes.h"

#include <fcntl.h>

#include <cstring>

#include "base/bounded_text.h"
#include "base/raw_syscall.h"
#include "interpose/settings/environment.h"
#include "interpose/settings/process_facts.h"

namespace gputrace {
namespace {

void put_clean(BoundedText& line, const char* text) {
  for (; *text; ++text) line.put(static_cast<unsigned char>(*text) < 0x20 ? " " : text, 1);
}

void note(const char* word, const char* what, const char* fix) {
  const char* path = copied_variable("GPUTRACE_RUN_NOTES");
  if (!path || *path != '/') return;
  const long file = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer(path), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return;
  char executable[512];
  own_executable(executable, sizeof executable);
  const char* slash = std::strrchr(executable, '/');
  char memory[2048];
  BoundedText line(memory, sizeof memory);
  line << word << "\t" << static_cast<u64>(raw_syscall(SYS_getpid)) << "\t";
  put_clean(line, slash ? slash + 1 : executable);
  line << "\t";
  put_clean(line, what);
  line << "\t";
  put_clean(line, fix);
  line << "\n";
  if (line.fits()) raw_syscall(SYS_write, file, raw_pointer(line.data()), static_cast<long>(line.size()));
  raw_syscall(SYS_close, file);
}

}  // namespace

void note_began() { note("began", "", ""); }
void note_untraced(const char* what, const char* fix) { note("untraced", what, fix); }
void note_sandboxed() { note("sandboxed", "", ""); }

}  // namespace gputrace
