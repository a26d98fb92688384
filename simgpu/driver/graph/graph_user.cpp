// User objects: the program's resources, kept alive by graphs.
#include "simgpu/driver/graph/graph.h"

using namespace simgpu;

namespace {

constexpr unsigned kMaxCount = 2147483647;

bool valid_count(unsigned count) { return count != 0 && count <= kMaxCount; }

}  // namespace

SIM_API(cuUserObjectCreate, "cuUserObjectCreate",
        (CUuserObject * out, void* data, CUhostFn destroy, unsigned count, unsigned flags),
        (out, data, destroy, count, flags)) {
  if (out == nullptr || destroy == nullptr || !valid_count(count) || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  UserObject* object = create<UserObject>();
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->data = data;
  object->destroy = destroy;
  object->count = count;
  *out = handle_of(object);
  return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRetain, "cuUserObjectRetain", (CUuserObject handle, unsigned count), (handle, count)) {
  GraphLock lock;
  UserObject* object = live<UserObject>(handle);
  if (object == nullptr || !valid_count(count)) return CUDA_ERROR_INVALID_VALUE;
  object->count += count;
  return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRelease, "cuUserObjectRelease", (CUuserObject handle, unsigned count), (handle, count)) {
  GraphLock lock;
  UserObject* object = live<UserObject>(handle);
  if (object == nullptr || !valid_count(count) || count > object->count) return CUDA_ERROR_INVALID_VALUE;
  release_user_object(*object, count);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphRetainUserObject, "cuGraphRetainUserObject",
        (CUgraph graph_handle, CUuserObject handle, unsigned count, unsigned flags),
        (graph_handle, handle, count, flags)) {
  GraphLock lock;
  Graph* graph = live<Graph>(graph_handle);
  UserObject* object = live<UserObject>(handle);
  if (graph == nullptr || object == nullptr || !valid_count(count)) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->count += count;
  graph->user_objects[object] += count;
  return CUDA_SUCCESS;
}

SIM_API(cuGraphReleaseUserObject, "cuGraphReleaseUserObject",
        (CUgraph graph_handle, CUuserObject handle, unsigned count), (graph_handle, handle, count)) {
  GraphLock lock;
  Graph* graph = live<Graph>(graph_handle);
  UserObject* object = live<UserObject>(handle);
  if (graph == nullptr || object == nullptr || !valid_count(count)) return CUDA_ERROR_INVALID_VALUE;
  const auto held = graph->user_objects.find(object);
  if (held == graph->user_objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->user_objects.erase(held);
  release_user_object(*object, count);
  return CUDA_SUCCESS;
}
