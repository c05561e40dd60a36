// SPDX-License-Identifier: GPL-3.0-or-later
/* safetensors. */
#include "fuzz_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_archive(data, size, "safetensors", false);
    return 0;
}
