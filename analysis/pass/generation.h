// What a launch is for, told by the frames in its stack: to make tokens (Hugging Face transformers' generate()), or to try out what a compiler has made.
//
//   at each launch:   switch (thread.turn.next(generation.place_of(frames, frame of the thread's stack))) ...
//
// Not thread-safe.
#pragma once

#include <vector>

#include "analysis/facts/source_lines.h"

namespace gputrace {

class Generation {
 public:
  enum class Kind : u8 {
    NotKnown,
    Outside,
    Prompt,  // in a function that takes in the prompt alone
    Loop,
    Trial,  // TorchInductor's benchmarks, Triton's autotuner: a loop, and none of the program's
  };
  struct Place {
    Kind kind = Kind::Outside;
    u32 line = 0;  // Loop: that of the function whose loop makes a token a turn
  };

  // Where in generate() or in a trial the frame or one of its callers is; none of them is: outside. One of them is not defined yet: not known.
  Place place_of(const std::vector<SourceFrame>& frames, u32 frame);

  // A thread's turns of that loop. A turn ends where the loop's lines begin anew.
  class Turn {
   public:
    enum class Begins : u8 { Nothing, Prefill, Token, Outside };
    Begins next(const Place& place);

   private:
    bool within_ = false, went_on_ = false;
    u32 first_ = 0, last_ = 0;  // the first line of this turn, and the newest; 0: none yet
  };

 private:
  std::vector<Place> known_;  // by frame
};

}  // namespace gputrace
