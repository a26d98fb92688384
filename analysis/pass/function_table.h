// Which function a handle means, at each moment of the pass: handles are reused after their module was unloaded.
// A handle that is used before anything was said about it gets an entry that later facts fill in.
#pragma once

#include <string_view>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/timeline/timeline_feed.h"
#include "trace/text_table.h"

namespace gputrace {

class FunctionTable {
 public:
  // The timeline is told of every function, and of its symbol.
  FunctionTable(std::vector<Function>& functions, std::vector<ModuleInstance>& modules, const TextTable& texts,
                TimelineFeed& timeline)
      : functions_(functions), modules_(modules), texts_(texts), timeline_(timeline), name_bytes_(texts.bytes()) {}

  void module_loaded(const ModuleLoad& load);
  // Handles may be given again before the call that frees them has returned: the record of that call then comes behind what
  // the next module's calls have left, and is about the one before.
  void module_unloaded(u64 module, Ticks begin);
  void has_image(const CodeImage& image);
  void named(const FunctionGet& get);
  void described(const FunctionFacts& facts);
  // Index of the function that the handle means now.
  u32 find(u64 handle);
  // Changes whenever a handle that was known may mean another function.
  u64 version() const { return version_; }

 private:
  u32 make(u64 handle);
  void forget(u32 module);
  // The entry to give a name to: the current one unless it is known to be another function.
  u32 entry_for(u64 handle, std::string_view symbol, u32 module);
  u32 module_of(u64 handle) const;
  void give_symbol(u32 function, std::string_view symbol);
  std::string copy_of(std::string_view name);

  std::vector<Function>& functions_;
  std::vector<ModuleInstance>& modules_;
  const TextTable& texts_;
  TimelineFeed& timeline_;
  std::vector<std::string_view> symbols_;  // by function; the text is the trace's
  std::unordered_map<u64, u32> by_handle_;
  struct Loaded {
    u32 module;   // index
    Ticks since;  // end of its load; 0: not known
  };
  std::unordered_map<u64, Loaded> modules_by_handle_;
  // What may still be copied of names: many functions may have one name, but all their copies are not much more than the texts
  // of the trace. What is beyond, and of each name what is beyond kMostNameBytes, is cut off.
  static constexpr std::size_t kMostNameBytes = 16u << 10, kCutNameBytes = 200;
  u64 name_bytes_;
  u64 version_ = 0;
  u64 last_handle_ = 0;
  u32 last_index_ = kNone;
};

}  // namespace gputrace
