#include "analysis/read/record_stream.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/read/processors.h"

namespace gputrace {
namespace {

constexpr std::size_t kSpareRows = 8;
constexpr const char* kTooManyOpen =
    "more threads have records at one time than a file of this size may hold: some were not read";
constexpr std::size_t kAheadInChunk = 768, kLine = 64;  // bytes: another processor decoded them

bool gives_back(const RecordHeader& record) {
  if (record.type == static_cast<u16>(RecordType::KernelLaunch)) [[likely]]
    return false;
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::Free:
      return true;
    case RecordType::ModuleLoad:
      return decode<ModuleLoad>(record).what == static_cast<u32>(ModuleAct::Unload);
    case RecordType::ObjectCall:
      return decode<ObjectCall>(record).what == static_cast<u32>(ObjectAct::Destroyed);
    default:
      return false;
  }
}

Ticks key_of(const RecordHeader& record) {
  return record.end < record.begin || gives_back(record) ? record.begin : record.end;
}

}  // namespace

// One traced thread: its chunks, and where the merge stands in them.
struct RecordStream::Lane {
  u32 thread = 0;
  const std::vector<u32>* chunks = nullptr;
  std::size_t next_chunk = 0;
  std::shared_ptr<Decoded> decoded;
  ChunkRows rows;      // what of the open chunk is not decoded yet
  u64 open_bytes = 0;  // of that chunk
  const u8* at = nullptr;
  const u8* end = nullptr;
  const RecordPieces::Piece* piece = nullptr;  // in which `at` lies
  bool may_be_bulk = false;                    // the chunk has records of types that come so
  TypeSet types;                               // of what was decoded
  Ticks key = 0;  // of the record at `at`, or not above that of the first record of the next chunk
};

RecordStream::RecordStream(const TraceReader& reader, const std::vector<bool>& left_out, Order order,
                           const TypeSet& in_bulk)
    : reader_(reader), order_(order), in_bulk_(in_bulk), most_open_(ReadLimits(reader.data_bytes()).open_bytes) {
  const auto& chunks = reader.record_chunks();
  const auto& threads = reader.threads();
  states_.assign(chunks.size(), State::Waiting);
  ready_.resize(chunks.size());
  for (u32 i = 0; i < threads.size(); ++i) {
    if (threads[i].chunks.empty() || (i < left_out.size() && left_out[i])) continue;
    Lane& lane = lanes_.emplace_back();
    lane.thread = i;
    lane.chunks = &threads[i].chunks;
    lane.key = chunks[threads[i].chunks.front()].begin;
    for (const u32 chunk : threads[i].chunks) plan_.push_back(chunk);
  }
  std::stable_sort(plan_.begin(), plan_.end(), [&](u32 a, u32 b) { return chunks[a].begin < chunks[b].begin; });
  for (Lane& lane : lanes_) turns_.push_back({lane.key, &lane});
  std::make_heap(turns_.begin(), turns_.end(), std::greater<>());
  waiting_ = turns_.size();
  turns_.push_back({~0ull, lanes_.data() + lanes_.size()});
  if (plan_.size() > 1) decoder_ = std::thread([this] { decode_ahead(); });
}

RecordStream::~RecordStream() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (decoder_.joinable()) decoder_.join();
}

std::unique_ptr<RecordStream::Decoded> RecordStream::decode(u32 chunk, std::unique_ptr<Decoded> into,
                                                            ChunkBuffer& scratch) const {
  if (!into) into = std::make_unique<Decoded>();
  into->pieces.types = in_bulk_;
  auto records = reader_.decode(reader_.record_chunks()[chunk], scratch, &into->pieces);
  scratch.swap_records(into->records);
  into->good = static_cast<bool>(records);
  into->range = into->good ? records.value() : RecordRange{};
  into->reason = into->good ? std::string() : records.error().reason;
  return into;
}

void RecordStream::decode_ahead() {
  ChunkBuffer scratch;
  for (const u32 chunk : plan_) {
    const u64 size = reader_.record_chunks()[chunk].raw_size;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return stop_ || (!processors_are_busy() && (ahead_ == 0 || ahead_ + size <= kAheadBytes)); });
      if (stop_) return;
      if (states_[chunk] != State::Waiting) continue;
      states_[chunk] = State::Decoding;
      ahead_ += size;
    }
    std::unique_ptr<Decoded> buffer = decode(chunk, spares_->take(), scratch);
    {
      std::lock_guard lock(mutex_);
      ready_[chunk] = std::move(buffer);
      states_[chunk] = State::Ready;
    }
    changed_.notify_all();
  }
}

std::unique_ptr<RecordStream::Decoded> RecordStream::take(u32 chunk) {
  std::unique_lock lock(mutex_);
  if (states_[chunk] == State::Waiting) {
    states_[chunk] = State::Taken;
    lock.unlock();
    if (!processors_are_busy()) changed_.notify_all();  // it may decode ahead again
    return decode(chunk, spares_->take(), scratch_);
  }
  changed_.wait(lock, [&] { return states_[chunk] == State::Ready; });
  states_[chunk] = State::Taken;
  ahead_ -= reader_.record_chunks()[chunk].raw_size;
  std::unique_ptr<Decoded> decoded = std::move(ready_[chunk]);
  lock.unlock();
  changed_.notify_all();
  return decoded;
}

std::unique_ptr<RecordStream::Decoded> RecordStream::Spares::take() {
  std::lock_guard lock(mutex);
  if (buffers.empty()) return nullptr;
  std::unique_ptr<Decoded> buffer = std::move(buffers.back());
  buffers.pop_back();
  return buffer;
}

void RecordStream::Spares::give(std::unique_ptr<Decoded> used) {
  std::lock_guard lock(mutex);
  if (buffers.size() < 8) buffers.push_back(std::move(used));
}

std::vector<bool> RecordStream::without(const TypeSet& types) const {
  std::vector<bool> found(reader_.threads().size(), false);
  for (const Lane& lane : lanes_) {
    const bool whole = lane.next_chunk == lane.chunks->size() && lane.at == lane.end && lane.rows.left() == 0;
    found[lane.thread] = whole && !lane.types.shares(types);
  }
  return found;
}

std::shared_ptr<const void> RecordStream::chunk(const Span& span) const { return span.lane->decoded; }

// Decodes the lane's next chunk that holds records. False: the lane is done.
[[gnu::noinline]] bool RecordStream::open_next_chunk(Lane& lane) {
  if (lane.rows.left()) return take_rows(lane), true;
  close_chunk(lane);
  while (lane.next_chunk < lane.chunks->size()) {
    const u32 chunk = (*lane.chunks)[lane.next_chunk++];
    if (processors_are_busy() && open_rows(lane, chunk)) {
      if (lane.rows.left() == 0) continue;
      return take_rows(lane), true;
    }
    const u64 bytes = reader_.record_chunks()[chunk].raw_size;
    std::unique_ptr<Decoded> decoded = take(chunk);
    unknown_ += decoded->range.unknown;
    lane.types.add(decoded->range.types);
    if (!decoded->good) note_damage(decoded->reason);
    if (decoded->good && open_bytes_ + bytes > most_open_)
      note_damage(kTooManyOpen);
    else if (decoded->good && decoded->range.size > 0) {
      open_bytes_ += lane.open_bytes = bytes;
      lane.may_be_bulk = decoded->range.types.shares(in_bulk_);
      take_decoded(lane, std::move(decoded));
      return true;
    }
    spares_->give(std::move(decoded));
  }
  return false;
}

// Opens a chunk whose records are decoded as they are taken; nothing is left of it where it cannot be read. False: it is decoded whole, by
// the other thread or from another encoding.
bool RecordStream::open_rows(Lane& lane, u32 chunk) {
  const RecordChunk& opened = reader_.record_chunks()[chunk];
  if (opened.encoding != Encoding::TransposedZstd) return false;
  {
    std::lock_guard lock(mutex_);
    if (states_[chunk] != State::Waiting) return false;
    states_[chunk] = State::Taken;
  }
  if (!spare_rows_.empty()) {
    lane.rows = std::move(spare_rows_.back());
    spare_rows_.pop_back();
  }
  const auto range = reader_.open_rows(opened, scratch_, lane.rows);
  if (!range) return note_damage(range.error().reason), true;
  unknown_ += range.value().unknown;
  lane.types.add(range.value().types);
  if (open_bytes_ + opened.raw_size > most_open_) return note_damage(kTooManyOpen), lane.rows.close(), true;
  open_bytes_ += lane.open_bytes = opened.raw_size;
  lane.may_be_bulk = range.value().types.shares(in_bulk_);
  return true;
}

void RecordStream::take_rows(Lane& lane) {
  lane.decoded.reset();  // its memory is what the next ones are written to
  std::unique_ptr<Decoded> decoded = spares_->take();
  if (!decoded) decoded = std::make_unique<Decoded>();
  decoded->pieces.types = in_bulk_;
  decoded->range = lane.rows.next(decoded->records, decoded->pieces);
  take_decoded(lane, std::move(decoded));
}

void RecordStream::take_decoded(Lane& lane, std::unique_ptr<Decoded> decoded) {
  const auto give = [spares = spares_](Decoded* used) { spares->give(std::unique_ptr<Decoded>(used)); };
  lane.decoded = std::shared_ptr<Decoded>(decoded.release(), give);
  lane.at = lane.decoded->range.data;
  lane.end = lane.at + lane.decoded->range.size;
  lane.piece = lane.decoded->pieces.all.data();
  lane.key = std::max(lane.key, key_of(*reinterpret_cast<const RecordHeader*>(lane.at)));
}

void RecordStream::close_chunk(Lane& lane) {
  open_bytes_ -= lane.open_bytes;
  lane.open_bytes = 0;
  lane.decoded.reset();
  if (!lane.rows.has_memory()) return;
  lane.rows.close();
  if (spare_rows_.size() < kSpareRows) spare_rows_.push_back(std::move(lane.rows));
  lane.rows = ChunkRows();  // nothing is held for who has no chunk open
}

void RecordStream::note_damage(const std::string& reason) {
  constexpr u64 kMost = 200;
  if (++damaged_ <= kMost) damage_.push_back(reason);
}

// Puts the current lane back among the others, by its next record or, before its next chunk is decoded, by that chunk's
// begin, and takes the first.
void RecordStream::next_turn() {
  if (current_ && current_->at == current_->end && current_->rows.left()) {
    take_rows(*current_);
    if (current_->key <= turn_ends(*current_)) return;  // as if all of the chunk lay there
  } else if (current_ && current_->at == current_->end) {
    Lane& lane = *current_;
    if (lane.next_chunk < lane.chunks->size()) {
      lane.key = std::max(lane.key, reader_.record_chunks()[(*lane.chunks)[lane.next_chunk]].begin);
    } else {
      close_chunk(lane);
      current_ = nullptr;
    }
  }
  if (current_) return pass_turn();
  if (waiting_ == 0) return;
  current_ = turns_.front().lane;
  std::pop_heap(turns_.data(), turns_.data() + waiting_, std::greater<>());
  turns_[--waiting_] = turns_.back();
}

// The same, where the current lane has a next record or chunk.
void RecordStream::pass_turn() {
  const Turn mine{current_->key, current_};
  Turn* const turns = turns_.data();
  if (!(mine > turns[0])) return;
  current_ = turns[0].lane;
  // The first leaves and the current one sinks from its place.
  Turn* place = turns;
  for (std::size_t child = 1; child < waiting_; child = 2 * child + 1) {
    child += turns[child] > turns[child + 1];
    if (!(mine > turns[child])) break;
    *place = turns[child];
    place = turns + child;
  }
  *place = mine;
}

// Up to which of its records a lane may go on.
Ticks RecordStream::turn_ends(const Lane& lane) const {
  if (order_ == Order::Threads) [[unlikely]]
    return chunk_ends(lane);
  return turns_.front().key;
}

[[gnu::noinline]] Ticks RecordStream::chunk_ends(const Lane& lane) const {
  Ticks first = ~0ull;
  const bool of_all = reader_.threads()[lane.thread].tid == 0;
  for (std::size_t i = 0; i < waiting_; ++i) {
    const Turn& other = turns_[i];
    if (of_all || reader_.threads()[other.lane->thread].tid == 0) first = std::min(first, other.key);
  }
  return first;
}

// Makes the current lane one whose turn it is and that has records in an open chunk. False: all was taken.
[[gnu::noinline]] bool RecordStream::begin_spans() {
  if (!std::exchange(goes_on_, false)) next_turn();
  for (; current_; next_turn()) {
    Lane& lane = *current_;
    if (lane.at != lane.end) return true;
    if (!open_next_chunk(lane)) continue;
    if (lane.key <= turns_.front().key) return true;
  }
  return false;
}

// The next records of the thread whose turn it is, up to where another thread's turn comes; then those of that thread. Chunks stay open
// until their spans were visited.
[[gnu::flatten]] bool RecordStream::take_spans() {
  if (!begin_spans()) return false;
  Span* next = spans_.data();
  for (;;) {
    Lane& lane = *current_;
    Span& span = *next++;
    span = {lane.at, lane.at, lane.thread, 0, false, &lane};
    const Ticks limit = turn_ends(lane);
    bool goes_on = false;
    if (lane.may_be_bulk)
      goes_on = take_pieces(lane, limit, span);
    else
      take_singly(lane, limit, span);
    span.end = lane.at;
    const bool full = next == spans_.data() + spans_.size();
    if (full || lane.at == lane.end) {
      goes_on_ = goes_on;
      break;
    }
    if (!goes_on) pass_turn();
    if (current_->at == current_->end) break;
  }
  taken_ = static_cast<std::size_t>(next - spans_.data());
  return true;
}

// The first record in any case, then those whose place is not behind `limit`.
void RecordStream::take_singly(Lane& lane, Ticks limit, Span& span) const {
  const u8* at = lane.at;
  const u8* const end = lane.end;
  Ticks key = lane.key;
  do {
    ++span.records;
    at += reinterpret_cast<const RecordHeader*>(at)->size;
    if (at == end) break;
    __builtin_prefetch(at + kAheadInChunk);  // a step may be two lines wide
    __builtin_prefetch(at + kAheadInChunk + kLine);
    key = std::max(key, key_of(*reinterpret_cast<const RecordHeader*>(at)));
  } while (key <= limit);
  lane.at = at;
  lane.key = key;
}

// The same, up to where bulk begins or ends: a piece of it at a time where that comes before `limit` whole. True: it is still the lane's
// turn.
bool RecordStream::take_pieces(Lane& lane, Ticks limit, Span& span) const {
  bool goes_on = false;
  const u8* const data = lane.decoded->range.data;
  span.bulk = lane.piece->wanted;
  do {
    if (span.bulk && lane.at == data + lane.piece->begin && std::max(lane.key, lane.piece->newest) <= limit) {
      lane.key = std::max(lane.key, lane.piece->newest);
      span.records += lane.piece->records;
      lane.at = data + lane.piece->end;
    } else {
      ++span.records;
      lane.at += reinterpret_cast<const RecordHeader*>(lane.at)->size;
    }
    if (lane.at == lane.end) return goes_on;
    lane.piece += lane.at == data + lane.piece->end;
    __builtin_prefetch(data + lane.piece->end);
    lane.key = std::max(lane.key, key_of(*reinterpret_cast<const RecordHeader*>(lane.at)));
    goes_on = lane.key <= limit;
  } while (goes_on && lane.piece->wanted == span.bulk);
  return goes_on;
}

}  // namespace gputrace
