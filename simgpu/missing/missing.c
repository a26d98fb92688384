// C, and libc alone: stand-ins made of generated stubs need nothing else.
#define _GNU_SOURCE
#include "simgpu/missing/missing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kNames = 4096, kNameBytes = 128, kPathBytes = 4096, kCountDigits = 10 };

struct Entry {
  char name[kNameBytes];  // empty: free
  const char* library;
  const char* why;
  unsigned long count;
  off_t at;  // of the line in the file; -1: it is not there yet
};

static struct Entry entries[kNames];  // by hash, open addressing; pages that nobody touches cost nothing
static unsigned used;
static int owner;        // the process that the entries are about
static atomic_int lock;  // pid of the holder, so that the child of a fork does not wait for a thread that it does not have

static void take_lock(int pid) {
  int holder = 0;
  while (!atomic_compare_exchange_weak(&lock, &holder, pid)) {
    if (holder == pid) holder = 0;  // another thread of ours: only when it is free
  }
}

static int path_of(int pid, char* path) {
  const char* pattern = getenv("SIMGPU_MISSING");
  if (pattern == NULL || *pattern == '\0') return 0;
  size_t size = 0;
  for (; *pattern != '\0' && size + 16 < kPathBytes; ++pattern) {
    if (pattern[0] == '%' && pattern[1] == 'p') {
      size += (size_t)snprintf(path + size, 16, "%d", pid);
      ++pattern;
    } else {
      path[size++] = *pattern;
    }
  }
  path[size] = '\0';
  return 1;
}

// Null when the table is full.
static struct Entry* entry_of(const char* library, const char* name, const char* why) {
  unsigned hash = 2166136261u;
  for (const char* c = name; *c != '\0'; ++c) hash = (hash ^ (unsigned char)*c) * 16777619u;
  for (;; ++hash) {
    struct Entry* entry = &entries[hash % kNames];
    if (entry->name[0] == '\0') {
      if (used == kNames - 1) return NULL;
      ++used;
      strcpy(entry->name, name);
      entry->library = library;
      entry->why = why;
      entry->at = -1;
      return entry;
    }
    if (strcmp(entry->name, name) == 0 && strcmp(entry->library, library) == 0 && entry->why == why) return entry;
  }
}

// The file is opened each time: programs close descriptors that they do not know. Appended in one write, so that processes may share it.
static void append_line(const char* path, struct Entry* entry) {
  char line[kNameBytes + 256];
  const int size = snprintf(line, sizeof line, "%*lu %s %s%s%s\n", kCountDigits, entry->count, entry->name, entry->library,
                            *entry->why != '\0' ? " " : "", entry->why);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (size < (int)sizeof line && write(file, line, (size_t)size) == size) entry->at = lseek(file, 0, SEEK_CUR) - size;
  close(file);
}

static void write_count(const char* path, struct Entry* entry) {
  char digits[32];
  const int size = snprintf(digits, sizeof digits, "%*lu", kCountDigits, entry->count);
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (size != kCountDigits || pwrite(file, digits, kCountDigits, entry->at) != kCountDigits) entry->at = -1;
  close(file);
}

void simgpu_missing_lookup(const char* library, const char* name, const char* why) {
  const int saved_errno = errno;
  const int pid = (int)getpid();
  char path[kPathBytes];
  if (*name == '\0' || strlen(name) >= kNameBytes || !path_of(pid, path)) return;
  take_lock(pid);
  if (owner != pid) {
    if (used != 0) memset(entries, 0, sizeof entries);
    used = 0;
    owner = pid;
  }
  struct Entry* entry = entry_of(library, name, why);
  if (entry != NULL) {
    ++entry->count;
    if (entry->at < 0) {
      append_line(path, entry);
    } else {
      write_count(path, entry);
    }
  }
  atomic_store(&lock, 0);
  errno = saved_errno;
}

void simgpu_missing(const char* library, const char* name) { simgpu_missing_lookup(library, name, ""); }
