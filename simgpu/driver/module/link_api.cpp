// cuLink*: nothing is compiled or linked. What comes out is an image that loading accepts and that says of its kernels
// what the inputs say: a cubin as it came, the chosen entry of a fatbin, PTX texts joined.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cubin/code_image.h"
#include "simgpu/driver/context/device.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/module/jit_options.h"

namespace simgpu {

struct Linker : Object {
  static constexpr uint64_t kTag = object_tag("sgLINKER");
  using Handle = CUlinkState;
  struct Input {
    gputrace::CodeModule module;
    std::vector<std::byte> bytes;
  };
  std::vector<Input> inputs;
  std::vector<std::byte> output;
};

}  // namespace simgpu

using namespace simgpu;

namespace {

constexpr char kArchiveMagic[] = "!<arch>\n";
constexpr size_t kMaxFileBytes = size_t{1} << 30;

bool is_archive(gputrace::ByteSpan bytes) {
  return bytes.size() >= 8 &&
         std::equal(bytes.begin(), bytes.begin() + 8, reinterpret_cast<const std::byte*>(kArchiveMagic));
}

CUresult add(Linker& linker, CUjitInputType type, gputrace::ByteSpan bytes) {
  if (type < CU_JIT_INPUT_CUBIN || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
  // Libraries (libcudadevrt.a) hold device functions, no kernels.
  if (type == CU_JIT_INPUT_LIBRARY || is_archive(bytes)) return CUDA_SUCCESS;
  if (type == CU_JIT_INPUT_OBJECT && gputrace::identify_image(bytes) == gputrace::ContainerKind::kUnknown) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (type == CU_JIT_INPUT_NVVM) return CUDA_ERROR_NOT_SUPPORTED;
  gputrace::LoadFailure failure;
  auto loaded = gputrace::load_image(bytes, capability(), &failure);
  if (!loaded) {
    if (failure.no_match) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
  }
  Linker::Input input;
  input.module = std::move(loaded->module);
  input.bytes = std::move(loaded->bytes);
  linker.inputs.push_back(std::move(input));
  return CUDA_SUCCESS;
}

CUresult add_file(Linker& linker, CUjitInputType type, const char* path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "re"), std::fclose);
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  std::vector<std::byte> bytes;
  std::byte part[65536];
  while (const size_t got = std::fread(part, 1, sizeof part, file.get())) {
    if (bytes.size() > kMaxFileBytes) return CUDA_ERROR_INVALID_IMAGE;
    bytes.insert(bytes.end(), part, part + got);
  }
  return add(linker, type, bytes);
}

void append_text(std::vector<std::byte>& out, const std::vector<std::byte>& text) {
  for (std::byte b : text) {
    if (b == std::byte{0}) break;
    out.push_back(b);
  }
  out.push_back(static_cast<std::byte>('\n'));
}

CUresult complete(Linker& linker) {
  const Linker::Input* cubin = nullptr;
  size_t cubins = 0, texts = 0;
  for (const Linker::Input& input : linker.inputs) {
    const bool is_cubin = input.module.kind == gputrace::ContainerKind::kCubin;
    if (is_cubin && (cubin == nullptr || !input.module.kernels.empty())) cubin = &input;
    cubins += is_cubin && !input.module.kernels.empty() ? 1 : 0;
    texts += !is_cubin && !input.module.kernels.empty() ? 1 : 0;
  }
  linker.output.clear();
  if (cubins + texts > 1 && cubins != 0) return CUDA_ERROR_NOT_SUPPORTED;  // would need a true linker
  if (cubins == 1 || (texts == 0 && cubin != nullptr)) {
    linker.output = cubin->bytes;
    return CUDA_SUCCESS;
  }
  for (const Linker::Input& input : linker.inputs) {
    if (input.module.kind == gputrace::ContainerKind::kPtx) append_text(linker.output, input.bytes);
  }
  if (linker.output.empty()) return CUDA_ERROR_INVALID_IMAGE;
  linker.output.push_back(std::byte{0});
  return CUDA_SUCCESS;
}

CUresult create_linker(Call& call, unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  if (const CUresult result = answer_jit_options(count, options, values); result != CUDA_SUCCESS) return result;
  Linker* linker = create<Linker>();
  if (linker == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(linker);
  return CUDA_SUCCESS;
}

CUresult add_data(CUlinkState handle, CUjitInputType type, const void* data, size_t bytes, unsigned count,
                  CUjit_option* options, void** values) {
  Linker* linker = live<Linker>(handle);
  if (linker == nullptr || data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = answer_jit_options(count, options, values); result != CUDA_SUCCESS) return result;
  return add(*linker, type, gputrace::ByteSpan(static_cast<const std::byte*>(data), bytes));
}

CUresult add_path(CUlinkState handle, CUjitInputType type, const char* path, unsigned count, CUjit_option* options,
                  void** values) {
  Linker* linker = live<Linker>(handle);
  if (linker == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = answer_jit_options(count, options, values); result != CUDA_SUCCESS) return result;
  return add_file(*linker, type, path);
}

}  // namespace

SIM_API(cuLinkCreate_v2, "cuLinkCreate", (unsigned count, CUjit_option* options, void** values, CUlinkState* out),
        (count, options, values, out)) {
  return create_linker(call, count, options, values, out);
}
SIM_ALIAS(cuLinkCreate, cuLinkCreate_v2, "cuLinkCreate",
          (unsigned count, CUjit_option* options, void** values, CUlinkState* out), (count, options, values, out))

SIM_API(cuLinkAddData_v2, "cuLinkAddData",
        (CUlinkState state, CUjitInputType type, void* data, size_t bytes, [[maybe_unused]] const char* name,
         unsigned count, CUjit_option* options, void** values),
        (state, type, data, bytes, name, count, options, values)) {
  return add_data(state, type, data, bytes, count, options, values);
}
SIM_ALIAS(cuLinkAddData, cuLinkAddData_v2, "cuLinkAddData",
          (CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char* name, unsigned count,
           CUjit_option* options, void** values),
          (state, type, data, bytes, name, count, options, values))

SIM_API(cuLinkAddFile_v2, "cuLinkAddFile",
        (CUlinkState state, CUjitInputType type, const char* path, unsigned count, CUjit_option* options,
         void** values),
        (state, type, path, count, options, values)) {
  return add_path(state, type, path, count, options, values);
}
SIM_ALIAS(cuLinkAddFile, cuLinkAddFile_v2, "cuLinkAddFile",
          (CUlinkState state, CUjitInputType type, const char* path, unsigned count, CUjit_option* options,
           void** values),
          (state, type, path, count, options, values))

SIM_API(cuLinkComplete, "cuLinkComplete", (CUlinkState handle, void** out, size_t* bytes), (handle, out, bytes)) {
  Linker* linker = live<Linker>(handle);
  if (linker == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = complete(*linker); result != CUDA_SUCCESS) return result;
  *out = linker->output.data();
  if (bytes != nullptr) *bytes = linker->output.size();
  return CUDA_SUCCESS;
}

SIM_API(cuLinkDestroy, "cuLinkDestroy", (CUlinkState handle), (handle)) {
  Linker* linker = live<Linker>(handle);
  if (linker == nullptr) return CUDA_ERROR_INVALID_VALUE;
  retire(linker);
  return CUDA_SUCCESS;
}
