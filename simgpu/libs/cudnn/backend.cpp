// cuDNN's graph interface: descriptors with attributes, heuristics, plans.
#include "simgpu/libs/cudnn/backend.h"

#include <algorithm>

#include "simgpu/libs/cudnn/graph.h"

using namespace simlibs;

namespace {

size_t bytes_of(int type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_FRACTION:
      return 16;
    default:
      return 4;  // numbers of 32 bits, enumerations
  }
}

State* state_of(cudnnBackendDescriptor_t descriptor) {
  return descriptor ? static_cast<Descriptor*>(descriptor)->state.get() : nullptr;
}

// The graph that a plan, a configuration, an engine or a heuristic is about.
StatePointer graph_of(const State& state) {
  switch (state.type) {
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return state.state(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return state.state(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR: {
      const StatePointer engine = state.state(CUDNN_ATTR_ENGINECFG_ENGINE);
      return engine ? graph_of(*engine) : nullptr;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const StatePointer configuration = state.state(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      return configuration ? graph_of(*configuration) : nullptr;
    }
    default:
      return nullptr;
  }
}

// Hands out a number, or only how many there are.
template <typename T>
cudnnStatus_t answer(const std::vector<T>& values, int64_t wanted, int64_t* count, void* out) {
  if (count) *count = static_cast<int64_t>(values.size());
  const size_t room = std::min(values.size(), static_cast<size_t>(std::max<int64_t>(0, wanted)));
  if (room && out) std::memcpy(out, values.data(), room * sizeof(T));
  return success();
}

// The descriptors to be filled lie in `out`, made by the caller.
cudnnStatus_t answer_states(const std::vector<StatePointer>& states, int64_t wanted, int64_t* count, void* out) {
  const size_t room = std::min(states.size(), static_cast<size_t>(std::max<int64_t>(0, wanted)));
  if (count) *count = static_cast<int64_t>(wanted > 0 && out ? room : states.size());
  if (!out) return success();
  auto* descriptors = static_cast<cudnnBackendDescriptor_t*>(out);
  for (size_t i = 0; i < room; ++i) {
    if (!descriptors[i]) return bad_param();
    static_cast<Descriptor*>(descriptors[i])->state = states[i];
  }
  return success();
}

StatePointer engine(const StatePointer& graph, int index) {
  auto made = std::make_shared<State>();
  made->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  made->finalized = true;
  made->engine = index;
  made->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH].states = {graph};
  return made;
}

std::vector<StatePointer> configurations(const StatePointer& graph) {
  std::vector<StatePointer> found;
  const auto work = graph ? work_of(*graph) : nullptr;
  for (int i = 0; work && i < engines_of(*work); ++i) {
    auto made = std::make_shared<State>();
    made->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    made->finalized = true;
    made->attributes[CUDNN_ATTR_ENGINECFG_ENGINE].states = {engine(graph, i)};
    found.push_back(made);
  }
  return found;
}

std::vector<int> notes(const State& asked) {
  const StatePointer graph = graph_of(asked);
  const auto work = graph ? work_of(*graph) : nullptr;
  std::vector<int> found;
  if (work && uses_tensor_cores(*work, asked.engine)) found.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return found;
}

int engine_index(const State& plan) {
  const StatePointer configuration = plan.state(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const StatePointer chosen = configuration ? configuration->state(CUDNN_ATTR_ENGINECFG_ENGINE) : nullptr;
  return chosen ? chosen->engine : 0;
}

cudnnStatus_t finalize(State& state) {
  switch (state.type) {
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      state.engine = static_cast<int>(state.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0));
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
      const StatePointer graph = graph_of(state);
      if (!graph) return bad_param();
      if (!work_of(*graph)) return not_supported();
      break;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const StatePointer graph = graph_of(state);
      if (!graph) return bad_param();
      state.work = work_of(*graph);
      if (!state.work || engine_index(state) >= engines_of(*state.work)) return not_supported();
      break;
    }
    default:
      break;
  }
  state.finalized = true;
  return success();
}

// What is not just what was set.
bool is_answered(int attribute) {
  switch (attribute) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    case CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO:
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    case CUDNN_ATTR_ENGINE_KNOB_INFO:
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    case CUDNN_ATTR_ENGINE_LAYOUT_INFO:
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return true;
    default:
      return false;
  }
}

cudnnStatus_t answer_attribute(Descriptor& descriptor, int attribute, int64_t wanted, int64_t* count, void* out) {
  const State& state = *descriptor.state;
  switch (attribute) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return answer_states(configurations(graph_of(state)), wanted, count, out);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return answer(std::vector<int64_t>{0}, wanted, count, out);
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return answer(std::vector<int64_t>{49152}, wanted, count, out);
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT: {
      const auto work = work_of(state);
      return answer(std::vector<int64_t>{work ? engines_of(*work) : 0}, wanted, count, out);
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return answer(std::vector<int64_t>{state.engine}, wanted, count, out);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return answer(notes(state), wanted, count, out);
    default:
      return answer(std::vector<int>{}, wanted, count, out);  // there are none
  }
}

}  // namespace

GT_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                     cudnnBackendDescriptor_t* descriptor) {
  if (!descriptor) return bad_param();
  auto* made = new Descriptor;
  made->state->type = type;
  *descriptor = made;
  return success();
}
GT_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  State* state = state_of(descriptor);
  if (!state) return bad_param();
  const int type = state->type;
  *state = State{};
  state->type = type;
  return success();
}
GT_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  State* state = state_of(descriptor);
  return state ? finalize(*state) : bad_param();
}
GT_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                 cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  State* state = state_of(descriptor);
  if (!state || state->finalized || count < 0 || (count > 0 && !values)) return bad_param();
  State::Attribute attribute;
  attribute.type = type;
  attribute.count = count;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* descriptors = static_cast<const cudnnBackendDescriptor_t*>(values);
    for (int64_t i = 0; i < count; ++i) {
      if (!descriptors[i]) return bad_param();
      attribute.states.push_back(static_cast<const Descriptor*>(descriptors[i])->state);
    }
  } else {
    attribute.bytes.assign(static_cast<const char*>(values), static_cast<size_t>(count) * bytes_of(type));
  }
  state->attributes[name] = std::move(attribute);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                 cudnnBackendAttributeType_t type, int64_t wanted, int64_t* count,
                                                 void* values) {
  const State* state = state_of(descriptor);
  if (!state) return bad_param();
  if (is_answered(name)) return answer_attribute(*static_cast<Descriptor*>(descriptor), name, wanted, count, values);
  const State::Attribute* found = state->find(name);
  if (!found) {
    if (name != CUDNN_ATTR_ENGINECFG_KNOB_CHOICES) return not_supported();
    return answer(std::vector<int>{}, wanted, count, values);
  }
  if (!found->states.empty()) return answer_states(found->states, wanted, count, values);
  if (type != found->type) return bad_param();
  if (count) *count = found->count;
  const size_t room = std::min(found->bytes.size(), static_cast<size_t>(std::max<int64_t>(0, wanted)) * bytes_of(type));
  if (room && values) std::memcpy(values, found->bytes.data(), room);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                            cudnnBackendDescriptor_t pack) {
  const State* state = state_of(plan);
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  if (!state || !state->finalized || !state->work || !state_of(pack)) return bad_param();
  const OnDevice on_device(handle->device);
  return execute(handle, *state->work, engine_index(*state));
}
