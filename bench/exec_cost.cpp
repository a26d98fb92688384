// What a preloaded library costs per exec: exec_cost LIBRARY COUNT → `NS_WITHOUT NS_WITH` (medians), runs taken in
// turn.
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double one(char* const* environment) {
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  const double begin = now_ns();
  pid_t pid;
  int status = -1;
  if (posix_spawn(&pid, program, nullptr, nullptr, arguments, environment) != 0 || waitpid(pid, &status, 0) != pid ||
      status != 0) {
    std::fprintf(stderr, "exec_cost: %s failed (%d)\n", program, status);
    std::exit(1);
  }
  return now_ns() - begin;
}

// What else the machine does only ever adds.
double fast(std::vector<double>& v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 10];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: exec_cost LIBRARY COUNT\n"), 2;
  std::string preload = std::string("LD_PRELOAD=") + argv[1];
  char* without[] = {nullptr};
  char* with[] = {preload.data(), nullptr};
  std::vector<double> a, b;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    a.push_back(one(without));
    b.push_back(one(with));
  }
  std::printf("%.0f %.0f\n", fast(a), fast(b));
  return 0;
}
