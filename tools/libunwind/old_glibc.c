/* What libunwind would take from a glibc newer than 2.28, taken from what that one has: linked into the library that is carried in the tree.
 * Before 2.34 pthread_once and its like lay in libpthread, which a program need not have loaded: then it has one thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OLD(name) __asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5")
OLD(pthread_once);
OLD(pthread_key_create);
OLD(pthread_setspecific);
__attribute__((weak)) int old_pthread_once(pthread_once_t *, void (*)(void));
__attribute__((weak)) int old_pthread_key_create(pthread_key_t *, void (*)(void *));
__attribute__((weak)) int old_pthread_setspecific(pthread_key_t, const void *);

int pthread_once(pthread_once_t *control, void (*routine)(void)) {
  if (old_pthread_once) return old_pthread_once(control, routine);
  if (*control == PTHREAD_ONCE_INIT) {
    *control = 2;
    routine();
  }
  return 0;
}

int pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) {
  return old_pthread_key_create ? old_pthread_key_create(key, destroy) : ENOSYS;
}

int pthread_setspecific(pthread_key_t key, const void *value) {
  return old_pthread_setspecific ? old_pthread_setspecific(key, value) : ENOSYS;
}

/* The kernel's struct stat is the library's on x86-64. */
int stat(const char *restrict path, struct stat *restrict info) { return (int)syscall(SYS_stat, path, info); }
int fstat(int file, struct stat *info) { return (int)syscall(SYS_fstat, file, info); }
