#pragma once

// Options of the test programs: `name=value` words, in any order. Exit code: exit=N, given back at the end of main.

#include <cstdlib>
#include <cstring>

inline const char* text_option(int argc, char** argv, const char* name, const char* otherwise) {
  const std::size_t length = std::strlen(name);
  for (int index = 1; index < argc; ++index) {
    if (std::strncmp(argv[index], name, length) == 0 && argv[index][length] == '=') {
      return argv[index] + length + 1;
    }
  }
  return otherwise;
}

inline long option(int argc, char** argv, const char* name, long otherwise) {
  const char* value = text_option(argc, argv, name, nullptr);
  return value != nullptr ? std::strtol(value, nullptr, 0) : otherwise;
}

// FNV-1a over the bytes of one value: what a program did, in one number.
struct Checksum {
  unsigned long long value = 14695981039346656037ULL;

  template <typename T>
  void add(const T& item) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&item);
    for (std::size_t index = 0; index < sizeof item; ++index) {
      value = (value ^ bytes[index]) * 1099511628211ULL;
    }
  }
};
