// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Selects steps to dump in the syntax of CANN, TensorFlow on Ascend and MindSpore: "0|3-5|10",
 * numbers and inclusive ranges; MindSpore also has "all".
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
    bool strictly_greater; /* a range must end after its beginning (GE) */
    bool blanks;           /* blanks around numbers are allowed */
};

/* GD_EINVAL: err->offset is where the error is; GD_ELIMIT: too many groups. */
int gd_steps_parse(const char *text, const struct gd_step_rules *rules, struct gd_steps *ret,
                   struct gd_err *err);
void gd_steps_clear(struct gd_steps *steps);
bool gd_steps_have(const struct gd_steps *steps, int64_t step);
/* In CANN's syntax, or "all". */
void gd_steps_text(const struct gd_steps *steps, struct gd_buf *out);

#endif
