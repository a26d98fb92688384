// What the user asked for in GPUTRACE_* variables. An invalid value never stops anything: the default is used and a
// warning says so.
#pragma once

#include "base/types.h"
#include "interpose/settings/environment.h"
#include "interpose/settings/info_text.h"
#include "ringbuf/segment.h"

namespace gputrace {

enum class CaptureMode : u32 { All = 0, ProfilerApi = 2, Nvtx = 3, Steps = 4 };

struct Options {
  bool enabled = true;
  Nanos duration_ns = 0;  // 0: no end
  Nanos delay_ns = 0;
  CaptureMode capture = CaptureMode::All;
  const char* capture_range = nullptr;  // CaptureMode::Nvtx: name of the range, capture_range_length bytes of it
  u32 capture_range_length = 0;
  u32 first_step = 0, last_step = 0;  // CaptureMode::Steps: from 1
  const char* capture_domain = "";    // its domain; "": the default domain; "*": any
  Bytes buffer = 16u << 20;
  OnFull on_full = OnFull::Drop;
  bool collect_any = true;  // false: nothing that this version has was asked for
  bool collect_nvtx = true;
  bool collect_code = true;
  bool collect_python = true;
  bool collect_stacks = false;  // native ones
  bool collect_operations = true;
  bool collect_files = false;  // `io`
  bool collect_waits = false;
  bool collect_device = true;
  bool latency = false;         // queued and submitted stamps
  bool environment = false;     // clocks, power, temperature
  const char* cupti = nullptr;  // path; nullptr: look for one
  bool node_graphs = false;     // CUDA graphs node by node
  bool collect_libraries = false;
  bool start_sidecar = true;
  const char* shm_directory = nullptr;  // GPUTRACE_SHM=file:DIR: the ring lies in a file there
  bool shm_by_itself = true;            // the user said nothing: where the ring lies depends on the process
  const char* sidecar = nullptr;        // path; nullptr: look beside the library
  const char* ranks = nullptr;          // nullptr: all
  const char* process = nullptr;        // regex; nullptr: all
};

// Reads the copied variables. Values in effect, warnings and what is not built go to `info` as option.*,
// option_warning, not_collected.
Options read_options(InfoText& info);

// Whether GPUTRACE_COLLECT, as copied, has nvtx or libs in it: for what must know before there is a session.
bool nvtx_is_collected();
bool libraries_are_collected();

// Pure; false: not a value of that kind.
bool parse_size(const char* text, Bytes& bytes);            // 16M, 512K, 1G, 4096
bool parse_steps(const char* text, u32& first, u32& last);  // 5-9, 5: numbers from 1
bool parse_duration(const char* text, Nanos& nanos);        // 30s, 500ms, 5m, 1h, 10us, 7ns; a bare number is seconds
// Whether a rank is in "0,8-15,local0". False in `valid`: the list cannot be read.
bool rank_selected(const char* list, const Rank& rank, bool& valid);

}  // namespace gputrace
