#include "analysis/words/result_names.h"

namespace gputrace {

std::string result_name(u16 result) {
  switch (result) {
    case 0:
      return "CUDA_SUCCESS";
    case 1:
      return "CUDA_ERROR_INVALID_VALUE";
    case 2:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case 3:
      return "CUDA_ERROR_NOT_INITIALIZED";
    case 4:
      return "CUDA_ERROR_DEINITIALIZED";
    case 34:
      return "CUDA_ERROR_STUB_LIBRARY";
    case 35:
      return "insufficient driver";
    case 46:
      return "CUDA_ERROR_DEVICE_UNAVAILABLE";
    case 98:
      return "invalid device function";
    case 100:
      return "CUDA_ERROR_NO_DEVICE";
    case 101:
      return "CUDA_ERROR_INVALID_DEVICE";
    case 200:
      return "CUDA_ERROR_INVALID_IMAGE";
    case 201:
      return "CUDA_ERROR_INVALID_CONTEXT";
    case 209:
      return "CUDA_ERROR_NO_BINARY_FOR_GPU";
    case 214:
      return "CUDA_ERROR_ECC_UNCORRECTABLE";
    case 217:
      return "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED";
    case 218:
      return "CUDA_ERROR_INVALID_PTX";
    case 222:
      return "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    case 301:
      return "CUDA_ERROR_FILE_NOT_FOUND";
    case 400:
      return "CUDA_ERROR_INVALID_HANDLE";
    case 401:
      return "CUDA_ERROR_ILLEGAL_STATE";
    case 500:
      return "CUDA_ERROR_NOT_FOUND";
    case 600:
      return "CUDA_ERROR_NOT_READY";
    case 700:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case 701:
      return "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    case 702:
      return "CUDA_ERROR_LAUNCH_TIMEOUT";
    case 704:
      return "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED";
    case 705:
      return "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED";
    case 709:
      return "CUDA_ERROR_CONTEXT_IS_DESTROYED";
    case 710:
      return "CUDA_ERROR_ASSERT";
    case 712:
      return "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED";
    case 713:
      return "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED";
    case 716:
      return "CUDA_ERROR_MISALIGNED_ADDRESS";
    case 719:
      return "CUDA_ERROR_LAUNCH_FAILED";
    case 720:
      return "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE";
    case 800:
      return "CUDA_ERROR_NOT_PERMITTED";
    case 801:
      return "CUDA_ERROR_NOT_SUPPORTED";
    case 802:
      return "CUDA_ERROR_SYSTEM_NOT_READY";
    case 900:
      return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    case 901:
      return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    case 904:
      return "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED";
    case 906:
      return "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT";
    case 910:
      return "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE";
    case 999:
      return "CUDA_ERROR_UNKNOWN";
    default:
      return "error " + std::to_string(result);
  }
}

}  // namespace gputrace
