#include "writer/run_notes.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace gputrace {
namespace {

constexpr std::size_t kMost = 4u << 20;

std::string one_line(std::string_view text) {
  std::string out(text.substr(0, 500));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

std::string whole(int file) {
  std::string text;
  char piece[4096];
  for (ssize_t got;
       text.size() < kMost && (got = ::pread(file, piece, sizeof piece, static_cast<off_t>(text.size()))) > 0;)
    text.append(piece, static_cast<std::size_t>(got));
  return text;
}

}  // namespace

RunNotes::RunNotes(const Environment& environment) {
  const std::string path = environment("GPUTRACE_RUN_NOTES");
  if (std::sscanf(path.c_str(), "/proc/%d/fd/", &run_) != 1) return;
  file_.reset(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY));
}

void RunNotes::untraced(i32 pid, std::string_view executable, std::string_view what, std::string_view fix) const {
  if (!file_) return;
  const std::string line = "untraced\t" + std::to_string(pid) + "\t" + one_line(executable) + "\t" + one_line(what) +
                           "\t" + one_line(fix) + "\n";
  (void)!::write(file_.get(), line.data(), line.size());
}

bool RunNotes::started(i32 pid) const {
  const ProcessStat stat = file_ ? process_stat(pid) : ProcessStat{};
  return stat.known && stat.parent == run_;
}

std::optional<int> RunNotes::status_of(i32 pid, Nanos deadline) const {
  if (!file_) return std::nullopt;
  const std::string wanted = "\nended\t" + std::to_string(pid) + "\t";
  for (;;) {
    const std::string text = "\n" + whole(file_.get());
    const std::size_t at = text.rfind(wanted);
    if (at != std::string::npos && text.find('\n', at + 1) != std::string::npos)
      return static_cast<int>(std::strtol(text.c_str() + at + wanted.size(), nullptr, 10));
    if (monotonic_nanos() >= deadline || !process_stat(run_).known)
      return std::nullopt;  // it may have been killed itself
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace gputrace
