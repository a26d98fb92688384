// Where the driver shows what it does to whoever looks (observer.h). Call these only where `looked_at` says so.
#pragma once

#include "simgpu/driver/observer.h"

namespace simgpu {

class Call;
struct Allocation;
struct Context;
struct Copy;
struct Event;
struct KernelLaunch;
struct Memset;
struct Origin;
struct Span;
struct Stream;

uint32_t draw_correlation();
extern constinit std::atomic<bool> separate_runtime_ids;
void process_mode_changed();  // whether calls take the slow way is to be judged again

void show(const KernelLaunch& launch, const Origin& origin, const Span& span);
void show(const Copy& copy, const Origin& origin, const Span& span);
void show(const Memset& memset, const Origin& origin, const Span& span);
void show_graph(const Origin& origin, const Span& span, uint64_t nodes);
void show_sync(Call& call, SyncNotice::What what, const Context& context, const Stream* stream, const Event* event);
void show_memory(Call& call, bool allocation, const Allocation& what);
void show_call(Call& call, bool entering, int result);

}  // namespace simgpu
