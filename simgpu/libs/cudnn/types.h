// The types and numbers of cuDNN's documented interface (versions 8 and 9) that the stand-in uses; see cublas/types.h. Enumerations are
// plain ints here.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(SIMLIBS_VENDOR_HEADERS)
#include <cudnn.h>
#else
#include <driver_types.h>
#include <library_types.h>

using cudnnHandle_t = struct cudnnContext*;
using cudnnTensorDescriptor_t = struct cudnnTensorStruct*;
using cudnnFilterDescriptor_t = struct cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = struct cudnnConvolutionStruct*;
using cudnnPoolingDescriptor_t = struct cudnnPoolingStruct*;
using cudnnActivationDescriptor_t = struct cudnnActivationStruct*;
using cudnnDropoutDescriptor_t = struct cudnnDropoutStruct*;
using cudnnOpTensorDescriptor_t = struct cudnnOpTensorStruct*;
using cudnnReduceTensorDescriptor_t = struct cudnnReduceTensorStruct*;
using cudnnLRNDescriptor_t = struct cudnnLRNStruct*;
using cudnnSpatialTransformerDescriptor_t = struct cudnnSpatialTransformerStruct*;
using cudnnCTCLossDescriptor_t = struct cudnnCTCLossStruct*;
using cudnnRNNDescriptor_t = struct cudnnRNNStruct*;
using cudnnRNNDataDescriptor_t = struct cudnnRNNDataStruct*;
using cudnnBackendDescriptor_t = void*;

using cudnnStatus_t = int;
using cudnnDataType_t = int;
using cudnnMathType_t = int;
using cudnnNanPropagation_t = int;
using cudnnTensorFormat_t = int;
using cudnnActivationMode_t = int;
using cudnnSeverity_t = int;
using cudnnConvolutionMode_t = int;
using cudnnReorderType_t = int;
using cudnnBackendDescriptorType_t = int;
using cudnnBackendAttributeName_t = int;
using cudnnBackendAttributeType_t = int;
using cudnnConvolutionFwdAlgo_t = int;
using cudnnConvolutionBwdDataAlgo_t = int;
using cudnnConvolutionBwdFilterAlgo_t = int;
using cudnnPoolingMode_t = int;
using cudnnSoftmaxAlgorithm_t = int;
using cudnnSoftmaxMode_t = int;
using cudnnOpTensorOp_t = int;
using cudnnReduceTensorOp_t = int;
using cudnnReduceTensorIndices_t = int;
using cudnnIndicesType_t = int;
using cudnnLRNMode_t = int;
using cudnnBatchNormMode_t = int;
using cudnnBatchNormOps_t = int;
using cudnnSamplerType_t = int;
using cudnnDeterminism_t = int;
using cudnnErrQueryMode_t = int;
using cudnnRNNAlgo_t = int;
using cudnnRNNMode_t = int;
using cudnnRNNBiasMode_t = int;
using cudnnDirectionMode_t = int;
using cudnnRNNInputMode_t = int;
using cudnnForwardMode_t = int;
using cudnnRNNDataLayout_t = int;
using cudnnWgradMode_t = int;
using cudnnCTCLossAlgo_t = int;
using cudnnCTCGradMode_t = int;
using cudnnLossNormalizationMode_t = int;
using cudnnDebug_t = struct cudnnDebugStruct;
using cudnnCallback_t = void (*)(cudnnSeverity_t severity, void* data, const cudnnDebug_t* debug, const char* message);

struct cudnnConvolutionFwdAlgoPerf_t {
  cudnnConvolutionFwdAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};
struct cudnnConvolutionBwdDataAlgoPerf_t {
  cudnnConvolutionBwdDataAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};
struct cudnnConvolutionBwdFilterAlgoPerf_t {
  cudnnConvolutionBwdFilterAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};

enum : int {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_EXECUTION_FAILED = 5000
};
enum : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT8 = 3,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_UINT8 = 6,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_INT64 = 10,
  CUDNN_DATA_BOOLEAN = 11,
  CUDNN_DATA_FP8_E4M3 = 12,
  CUDNN_DATA_FP8_E5M2 = 13
};
enum : int {
  CUDNN_DEFAULT_MATH = 0,
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
  CUDNN_FMA_MATH = 3
};
enum : int { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 };
enum : int { CUDNN_DIM_MAX = 8 };
enum : int {
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,
  CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO = 301,
  CUDNN_ATTR_ENGINECFG_KNOB_CHOICES = 302,
  CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE = 303,
  CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED = 304,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATION_POINTWISE_DXDESC = 756,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT = 802,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_ENGINE_OPERATION_GRAPH = 1300,
  CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301,
  CUDNN_ATTR_ENGINE_KNOB_INFO = 1302,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
  CUDNN_ATTR_ENGINE_LAYOUT_INFO = 1304,
  CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE = 1305,
  CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
  CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
  CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
  CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
  CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC = 1710,
  CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC = 1720,
  CUDNN_ATTR_OPERATION_NORM_FWD_XDESC = 2002,
  CUDNN_ATTR_OPERATION_NORM_BWD_XDESC = 2101,
  CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC = 2800,
  CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC = 2801,
  CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC = 2851,
  CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC = 2852
};
enum : int {
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_DOUBLE = 5,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_NUMERICAL_NOTE = 11,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_CHAR = 24,
  CUDNN_TYPE_FRACTION = 26
};
enum : int {
  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
  CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR = 25,
  CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR = 26,
  CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR = 29,
  CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR = 30,
  CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR = 41,
  CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR = 43
};
enum : int { CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0 };
#endif

#define GT_EXPORT extern "C" __attribute__((visibility("default")))
