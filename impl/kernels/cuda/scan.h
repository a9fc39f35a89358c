// Selective scan of one channel of one sequence: h = exp(-delta a) h + delta u b, y = c . h + d u.
#pragma once

#include "numbers.h"

namespace assay {

// Arrays of a scan, row-major: u, delta, out [B, T, E]; a [E, N]; b, c [B, T, N]; d [E] or null;
// start [B, E, N] or null; last [B, E, N].
template <typename T>
struct Scan {
  const T *u, *delta, *a, *b, *c, *d, *start;
  T *out, *last;
  int64_t batches, steps, channels, states;
};

// N: states that fit in registers; those from scan.states on are not there.
template <int N, typename T>
BOTH void scan_channel(const Scan<T>& scan, int64_t batch, int64_t channel) {
  const int64_t states = scan.states, first = (batch * scan.channels + channel) * states;
  float h[N], rate[N];
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const bool there = n < states;
    rate[n] = there ? read(scan.a + channel * states + n) : 0.0f;
    h[n] = there && scan.start != nullptr ? read(scan.start + first + n) : 0.0f;
  }
  for (int64_t t = batch * scan.steps; t < (batch + 1) * scan.steps; ++t) {
    const int64_t here = t * scan.channels + channel;
    const float u = read(scan.u + here), delta = read(scan.delta + here), added = delta * u;
    float y = scan.d == nullptr ? 0.0f : read(scan.d + channel) * u;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (n < states) {
        h[n] = expf(-(delta * rate[n])) * h[n] + added * read(scan.b + t * states + n);
        y += h[n] * read(scan.c + t * states + n);
      }
    }
    write(scan.out + here, y);
  }
#pragma unroll
  for (int n = 0; n < N; ++n) {
    if (n < states) write(scan.last + first + n, h[n]);
  }
}

}  // namespace assay
