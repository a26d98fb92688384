// drv_threads [threads=N] [alive=M] [launches=L] [exit=E]: N threads in all, M at a time, each of L launches; with
// alive=N they all live until the last one has launched. Prints how many threads and launches.
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "tests/programs/drv_calls.h"

int main(int argc, char** argv) {
  const long total = option(argc, argv, "threads", 1000);
  const long alive = option(argc, argv, "alive", 16);
  const int launches = static_cast<int>(option(argc, argv, "launches", 3));
  const Calls calls = linked_calls();
  std::atomic<long> launched{0};
  {
    Session session(calls);
    for (long done = 0; done < total; done += alive) {
      const long wave = total - done < alive ? total - done : alive;
      std::barrier together(wave);
      std::vector<std::thread> threads;
      for (long index = 0; index < wave; ++index) {
        threads.emplace_back([&] {
          Work work;
          session.enter();
          for (int launch = 0; launch < launches; ++launch) {
            session.launch(&work);
          }
          launched += work.launches;
          together.arrive_and_wait();
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
    }
  }
  std::printf("threads %ld launches %ld\n", total, launched.load());
  return static_cast<int>(option(argc, argv, "exit", 0));
}
