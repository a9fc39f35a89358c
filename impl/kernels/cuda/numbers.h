// Numbers as the kernels take them: 16-bit ones are read into float and rounded when written.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
// Runs on the device; the host runs the same source where there is no device.
#define BOTH __host__ __device__ __forceinline__
#else
#include <cmath>
#define BOTH inline
#endif

namespace assay {

BOTH float read(const float* x) { return *x; }
BOTH void write(float* x, float value) { *x = value; }

#ifdef __CUDACC__
BOTH float read(const __half* x) { return __half2float(*x); }
BOTH float read(const __nv_bfloat16* x) { return __bfloat162float(*x); }
BOTH void write(__half* x, float value) { *x = __float2half_rn(value); }
BOTH void write(__nv_bfloat16* x, float value) { *x = __float2bfloat16_rn(value); }

// Formats by the numbers that callers use.
enum Format : int32_t { FLOAT32 = 0, FLOAT16 = 1, BFLOAT16 = 2 };
#endif

}  // namespace assay
