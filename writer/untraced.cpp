#include "writer/untraced.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "writer/output.h"
#include "writer/process_info.h"

namespace gputrace {
namespace {

std::string utc_stamp() {
  const time_t now = ::time(nullptr);
  tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return std::string(text, ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc));
}

}  // namespace

bool write_untraced(const Untraced& untraced, const Environment& environment) {
  SegmentHeader nobody{};  // what names are made from
  nobody.pid = untraced.pid;
  nobody.anchor.realtime_ns = realtime_nanos();
  const OutputNames names = name_output({{"executable", untraced.executable}}, nobody, environment);
  const auto directory = open_output(environment("GPUTRACE_OUTPUT"), names, environment);
  if (!directory) return false;
  const Fd file(::openat(directory.value().fd.get(), "untraced",
                         O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
  if (!file) return false;
  std::string line = utc_stamp() + " pid " + std::to_string(names.pid) + " " + names.executable;
  if (!names.rank.empty()) line += ", rank " + names.rank;
  line += ": " + untraced.what;
  if (!untraced.fix.empty()) line += "; fix: " + untraced.fix;
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  line += '\n';
  return ::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace gputrace
