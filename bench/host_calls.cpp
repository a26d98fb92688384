// What one call of libc costs, again and again after a first CUDA call: ns of the fastest batch.
//
//   host_calls KIND BATCHES CALLS      KIND: pread, open, mutex, semaphore
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
sem_t semaphore;
const char* path = nullptr;
int file = -1;
char page[4096];

void call_pread() { (void)!pread(file, page, sizeof page, 0); }
void call_open() { close(open(path, O_RDONLY)); }
void call_mutex() { pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); }
void call_semaphore() { sem_post(&semaphore), sem_wait(&semaphore); }

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct Kind {
  const char* name;
  void (*call)();
};
constexpr Kind kKinds[] = {
    {"pread", call_pread}, {"open", call_open}, {"mutex", call_mutex}, {"semaphore", call_semaphore}};

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  path = words[0];
  file = open(path, O_RDONLY);
  sem_init(&semaphore, 0, 0);
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  const int batches = std::atoi(words[2]), calls = std::atoi(words[3]);
  for (const Kind& kind : kKinds) {
    if (std::strcmp(kind.name, words[1]) != 0) continue;
    double best = 1e18;
    for (int batch = 0; batch < batches; ++batch) {
      const double begin = now();
      for (int i = 0; i < calls; ++i) kind.call();
      best = std::min(best, (now() - begin) / calls);
    }
    std::printf("%.1f\n", best);
    return 0;
  }
  return 2;
}
