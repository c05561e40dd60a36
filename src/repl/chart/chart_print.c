// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/chart/chart_print.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "repl/core/repl_impl.h"

int chart_screen_rows(struct command_call *call)
{
    struct winsize size;

    if (!call->repl->options.interactive || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_row < 4) {
        return 24;
    }
    return size.ws_row;
}

static const char *sgr_of(enum chart_ink ink)
{
    static const char *const curves[CHART_INKS] = {"36", "33", "32", "35", "34", "91"};
    static const char *const heats[] = {"34", "36", "32", "33", "91"};

    if (ink >= CHART_HEAT0) {
        return heats[(ink - CHART_HEAT0) * 5 / CHART_HEATS];
    }
    switch (ink) {
    case CHART_DIM:
    case CHART_CURSOR: return "2";
    case CHART_BAD: return "31";
    case CHART_MARKED: return "35";
    default: return ink >= CHART_CURVE0 ? curves[ink - CHART_CURVE0] : "";
    }
}

void chart_print(struct command_call *call, const struct chart_picture *picture)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    const char *off = out_sgr(call->out, OUT_RESET);

    for (int row = 0; row < picture->rows; row++) {
        for (int col = 0; col < picture->cols;) {
            enum chart_ink ink;
            col = chart_run(picture, row, col, &text, &ink);
            const char *sgr = sgr_of(ink);
            bool colored = sgr[0] && text.len > 0;
            out_printf(call->out, "%s%s%s", colored ? out_sgr(call->out, sgr) : "",
                       gd_buf_text(&text), colored ? off : "");
        }
        out_printf(call->out, "\n");
    }
    gd_buf_deinit(&text);
}

int chart_parse_steps(const char *text, int64_t *from, int64_t *to, struct gd_err *err)
{
    const char *p = text;
    char *end;

    *from = 0;
    *to = INT64_MAX;
    if (*p != '-') {
        *from = strtoll(p, &end, 10);
        if (end == p || *p == '+' || *p == ' ') {
            goto bad;
        }
        p = end;
        if (*p == '\0') {
            *to = *from;
            return GD_OK;
        }
    }
    if (*p++ != '-') {
        goto bad;
    }
    if (*p != '\0') {
        *to = strtoll(p, &end, 10);
        if (end == p || *end != '\0' || *p < '0' || *p > '9') {
            goto bad;
        }
    } else if (p == text + 1) {
        goto bad;
    }
    if (*from <= *to) {
        return GD_OK;
    }
bad:
    return gd_fail(err, GD_EINVAL, "\"%.40s\" is not a range of steps: write 100-300, 100- or -300",
                   text);
}
