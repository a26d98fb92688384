// The sidecar gives up what it never needs: new privileges, new programs, sockets, signals to others.
#pragma once

namespace gputrace {

// Never fails: what the kernel does not offer stays as it is. Call once everything is open.
void confine();

}  // namespace gputrace
