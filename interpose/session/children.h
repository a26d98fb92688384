// Children of the host that are ours. There are none, but where the host is a subreaper or PID 1: then it becomes the sidecar's
// parent, and a wait for any child must neither return the sidecar nor wait for it. wait, waitpid, wait3, wait4 and waitid
// pass through here and act in that case only.
//
// What remains: SIGCHLD is sent if the sidecar dies before the host. A wait of one thread that blocks while another thread
// reaps the last child of the host's own goes on until the sidecar ends.
#pragma once

#include "base/types.h"

namespace gputrace {

// Whether a process that is orphaned below this one becomes its child.
bool adopts_orphans();
// From now on waits do not see this child. Until it has ended, or the process forks.
void hide_child(i32 pid);

}  // namespace gputrace
