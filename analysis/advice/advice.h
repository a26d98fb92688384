// What to do about a cause, in the words of whose calls they are: rows of advice.def.
#pragma once

#include <string>

#include "analysis/advice/made_by.h"

namespace gputrace {

enum class Advice : u8 {
  FewerLaunches,
  MoreInGraphs,
  FuseKernels,
  ReplayGraph,
  LoadAhead,
  MoreWorkers,
  KeepWorkers,
  WorkAhead,
  MakeAhead,
  PinMemory,
  CopyBesides,
  ReadsResults,
  OnlyForTimes,
  KeepNothing,
  HoldLess,
  OwnDevice,
  NarrowTypes,
  RoundToTf32,
  KeepLayout,
  UseDevice,
  KeepCompiled,
};

// "": nothing that this maker's users could do, and no general words.
std::string advise(Advice what, Maker maker);
std::string advise(Advice what, const ProcessTrace& process);

// "no graph breaks in what is compiled (at train.py:12; …)"; empty: torch.compile makes none.
std::string without_graph_breaks(const ProcessTrace& process);

// How to launch less, for a process as it is: what of its launches its optimizer or DataParallel makes comes first. Whose kernels nearly all come
// from graphs is not told to use graphs.
std::string fewer_launches(const ProcessTrace& process);

}  // namespace gputrace
