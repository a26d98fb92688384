// Recurrent networks: the descriptor, where the weights of each layer lie, and what their passes launch. Shared by the interfaces of
// version 8 and, of cuDNN 8, version 6.
#pragma once

#include "simgpu/libs/cudnn/descriptors.h"

struct cudnnRNNStruct {
  int algorithm = 0, cell = 0, bias = 2, direction = 0, input_mode = 0, type = CUDNN_DATA_FLOAT,
      precision = CUDNN_DATA_FLOAT, math = 0;
  int input = 0, hidden = 0, projection = 0, layers = 0;
  cudnnDropoutDescriptor_t dropout = nullptr;
  unsigned flags = 0;

  int directions() const { return direction ? 2 : 1; }
  int pseudo_layers() const { return layers * directions(); }
  int gates() const { return cell == 2 ? 4 : cell == 3 ? 3 : 1; }  // LSTM, GRU, else one
  int biases() const { return bias == 0 ? 0 : bias == 2 ? 2 : 1; }
  int output() const { return projection > 0 ? projection : hidden; }
  long long inputs(int pseudo_layer) const {
    return pseudo_layer < directions() ? input : static_cast<long long>(output()) * directions();
  }
};
struct cudnnRNNDataStruct {
  int type = CUDNN_DATA_FLOAT, layout = 0, steps = 0, batch = 0, width = 0;
  std::vector<int> lengths;
  long long positions() const {
    long long sum = 0;
    for (const int length : lengths) sum += length;
    return sum;
  }
};

namespace simlibs {

// A part of the weights: elements before it, and its size. No rows: there is no such part.
struct WeightPart {
  long long offset = 0, rows = 0, columns = 0;
};
long long weight_elements(const cudnnRNNStruct& rnn);
// The matrix `id`: gates of the input, gates of the recurrence, then the projection.
WeightPart weight_matrix(const cudnnRNNStruct& rnn, int pseudo_layer, int id);
WeightPart weight_bias(const cudnnRNNStruct& rnn, int pseudo_layer, int id);
void* address_of(const WeightPart& part, int type, const void* weights);

// A pass over `positions` vectors, of at most `batch` sequences: of each layer and direction a product with the inputs of all time steps,
// then the steps.
cudnnStatus_t run_layers(cudnnHandle_t handle, const cudnnRNNStruct& rnn, long long positions, long long batch,
                         bool forward);
cudnnStatus_t run_weight_gradients(cudnnHandle_t handle, const cudnnRNNStruct& rnn, long long positions);

}  // namespace simlibs
