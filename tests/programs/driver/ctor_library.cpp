// Linked into drv_ctor: its constructor runs before main, and before that of a preloaded library; its static object's
// destructor runs after main. EARLY=0 and LATE=0 in the environment leave one of them out.
#include "tests/programs/driver/ctor_library.h"

#include "tests/programs/drv_calls.h"

namespace {

const Calls& calls() {
  static const Calls linked = linked_calls();
  return linked;
}

bool wanted(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || std::strcmp(value, "0") != 0;
}

Work early_work;
Session* session = nullptr;

struct Late {
  ~Late() {
    if (wanted("LATE")) {
      std::printf("launches after main %ld\n", launch_from_anywhere(3));
      std::fflush(stdout);
    }
  }
};

[[gnu::constructor]] void early() {
  static Late late;
  if (wanted("EARLY")) {
    session = new Session(calls());
    session->round(&early_work, 5);
  }
}

}  // namespace

long early_launches() { return early_work.launches; }

long launch_from_anywhere(int count) {
  Work work;
  if (session == nullptr) {
    session = new Session(calls());
  }
  session->enter();
  for (int index = 0; index < count; ++index) {
    session->launch(&work);
  }
  return work.launches;
}
