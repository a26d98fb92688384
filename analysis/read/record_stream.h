// All records of a trace in time order: the chunks of each thread, decoded ahead by a second thread, merged.
//   · A record's place in time is the end of its call, but for what gives a handle or an address back (Free, unload,
//   destroy): that is
//     its begin, because the handle may be given out again before the call returns. Within a thread the order is always
//     the thread's own.
//   · Memory: one decoded chunk for each traced thread that has records at the moment, as long as they are not more than a
//     file of that size may have open (ReadLimits: what comes beyond is left out, and is damage), and at most kAheadBytes
//     decoded ahead. Where other processes keep all processors busy nothing is, and of each chunk its bytes are there and the records
//     that are next.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "trace/read_limits.h"
#include "trace/reader.h"

namespace gputrace {

class RecordStream {
  struct Lane;

 public:
  static constexpr u64 kAheadBytes = 4u << 20;

  // In which order records of different threads come. Those that belong to no thread, or to one that their content tells (tid 0), are in
  // their place in time among each thread's in both.
  enum class Order : u8 {
    Time,
    Threads,  // a thread's chunk at a time: for who looks at each thread by itself
  };
  // `left_out`, by index in reader.threads(): threads whose records are not read; beyond its end none is left out.
  // `in_bulk`: types whose records come in spans of nothing else (Span::bulk). Long runs of them are not looked at one by one,
  // so what gives a handle or an address back must not be among them.
  explicit RecordStream(const TraceReader& reader, const std::vector<bool>& left_out = {}, Order order = Order::Time,
                        const TypeSet& in_bulk = {});
  ~RecordStream();
  RecordStream(const RecordStream&) = delete;
  RecordStream& operator=(const RecordStream&) = delete;

  // Takes all records once, in spans of one thread: `visit(span)` with whole records between the pointers. It goes on while
  // `visit` returns true.
  struct Span {
    const u8* begin = nullptr;
    const u8* end = nullptr;
    u32 thread = 0;     // index in reader.threads()
    u32 records = 0;    // in it
    bool bulk = false;  // all of them are of types that come in bulk, or none is
    const Lane* lane = nullptr;
  };
  template <typename Visit>
  void for_each_span(Visit&& visit) {
    for_each_spans([&](std::span<const Span> spans) { return std::all_of(spans.begin(), spans.end(), visit); });
  }
  // The same, some at a time.
  template <typename Visit>
  void for_each_spans(Visit&& visit) {
    while (take_spans() && visit(std::span<const Span>(spans_.data(), taken_))) {
    }
  }

  // Keeps the records of a span that is visited where they are, beyond the visit and the stream. Any thread may let go.
  std::shared_ptr<const void> chunk(const Span& span) const;

  // Threads, by their index, that have been read to their end and hold none of these types.
  std::vector<bool> without(const TypeSet& types) const;

  u64 unknown_records() const { return unknown_; }
  const std::vector<std::string>& damage() const { return damage_; }  // chunks that would not decode

 private:
  struct Decoded {
    ChunkBuffer::Records records;
    RecordPieces pieces;
    RecordRange range;
    bool good = false;
    std::string reason;
  };
  // Buffers that wait to be used again. Shared with those that are in use: who lets go last may outlive the stream.
  struct Spares {
    std::mutex mutex;
    std::vector<std::unique_ptr<Decoded>> buffers;

    std::unique_ptr<Decoded> take();
    void give(std::unique_ptr<Decoded> used);
  };
  enum class State : u8 { Waiting, Decoding, Ready, Taken };

  // Lanes lie in the order of their threads.
  struct Turn {
    Ticks key;
    Lane* lane;
    bool operator>(const Turn& other) const { return whole() > other.whole(); }

   private:
    __extension__ using Wide = unsigned __int128;  // compared at once
    Wide whole() const { return static_cast<Wide>(key) << 64 | reinterpret_cast<std::uintptr_t>(lane); }
  };
  bool take_spans();
  bool begin_spans();
  void take_singly(Lane& lane, Ticks limit, Span& span) const;
  bool take_pieces(Lane& lane, Ticks limit, Span& span) const;
  Ticks turn_ends(const Lane& lane) const;
  Ticks chunk_ends(const Lane& lane) const;
  void next_turn();
  void pass_turn();
  bool open_next_chunk(Lane& lane);
  std::unique_ptr<Decoded> take(u32 chunk);
  std::unique_ptr<Decoded> decode(u32 chunk, std::unique_ptr<Decoded> into, ChunkBuffer& scratch) const;
  bool open_rows(Lane& lane, u32 chunk);
  void take_rows(Lane& lane);
  void take_decoded(Lane& lane, std::unique_ptr<Decoded> decoded);
  void close_chunk(Lane& lane);
  void note_damage(const std::string& reason);
  void decode_ahead();

  const TraceReader& reader_;
  const Order order_;
  const TypeSet in_bulk_;
  const std::shared_ptr<Spares> spares_ = std::make_shared<Spares>();
  std::vector<Lane> lanes_;
  std::vector<Turn> turns_;  // heap: the lanes that wait, the next one first; behind them none, which comes behind all
  std::size_t waiting_ = 0;  // lanes in it
  Lane* current_ = nullptr;
  bool goes_on_ = false;  // it is still the current one's turn: only bulk began or ended
  // Spans are taken some at a time, up to where a lane's next chunk is to be opened.
  std::array<Span, 32> spans_;
  std::size_t taken_ = 0;
  u64 unknown_ = 0, open_bytes_ = 0, damaged_ = 0;
  const u64 most_open_;
  ChunkBuffer scratch_;  // of the thread that takes
  std::vector<ChunkRows> spare_rows_;
  std::vector<std::string> damage_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;                    // by chunk
  std::vector<std::unique_ptr<Decoded>> ready_;  // by chunk
  std::vector<u32> plan_;                        // chunks in the order in which they will be needed
  u64 ahead_ = 0;
  bool stop_ = false;
  std::thread decoder_;
};

}  // namespace gputrace
