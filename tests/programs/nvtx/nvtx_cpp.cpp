// nvtx_cpp [plugin=FILE]: NVTX as C++ programs use it (nvtx3.hpp), before and after a plugin that has its own copy of
// the headers. Prints one line "what domain message" per event, in order.
#include <dlfcn.h>

#include <cstdio>
#include <nvtx3/nvtx3.hpp>
#include <utility>

#include "tests/programs/drv_calls.h"

namespace {

struct Training {
  static constexpr char const* name{"training"};
};
struct Forward {
  static constexpr char const* message{"forward"};
};
struct Blue {
  static constexpr char const* name{"blue things"};
  static constexpr uint32_t id{4};
};

void say(const char* what, const char* domain, const char* message) {
  std::printf("%s|%s|%s\n", what, domain, message);
}

void annotated_function() {
  NVTX3_FUNC_RANGE();
  say("push", "", "annotated_function");
}

void annotated_in_a_domain() {
  NVTX3_FUNC_RANGE_IN(Training);
  say("push", "training", "annotated_in_a_domain");
}

}  // namespace

int main(int argc, char** argv) {
  const Calls calls = linked_calls();
  Work work;
  Session session(calls);
  session.round(&work, 2);
  {
    nvtx3::scoped_range range{"scoped"};
    say("push", "", "scoped");
    session.round(&work, 3);
    nvtx3::scoped_range_in<Training> inner{nvtx3::registered_string_in<Training>::get<Forward>(), nvtx3::rgb{1, 2, 3},
                                           nvtx3::named_category_in<Training>::get<Blue>(), nvtx3::payload{2.5}};
    say("push", "training", "forward");
    session.round(&work, 1);
  }
  say("pop", "training", "");
  say("pop", "", "");
  annotated_function();
  say("pop", "", "");
  annotated_in_a_domain();
  say("pop", "training", "");
  {
    nvtx3::unique_range first{"unique"};
    say("start", "", "unique");
    nvtx3::unique_range_in<Training> second{"unique in training"};
    say("start", "training", "unique in training");
    nvtx3::unique_range moved = std::move(first);
  }
  say("end", "", "");
  say("end", "training", "");
  nvtx3::mark("marked");
  say("mark", "", "marked");
  if (const char* plugin = text_option(argc, argv, "plugin", nullptr)) {
    void* handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return 72;
    reinterpret_cast<void (*)()>(dlsym(handle, "run_plugin"))();
    say("push", "training", "in the plugin");
    say("pop", "training", "");
    dlclose(handle);
  }
  nvtx3::mark_in<Training>("last");
  say("mark", "training", "last");
  return static_cast<int>(option(argc, argv, "exit", 0));
}
