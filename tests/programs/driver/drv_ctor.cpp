// drv_ctor [exit=E]: launches from a library's constructor before main, in main, from a destructor of a thread-local
// object, from an atexit handler, and from static destructors. Prints how many at each place.
#include <cstdio>
#include <thread>

#include "tests/programs/driver/ctor_library.h"
#include "tests/programs/options.h"

namespace {

struct AtThreadEnd {
  long* launches;
  ~AtThreadEnd() { *launches = launch_from_anywhere(4); }
};

struct AtProgramEnd {
  ~AtProgramEnd() {
    std::printf("launches in a static destructor %ld\n", launch_from_anywhere(2));
    std::fflush(stdout);
  }
} at_program_end;

void at_exit() {
  std::printf("launches in atexit %ld\n", launch_from_anywhere(6));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("launches before main %ld\n", early_launches());
  std::printf("launches in main %ld\n", launch_from_anywhere(1));
  long at_thread_end = 0;
  std::thread([&] {
    static thread_local AtThreadEnd last;
    last.launches = &at_thread_end;
  }).join();
  std::printf("launches at thread end %ld\n", at_thread_end);
  std::fflush(stdout);
  std::atexit(at_exit);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
