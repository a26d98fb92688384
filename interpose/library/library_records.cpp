#include "interpose/library/library_records.h"

#include "interpose/hot/session.h"
#include "interpose/library/library_ask.h"

namespace gputrace {
namespace {

constexpr int kOpNone = 0, kOpConjugate = 2;  // cublasOperation_t, cusparseOperation_t

u32 operation_flags(int op_a, int op_b) {
  u32 flags = 0;
  if (op_a != kOpNone) flags |= kTransposeA;
  if (op_a >= kOpConjugate) flags |= kConjugateA;
  if (op_b != kOpNone) flags |= kTransposeB;
  if (op_b >= kOpConjugate) flags |= kConjugateB;
  return flags;
}

// cudaDataType has complex twins of its real types; no single bit tells them apart, so they are listed.
bool is_complex(int type) {
  switch (type) {
    case 4:   // C_32F
    case 5:   // C_64F
    case 6:   // C_16F
    case 7:   // C_8I
    case 9:   // C_8U
    case 11:  // C_32I
    case 13:  // C_32U
    case 15:  // C_16BF
    case 17:  // C_4I
    case 19:  // C_4U
    case 21:  // C_16I
    case 23:  // C_16U
    case 25:  // C_64I
    case 27:  // C_64U
      return true;
    default:
      return false;
  }
}

}  // namespace

void object(const LibraryCall& did, u64 handle) {
  Call record{};
  record.object = handle;
  emit(did.call, record);
}

// ------------------------------------------------------------------ products

void gemm(const LibraryCall& did, const Gemm& g) {
  static constinit LibraryGetter get_stream{"cublasGetStream_v2"};
  static constinit LibraryGetter get_math_mode{"cublasGetMathMode"};
  ErrnoGuard guard;
  Matmul record{};
  record.handle = bits(g.handle);
  void* stream = nullptr;
  int mode = -1;
  if (did.call.ok()) {
    if (ask(get_stream, did, g.handle, &stream)) record.stream = bits(stream);
    if (!ask(get_math_mode, did, g.handle, &mode)) mode = -1;
  }
  record.m = positive(g.m);
  record.n = positive(g.n);
  record.k = positive(g.k);
  record.batch = positive(g.batch);
  record.a = bits(g.a);
  record.b = bits(g.b);
  record.c = bits(g.c);
  record.lda = positive(g.lda);
  record.ldb = positive(g.ldb);
  record.ldc = positive(g.ldc);
  record.type_a = g.type_a;
  record.type_b = g.type_b;
  record.type_c = g.type_c;
  record.compute = g.compute;
  record.math_mode = mode;
  record.flags = g.flags | operation_flags(g.op_a, g.op_b) | (is_complex(g.type_a) ? kComplex : 0u);
  emit(did.call, record);
}

namespace {

// cublasLtMatrixLayoutAttribute_t, cublasLtMatmulDescAttributes_t
enum LayoutAttribute : int { kLayoutType = 0, kLayoutRows = 2, kLayoutColumns = 3, kLayoutLd = 4, kLayoutBatch = 5 };
enum MatmulAttribute : int { kComputeType = 0, kTransA = 3, kTransB = 4 };

constinit LibraryGetter get_layout{"cublasLtMatrixLayoutGetAttribute"};
constinit LibraryGetter get_description{"cublasLtMatmulDescGetAttribute"};

template <typename T>
T lt_attribute(LibraryGetter& getter, const LibraryCall& did, void* object, int attribute, T unknown) {
  T value{};
  size_t written = 0;
  const bool known = object && ask(getter, did, object, attribute, static_cast<void*>(&value), sizeof value, &written);
  return known ? value : unknown;
}

struct LtLayout {
  u64 rows, columns, ld;
  int type, batch;
  LtLayout(const LibraryCall& did, void* layout)
      : rows(lt_attribute<u64>(get_layout, did, layout, kLayoutRows, 0)),
        columns(lt_attribute<u64>(get_layout, did, layout, kLayoutColumns, 0)),
        ld(lt_attribute<u64>(get_layout, did, layout, kLayoutLd, 0)),
        type(lt_attribute<int>(get_layout, did, layout, kLayoutType, -1)),
        batch(lt_attribute<int>(get_layout, did, layout, kLayoutBatch, 1)) {}
};

}  // namespace

void lt_matmul(const LibraryCall& did, const LtMatmul& product) {
  ErrnoGuard guard;
  Matmul record{};
  record.handle = bits(product.handle);
  record.stream = bits(product.stream);
  record.a = bits(product.a);
  record.b = bits(product.b);
  record.c = bits(product.d);
  record.type_a = record.type_b = record.type_c = record.compute = record.math_mode = -1;
  record.batch = 1;
  if (did.call.ok()) {
    const LtLayout a(did, product.layout_a), b(did, product.layout_b), d(did, product.layout_d);
    const int op_a = lt_attribute<int>(get_description, did, product.description, kTransA, 0);
    const int op_b = lt_attribute<int>(get_description, did, product.description, kTransB, 0);
    record.m = d.rows;
    record.n = d.columns;
    record.k = op_a == kOpNone ? a.columns : a.rows;
    record.batch = positive(d.batch);
    record.lda = a.ld;
    record.ldb = b.ld;
    record.ldc = d.ld;
    record.type_a = a.type;
    record.type_b = b.type;
    record.type_c = d.type;
    record.compute = lt_attribute<int>(get_description, did, product.description, kComputeType, -1);
    record.flags = operation_flags(op_a, op_b) | (is_complex(a.type) ? kComplex : 0u) | (d.batch > 1 ? kStrided : 0u);
  }
  emit(did.call, record);
}

void sparse_product(const LibraryCall& did, const SparseProduct& product) {
  static constinit LibraryGetter get_stream{"cusparseGetStream"};
  static constinit LibraryGetter get_sparse{"cusparseSpMatGetSize"};
  static constinit LibraryGetter get_matrix{"cusparseDnMatGet"};
  static constinit LibraryGetter get_vector{"cusparseDnVecGet"};
  ErrnoGuard guard;
  Matmul record{};
  record.handle = bits(product.handle);
  record.type_a = record.type_b = record.type_c = record.math_mode = -1;
  record.compute = -1;
  record.batch = 1;
  record.flags = kSparse | operation_flags(product.op_a, product.op_b);
  void* const result = const_cast<void*>(product.c);
  if (did.call.ok()) {
    void* stream = nullptr;
    if (ask(get_stream, did, product.handle, &stream)) record.stream = bits(stream);
    long long rows = 0, columns = 0, nonzeros = 0, size = 0, ld = 0;
    void* values = nullptr;
    int type = -1, order = 0;
    if (ask(get_sparse, did, product.a, &rows, &columns, &nonzeros)) {
      const bool transposed = product.op_a != kOpNone;
      record.m = positive(transposed ? columns : rows);
      record.k = positive(transposed ? rows : columns);
      record.nonzeros = positive(nonzeros);
    }
    if (product.vector) {
      if (ask(get_vector, did, result, &size, &values, &type)) record.n = 1;
    } else if (ask(get_matrix, did, result, &rows, &columns, &ld, &values, &type, &order)) {
      record.n = positive(columns);
      record.ldc = positive(ld);
    }
    record.c = bits(values);
    record.type_a = record.type_b = record.type_c = type;
    if (is_complex(type)) record.flags |= kComplex;
  }
  emit(did.call, record);
}

}  // namespace gputrace
