// Masked softmax of a row that several threads share.
#pragma once

#include "numbers.h"

namespace assay {

// The maximum of some scores, and the sum of their exponentials shifted by it.
struct Mass {
  float top = -INFINITY;
  float sum = 0.0f;
};

// One more score. NaN never becomes the maximum, and reaches the sum.
BOTH void add(Mass& mass, float score) {
  if (score > mass.top) {
    mass.sum = mass.sum * expf(mass.top - score) + expf(score - score);
    mass.top = score;
  } else if (score != -INFINITY) {
    mass.sum += expf(score - mass.top);
  }
}

// Two parts of a row together.
BOTH Mass join(Mass a, Mass b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -INFINITY) return {top, a.sum + b.sum};
  return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

// The weight of one score. Where all scores are -inf it is 0/0, as the formula says.
BOTH float weight(float score, Mass mass) {
  return expf(score - (mass.top == -INFINITY ? 0.0f : mass.top)) / mass.sum;
}

BOTH bool allowed(const uint8_t* mask, int64_t at) { return mask == nullptr || mask[at] != 0; }

// What one of `lanes` threads finds in its share of a row.
template <typename T>
BOTH Mass mass_of(const T* scores, const uint8_t* mask, int64_t length, int lane, int lanes) {
  Mass mass;
  for (int64_t i = lane; i < length; i += lanes) {
    if (allowed(mask, i)) add(mass, read(scores + i));
  }
  return mass;
}

// Its share of the weights.
template <typename T>
BOTH void write_weights(const T* scores, const uint8_t* mask, T* weights, int64_t length, Mass mass,
                        int lane, int lanes) {
  for (int64_t i = lane; i < length; i += lanes) {
    write(weights + i, allowed(mask, i) ? weight(read(scores + i), mass) : 0.0f);
  }
}

// Its share of sum w g.
template <typename T>
BOTH float mean_of(const T* weights, const T* cotangent, const uint8_t* mask, int64_t length,
                   int lane, int lanes) {
  float sum = 0.0f;
  for (int64_t i = lane; i < length; i += lanes) {
    if (allowed(mask, i)) sum += read(weights + i) * read(cotangent + i);
  }
  return sum;
}

// Its share of the gradient w (g - mean).
template <typename T>
BOTH void write_gradient(const T* weights, const T* cotangent, const uint8_t* mask, T* gradient,
                         int64_t length, float mean, int lane, int lanes) {
  for (int64_t i = lane; i < length; i += lanes) {
    const float slope = read(weights + i) * (read(cotangent + i) - mean);
    write(gradient + i, allowed(mask, i) ? slope : 0.0f);
  }
}

}  // namespace assay
