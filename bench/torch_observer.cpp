// The least that following PyTorch's operations takes: a callback for as much as we ask for, which does nothing.
#include "interpose/ops/torch_layout.h"

namespace {

void* began(void* context, const void*) {
  *static_cast<void**>(context) = nullptr;
  return context;
}
void ended(const void*, void*) {}

}  // namespace

// `add_callback`: at::addGlobalCallback.
extern "C" void observe(gputrace::u64 (*add_callback)(gputrace::TorchCallback)) {
  gputrace::TorchCallback callback{began, ended, 1.0, {}, false, false, false};
  for (const gputrace::u8 scope : gputrace::kFollowedScopes) callback.scopes[scope] = true;
  add_callback(callback);
}
