// The kernels' own arithmetic on the host: `lanes` threads of a row one after the other, joined as a
// warp joins them.
#include <vector>

#include "scan.h"
#include "softmax.h"

extern "C" void masked_softmax(const float* scores, const uint8_t* mask, float* weights,
                               int64_t rows, int64_t length, int lanes) {
  for (int64_t row = 0; row < rows; ++row, scores += length, weights += length) {
    std::vector<assay::Mass> parts(lanes);
    for (int i = 0; i < lanes; ++i) parts[i] = assay::mass_of(scores, mask, length, i, lanes);
    for (int apart = lanes / 2; apart > 0; apart /= 2) {
      for (int i = 0; i < apart; ++i) parts[i] = assay::join(parts[i], parts[i + apart]);
    }
    for (int i = 0; i < lanes; ++i) {
      assay::write_weights(scores, mask, weights, length, parts[0], i, lanes);
    }
    if (mask != nullptr) mask += length;
  }
}

extern "C" void masked_softmax_backward(const float* weights, const float* cotangent,
                                        const uint8_t* mask, float* gradient, int64_t rows,
                                        int64_t length, int lanes) {
  for (int64_t row = 0; row < rows; ++row) {
    float mean = 0.0f;
    for (int i = 0; i < lanes; ++i) mean += assay::mean_of(weights, cotangent, mask, length, i, lanes);
    for (int i = 0; i < lanes; ++i) {
      assay::write_gradient(weights, cotangent, mask, gradient, length, mean, i, lanes);
    }
    weights += length, cotangent += length, gradient += length;
    if (mask != nullptr) mask += length;
  }
}

extern "C" void selective_scan(const float* const* in, float* const* out, const int64_t* sizes) {
  const assay::Scan<float> scan{in[0],  in[1],  in[2],    in[3],    in[4],    in[5],   in[6],
                                out[0], out[1], sizes[0], sizes[1], sizes[2], sizes[3]};
  for (int64_t batch = 0; batch < scan.batches; ++batch) {
    for (int64_t channel = 0; channel < scan.channels; ++channel) {
      if (scan.states <= 4) {
        assay::scan_channel<4>(scan, batch, channel);
      } else {
        assay::scan_channel<16>(scan, batch, channel);
      }
    }
  }
}
