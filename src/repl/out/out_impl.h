// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A command's output below out.h: the buffer, redirection to a file, and writing to the front end.
 * Call out_begin, then out_end, once each and whatever the command returned.
 */
#ifndef GD_REPL_OUT_IMPL_H
#define GD_REPL_OUT_IMPL_H

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "repl/out/newfile.h"
#include "repl/out/out.h"

struct command;
struct repl;

#define OUT_MAX_TEXT ((size_t)256 << 20) /* bytes written at once */

struct repl_out {
    struct repl *repl;
    struct gd_arena *arena;
    const char *command; /* its name in JSON; NULL: none is given */
    struct gd_buf text;
    cJSON *record;
    char type[48];
    struct newfile sink; /* redirected output; file NULL: the writer */
    bool csv;            /* the sink gets the tables alone, as CSV */
    bool csv_written;    /* there was one */
    bool is_error;       /* text goes to stderr */
    bool cut;            /* Ctrl-C while the terminal was slow: drop the rest */
};
void out_begin(struct repl_out *out, struct repl *repl, struct gd_arena *arena,
               const char *command);
/* `> FILE` and `>> FILE`; a file whose name ends in ".csv" gets CSV. */
int out_redirect(struct repl_out *out, const char *path, bool append, struct gd_err *err);
/* out_say into a buffer, in both modes. out NULL: text is not escaped. */
void out_render(struct repl_out *out, const cJSON *object, const char *template,
                const struct out_field *fields, struct gd_buf *text);
/* One field; its forms are like ":n:8", or "". */
void out_render_item(struct repl_out *out, const cJSON *item, const char *forms,
                     struct gd_buf *text);
/* Writes what is left and closes the sink. failed: no record is written, and a redirection leaves
 * its file unchanged. */
int out_end(struct repl_out *out, bool failed, struct gd_err *err);
/* Output that no command has asked for, such as the report of an event. */
struct out_report {
    struct repl_out out;
    struct gd_arena arena;
};
struct repl_out *out_report_begin(struct out_report *report, struct repl *repl);
void out_report_end(struct out_report *report);
void out_flush(struct repl_out *out); /* writes complete lines, before a wait */

/* Writes an object as a line of JSON, after "v" and "type", and frees it. */
void repl_write_json(struct repl *repl, FILE *sink, const char *type, cJSON *object);
void repl_write_text(struct repl *repl, const char *text, size_t len, bool is_error);
void repl_printf(struct repl *repl, bool is_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void repl_print_error(struct repl *repl, const struct command *command, const struct gd_err *err);
/* out_safe with any arena. */
const char *repl_safe(struct repl *repl, struct gd_arena *arena, const char *text);
bool repl_is_utf8(const struct repl *repl);
/* Display columns of UTF-8 text; other bytes count as one. */
int repl_display_width(const char *text);
/* On a terminal, a name that does not fit after `used` columns loses leading scopes:
 * ".../attn/qkv.weight", which still finds the node when typed. Otherwise returns the text itself.
 * `room` holds the shortened text. */
const char *repl_fit_name(const struct repl_out *out, const char *text, int used, char *room,
                          size_t size);

#endif
