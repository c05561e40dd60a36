// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>

#include "engine/watch/watch_impl.h"

/* The fewest digits that read back as the same number. */
static void put_number(struct gd_buf *out, double value)
{
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    gd_buf_puts(out, text);
}

/* CONDITION [PARAM=VALUE]... on SELECTOR [if EXPR] */
static int put_words(const struct gd_watchpoint *watch, struct gd_buf *out)
{
    if (watch->event) {
        gd_buf_puts(out, watch->event);
    } else if (watch->condition) {
        gd_buf_puts(out, watch->condition->abbr);
    } else {
        gd_buf_printf(out, "'%s'", gd_expr_text(watch->expr));
    }
    for (size_t i = 0; i < watch->value_count; i++) {
        const struct gd_condition_value *value = &watch->values[i];
        gd_buf_printf(out, " %s=", value->name);
        if (value->type == GD_PARAM_BOOL) {
            gd_buf_puts(out, value->value != 0 ? "true" : "false");
        } else {
            put_number(out, value->value);
        }
    }
    int rc = watch->event ? GD_OK : gd_buf_printf(out, " on %s", watch->where);
    if (watch->guard) {
        rc = gd_buf_printf(out, " if %s", gd_expr_text(watch->guard));
    }
    return out->failed && rc == GD_OK ? GD_ENOMEM : rc;
}

int gd_watchpoint_text(const struct gd_watchpoint *watch, struct gd_buf *out)
{
    int rc = put_words(watch, out);
    if (rc == GD_OK && watch->steps > 1) {
        rc = gd_buf_printf(out, ", %u steps in a row", watch->steps);
    }
    return rc;
}

int gd_watchpoint_command(const struct gd_watchpoint *watch, struct gd_buf *out)
{
    const char *verb = watch->action == GD_WATCH_TRACE ? "trace" : watch->event ? "catch" : "watch";
    if (watch->temporary) {
        gd_buf_putc(out, 't');
    }
    gd_buf_puts(out, verb);
    if (watch->event) {
        gd_buf_putc(out, ' ');
        return put_words(watch, out);
    }
    if (watch->when == GD_WHEN_EXACT) {
        gd_buf_puts(out, " -exact");
    }
    if (watch->when == GD_WHEN_STEP_END) {
        gd_buf_puts(out, " -step");
    }
    if (watch->steps > 1) {
        gd_buf_printf(out, " -for %u", watch->steps);
    }
    gd_buf_putc(out, ' ');
    return put_words(watch, out);
}
