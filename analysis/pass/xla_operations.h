// Operations of XLA (JAX, TensorFlow's compiled functions), as it tells them by NVTX: the module that a thread executes, and within
// it each HLO operation, told as ranges that the thread pushes and pops in the domain "TSL". They become operations of a framework
// like PyTorch's: SourceFrames under each other, with counts and times.
//   · Names are XLA's own ("loop_multiply_fusion", with the framework's name for it where XLA tells that); nothing is inferred.
//   · What the autotuner runs while XLA compiles is operations too; compiling() says so for whoever looks for the program's own loop.
//   · Until finish() they are numbered apart from the trace's own frames, from kFirst on.
//   · Memory: at most kMost different ones; further ones, and those whose text the trace does not have, count as what is around them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/facts/source_lines.h"
#include "analysis/facts/step_facts.h"
#include "trace/reader.h"

namespace gputrace {

// What an NVTX message of XLA's stands for; empty: no operation.
//   "XlaModule:#hlo_module=jit_step,program_id=3#"              → "jit_step"
//   "Thunk:#name=jit(step)/mul,hlo_op=loop_multiply_fusion#"    → "loop_multiply_fusion (jit(step)/mul)"
std::string xla_operation(std::string_view message);

class XlaOperations {
 public:
  static constexpr u32 kFirst = 1u << 31;
  static constexpr std::size_t kMost = 1u << 14;

  // `told`: operations were asked for; else there are none, and compiling() is known all the same.
  XlaOperations(const TextTable& texts, std::size_t threads, bool told)
      : texts_(texts), told_(told), open_(threads), compiling_(threads) {}

  // A range of the thread's; `counted`: it begins, or began, in the report's window. Returns whether its innermost operation is
  // another one now.
  bool add(const Nvtx& value, u32 thread, Nanos at, bool counted);
  // Records of that thread were lost: what is open there may have ended.
  void lost(u32 thread) { open_[thread].clear(), compiling_[thread] = 0; }
  // The thread's innermost operation; 0: none.
  u32 innermost(u32 thread) const;
  // The thread is within XLA's compiler.
  bool compiling(u32 thread) const { return compiling_[thread] != 0; }
  // When it was, until now: the first kMost times.
  std::vector<XlaCompiling> take_compiled() { return std::move(compiled_); }
  bool any() const { return !made_.empty(); }
  std::size_t count() const { return made_.size() + messages_.size(); }  // for whoever limits memory

  // Once, when no more StackFrame comes: puts them behind the frames that are there, and the origins' operations at their places.
  void finish(SourceLines& lines);

 private:
  struct Open {
    Nanos begin = 0;
    u64 within_ns = 0;
    u64 message = 0;
    u32 operation = 0;  // 0: a range that is none
    bool counted = false;
    bool compiles = false;
  };
  struct Made {
    u32 parent = 0;
    u32 name = 0;  // place in names_
    OperationTotals totals;
  };
  u32 name_of(u64 message);
  u32 operation_of(u32 parent, u32 name);

  const TextTable& texts_;
  const bool told_;
  std::vector<std::vector<Open>> open_;  // by thread: the domain's ranges, operations or not
  std::vector<u32> compiling_;           // by thread: how many of them are the compiler's
  std::vector<XlaCompiling> compiled_;
  std::unordered_map<u64, u32> messages_;  // place in names_; or kNoName, kCompiler
  std::map<std::string, u32> places_;
  std::vector<std::string> names_;
  std::vector<Made> made_;  // number − kFirst
  std::unordered_map<u64, u32> by_names_;
  std::unordered_map<u64, bool> domains_;  // whether it is TSL's, by text
};

}  // namespace gputrace
