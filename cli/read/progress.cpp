#include "cli/read/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/clock.h"

namespace gputrace {
namespace {

constexpr Nanos kQuietFor = 500'000'000;  // shorter work needs no word

}  // namespace

Progress::Progress(std::string what, bool wanted)
    : what_(std::move(what)), wanted_(wanted && isatty(STDERR_FILENO)), began_(monotonic_nanos()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(const std::string& how_far) {
  if (!wanted_ || monotonic_nanos() - began_ < kQuietFor) return;
  std::fprintf(stderr, "\r\x1b[K%s: %s", what_.c_str(), how_far.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace gputrace
