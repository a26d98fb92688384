// The kernels of all processes under their categories, each with the shapes that it was launched in.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/names/categories.h"

namespace gputrace {

struct CategorizedKernel {
  struct Shape {
    std::string grid, block;  // "x,y,z"
    u64 dynamic_shared = 0;
    u64 executions = 0, total_ns = 0;
  };
  std::string symbol;  // as loaded; for a kernel without a name its handle
  std::string name;    // the short form
  CategoryChoice choice;
  std::vector<Shape> shapes;  // most expensive first
  u64 executions = 0, total_ns = 0;
};

// Most expensive first: by time, by executions where there are no times.
std::vector<CategorizedKernel> categorized_kernels(const LoadedRun& run);

}  // namespace gputrace
