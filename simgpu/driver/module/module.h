// Code images brought into contexts.
#pragma once

#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/state.h"

namespace simgpu {

// Parses what `image` points to (fatbin, cubin, PTX, or a wrapper), picking the code for the devices. CUDA_SUCCESS, or
// the error that loading gives.
CUresult read_image(const void* image, std::shared_ptr<const Image>* out);
CUresult read_image_file(const char* path, std::shared_ptr<const Image>* out);

// Gives the image functions and initialized globals in a context. Truth: one `module` line.
CUresult load_module(Call& call, Context& context, std::shared_ptr<const Image> image, Library* library, Module** out);
void unload_module(Module& module);
// The module of a library in a context, loaded there if need be; null: out of memory.
Module* module_in(Library& library, Context& context);

// What the image says about a kernel, by CUfunction_attribute.
void fill_attributes(const gputrace::ImageKernel& code, const Image& image,
                     std::array<std::atomic<int>, CU_FUNC_ATTRIBUTE_MAX>& attributes);
// cuFuncSetAttribute and cuKernelSetAttribute: CUDA_SUCCESS, or why not.
CUresult set_attribute(std::array<std::atomic<int>, CU_FUNC_ATTRIBUTE_MAX>& attributes, int attribute, int value);

}  // namespace simgpu
