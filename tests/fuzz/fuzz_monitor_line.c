// SPDX-License-Identifier: GPL-3.0-or-later
/* Lines of LossMonitor, one after another: steps never go back. And levels of a log. */

#include "engine/log/log_level.h"
#include "engine/log/monitor_line.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *next;
    struct gd_monitor monitor = {.epoch = 0};
    struct gd_log_levels levels = {.all = GD_LOG_UNSET};
    struct gd_monitor_line line;
    int64_t last = 0;

    gd_log_levels_parse(text, &levels, NULL);
    for (char *at = text; at; at = next) {
        next = strchr(at, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (gd_monitor_parse(at, &line)) {
            int64_t step = gd_monitor_step(&monitor, &line);
            FUZZ_CHECK(step >= last);
            last = step;
        }
    }
    free(text);
    return 0;
}
