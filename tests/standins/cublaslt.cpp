#include "tests/standins/standin.h"

namespace standin {

// The attributes that the getters are asked for, by their number.
struct Attributes {
  std::map<int, std::string> values;
  template <typename T>
  T value(int attribute, T otherwise) const {
    const auto at = values.find(attribute);
    T result = otherwise;
    if (at != values.end()) std::memcpy(&result, at->second.data(), std::min(sizeof result, at->second.size()));
    return result;
  }
  template <typename T>
  void set(int attribute, T value) {
    values[attribute].assign(reinterpret_cast<const char*>(&value), sizeof value);
  }
  int get(int attribute, void* out, std::size_t size, std::size_t* written) const {
    const auto at = values.find(attribute);
    if (at == values.end()) return 7;  // CUBLAS_STATUS_INVALID_VALUE
    if (written) *written = at->second.size();
    if (size < at->second.size()) return 7;
    std::memcpy(out, at->second.data(), at->second.size());
    return 0;
  }
};

struct LtMatmul {
  void *handle, *description;
  const void *a, *b, *d;
  void *layout_a, *layout_b, *layout_d;
  void* stream;
};
static void lt_matmul(const Did&, const LtMatmul& product) {
  const auto& a = *static_cast<const Attributes*>(product.layout_a);
  const auto& d = *static_cast<const Attributes*>(product.layout_d);
  const int type = a.value(0, 0);
  const char* name = type == kR16F || type == 14 ? "nvjet_hsh_128x128_64x6_1x2_h_bz_coopA_NNT"
                     : type >= 28                ? "nvjet_qqtst_128x128_128x6_1x2_h_bz_TNT"
                                                 : "cutlass_80_simt_sgemm_128x128_8x4_nn_align1";
  launch(name, product.stream,
         tiles(d.value<long long>(2, 0), 128) * tiles(d.value<long long>(3, 0), 128) *
             static_cast<unsigned>(d.value(5, 1)),
         384);
}

}  // namespace standin

#define GT_BODY_cublas(name, signature, record)
#define GT_BODY_cublasLt(name, signature, record) GT_STANDIN_BODY(name, signature, record)
#define GT_BODY_cudnn(name, signature, record)
#define GT_BODY_cusparse(name, signature, record)
#define GT_BODY_cufft(name, signature, record)
#define GT_BODY_nccl(name, signature, record)
#define GT_LIBRARY(name, library, signature, forwarded, record) GT_BODY_##library(name, signature, record)
#include "interpose/library.def"

using standin::Attributes;
GT_EXPORT int cublasLtMatmulDescCreate(void** made, int compute, int scale) {
  auto* description = new Attributes;
  description->set(0, compute);
  description->set(1, scale);
  description->set(3, 0);
  description->set(4, 0);
  *made = description;
  return 0;
}
GT_EXPORT int cublasLtMatmulDescDestroy(void* description) {
  delete static_cast<Attributes*>(description);
  return 0;
}
GT_EXPORT int cublasLtMatmulDescSetAttribute(void* description, int attribute, const void* value, size_t size) {
  static_cast<Attributes*>(description)->values[attribute].assign(static_cast<const char*>(value), size);
  return 0;
}
GT_EXPORT int cublasLtMatmulDescGetAttribute(void* description, int attribute, void* out, size_t size,
                                             size_t* written) {
  return static_cast<Attributes*>(description)->get(attribute, out, size, written);
}
GT_EXPORT int cublasLtMatrixLayoutCreate(void** made, int type, u64 rows, u64 columns, long long ld) {
  auto* layout = new Attributes;
  layout->set(0, type);
  layout->set(1, 0);
  layout->set(2, rows);
  layout->set(3, columns);
  layout->set(4, ld);
  layout->set(5, 1);
  *made = layout;
  return 0;
}
GT_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Attributes*>(layout);
  return 0;
}
GT_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t size) {
  static_cast<Attributes*>(layout)->values[attribute].assign(static_cast<const char*>(value), size);
  return 0;
}
GT_EXPORT int cublasLtMatrixLayoutGetAttribute(void* layout, int attribute, void* out, size_t size, size_t* written) {
  return static_cast<Attributes*>(layout)->get(attribute, out, size, written);
}
