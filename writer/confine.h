// The sidecar gives up what it never needs: new privileges, new programs, sockets, signals to others.
#pragma once

namespace gputrace {

// Never fails: what the kernel does not offer stays as it is. Call once everything is open.
// `ring_directory`: the one descriptor below which a file may be removed; -1: nowhere. `reads_processes`: the memory of other
// processes may be read, never written (sample/).
void confine(int ring_directory = -1, bool reads_processes = false);

}  // namespace gputrace
