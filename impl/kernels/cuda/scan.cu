// Selective scan: a thread for each channel of each sequence, its states in registers. Neighbouring
// threads read neighbouring channels, and all of a block read the same b and c.
#include <cuda_runtime.h>

#include "scan.h"

namespace assay {
namespace {

constexpr int CHANNELS = 128;  // threads of a block

template <int N, typename T>
__global__ void __launch_bounds__(CHANNELS) forward(Scan<T> scan) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * CHANNELS + threadIdx.x;
  if (channel < scan.channels) scan_channel<N>(scan, blockIdx.y, channel);
}

template <int N, typename T>
int launch(const Scan<T>& scan, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((scan.channels + CHANNELS - 1) / CHANNELS),
                    static_cast<unsigned>(scan.batches));
  forward<N><<<blocks, CHANNELS, 0, stream>>>(scan);
  return cudaGetLastError();
}

template <typename T>
int run(const void* const* in, void* const* out, const int64_t* sizes, cudaStream_t stream) {
  const auto* const* x = reinterpret_cast<const T* const*>(in);
  auto* const* y = reinterpret_cast<T* const*>(out);
  const Scan<T> scan{x[0], x[1], x[2], x[3],     x[4],     x[5],     x[6],
                     y[0], y[1], sizes[0], sizes[1], sizes[2], sizes[3]};
  if (scan.states <= 4) return launch<4>(scan, stream);
  if (scan.states <= 16) return launch<16>(scan, stream);
  if (scan.states <= 64) return launch<64>(scan, stream);
  return cudaErrorInvalidValue;
}

}  // namespace
}  // namespace assay

// in: u, delta, a, b, c, d, start (the last two may be null); out: outputs and last state; sizes:
// B, T, E, N with N at most 64. The result is a cudaError_t: that of the launch.
extern "C" int assay_selective_scan(const void* const* in, void* const* out, const int64_t* sizes,
                                    int32_t format, void* stream) {
  if (sizes[0] == 0 || sizes[2] == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  switch (format) {
    case assay::FLOAT32:
      return assay::run<float>(in, out, sizes, on);
    case assay::FLOAT16:
      return assay::run<__half>(in, out, sizes, on);
    case assay::BFLOAT16:
      return assay::run<__nv_bfloat16>(in, out, sizes, on);
    default:
      return cudaErrorInvalidValue;
  }
}
