// SPDX-License-Identifier: GPL-3.0-or-later
/* Text on its way out: where it is written, and how it is escaped. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "engine/utf8.h"
#include "repl/core/repl_impl.h"
#include "repl/out/logging.h"
#include "repl/out/tty_out.h"

void repl_write_text(struct repl *repl, const char *text, size_t len, bool is_error)
{
    if (len == 0 || logging_take(repl, text, len, is_error)) {
        return;
    }
    if (repl->front.residence) {
        repl->front.residence->lines(repl->front.residence_ctx, text, len);
    }
    if (repl->front.write) {
        repl->front.write(repl->front.write_ctx, text, len, is_error);
        return;
    }
    fflush(stdout); /* earlier output comes first */
    if (!tty_out_write(is_error ? STDERR_FILENO : STDOUT_FILENO, text, len) && errno == EPIPE) {
        repl_quit(repl, STATUS_FAILED); /* the reader has closed the pipe */
    }
}

void repl_spell_names(struct repl *repl, struct gd_buf *text)
{
    const struct gd_session *session = repl->debugger->current;

    if (repl->debugger->settings.name_style && !repl->options.json && session && text->len > 0) {
        gd_graph_put_dots(session->graph, text->data, text->len);
    }
}

void repl_printf(struct repl *repl, bool is_error, const char *format, ...)
{
    struct gd_buf text = GD_BUF_INIT(OUT_MAX_TEXT);
    va_list args;

    va_start(args, format);
    gd_buf_vprintf(&text, format, args);
    va_end(args);
    repl_spell_names(repl, &text);
    repl_write_text(repl, gd_buf_text(&text), text.len, is_error);
    gd_buf_deinit(&text);
}

/* ---- escaping ---- */

bool repl_is_utf8(const struct repl *repl)
{
    int charset = repl->debugger->settings.charset;
    return charset == 1 || (charset == 0 && repl->options.utf8);
}

void out_add_safe(struct gd_buf *out, const char *text, bool utf8)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p != '\0') {
        uint32_t code = 0;
        size_t len = gd_utf8_decode((const char *)p, &code);
        if (len == 0 || (len > 1 && !utf8)) {
            gd_buf_printf(out, "\\x%02x", *p);
            p++;
            continue;
        }
        if (code == '\n') {
            gd_buf_puts(out, "\\n");
        } else if (code == '\t') {
            gd_buf_puts(out, "\\t");
        } else if (gd_utf8_is_unsafe(code)) {
            gd_buf_printf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
        } else {
            gd_buf_add(out, p, len);
        }
        p += len;
    }
}

void out_put_html(FILE *file, const char *text)
{
    struct gd_buf safe = GD_BUF_INIT(4 * strlen(text) + 1); /* "\\x1b" for one byte */

    out_add_safe(&safe, text, true);
    for (const char *p = gd_buf_text(&safe); *p != '\0'; p++) {
        const char *as = *p == '&'    ? "&amp;"
                         : *p == '<'  ? "&lt;"
                         : *p == '>'  ? "&gt;"
                         : *p == '"'  ? "&quot;"
                         : *p == '\'' ? "&#39;"
                                      : NULL;
        if (as) {
            fputs(as, file);
        } else {
            fputc(*p, file);
        }
    }
    gd_buf_deinit(&safe);
}

const char *repl_safe(struct repl *repl, struct gd_arena *arena, const char *text)
{
    struct gd_buf out = GD_BUF_INIT(OUT_MAX_TEXT);

    out_add_safe(&out, text, repl_is_utf8(repl));
    const char *safe = out.failed ? NULL : gd_arena_strdup(arena, gd_buf_text(&out));
    gd_buf_deinit(&out);
    return safe ? safe : "?";
}

const char *out_safe(struct command_call *call, const char *text)
{
    return repl_safe(call->repl, call->arena, text);
}

int repl_display_width(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    int width = 0;

    while (*p != '\0') {
        uint32_t code = 0;
        size_t len = gd_utf8_decode((const char *)p, &code);
        int columns = len > 1 ? wcwidth((wchar_t)code) : 1;
        width += columns >= 0 ? columns : 1;
        p += len > 0 ? len : 1;
    }
    return width;
}
