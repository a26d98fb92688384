// Fault points: named places at which a test may step in: stop there and let others go on, or end the process. Only code that a
// test compiles for itself with GT_FAULT_POINTS has them; everywhere else, in every library and program that is installed,
// nothing is left of them.
#pragma once

#if defined(GT_FAULT_POINTS)
namespace gputrace {
inline void (*fault_hook)(const char* point) = nullptr;  // what the test does at a point; one thread
inline int fault_thread = 0;                             // number of the thread that the test plays
inline bool (*fault_gone)(int thread) = nullptr;         // whether that one has ended
inline void fault_point(const char* point) {
  if (fault_hook) fault_hook(point);
}
}  // namespace gputrace
#define GT_FAULT_POINT(point) ::gputrace::fault_point(point)
#else
#define GT_FAULT_POINT(point) static_cast<void>(0)
#endif
