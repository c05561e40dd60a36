// SPDX-License-Identifier: GPL-3.0-or-later
/* A line of a log: its parts point into it. */

#include "dump/mindspore/glog.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct gd_glog_line line;
    int64_t step = -1;
    size_t len;

    len = strlen(text);
    if (gd_glog_parse(text, &line)) {
        FUZZ_CHECK(line.module_len && line.module + line.module_len <= text + len);
        FUZZ_CHECK(line.time_len && line.time + line.time_len <= line.message);
        FUZZ_CHECK(!line.place || line.place + line.place_len < line.message);
        FUZZ_CHECK(line.message <= text + len);
    }
    FUZZ_CHECK(!gd_glog_step(text, &step) || step >= 0);
    free(text);
    return 0;
}
