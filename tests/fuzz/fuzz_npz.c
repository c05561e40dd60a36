// SPDX-License-Identifier: GPL-3.0-or-later
/* Zip files, read as NumPy's .npz: directories, local headers, inflated members. */
#include "fuzz_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_archive(data, size, "npz", size % 2);
    return 0;
}
