// SPDX-License-Identifier: GPL-3.0-or-later
/* One line of MindSpore's logs, C++ or Python: "[LEVEL] MODULE(PID,...):TIME [PLACE] MESSAGE". */
#ifndef GD_DUMP_GLOG_H
#define GD_DUMP_GLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gd_glog_level {
    GD_GLOG_DEBUG,
    GD_GLOG_INFO,
    GD_GLOG_WARNING,
    GD_GLOG_ERROR,
    GD_GLOG_CRITICAL,
};

struct gd_glog_line { /* all point into the line */
    enum gd_glog_level level;
    const char *module, *time, *place; /* place: "file.cc:12", NULL: none */
    size_t module_len, time_len, place_len;
    const char *message; /* up to the end */
};

/* False: not the beginning of a message; may continue the previous one. */
bool gd_glog_parse(const char *line, struct gd_glog_line *ret);
/* The step mentioned in a message. */
bool gd_glog_step(const char *message, int64_t *ret);

#endif
