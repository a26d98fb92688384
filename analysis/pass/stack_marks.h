// What a launch is for, told by the frames in its stack: tokens of Hugging Face transformers' generate(), batches of an engine that serves
// requests (vLLM, SGLang), or trials of what a compiler has made.
//
//   at each launch:   switch (thread.turn.next(marks.place_of(frames, frame of the thread's stack))) ...
//
// Not thread-safe.
#pragma once

#include <vector>

#include "analysis/facts/source_lines.h"

namespace gputrace {

class StackMarks {
 public:
  enum class Kind : u8 {
    NotKnown,
    Outside,
    Prompt,  // in a function of generate() that takes in the prompt alone
    Loop,    // in one with the loop that makes a token a turn
    Batch,   // in the function of an engine that runs the model once, for all requests that are under way
    Save,    // in a function that writes a model to a file
    Trial,   // TorchInductor's benchmarks, Triton's autotuner: a loop, and none of the program's
  };
  struct Place {
    Kind kind = Kind::Outside;
    u32 line = 0;  // Loop, Batch: that of the function
  };

  // In which of them the frame or one of its callers is; in none of them: outside. One of them is not defined yet: not known.
  Place place_of(const std::vector<SourceFrame>& frames, u32 frame) {
    if (frame == 0) return {};
    const bool known = known_.size() == frames.size() && frame < known_.size() && known_[frame].kind != Kind::NotKnown;
    return known ? known_[frame] : find(frames, frame);
  }

  // A thread's turns. One ends where the function's lines begin anew; an engine's also where the function is called again.
  class Turn {
   public:
    enum class Begins : u8 { Nothing, Prefill, Token, Batch, AfterBatch, Outside };
    Begins next(const Place& place) {
      const bool goes_on_outside = place.kind == Kind::Outside && !generates_ && !in_batch_;
      return goes_on_outside ? Begins::Nothing : turn(place);
    }
    bool in_batch() const { return in_batch_; }

   private:
    Begins turn(const Place& place);
    bool begins_anew(u32 line);

    bool generates_ = false, in_batch_ = false, went_on_ = false;
    u32 first_ = 0, last_ = 0;  // the first line of this turn, and the newest; 0: none yet
  };

 private:
  Place find(const std::vector<SourceFrame>& frames, u32 frame);

  std::vector<Place> known_;  // by frame
};

}  // namespace gputrace
