// SPDX-License-Identifier: GPL-3.0-or-later
/* `save watchpoints`, `save breakpoints`: commands that `source` reads. */
#include <stdio.h>

#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/data/save.h"
#include "repl/core/repl_impl.h"
#include "repl/out/newfile.h"

#define MAX_BYTES ((size_t)64 << 20)

/* Ignore count, commands and state of a number. They follow the command that set it, so that
 * `$bpnum` is that number. */
static void add_details(struct command_call *call, int number, uint64_t ignore, bool enabled,
                        struct gd_buf *out)
{
    const struct repl_lines *body = repl_commands_of(call->repl, number);
    uint64_t count = repl_stop_count(call->repl, number);
    if (ignore) {
        gd_buf_printf(out, "ignore $bpnum %llu\n", (unsigned long long)ignore);
    }
    if (count) {
        gd_buf_printf(out, "enable count %llu $bpnum\n", (unsigned long long)count);
    }
    if (!enabled) {
        gd_buf_puts(out, "disable $bpnum\n");
    }
    if (body) {
        gd_buf_puts(out, "commands\n");
        for (size_t i = 0; i < body->count; i++) {
            gd_buf_printf(out, "  %s\n", body->line[i]);
        }
        gd_buf_puts(out, "end\n");
    }
}

static void add_breakpoint(struct command_call *call, const struct gd_breakpoint *at,
                           struct gd_buf *out)
{
    breakpoint_line(at, out);
    gd_buf_putc(out, '\n');
    add_details(call, at->number, at->ignore, at->enabled, out);
}

static void add_watchpoint(struct command_call *call, const struct gd_watchpoint *watch,
                           struct gd_buf *out)
{
    gd_watchpoint_command(watch, out);
    gd_buf_putc(out, '\n');
    add_details(call, watch->number, watch->ignore, watch->enabled, out);
}

/* Both kinds in order of their numbers. */
static size_t add_all(struct command_call *call, bool breakpoints, struct gd_buf *out)
{
    const struct gd_breakpoint *at = breakpoints ? call->debugger->breakpoints : NULL;
    const struct gd_watchpoint *watch = call->debugger->watchpoints;
    const char *where;
    size_t count = 0;
    gd_buf_puts(out, "# Made by gradb; read it with \"source\".\n");
    for (size_t i = 0; (where = gd_exclude_at(call->debugger, i)); i++) {
        gd_buf_printf(out, "exclude %s\n", where);
    }
    while (at || watch) {
        count++;
        if (at && (!watch || at->number < watch->number)) {
            add_breakpoint(call, at, out);
            at = at->next;
        } else {
            add_watchpoint(call, watch, out);
            watch = watch->next;
        }
    }
    return count;
}

static int write_file(const char *path, const struct gd_buf *text, struct gd_err *err)
{
    struct newfile file;
    int rc = newfile_open(&file, path, false, err);
    if (rc != GD_OK) {
        return rc;
    }
    fwrite(text->data, 1, text->len, file.file);
    return newfile_close(&file, true, err);
}

int save_points(struct command_call *call, bool breakpoints, const char *path, bool force,
                struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(MAX_BYTES);
    bool may = true;
    int rc = repl_check_seal(call->repl, err);
    rc = rc != GD_OK ? rc : repl_may_replace(call, path, force, &may, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!may) {
        out_printf(call->out, "Not saved.\n");
        return GD_OK;
    }
    size_t count = add_all(call, breakpoints, &text);
    rc = text.failed ? gd_fail_nomem(err) : write_file(path, &text, err);
    gd_buf_deinit(&text);
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *record = out_record(call->out, "saved");
    out_set(record, OUT_TEXT("file", path), OUT_INT("count", count));
    out_say(
        call->out, record,
        !breakpoints ? "Saved {count|watchpoint} to {file}; read it with \"source\".\n"
        : count == 1
            ? "Saved 1 breakpoint or watchpoint to {file}; read it with \"source\".\n"
            : "Saved {count} breakpoints and watchpoints to {file}; read it with \"source\".\n");
    return GD_OK;
}
