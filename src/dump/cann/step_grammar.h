// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Which steps are dumped, as CANN, TensorFlow on Ascend and MindSpore spell it: "0|3-5|10", numbers
 * and ranges with both ends inside; MindSpore also knows "all".
 */
#ifndef GD_DUMP_STEP_GRAMMAR_H
#define GD_DUMP_STEP_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct gd_steps {
    bool all;
    uint32_t count;
    struct gd_step_range {
        int64_t first, last;
    } * range; /* as written */
};

struct gd_step_rules {
    uint32_t max_groups;   /* 0: no limit; CANN has 100 */
    bool all_allowed;      /* "all" */
    bool strictly_greater; /* the end of a range is greater than its beginning: GE */
    bool blanks;           /* blanks around numbers */
};

/* GD_EINVAL with err->offset at the fault: what is wrong there and what would be right. GD_ELIMIT:
 * too many groups. */
int gd_steps_parse(const char *text, const struct gd_step_rules *rules, struct gd_steps *ret,
                   struct gd_err *err);
void gd_steps_clear(struct gd_steps *steps);
bool gd_steps_have(const struct gd_steps *steps, int64_t step);
/* In CANN's spelling, or "all". */
void gd_steps_text(const struct gd_steps *steps, struct gd_buf *out);

#endif
