// SPDX-License-Identifier: GPL-3.0-or-later
/* Tensors of Ascend's transformer library: lines of text, then elements. */
#include "fuzz_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_archive(data, size, "atb", false);
    return 0;
}
