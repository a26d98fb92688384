#include "cli/small_files.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

namespace gputrace {

std::string read_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  char piece[4096];
  for (ssize_t got; file && (got = ::read(file.get(), piece, sizeof piece)) > 0;)
    content.append(piece, static_cast<std::size_t>(got));
  return content;
}

}  // namespace gputrace
