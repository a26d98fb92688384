// The objects behind the driver's handles, and who owns what.
//
//   Device ─┬─ primary Context ─┬─ Streams, Events, Modules, created things
//           └─ created Contexts ┘     Module ── Functions (one per kernel, belonging to the module's context)
//   Library ── Kernels (CUkernel) ── per context one Module, loaded when first needed
//
// Locks, in the order in which they may be taken: Event::mutex, Stream::mutex, Context::mutex, then those inside
// memory, truth, the worker. The worker holds none of them while it runs queued work.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cubin/code_image.h"
#include "simgpu/driver/life/clock.h"
#include "simgpu/driver/life/cuda_api.h"
#include "simgpu/driver/life/handle.h"

namespace simgpu {

struct Context;
struct Module;
struct Library;
struct Kernel;
struct Stream;
struct Capture;  // stream capture, graph files

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Span {
  Nanos start = 0;
  Nanos end = 0;
};

struct MemoryArena;  // memory.cpp

struct Device {
  int ordinal = 0;
  std::string name;
  CUuuid uuid{};
  Context* primary = nullptr;  // created with the device; active while primary_references > 0
  std::mutex mutex;            // guards the primary context's life
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  std::atomic<size_t> used{0};   // bytes taken from SIMGPU_MEMORY
  MemoryArena* arena = nullptr;  // made at the first allocation
  // What the copy engines were given: [0] to the device, [1] from the device.
  std::mutex engine_mutex;
  std::array<std::vector<Span>, 2> engine_busy;  // sorted, disjoint; what is over is dropped
};

std::vector<std::unique_ptr<Device>>& devices();  // filled by cuInit, never changed after
Device* device_at(CUdevice ordinal);              // null: no such device

struct Function : Object {
  static constexpr uint64_t kTag = object_tag("sgFUNCTN");
  using Handle = CUfunction;
  Module* module = nullptr;
  Context* context = nullptr;
  Kernel* kernel = nullptr;                     // the library's kernel it came from, or null
  const gputrace::ImageKernel* code = nullptr;  // owned by the module's image
  // By CUfunction_attribute, as cuFuncGetAttribute gives them; and what the legacy launch calls set.
  std::array<std::atomic<int>, CU_FUNC_ATTRIBUTE_MAX> attributes{};
  Dim3 legacy_block;
  uint32_t legacy_shared = 0;
  static constexpr Nanos kUnknownDuration = ~Nanos{0};
  static constexpr Nanos kModelDuration = kUnknownDuration - 1;
  std::atomic<Nanos> duration{
      kUnknownDuration};                     // of the SIMGPU_KERNEL_TIME rule for its symbol, found at first launch
  std::atomic<uint64_t> occupancy_cache{0};  // last question and its answer, see occupancy.cpp
};

// A loaded image, as parsed for the devices' capability. Shared by a library's modules.
struct Image {
  gputrace::LoadedImage loaded;
  size_t image_bytes = 0;  // of what the program passed
  const std::vector<gputrace::ImageKernel>& kernels() const { return loaded.module.kernels; }
};

struct Module : Object {
  static constexpr uint64_t kTag = object_tag("sgMODULE");
  using Handle = CUmodule;
  Context* context = nullptr;
  Library* library = nullptr;
  std::shared_ptr<const Image> image;
  std::vector<Function*> functions;  // same order as image->loaded.module.kernels
  std::unordered_map<std::string, Function*> by_name;
  std::unordered_map<std::string, std::pair<CUdeviceptr, size_t>> globals;
  void* global_block = nullptr;  // device memory behind the globals
  size_t global_block_bytes = 0;
};

struct Kernel : Object {
  static constexpr uint64_t kTag = object_tag("sgKERNEL");
  using Handle = CUkernel;
  Library* library = nullptr;
  const gputrace::ImageKernel* code = nullptr;
  size_t index = 0;                                                  // in the image
  std::array<std::atomic<int>, CU_FUNC_ATTRIBUTE_MAX> attributes{};  // new functions of it begin with these
  // Function in the context that used the kernel last: the launch path asks here first.
  std::atomic<Function*> last_function{nullptr};
};

struct Library : Object {
  static constexpr uint64_t kTag = object_tag("sgLIBRRY");
  using Handle = CUlibrary;
  std::shared_ptr<const Image> image;
  std::vector<Kernel*> kernels;
  std::unordered_map<std::string, Kernel*> by_name;
  std::mutex mutex;  // guards what follows
  std::map<Context*, Module*> modules;
  std::unordered_map<std::string, std::pair<CUdeviceptr, size_t>> managed;
};

// The function of a library's kernel in a context, loading the library there if need be. Null: out of memory.
Function* function_in(Kernel* kernel, Context* context);
// A CUfunction, or a CUkernel in the given context; null if the handle is neither.
Function* function_from_handle(CUfunction handle, Context* context);

struct Context : Object {
  static constexpr uint64_t kTag = object_tag("sgCONTXT");
  using Handle = CUcontext;
  Device* device = nullptr;
  uint64_t id = 0;
  bool primary = false;
  std::atomic<bool> active{false};  // false: destroyed, or a primary context that nobody retains
  unsigned flags = 0;
  unsigned api_version = 3020;
  std::atomic<int> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<int> shared_config{CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};
  std::array<std::atomic<size_t>, CU_LIMIT_MAX> limits{};
  std::atomic<Stream*> legacy{nullptr};
  std::mutex mutex;              // guards what follows
  std::vector<Stream*> streams;  // all of this context, the legacy one and the per-thread ones included
  std::vector<Module*> modules;
  Nanos orphans_end = 0;                      // of streams destroyed with work under way
  std::vector<Context*> peers;                // enabled by cuCtxEnablePeerAccess
  std::atomic<unsigned> blocking_streams{0};  // created and per-thread streams that the legacy stream waits for
  std::atomic<unsigned> deferred{0};          // operations of all its streams that wait in a queue
  std::atomic<unsigned> captures{0};          // streams of it that capture (kept by the capture files)
};

Context* current_context();  // of this thread, destroyed ones included; null: none
void set_current_context(Context* context);

// A place in a stream's order: everything submitted to `stream` up to `ticket`.
struct Place {
  Stream* stream = nullptr;  // a reference is held where a Place is stored
  uint64_t ticket = 0;
};

// Work that could not be given a time when it was submitted: host functions, waits for values in memory, and all
// that came after them.
struct Work {
  Nanos submitted = 0;                         // earliest start: call begin + launch latency
  std::vector<Place> after;                    // references held
  std::function<bool(Nanos ready)> condition;  // empty, or: polled until true
  std::function<Nanos(Nanos ready)> run;       // called once in order; returns the operation's end
  bool at_its_time = false;                    // run is called when the clock has reached `ready` (host functions)
};

struct Stream : Object {
  static constexpr uint64_t kTag = object_tag("sgSTREAM");
  using Handle = CUstream;
  enum class Kind { legacy, per_thread, created };
  Kind kind = Kind::created;
  Context* context = nullptr;
  uint64_t id = 0;
  unsigned flags = 0;  // CU_STREAM_NON_BLOCKING
  int priority = 0;
  std::atomic<Nanos> end{0};    // of the last operation that has a time
  Nanos last_kernel_start = 0;  // if the last operation was a kernel, else 0: what programmatic launches overlap
  std::atomic<Capture*> capture{nullptr};  // set and cleared by the capture files
  std::atomic<uint64_t> submitted{0};      // deferred works ever queued …
  std::atomic<uint64_t> processed{0};      // … and done
  std::mutex mutex;                        // serializes submission; guards the queue and the attributes
  std::deque<Work> queue;
  CUstreamAttrValue access_policy{};
  CUstreamAttrValue sync_policy{};
  CUstreamAttrValue mem_sync_domain{};
  CUstreamAttrValue mem_sync_domain_map{};

  bool waits_for_legacy() const { return kind != Kind::legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }
  bool has_queue() const {
    return submitted.load(std::memory_order_acquire) != processed.load(std::memory_order_acquire);
  }
};

// The handle a program uses for the stream: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD for the default ones.
CUstream public_handle(const Stream* stream);

// Where the time of an event that other processes know lies: event_share.h.
struct SharedPlace {
  uint64_t magic;
  int32_t pid;
  int32_t file;
  uint64_t slot;
};

struct Event : Object {
  static constexpr uint64_t kTag = object_tag("sgEVENT ");
  using Handle = CUevent;
  Context* context = nullptr;
  unsigned flags = 0;
  std::mutex mutex;       // guards what follows
  bool recorded = false;  // ever; an event never recorded counts as complete
  bool pending = false;   // recorded behind queued work: `at` is not known yet
  Nanos at = 0;
  uint64_t generation = 0;     // of the record: a later record wins over an earlier one's late result
  Place place;                 // while pending
  Capture* capture = nullptr;  // recorded in this capture (kept by the capture files)
  void* capture_node = nullptr;
  std::atomic<std::atomic<uint64_t>*> shared{nullptr};  // null: of this process alone
  SharedPlace shared_slot{};
};

// Data of a CUDA array: rows of `pitch` bytes, `slice` bytes from one depth or layer to the next.
struct Array : Object {
  static constexpr uint64_t kTag = object_tag("sgARRAY ");
  using Handle = CUarray;
  Context* context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  size_t element_bytes = 0;
  size_t pitch = 0;
  size_t slice = 0;
  char* data = nullptr;
  bool owns_data = true;  // false: a mip level or plane of another object
};

uint64_t next_object_id();  // context and stream ids, from 1

}  // namespace simgpu
