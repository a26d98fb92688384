#include "writer/log.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

namespace gputrace {

LogLevel parse_log_level(std::string_view text) {
  if (text == "error") return LogLevel::Error;
  if (text == "warning" || text == "warn") return LogLevel::Warning;
  if (text == "info" || text == "1" || text == "on") return LogLevel::Info;
  if (text == "debug" || text == "trace") return LogLevel::Debug;
  return LogLevel::Off;
}

void Log::put_into(int directory, std::string name) {
  directory_ = directory;
  name_ = std::move(name);
}

void Log::say(LogLevel level, const char* word, std::string_view what, std::string_view fix) {
  if (level > level_ || directory_ < 0) return;
  if (!tried_) {
    tried_ = true;
    file_.reset(::openat(directory_, name_.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  }
  if (!file_) return;
  const time_t now = ::time(nullptr);
  tm utc{};
  ::gmtime_r(&now, &utc);
  char stamp[32];
  std::string line(stamp, ::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc));
  line.append(" gputrace: ").append(word).append(": ").append(what);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  line += '\n';
  if (!fix.empty()) line.append("          fix: ").append(fix).append("\n");
  (void)!::write(file_.get(), line.data(), line.size());
}

}  // namespace gputrace
