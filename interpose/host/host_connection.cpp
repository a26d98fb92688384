#include "interpose/host/host_connection.h"

#include "base/sentence.h"
#include "interpose/host/connect.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/stacks/stacks.h"
#include "ringbuf/producer.h"
#include "ringbuf/segment_create.h"

namespace gputrace {
namespace {

using Connect = void (*)(const HostConnection*);

Connect find_connect() { return reinterpret_cast<Connect>(find_function(ObjectRole::Other, "gputrace_host_connect")); }

// In a process that was forked from the session's, too: the segment stays mapped there.
bool is_wanted_now() {
  if (is_sandboxed()) return false;
  const SegmentControl& control = *producer.control;
  const Ticks now = record_ticks();
  return now >= control.window_begin.load(std::memory_order_relaxed) &&
         now < control.window_end.load(std::memory_order_relaxed);
}

}  // namespace

Bytes wanted_host_table(const Options& options, Bytes budget, InfoText& info) {
  if (!options.collect_files && !options.collect_waits) return 0;
  if (find_connect()) return host_table_size(budget);
  const auto say = [&](const char* part) {
    Sentence text;
    text << part << ": libgputrace-host.so is not loaded: `gputrace run --collect +" << part
         << "` loads it, `gputrace env --collect +" << part << "` tells the variables";
    info.add("not_collected", text.text());
  };
  if (options.collect_files) say("io");
  if (options.collect_waits) say("waits");
  return 0;
}

void connect_host(const Options& options) {
  const SegmentHeader& header = *producer.header;
  if (!header.host_table_size) return;
  const Connect connect = find_connect();
  if (!connect) return;
  const AddressRange interpreter = interpreter_object();
  HostConnection connection;
  connection.table = reinterpret_cast<char*>(producer.header) + header.host_table_offset;
  connection.table_size = header.host_table_size;
  connection.interpreter_begin = interpreter.begin, connection.interpreter_end = interpreter.end;
  connection.wanted = is_wanted_now;
  connection.frame = innermost_frame;
  connection.files = options.collect_files, connection.waits = options.collect_waits;
  connect(&connection);
}

}  // namespace gputrace
