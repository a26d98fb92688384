// A small training loop, as frameworks write them: three streams, input copies from pinned and pageable memory ahead of
// their use, a forward, backward and optimizer pass with kernels of several shapes, one of them with big shared memory,
// the optimizer as a captured CUDA graph, stream-ordered scratch memory, events, and the loss read back every step.
//
//   nvcc -O2 -arch=sm_90 -cudart shared train.cu -o train
//   ./train [steps]
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int batch = 256;
constexpr int features = 512;
constexpr int hidden = 1024;
constexpr int classes = 64;
constexpr int tile = 32;
constexpr int panel_bytes = 64 * 1024;  // of shared memory, more than the default limit

void check(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "train.cu:%d: %s\n", line, cudaGetErrorString(error));
    std::exit(1);
  }
}
#define CHECK(call) check((call), __LINE__)

// out[rows x columns] = in[rows x inner] * weights[inner x columns]
__global__ void gemm(const float* in, const float* weights, float* out, int rows, int inner, int columns) {
  __shared__ float left[tile][tile];
  __shared__ float right[tile][tile + 1];
  const int row = blockIdx.y * tile + threadIdx.y;
  const int column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < inner; start += tile) {
    left[threadIdx.y][threadIdx.x] =
        row < rows && start + threadIdx.x < inner ? in[row * inner + start + threadIdx.x] : 0.0f;
    right[threadIdx.y][threadIdx.x] =
        column < columns && start + threadIdx.y < inner ? weights[(start + threadIdx.y) * columns + column] : 0.0f;
    __syncthreads();
    for (int index = 0; index < tile; ++index) sum += left[threadIdx.y][index] * right[index][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) out[row * columns + column] = sum;
}

// gradient[inner x columns] = in^T[inner x rows] * delta[rows x columns]; a panel of `in` waits in shared memory.
__global__ void gemm_transposed(const float* in, const float* delta, float* gradient, int rows, int inner,
                                int columns) {
  extern __shared__ float panel[];
  const int which = blockIdx.x;  // one row of the gradient per block
  for (int row = threadIdx.x; row < rows; row += blockDim.x) panel[row] = in[row * inner + which];
  __syncthreads();
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    float sum = 0;
    for (int row = 0; row < rows; ++row) sum += panel[row] * delta[row * columns + column];
    gradient[which * columns + column] = sum / rows;
  }
}

__global__ void relu(float* values, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] = fmaxf(values[index], 0.0f);
}

__global__ void scale_input(float* values, const float* scales, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] *= scales[index % features];
}

// Squared error against one-hot labels: the difference becomes the gradient, its mean square the loss.
__global__ void loss_and_delta(const float* out, const int* labels, float* delta, float* loss) {
  __shared__ float partial[classes];
  const int row = blockIdx.x;
  const int column = threadIdx.x;
  const float difference = out[row * classes + column] - (labels[row] == column ? 1.0f : 0.0f);
  delta[row * classes + column] = difference;
  partial[column] = difference * difference;
  __syncthreads();
  for (int width = classes / 2; width > 0; width /= 2) {
    if (column < width) partial[column] += partial[column + width];
    __syncthreads();
  }
  if (column == 0) atomicAdd(loss, partial[0] / batch);
}

// hidden_delta = delta * weights^T where the activation let the value through; one row per block.
__global__ void backpropagate(const float* delta, const float* weights, const float* activations, float* hidden_delta) {
  __shared__ float row_delta[classes];
  const int row = blockIdx.x;
  if (threadIdx.x < classes) row_delta[threadIdx.x] = delta[row * classes + threadIdx.x];
  __syncthreads();
  for (int unit = threadIdx.x; unit < hidden; unit += blockDim.x) {
    float sum = 0;
    for (int index = 0; index < classes; ++index) sum += row_delta[index] * weights[unit * classes + index];
    hidden_delta[row * hidden + unit] = activations[row * hidden + unit] > 0 ? sum : 0.0f;
  }
}

__global__ void momentum_step(float* weights, float* momentum, const float* gradient, int count, float rate) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) {
    momentum[index] = 0.9f * momentum[index] + gradient[index];
    weights[index] -= rate * momentum[index];
  }
}

__global__ void fill(float* values, int count, float spread) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] = spread * (static_cast<float>((index * 2654435761u) >> 16) / 65536.0f - 0.5f);
}

int blocks(int count, int threads = 256) { return (count + threads - 1) / threads; }

struct Layer {
  float* weights = nullptr;
  float* momentum = nullptr;
  float* gradient = nullptr;
  int count;

  explicit Layer(int size) : count(size) {
    const size_t bytes = sizeof(float) * static_cast<size_t>(size);
    CHECK(cudaMalloc(&weights, bytes));
    CHECK(cudaMalloc(&momentum, bytes));
    CHECK(cudaMalloc(&gradient, bytes));
    CHECK(cudaMemset(momentum, 0, bytes));
    fill<<<blocks(size), 256>>>(weights, size, 0.05f);
  }
  void release() {
    CHECK(cudaFree(weights));
    CHECK(cudaFree(momentum));
    CHECK(cudaFree(gradient));
  }
};

struct Trainer {
  Layer first{features * hidden};
  Layer second{hidden * classes};
  cudaStream_t compute = nullptr, input = nullptr, update = nullptr;
  cudaEvent_t input_ready = nullptr, gradients_ready = nullptr, updated = nullptr, begin = nullptr, end = nullptr;
  cudaGraphExec_t optimizer = nullptr;
  float *batch_device = nullptr, *scales_device = nullptr, *loss_device = nullptr, *batch_pinned = nullptr;
  int* labels_device = nullptr;
  std::vector<float> scales = std::vector<float>(features, 1.0f);  // pageable
  std::vector<int> labels = std::vector<int>(batch);               // pageable

  Trainer();
  ~Trainer();
  void capture_optimizer();
  void load(int step);
  void forward_backward();
  float step(int number);
};

Trainer::Trainer() {
  CHECK(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&input, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&update, cudaStreamNonBlocking));
  for (cudaEvent_t* event : {&input_ready, &gradients_ready, &updated}) {
    CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaMalloc(&batch_device, sizeof(float) * batch * features));
  CHECK(cudaMalloc(&scales_device, sizeof(float) * features));
  CHECK(cudaMalloc(&labels_device, sizeof(int) * batch));
  CHECK(cudaMalloc(&loss_device, sizeof(float)));
  CHECK(cudaMallocHost(&batch_pinned, sizeof(float) * batch * features));
  CHECK(cudaFuncSetAttribute(gemm_transposed, cudaFuncAttributeMaxDynamicSharedMemorySize, panel_bytes));
  CHECK(cudaDeviceSynchronize());
  capture_optimizer();
}

Trainer::~Trainer() {
  CHECK(cudaGraphExecDestroy(optimizer));
  first.release();
  second.release();
  for (void* pointer : {static_cast<void*>(batch_device), static_cast<void*>(scales_device),
                        static_cast<void*>(labels_device), static_cast<void*>(loss_device)}) {
    CHECK(cudaFree(pointer));
  }
  CHECK(cudaFreeHost(batch_pinned));
  for (cudaEvent_t event : {input_ready, gradients_ready, updated, begin, end}) CHECK(cudaEventDestroy(event));
  for (cudaStream_t stream : {compute, input, update}) CHECK(cudaStreamDestroy(stream));
}

// The same work every step: captured once, replayed from then on.
void Trainer::capture_optimizer() {
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(update, cudaStreamCaptureModeThreadLocal));
  for (Layer* layer : {&first, &second}) {
    momentum_step<<<blocks(layer->count), 256, 0, update>>>(layer->weights, layer->momentum, layer->gradient,
                                                            layer->count, 0.1f);
    CHECK(cudaMemsetAsync(layer->gradient, 0, sizeof(float) * static_cast<size_t>(layer->count), update));
  }
  CHECK(cudaStreamEndCapture(update, &graph));
  CHECK(cudaGraphInstantiate(&optimizer, graph, 0));
  CHECK(cudaGraphDestroy(graph));
}

// The host prepares a batch and sends it: features from pinned memory, labels and scales from pageable memory.
void Trainer::load(int step) {
  for (int index = 0; index < batch * features; ++index) {
    batch_pinned[index] = static_cast<float>((index * 31 + step * 17) % 97) / 97.0f;
  }
  for (int row = 0; row < batch; ++row) labels[row] = (row * 7 + step) % classes;
  CHECK(cudaMemcpyAsync(batch_device, batch_pinned, sizeof(float) * batch * features, cudaMemcpyHostToDevice, input));
  CHECK(cudaMemcpyAsync(labels_device, labels.data(), sizeof(int) * batch, cudaMemcpyHostToDevice, input));
  CHECK(cudaMemcpyAsync(scales_device, scales.data(), sizeof(float) * features, cudaMemcpyHostToDevice, input));
  CHECK(cudaEventRecord(input_ready, input));
}

void Trainer::forward_backward() {
  float *activations = nullptr, *hidden_delta = nullptr, *out = nullptr, *delta = nullptr;
  CHECK(cudaMallocAsync(&activations, sizeof(float) * batch * hidden, compute));
  CHECK(cudaMallocAsync(&hidden_delta, sizeof(float) * batch * hidden, compute));
  CHECK(cudaMallocAsync(&out, sizeof(float) * batch * classes, compute));
  CHECK(cudaMallocAsync(&delta, sizeof(float) * batch * classes, compute));
  const dim3 threads(tile, tile);
  scale_input<<<blocks(batch * features), 256, 0, compute>>>(batch_device, scales_device, batch * features);
  gemm<<<dim3(hidden / tile, batch / tile), threads, 0, compute>>>(batch_device, first.weights, activations, batch,
                                                                   features, hidden);
  relu<<<blocks(batch * hidden, 512), 512, 0, compute>>>(activations, batch * hidden);
  gemm<<<dim3(classes / tile, batch / tile), threads, 0, compute>>>(activations, second.weights, out, batch, hidden,
                                                                    classes);
  CHECK(cudaMemsetAsync(loss_device, 0, sizeof(float), compute));
  loss_and_delta<<<batch, classes, 0, compute>>>(out, labels_device, delta, loss_device);
  gemm_transposed<<<hidden, 128, panel_bytes, compute>>>(activations, delta, second.gradient, batch, hidden, classes);
  backpropagate<<<batch, 256, 0, compute>>>(delta, second.weights, activations, hidden_delta);
  gemm_transposed<<<features, 256, batch * sizeof(float), compute>>>(batch_device, hidden_delta, first.gradient, batch,
                                                                     features, hidden);
  for (float* scratch : {activations, hidden_delta, out, delta}) CHECK(cudaFreeAsync(scratch, compute));
  CHECK(cudaEventRecord(gradients_ready, compute));
}

float Trainer::step(int number) {
  float loss = 0;
  CHECK(cudaStreamWaitEvent(compute, updated, 0));  // the weights of the step before
  load(number);
  CHECK(cudaStreamWaitEvent(compute, input_ready, 0));
  forward_backward();
  CHECK(cudaStreamWaitEvent(update, gradients_ready, 0));
  CHECK(cudaGraphLaunch(optimizer, update));
  CHECK(cudaEventRecord(updated, update));
  CHECK(cudaStreamSynchronize(compute));
  CHECK(cudaMemcpy(&loss, loss_device, sizeof loss, cudaMemcpyDeviceToHost));
  CHECK(cudaGetLastError());
  return loss;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
  cudaDeviceProp device{};
  CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("training on %s\n", device.name);
  {
    Trainer trainer;
    CHECK(cudaEventRecord(trainer.begin, trainer.compute));
    for (int number = 1; number <= steps; ++number) {
      std::printf("step %d loss %.4f\n", number, trainer.step(number));
    }
    CHECK(cudaEventRecord(trainer.end, trainer.compute));
    CHECK(cudaDeviceSynchronize());
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, trainer.begin, trainer.end));
    std::fprintf(stderr, "%d steps, %.3f ms each\n", steps, milliseconds / static_cast<float>(steps > 0 ? steps : 1));
  }
  return 0;
}
