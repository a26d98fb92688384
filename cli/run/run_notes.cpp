#include "cli/run/run_notes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/options.h"

namespace gputrace {
namespace {

constexpr std::size_t kMostNotes = 4u << 20;

}  // namespace

RunNotes::RunNotes() : file_(::memfd_create("gtrun", MFD_CLOEXEC)) {
  if (!file_) return;
  ::fcntl(file_.get(), F_SETFL, O_APPEND);
  path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
}

void RunNotes::ended(i32 pid, int status) const {
  const std::string line = "ended\t" + std::to_string(pid) + "\t" + std::to_string(status) + "\n";
  if (file_) (void)!::write(file_.get(), line.data(), line.size());
}

std::vector<RunNote> RunNotes::read() const {
  std::string text;
  char piece[4096];
  for (ssize_t got; file_ && text.size() < kMostNotes &&
                    (got = ::pread(file_.get(), piece, sizeof piece, static_cast<off_t>(text.size()))) > 0;)
    text.append(piece, static_cast<std::size_t>(got));
  std::vector<RunNote> notes;
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> words = split(line, '\t');
    if (words.size() < 3) continue;
    words.resize(5);
    notes.push_back(
        {words[0], static_cast<i32>(std::strtol(words[1].c_str(), nullptr, 10)), words[2], words[3], words[4]});
  }
  return notes;
}

}  // namespace gputrace
