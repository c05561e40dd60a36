// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A command's output below out.h: the buffer, redirection to a file, and writing to the front end.
 * out_begin, the output, out_end: each once, whatever came of the command.
 */
#ifndef GD_REPL_OUT_IMPL_H
#define GD_REPL_OUT_IMPL_H

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "repl/out/out.h"

struct command;
struct repl;

struct repl_out {
    struct repl *repl;
    struct gd_arena *arena;
    const char *command; /* its name in JSON; NULL: none is given */
    struct gd_buf text;
    cJSON *record;
    char type[48];
    FILE *sink; /* redirected output; NULL: the writer */
    bool sink_failed;
    bool is_error;         /* text goes to stderr */
    bool cut;              /* Ctrl-C came while the terminal took its time: nobody wants the rest */
    const char *sink_path; /* where it goes when the command is done */
    const char *sink_part; /* where it is meanwhile; NULL: there at once */
    int64_t sink_size;     /* what the file held before; -1: no file that could be cut again */
};
void out_begin(struct repl_out *out, struct repl *repl, struct gd_arena *arena,
               const char *command);
int out_redirect(struct repl_out *out, const char *path, bool append, struct gd_err *err);
int out_close_sink(struct repl_out *out, bool failed, struct gd_err *err);
/* out_say into a buffer, in both modes. */
void out_render(struct repl_out *out, const cJSON *object, const char *template,
                const struct out_field *fields, struct gd_buf *text);
/* Writes what is left, closes the sink. failed: no record is written, and the file of a redirection
 * is as it was before. */
int out_end(struct repl_out *out, bool failed, struct gd_err *err);
void out_flush(struct repl_out *out); /* whole lines so far, before a wait */

/* One object as a line of JSON; frees it. Adds "v" and "type" in front. */
void repl_write_json(struct repl *repl, FILE *sink, const char *type, cJSON *object);
void repl_write_text(struct repl *repl, const char *text, size_t len, bool is_error);
void repl_printf(struct repl *repl, bool is_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void repl_print_error(struct repl *repl, const struct command *command, const struct gd_err *err);
/* As out_safe, into any arena. */
const char *repl_safe(struct repl *repl, struct gd_arena *arena, const char *text);
bool repl_is_utf8(const struct repl *repl);
/* Columns that the text takes; text is valid UTF-8 or its bytes are counted. */
int repl_display_width(const char *text);
/* For a person at a terminal: a name that does not fit behind `used` columns loses leading scopes,
 * ".../attn/qkv.weight"; what is left finds the node when it is typed. Elsewhere, and when nothing
 * fits, the text itself. `room` holds the shortened text. */
const char *repl_fit_name(const struct repl_out *out, const char *text, int used, char *room,
                          size_t size);

#endif
