// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs a file of commands (`source`, -x, gradbrc). */
#include <stdio.h>

#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"

/* One line without its end, at most PARSE_MAX_LINE bytes. 1: a line; 0: the end; negative: an
 * error. */
static int read_line(FILE *file, struct gd_buf *line, struct gd_err *err)
{
    int c;

    gd_buf_clear(line);
    while ((c = getc(file)) != EOF && c != '\n') {
        if (c == '\0') { /* the rest would be lost silently */
            return gd_fail(err, GD_EINVAL,
                           "the line contains a NUL byte: this is not a command file");
        }
        if (gd_buf_putc(line, (char)c) != GD_OK) {
            return gd_fail(err, GD_ELIMIT, "the line is longer than %d bytes", PARSE_MAX_LINE);
        }
    }
    return c == EOF && line->len == 0 ? 0 : 1;
}

static int source_lines(struct repl *repl, FILE *file, struct gd_err *err)
{
    struct gd_buf line = GD_BUF_INIT(PARSE_MAX_LINE);
    int rc = GD_OK;

    while (rc == GD_OK && !repl->end.quit && !repl->front.left) {
        rc = read_line(file, &line, err);
        if (rc == 0) {
            break;
        }
        repl->script.source_line++;
        if (rc < 0) {
            break;
        }
        rc = repl_run_line(repl, gd_buf_text(&line), LINE_SCRIPT);
        rc = repl_goes_on_after(repl, rc) ? GD_OK : rc;
    }
    gd_buf_deinit(&line);
    return rc;
}

int repl_source(struct repl *repl, const char *path)
{
    const char *outer_path = repl->script.source_path;
    int outer_line = repl->script.source_line;
    struct gd_err err = {.code = GD_OK};
    int rc = repl_check_seal(repl, &err);
    FILE *file = rc == GD_OK ? fopen(path, "re") : NULL;

    if (rc != GD_OK) {
        /* reported below */
    } else if (!file) {
        rc = gd_fail_errno(&err, GD_EIO, "cannot read the command file %s", path);
    } else if (repl->busy.depth >= REPL_MAX_DEPTH) {
        rc = gd_fail(&err, GD_ELIMIT, "command files are nested more than %d deep", REPL_MAX_DEPTH);
    } else {
        bool had_body = repl->script.body.kind != BODY_NONE;
        repl->script.source_path = path;
        repl->script.source_line = 0;
        repl->busy.depth++;
        rc = source_lines(repl, file, &err);
        repl->busy.depth--;
        if (rc == GD_OK && ferror(file) != 0) { /* a directory can be opened, but not read */
            repl->script.source_path = outer_path;
            rc = gd_fail_errno(&err, GD_EIO, "cannot read the command file %s", path);
        }
        if (!had_body && repl->script.body.kind != BODY_NONE) {
            int open_rc =
                gd_fail(&err, GD_EINVAL, "the file ends inside \"%s\": \"end\" is missing",
                        repl_body_name(repl));
            rc = rc == GD_OK ? open_rc : rc;
            repl_body_drop(repl);
        }
    }
    if (err.code != GD_OK) {
        repl_report_failure(repl, NULL, NULL, rc, &err);
    }
    repl->script.source_path = outer_path;
    repl->script.source_line = outer_line;
    if (file) {
        fclose(file);
    }
    return rc;
}
