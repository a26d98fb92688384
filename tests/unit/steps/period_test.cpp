// Loops found in what a program gives to a device: synthetic programs, each of which says itself where its turns begin. A turn
// is right if its begin lies within 2 % of its length.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "analysis/steps/loop_period.h"

namespace gputrace {
namespace {

constexpr Nanos kUs = 1000;

// A letter is an event: lower-case ones are launches of kernels; I and O copies to the device and to the host, M a memset, W a
// wait, G a graph, U and V kernels that update parameters. Numbers are pauses of so many us before the next event, jitter added.
class Script {
 public:
  explicit Script(unsigned seed = 1) : random_(seed) {}

  Script& does(const std::string& what) {
    Nanos pause = 0;
    for (const char c : what) {
      if (c == ' ') continue;
      if (c >= '0' && c <= '9') {
        pause = pause * 10 + (c - '0');
        continue;
      }
      event(c, pause * kUs);
      pause = 0;
    }
    now_ += jitter(pause * kUs);
    return *this;
  }
  // One turn of the loop that is sought.
  Script& turn(const std::string& what) {
    begins_.push_back(now_);
    return does(what);
  }
  Script& jitters(double by) {
    jitter_ = by;
    return *this;
  }
  // Calls come from another thread.
  Script& on(u32 thread) {
    thread_ = thread;
    return *this;
  }
  unsigned random(unsigned below) { return static_cast<unsigned>(random_()) % below; }
  std::string letters(std::size_t count, unsigned different) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += static_cast<char>('a' + random(different));
    return text;
  }

  std::optional<FoundLoop> find() const {
    return find_period(events_, [](u32 symbol) {
      return symbol == loop_symbol(LoopKind::Kernel, 'U') || symbol == loop_symbol(LoopKind::Kernel, 'V');
    });
  }
  // Share of the turns found that are right, and of the turns that are found; 0, 0: none was found.
  std::pair<double, double> precision_and_recall() const {
    const auto found = find();
    if (!found) return {0, 0};
    std::size_t right = 0;
    for (const LoopTurn& turn : found->turns) {
      for (std::size_t i = 0; i < begins_.size(); ++i) {
        const Nanos end = i + 1 < begins_.size() ? begins_[i + 1] : now_;
        const double off = static_cast<double>(turn.begin - begins_[i]);
        right += std::abs(off) <= 0.02 * static_cast<double>(end - begins_[i]);
      }
    }
    return {static_cast<double>(right) / static_cast<double>(found->turns.size()),
            static_cast<double>(right) / static_cast<double>(begins_.size())};
  }

  // What was found, for a test that fails.
  std::string words() const {
    const auto found = find();
    if (!found) return "nothing";
    std::string text = std::to_string(found->turns.size()) + " of " + std::to_string(begins_.size()) + " turns, of " +
                       std::to_string(found->events) + " events; begin off by";
    for (std::size_t i = 0; i < std::min<std::size_t>(4, found->turns.size()); ++i)
      text += " " + std::to_string(found->turns[i].begin - begins_[i]);
    return text;
  }

 private:
  Nanos jitter(Nanos length) {
    const double by = 1 + jitter_ * (static_cast<double>(random(2001)) / 1000 - 1);
    return static_cast<Nanos>(static_cast<double>(length) * by);
  }
  void event(char c, Nanos pause) {
    static const std::string kOthers = "IOMWG";
    constexpr LoopKind kKinds[] = {LoopKind::ToDevice, LoopKind::ToHost, LoopKind::Memset, LoopKind::Wait,
                                   LoopKind::Graph};
    const std::size_t other = kOthers.find(c);
    const LoopKind kind = other == std::string::npos ? LoopKind::Kernel : kKinds[other];
    now_ += jitter(pause);
    const Nanos begin = now_ + 100;
    now_ += jitter(kind == LoopKind::Wait ? 40 * kUs : 5 * kUs);
    const u32 number = other == std::string::npos ? static_cast<u32>(c) : 0;
    events_.push_back({begin, now_, loop_symbol(kind, number), thread_});
  }

  std::vector<LoopEvent> events_;
  std::vector<Nanos> begins_;
  std::mt19937 random_;
  double jitter_ = 0;
  Nanos now_ = 1'000'000;
  u32 thread_ = 1;
};

struct Pattern {
  const char* name;
  void (*write)(Script& script);
};

void times(Script& script, int count, const std::string& turn) {
  for (int i = 0; i < count; ++i) script.turn(turn);
}
std::string repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

const Pattern kLoops[] = {
    {"kernel and wait", [](Script& s) { times(s, 30, "aW"); }},
    {"three kernels", [](Script& s) { times(s, 30, "abc"); }},
    {"a pause before each turn", [](Script& s) { times(s, 30, "200 abc"); }},
    {"start-up before it", [](Script& s) { times(s.does("xyMMxIIyz W"), 40, "Iabcd W"); }},
    {"a pause in the middle", [](Script& s) { times(s.does("xyz"), 40, "Iab 30 cdW"); }},
    {"something after it",
     [](Script& s) {
       times(s, 40, "Iabcd W");
       s.does("OOOO xyz W");
     }},
    {"four turns", [](Script& s) { times(s.does("xxyy"), 4, "Iabcdef W"); }},
    {"a kernel comes twice", [](Script& s) { times(s, 50, "abacW"); }},
    {"layers", [](Script& s) { times(s, 40, "I" + repeat("abcd", 12) + "ef" + repeat("ghij", 12) + "UUU"); }},
    {"many layers",
     [](Script& s) { times(s, 20, "Ix" + repeat("abcdklmnopq", 24) + "ef" + repeat("ghijrst", 24) + "UUUU"); }},
    {"accumulated gradient", [](Script& s) { times(s, 30, repeat("Iabcd", 4) + "UVW"); }},
    {"accumulated over sixteen", [](Script& s) { times(s, 20, repeat("Iabcdefgh", 16) + "U"); }},
    {"jitter of a tenth", [](Script& s) { times(s.jitters(0.1), 60, "100 Iabcde W"); }},
    {"jitter of half", [](Script& s) { times(s.jitters(0.5), 60, "100 Iabcde W"); }},
    {"slow first turns",
     [](Script& s) {
       s.turn("I 9000 a 5000 bcd W").turn("Iab 3000 cd W");
       times(s, 40, "Iabcd W");
     }},
    {"first turn launches more",
     [](Script& s) {
       s.turn("Ia xyzxyz bcd W");
       times(s, 50, "Iabcd W");
     }},
    {"the first update makes its state, and the host pauses before each",
     [](Script& s) {
       s.does("xyzxyzxx").turn("Iabcd MMMM 30 U");
       times(s, 50, "Iabcd 30 U");
     }},
    {"evaluation after each epoch",
     [](Script& s) {
       for (int epoch = 0; epoch < 3; ++epoch) {
         times(s, 100, "IabcdefUW");
         for (int i = 0; i < 20; ++i) s.does("Iabx");
         s.does("O");
       }
     }},
    {"evaluation with other kernels",
     [](Script& s) {
       for (int epoch = 0; epoch < 4; ++epoch) {
         times(s, 60, "IabcdUO");
         s.does(repeat("Ixyz", 15) + "O");
       }
     }},
    {"evaluation that ends with a wait",
     [](Script& s) {
       for (int epoch = 0; epoch < 5; ++epoch) {
         times(s, 80, "IabcdefUU");
         s.does(repeat("Iab", 10) + "W 400");
       }
     }},
    {"saving every hundred",
     [](Script& s) {
       for (int i = 0; i < 4; ++i) {
         times(s, 100, "IabcdU");
         s.does("WOOOOOOOOOOOOOOOO 5000");
       }
     }},
    {"loss read every tenth",
     [](Script& s) {
       for (int i = 0; i < 200; ++i) s.turn(i % 10 == 9 ? "IabcdefghUO" : "IabcdefghU");
     }},
    {"a kernel is another one while sequences are short",
     [](Script& s) {
       for (int request = 0; request < 6; ++request) {
         for (int token = 0; token < 24; ++token) s.turn((token < 9 ? "z" : "a") + repeat("bcdefghi", 2) + "klmnopO");
       }
     }},
    {"two kernels are others while sequences are short",
     [](Script& s) {
       for (int request = 0; request < 6; ++request) {
         for (int token = 0; token < 24; ++token)
           s.turn("Ix" + repeat(token < 14 ? "bcdefghi" : "bcdeyghi", 4) + (token < 9 ? "z" : "a") + "klmnopO");
       }
     }},
    {"an executor of several threads, in an order that varies",
     [](Script& s) {
       const char* const orders[] = {"2000 IIxabcdefghijklmnopq", "2000 IabIxcdefghijklmnopq",
                                     "2000 IIabxcdefghijklmnopq", "2000 IabcIdxefghijlkmnopq",
                                     "2000 IIabcdefxghijklmonpq"};
       for (int i = 0; i < 120; ++i) s.turn(orders[s.random(5) < 3 ? 0 : s.random(5)]);  // most are alike
     }},
    {"a metric computed and read every tenth",
     [](Script& s) {
       for (int i = 0; i < 125; ++i) s.turn(i % 10 == 9 ? "4000 Iabc IIxO" : "4000 Iabc");
     }},
    {"a metric computed and read every tenth, of a longer turn",
     [](Script& s) {
       for (int i = 0; i < 200; ++i) s.turn(i % 10 == 9 ? "IabcdefghijxyO" : "Iabcdefghij");
     }},
    {"variable length",
     [](Script& s) {
       for (int i = 0; i < 100; ++i) s.turn("Ix" + repeat("abc", 3 + static_cast<int>(s.random(12))) + "yzUW");
     }},
    {"variable length, long",
     [](Script& s) {
       for (int i = 0; i < 60; ++i) s.turn("Iwx" + repeat("abcde", 5 + static_cast<int>(s.random(40))) + "yzUVW");
     }},
    {"a branch now and then",
     [](Script& s) {
       for (int i = 0; i < 200; ++i) s.turn(s.random(8) == 0 ? "Iabcmndefg UW" : "Iabcdefg UW");
     }},
    {"an optimizer of many launches", [](Script& s) { times(s, 50, "I" + repeat("abcd", 3) + repeat("U", 30)); }},
    {"what comes out is read item by item",
     [](Script& s) { times(s.does("xy"), 60, "2000 " + repeat("I", 12) + "abcdefgW" + repeat("hOW", 16)); }},
    {"graph in each turn", [](Script& s) { times(s, 50, "IGO"); }},
    {"only graphs", [](Script& s) { times(s, 50, "50 G"); }},
    {"two graphs and kernels", [](Script& s) { times(s, 50, "IaGbGW"); }},
    {"tokens: layers and a copy to the host", [](Script& s) { times(s, 80, "e" + repeat("abcdf", 16) + "hsO"); }},
    {"input that takes most of the time", [](Script& s) { times(s.does("xx"), 50, "3000 Iabcde W"); }},
    {"no wait, no copy", [](Script& s) { times(s, 100, "abcdefgh"); }},
    {"killed in the middle",
     [](Script& s) {
       times(s.does("xyz"), 50, "Iabcdefg W");
       s.does("Iab");
     }},
    {"two threads hand over",
     [](Script& s) {
       for (int i = 0; i < 60; ++i) s.on(1).turn("Iabc").on(2).does("defg").on(1).does("UW");
     }},
    {"requests through layers that are all the same",
     [](Script& s) { times(s.does("xyIII"), 100, "2000 IW" + repeat("gr", 8) + "OW"); }},
    {"requests through layers that are all the same, one behind the other",
     [](Script& s) { times(s.does("xyIII"), 100, "I" + repeat("gnr", 24) + "OW"); }},
    {"a simulation whose state is read every tenth turn",
     [](Script& s) {
       for (int i = 0; i < 200; ++i) s.turn(i % 10 == 9 ? "abOW" : "ab");
     }},
    {"a simulation with a new force every tenth turn",
     [](Script& s) {
       for (int i = 0; i < 200; ++i) s.turn(i % 10 == 9 ? "abcI" : "abc");
     }},
    {"speculative decoding: four drafts by a small model, and a large one that looks at them",
     [](Script& s) {
       times(s.does("IIIxx"), 50, repeat("e" + repeat("abcdf", 2) + "hmn", 4) + "E" + repeat("abcdf", 6) + "hmopqOW");
     }},
    {"speculative decoding: seven drafts",
     [](Script& s) {
       times(s.does("IIIxx"), 40, repeat("e" + repeat("abcdf", 2) + "hmn", 7) + "E" + repeat("abcdf", 6) + "hmopqOW");
     }},
    {"clearing at the begin", [](Script& s) { times(s, 60, "MIabcd U"); }},
    {"reads the loss at the end", [](Script& s) { times(s.does("xyxyx"), 60, "IabcdefgUO"); }},
    {"two copies in", [](Script& s) { times(s, 60, "IIabcdef U"); }},
    {"long kernels list", [](Script& s) { times(s, 30, "Iabcdefghijklmnopqrstuvwxyz" + repeat("abz", 20) + "UW"); }},
    {"two optimizers in a turn", [](Script& s) { times(s, 60, "IabcdUefghV"); }},
    {"a kernel at equal distances", [](Script& s) { times(s.does("IIIIIW"), 40, "IabcaO"); }},
    {"copies and kernels by turns", [](Script& s) { times(s, 40, "IaIb IcOW"); }},
    {"accumulated gradient, then evaluation",
     [](Script& s) {
       for (int epoch = 0; epoch < 3; ++epoch) {
         times(s, 20, repeat("Iab", 4) + "cW");
         s.does(repeat("IaO", 6));
       }
     }},
    {"waits in the middle too", [](Script& s) { times(s, 60, "IabWcdWefUW"); }},
    {"start-up with the same kernels", [](Script& s) { times(s.does("abxMabxMM W 500"), 60, "Iabcdef W"); }},
    {"pauses everywhere", [](Script& s) { times(s.jitters(0.3), 60, "20 I 10 a 30 b 10 c 20 d 15 U"); }},
    {"a second loop after it, shorter",
     [](Script& s) {
       times(s, 100, "IabcdefU");
       s.does(repeat("xyO", 10));
     }},
};

TEST(Period, FindsLoops) {
  for (const Pattern& pattern : kLoops) {
    Script script;
    pattern.write(script);
    const auto [precision, recall] = script.precision_and_recall();
    EXPECT_GE(precision, 0.98) << pattern.name << ": " << script.words();
    EXPECT_GE(recall, 0.98) << pattern.name << ": " << script.words();
  }
}

const Pattern kNone[] = {
    {"nothing", [](Script&) {}},
    {"a few launches", [](Script& s) { s.does("abcW"); }},
    {"one kernel again and again", [](Script& s) { s.does(repeat("a", 1000)); }},
    {"one kernel with pauses", [](Script& s) { s.does(repeat("50 a", 300)); }},
    {"random launches of two kernels", [](Script& s) { s.does(s.letters(2000, 2)); }},
    {"random launches of three", [](Script& s) { s.does(s.letters(2000, 3)); }},
    {"random launches of ten", [](Script& s) { s.does(s.letters(3000, 10)); }},
    {"random launches of twenty", [](Script& s) { s.does(s.letters(3000, 20)); }},
    {"all different", [](Script& s) { s.does("abcdefghijklmnopqrstuvwxyz"); }},
    {"random launches, now and then a wait",
     [](Script& s) {
       for (int i = 0; i < 200; ++i) s.does(s.letters(5 + s.random(30), 8) + "W");
     }},
    {"requests of all kinds",
     [](Script& s) {
       for (int i = 0; i < 300; ++i) s.does("I" + s.letters(3 + s.random(20), 12) + "O");
     }},
    {"parameters moved to the device one by one, then a few turns",
     [](Script& s) {
       s.does(repeat("IW", 120));
       times(s, 2, "IabcdefgUW");
     }},
    {"start-up alone", [](Script& s) { s.does("MMMMIIIIabcdW"); }},
    {"twice the same", [](Script& s) { s.does("Iabcdefg W Iabcdefg W"); }},
    {"two threads at random",
     [](Script& s) {
       for (int i = 0; i < 1000; ++i) s.on(1 + s.random(2)).does(s.letters(1 + s.random(4), 6));
     }},
};

TEST(Period, ClaimsNothingWhereThereIsNone) {
  for (const Pattern& pattern : kNone) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      Script script(seed);
      pattern.write(script);
      const auto found = script.find();
      EXPECT_FALSE(found.has_value()) << pattern.name << ": " << (found ? found->turns.size() : 0) << " turns of "
                                      << (found ? found->events : 0);
    }
  }
}

}  // namespace
}  // namespace gputrace
