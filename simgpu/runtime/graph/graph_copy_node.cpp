#include "simgpu/runtime/life/convert.h"
#include "simgpu/runtime/life/registry.h"

// Copy nodes of graphs: between addresses, boxes, and variables.
namespace simgpu::runtime {
namespace {

// What a copy node moves: from or to a variable, or between two addresses.
struct Transfer {
  void* target;
  const void* source;
  std::size_t bytes;
  cudaMemcpyKind kind;
};

CUresult to_symbol(const void* symbol, const void* source, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                   Transfer* out) {
  CUdeviceptr address = 0;
  const CUresult result = variable_of(symbol, &address, nullptr);
  *out = {reinterpret_cast<void*>(address + offset), source, bytes, kind};
  return result;
}

CUresult from_symbol(void* target, const void* symbol, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                     Transfer* out) {
  CUdeviceptr address = 0;
  const CUresult result = variable_of(symbol, &address, nullptr);
  *out = {target, reinterpret_cast<void*>(address + offset), bytes, kind};
  return result;
}

// Builds the driver's copy of a transfer that `find` describes, and hands it to `call`. The name is that of the exported
// function, as for `run`.
template <typename Find, typename Call>
cudaError_t with_copy(Find&& find, Call&& call, const char* name = __builtin_FUNCTION()) {
  return run(
      [&] {
        Transfer transfer{};
        CUDA_MEMCPY3D copy{};
        CUresult result = find(&transfer);
        if (result == CUDA_SUCCESS) {
          result = copy_1d(transfer.target, transfer.source, transfer.bytes, transfer.kind, &copy);
        }
        return result == CUDA_SUCCESS ? call(copy) : result;
      },
      name);
}

template <typename Call>
cudaError_t with_copy(const cudaMemcpy3DParms* parms, Call&& call, const char* name = __builtin_FUNCTION()) {
  return run(
      [&] {
        CUDA_MEMCPY3D copy{};
        const CUresult result = parms != nullptr ? copy_3d(*parms, &copy) : CUDA_ERROR_INVALID_VALUE;
        return result == CUDA_SUCCESS ? call(copy) : result;
      },
      name);
}

}  // namespace
}  // namespace simgpu::runtime

using namespace simgpu::runtime;
using Node = cudaGraphNode_t;

extern "C" cudaError_t cudaGraphAddMemcpyNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                              const cudaMemcpy3DParms* parms) {
  return with_copy(parms, [&](const CUDA_MEMCPY3D& copy) {
    return driver.cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, current_context());
  });
}

extern "C" cudaError_t cudaGraphAddMemcpyNode1D(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                                void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  return with_copy(
      [&](Transfer* out) {
        return *out = {dst, src, bytes, kind}, CUDA_SUCCESS;
      },
      [&](const CUDA_MEMCPY3D& copy) {
        return driver.cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, current_context());
      });
}

extern "C" cudaError_t cudaGraphAddMemcpyNodeToSymbol(Node* node, cudaGraph_t graph, const Node* dependencies,
                                                      size_t count, const void* symbol, const void* src, size_t bytes,
                                                      size_t offset, cudaMemcpyKind kind) {
  return with_copy([&](Transfer* out) { return to_symbol(symbol, src, bytes, offset, kind, out); },
                   [&](const CUDA_MEMCPY3D& copy) {
                     return driver.cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, current_context());
                   });
}

extern "C" cudaError_t cudaGraphAddMemcpyNodeFromSymbol(Node* node, cudaGraph_t graph, const Node* dependencies,
                                                        size_t count, void* dst, const void* symbol, size_t bytes,
                                                        size_t offset, cudaMemcpyKind kind) {
  return with_copy([&](Transfer* out) { return from_symbol(dst, symbol, bytes, offset, kind, out); },
                   [&](const CUDA_MEMCPY3D& copy) {
                     return driver.cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, current_context());
                   });
}

extern "C" cudaError_t cudaGraphMemcpyNodeGetParams(Node node, cudaMemcpy3DParms* params) {
  return run([&] {
    CUDA_MEMCPY3D found{};
    const CUresult result = driver.cuGraphMemcpyNodeGetParams(node, &found);
    if (result == CUDA_SUCCESS) {
      *params = runtime_copy(found);
    }
    return result;
  });
}

extern "C" cudaError_t cudaGraphMemcpyNodeSetParams(Node node, const cudaMemcpy3DParms* parms) {
  return with_copy(parms, [&](const CUDA_MEMCPY3D& copy) { return driver.cuGraphMemcpyNodeSetParams(node, &copy); });
}

extern "C" cudaError_t cudaGraphMemcpyNodeSetParams1D(Node node, void* dst, const void* src, size_t bytes,
                                                      cudaMemcpyKind kind) {
  return with_copy(
      [&](Transfer* out) {
        return *out = {dst, src, bytes, kind}, CUDA_SUCCESS;
      },
      [&](const CUDA_MEMCPY3D& copy) { return driver.cuGraphMemcpyNodeSetParams(node, &copy); });
}

extern "C" cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(Node node, const void* symbol, const void* src,
                                                            size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return with_copy([&](Transfer* out) { return to_symbol(symbol, src, bytes, offset, kind, out); },
                   [&](const CUDA_MEMCPY3D& copy) { return driver.cuGraphMemcpyNodeSetParams(node, &copy); });
}

extern "C" cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(Node node, void* dst, const void* symbol, size_t bytes,
                                                              size_t offset, cudaMemcpyKind kind) {
  return with_copy([&](Transfer* out) { return from_symbol(dst, symbol, bytes, offset, kind, out); },
                   [&](const CUDA_MEMCPY3D& copy) { return driver.cuGraphMemcpyNodeSetParams(node, &copy); });
}

extern "C" cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, Node node,
                                                        const cudaMemcpy3DParms* parms) {
  return with_copy(parms, [&](const CUDA_MEMCPY3D& copy) {
    return driver.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, current_context());
  });
}

extern "C" cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, Node node, void* dst, const void* src,
                                                          size_t bytes, cudaMemcpyKind kind) {
  return with_copy(
      [&](Transfer* out) {
        return *out = {dst, src, bytes, kind}, CUDA_SUCCESS;
      },
      [&](const CUDA_MEMCPY3D& copy) {
        return driver.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, current_context());
      });
}

extern "C" cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, Node node, const void* symbol,
                                                                const void* src, size_t bytes, size_t offset,
                                                                cudaMemcpyKind kind) {
  return with_copy([&](Transfer* out) { return to_symbol(symbol, src, bytes, offset, kind, out); },
                   [&](const CUDA_MEMCPY3D& copy) {
                     return driver.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, current_context());
                   });
}

extern "C" cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, Node node, void* dst,
                                                                  const void* symbol, size_t bytes, size_t offset,
                                                                  cudaMemcpyKind kind) {
  return with_copy([&](Transfer* out) { return from_symbol(dst, symbol, bytes, offset, kind, out); },
                   [&](const CUDA_MEMCPY3D& copy) {
                     return driver.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, current_context());
                   });
}
