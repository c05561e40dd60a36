// SPDX-License-Identifier: GPL-3.0-or-later
/* MindSpore's checkpoints and print files. The input is the file, after a byte of options. */
#include "fuzz_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 1) {
        fuzz_archive(data + 1, size - 1, "ckpt", data[0] & 1);
    }
    return 0;
}
