#pragma once

// Launches done before main.
long early_launches();
// Launches now, in any thread and at any time of the process's life. Returns how many.
long launch_from_anywhere(int count);
