// One grammar for each maker of kernels: looks at the name's parts and, where the name is its own, fills in what it
// tells and says true. The order in kernel_names.cpp decides between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/names/kernel_names.h"

namespace gputrace::grammar {

bool nccl(const std::string& symbol, KernelName& name);
bool nvjet(const std::string& symbol, KernelName& name);
bool xmma(const std::string& symbol, KernelName& name);               // cuBLAS, cuDNN: smNN_xmma_…
bool cutlass_symbol(const std::string& symbol, KernelName& name);     // cutlass_80_tensorop_…, cutlass3x_sm100_…
bool cutlass_templates(const std::string& symbol, KernelName& name);  // cutlass::device_kernel<…>, Kernel2<…>
bool chip_prefix(const std::string& symbol, KernelName& name);        // ampere_sgemm_…, _5x_cudnn_volta_scudnn_…
bool attention(const std::string& symbol, KernelName& name);
bool triton(const std::string& symbol, KernelName& name);
bool pytorch(const std::string& symbol, KernelName& name);
bool fft(const std::string& symbol, KernelName& name);

// ------------------------------------------------------------------ words
std::vector<std::string_view> tokens_of(std::string_view text, char separator = '_');
bool is_number(std::string_view text);
// "128x64", "128x64x32": numbers joined by x, at least `parts` of them.
bool is_tile(std::string_view text, std::size_t parts = 2);
// "cute::tuple<cute::C<128>, cute::C<256>, cute::C<64> >" is "128x256x64"; empty: no such tuple of 2 to 4 numbers.
std::string cute_tile(std::string_view text);
// One spelling for each type: "fp16", "c10::Half", "__half", "cutlass::half_t" are "f16"; empty: no type.
std::string type_name(std::string_view text);
std::string type_of_letter(char letter);  // BLAS: s d h c z i; nvjet's t and q too

}  // namespace gputrace::grammar
