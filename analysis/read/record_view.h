// A record of a chunk as this build's struct, read where it lies: copied only where an older writer left it shorter. Good
// as long as the record is.
#pragma once

#include "trace/reader.h"

namespace gputrace {

template <typename T>
class RecordView {
 public:
  explicit RecordView(const RecordHeader& record) {
    if (record.size >= sizeof(T)) [[likely]] {
      at_ = reinterpret_cast<const T*>(&record);
    } else {
      own_ = decode<T>(record);
      at_ = &own_;
    }
  }
  RecordView(const RecordView&) = delete;
  RecordView& operator=(const RecordView&) = delete;
  const T& operator*() const { return *at_; }
  const T* operator->() const { return at_; }

 private:
  union {
    T own_;
  };
  const T* at_;
};

}  // namespace gputrace
