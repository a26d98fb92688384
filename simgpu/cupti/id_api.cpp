// Numbers of things, and the clock.
#include "simgpu/cupti/device_clock.h"
#include "simgpu/cupti/entry.h"

using namespace simgpu::cupti;

namespace {

CUptiResult as_result(CUresult result, CUptiResult otherwise) {
  if (result == CUDA_SUCCESS) return CUPTI_SUCCESS;
  return result == CUDA_ERROR_INVALID_CONTEXT ? CUPTI_ERROR_INVALID_CONTEXT : otherwise;
}

}  // namespace

CUPTI_SIM(cuptiGetTimestamp, driver, (uint64_t * timestamp), (timestamp)) {
  if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = device_now();
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiGetDeviceId, driver, (CUcontext context, uint32_t* id), (context, id)) {
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return as_result(driver()->device_id(context, id), CUPTI_ERROR_INVALID_CONTEXT);
}

CUPTI_SIM(cuptiGetContextId, driver, (CUcontext context, uint32_t* id), (context, id)) {
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return as_result(driver()->context_id(context, id), CUPTI_ERROR_INVALID_CONTEXT);
}

CUPTI_SIM(cuptiGetStreamIdEx, driver, (CUcontext context, CUstream stream, uint8_t per_thread, uint32_t* id),
          (context, stream, per_thread, id)) {
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return as_result(driver()->stream_id(context, stream, per_thread != 0, id), CUPTI_ERROR_INVALID_STREAM);
}

CUPTI_SIM(cuptiGetStreamId, driver, (CUcontext context, CUstream stream, uint32_t* id), (context, stream, id)) {
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return as_result(driver()->stream_id(context, stream, false, id), CUPTI_ERROR_INVALID_STREAM);
}

CUPTI_SIM(cuptiGetGraphId, driver, (CUgraph graph, uint32_t* id), (graph, id)) {
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return as_result(driver()->graph_id(graph, id), CUPTI_ERROR_INVALID_PARAMETER);
}

CUPTI_SIM(cuptiGetGraphExecId, driver, (CUgraphExec exec, uint32_t* id), (exec, id)) {
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return as_result(driver()->graph_exec_id(exec, id), CUPTI_ERROR_INVALID_PARAMETER);
}

CUPTI_SIM(cuptiGetGraphNodeId, driver, (CUgraphNode node, uint64_t* id), (node, id)) {
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return as_result(driver()->graph_node_id(node, id), CUPTI_ERROR_INVALID_PARAMETER);
}
