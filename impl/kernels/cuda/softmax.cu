// Masked softmax: a warp for each row, so that no row waits for another.
#include <cuda_runtime.h>

#include "softmax.h"

namespace assay {
namespace {

constexpr int LANES = 32;
constexpr int ROWS = 4;  // warps of a block
constexpr unsigned ALL = 0xffffffffu;

__device__ int64_t own_row() { return static_cast<int64_t>(blockIdx.x) * ROWS + threadIdx.y; }

template <typename T>
__global__ void forward(const T* scores, const uint8_t* mask, T* weights, int64_t rows,
                        int64_t length) {
  const int64_t row = own_row();
  if (row >= rows) return;
  const int lane = threadIdx.x;
  scores += row * length;
  weights += row * length;
  if (mask != nullptr) mask += row * length;
  Mass mass = mass_of(scores, mask, length, lane, LANES);
  // Every lane ends with the same bits: the two sides of a join change places only.
  for (int apart = LANES / 2; apart > 0; apart /= 2) {
    const Mass other{__shfl_xor_sync(ALL, mass.top, apart), __shfl_xor_sync(ALL, mass.sum, apart)};
    mass = join(mass, other);
  }
  write_weights(scores, mask, weights, length, mass, lane, LANES);
}

template <typename T>
__global__ void backward(const T* weights, const T* cotangent, const uint8_t* mask, T* gradient,
                         int64_t rows, int64_t length) {
  const int64_t row = own_row();
  if (row >= rows) return;
  const int lane = threadIdx.x;
  weights += row * length;
  cotangent += row * length;
  gradient += row * length;
  if (mask != nullptr) mask += row * length;
  float mean = mean_of(weights, cotangent, mask, length, lane, LANES);
  for (int apart = LANES / 2; apart > 0; apart /= 2) mean += __shfl_xor_sync(ALL, mean, apart);
  write_gradient(weights, cotangent, mask, gradient, length, mean, lane, LANES);
}

template <typename T>
int run_forward(const void* scores, const uint8_t* mask, void* weights, int64_t rows,
                int64_t length, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((rows + ROWS - 1) / ROWS)), threads(LANES, ROWS);
  forward<T><<<blocks, threads, 0, stream>>>(static_cast<const T*>(scores), mask,
                                             static_cast<T*>(weights), rows, length);
  return cudaGetLastError();
}

template <typename T>
int run_backward(const void* weights, const void* cotangent, const uint8_t* mask, void* gradient,
                 int64_t rows, int64_t length, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((rows + ROWS - 1) / ROWS)), threads(LANES, ROWS);
  backward<T><<<blocks, threads, 0, stream>>>(
      static_cast<const T*>(weights), static_cast<const T*>(cotangent), mask,
      static_cast<T*>(gradient), rows, length);
  return cudaGetLastError();
}

}  // namespace
}  // namespace assay

// Arrays are row-major [rows, length] on the device of the stream; `mask` has a byte for each entry,
// 0 where it is blocked, or is null. The result is a cudaError_t: that of the launch.
extern "C" int assay_masked_softmax(const void* scores, const void* mask, void* weights,
                                    int64_t rows, int64_t length, int32_t format, void* stream) {
  if (rows == 0 || length == 0) return cudaSuccess;
  const auto* seen = static_cast<const uint8_t*>(mask);
  const auto on = static_cast<cudaStream_t>(stream);
  switch (format) {
    case assay::FLOAT32:
      return assay::run_forward<float>(scores, seen, weights, rows, length, on);
    case assay::FLOAT16:
      return assay::run_forward<__half>(scores, seen, weights, rows, length, on);
    case assay::BFLOAT16:
      return assay::run_forward<__nv_bfloat16>(scores, seen, weights, rows, length, on);
    default:
      return cudaErrorInvalidValue;
  }
}

extern "C" int assay_masked_softmax_backward(const void* weights, const void* cotangent,
                                             const void* mask, void* gradient, int64_t rows,
                                             int64_t length, int32_t format, void* stream) {
  if (rows == 0 || length == 0) return cudaSuccess;
  const auto* seen = static_cast<const uint8_t*>(mask);
  const auto on = static_cast<cudaStream_t>(stream);
  switch (format) {
    case assay::FLOAT32:
      return assay::run_backward<float>(weights, cotangent, seen, gradient, rows, length, on);
    case assay::FLOAT16:
      return assay::run_backward<__half>(weights, cotangent, seen, gradient, rows, length, on);
    case assay::BFLOAT16:
      return assay::run_backward<__nv_bfloat16>(weights, cotangent, seen, gradient, rows, length,
                                                on);
    default:
      return cudaErrorInvalidValue;
  }
}

extern "C" const char* assay_error(int code) {
  return cudaGetErrorString(static_cast<cudaError_t>(code));
}
