// SPDX-License-Identifier: GPL-3.0-or-later
// What the emulated device's own operators and the fallback share.
#pragma once

#include <ATen/core/Tensor.h>

#include "backend.h"

namespace emulated
{

bool is_ours(const at::Tensor &tensor);
// A CPU tensor over the bytes that a kernel uses, with the same sizes, strides and bits. It holds
// no reference to the storage: memory that is released too early is found filled.
at::Tensor for_kernels(const at::Tensor &tensor);
// A tensor of the device, not initialized.
at::Tensor make(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type, int device);
// Waits for the device's current stream, as an operator or copy does that needs a result: counted
// as implicit.
void wait_implicitly(int device);
// Changes sizes and strides; the storage grows if it is too small.
void resize(const at::Tensor &tensor, at::IntArrayRef sizes, at::IntArrayRef strides);

} // namespace emulated
