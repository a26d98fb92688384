// Descriptors of cuDNN's graph interface. A handle is a Descriptor; what it keeps is its State, shared with every state that it was given
// to, since programs destroy descriptors as soon as they have passed them on.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/libs/cudnn/types.h"

namespace simlibs {

struct Work;

struct State;
using StatePointer = std::shared_ptr<State>;

struct State {
  int type = 0;  // cudnnBackendDescriptorType_t
  bool finalized = false;
  struct Attribute {
    int type = 0;  // cudnnBackendAttributeType_t
    long long count = 0;
    std::string bytes;                 // all types but descriptors
    std::vector<StatePointer> states;  // descriptors
  };
  std::map<int, Attribute> attributes;
  int engine = 0;                    // of an engine: which of the kernels that fit
  std::shared_ptr<const Work> work;  // of a plan

  const Attribute* find(int attribute) const {
    const auto at = attributes.find(attribute);
    return at == attributes.end() ? nullptr : &at->second;
  }
  // The descriptor given as an attribute; null: none was.
  StatePointer state(int attribute) const {
    const Attribute* found = find(attribute);
    return found && !found->states.empty() ? found->states.front() : nullptr;
  }
  template <typename T>
  T value(int attribute, T otherwise) const {
    const Attribute* found = find(attribute);
    if (!found || found->bytes.size() < sizeof(T)) return otherwise;
    T result;
    std::memcpy(&result, found->bytes.data(), sizeof result);
    return result;
  }
};

struct Descriptor {
  StatePointer state = std::make_shared<State>();
};

}  // namespace simlibs
