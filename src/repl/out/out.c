// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/repl_impl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/utf8.h"
#include "repl/core/command.h"
#include "repl/request/permit.h"
#include "repl/request/request.h"

#define REPORT_MEMORY  ((size_t)1 << 30)
#define OUT_FLUSH_SIZE ((size_t)32 << 10)
#define OUT_MOST_AHEAD ((size_t)1 << 20) /* bytes queued for a terminal before a command waits */

/* ---- JSON ---- */

void repl_write_json(struct repl *repl, FILE *sink, const char *type, cJSON *object)
{
    if (repl->front.record && !sink) {
        repl->front.record(repl->front.record_ctx, type, object);
        return;
    }
    cJSON *line = cJSON_CreateObject();
    struct gd_buf text = GD_BUF_INIT(OUT_MAX_TEXT);

    cJSON_AddNumberToObject(line, "v", OUT_JSON_VERSION);
    cJSON_AddStringToObject(line, "type", type);
    while (object && object->child) {
        cJSON *item = cJSON_DetachItemViaPointer(object, object->child);
        if (!cJSON_AddItemToObject(line, item->string, item)) {
            cJSON_Delete(item);
        }
    }
    char *printed = line ? cJSON_PrintUnformatted(line) : NULL;
    if (printed) {
        gd_utf8_add_json(&text, printed);
        gd_buf_putc(&text, '\n');
    }
    if (text.failed || !printed) {
        gd_buf_clear(&text);
        gd_buf_puts(&text, "{\"v\":1,\"type\":\"error\",\"code\":\"no_memory\",\"message\":"
                           "\"the result is too large\"}\n");
    }
    if (sink) {
        fwrite(gd_buf_text(&text), 1, text.len, sink);
    } else {
        repl_write_text(repl, gd_buf_text(&text), text.len, false);
    }
    free(printed);
    cJSON_Delete(line);
    cJSON_Delete(object);
    gd_buf_deinit(&text);
}

/* ---- a command's output ---- */

bool out_is_json(const struct repl_out *out)
{
    return !out->csv && out->repl->options.json;
}

bool out_is_csv(const struct repl_out *out)
{
    return out->csv;
}

bool out_is_text(const struct repl_out *out)
{
    return !out->csv && (!out->repl->options.json || out->repl->options.words);
}

bool out_utf8(const struct repl_out *out)
{
    return repl_is_utf8(out->repl);
}

int out_width(const struct repl_out *out)
{
    return out->repl->options.width > 0 ? out->repl->options.width : 80;
}

const char *out_sgr(const struct repl_out *out, const char *sgr)
{
    bool always = out->repl->debugger->settings.color == 1;
    bool on = repl_wants_color(out->repl) && (always || !out->sink.file);
    if (!on || out_is_json(out)) {
        return "";
    }
    size_t size = strlen(sgr) + 4;
    char *text = gd_arena_alloc(out->arena, size);
    if (!text) {
        return "";
    }
    snprintf(text, size, "\033[%sm", sgr);
    return text;
}

void out_begin(struct repl_out *out, struct repl *repl, struct gd_arena *arena, const char *command)
{
    *out = (struct repl_out){.repl = repl, .arena = arena, .command = command};
    gd_buf_init(&out->text, OUT_MAX_TEXT);
    snprintf(out->type, sizeof(out->type), "ok");
}

int out_redirect(struct repl_out *out, const char *path, bool append, struct gd_err *err)
{
    int rc = repl_check_seal(out->repl, err);

    size_t len = strlen(path);

    out->csv = len > 4 && strcasecmp(path + len - 4, ".csv") == 0;
    rc = rc == GD_OK ? permit_write(out->repl, err) : rc;
    return rc == GD_OK ? newfile_open(&out->sink, path, append, err) : rc;
}

cJSON *out_record(struct repl_out *out, const char *type)
{
    if (!out->record) {
        out->record = cJSON_CreateObject();
        snprintf(out->type, sizeof(out->type), "%s", type);
    }
    return out->record;
}

void out_flush(struct repl_out *out)
{
    repl_spell_names(out->repl, &out->text);
    if (out->sink.file) {
        fwrite(gd_buf_text(&out->text), 1, out->text.len, out->sink.file);
    } else if (!out->cut) {
        repl_write_text(out->repl, gd_buf_text(&out->text), out->text.len, out->is_error);
        out->cut = !out->repl->busy.pumping && !repl_out_wait(out->repl, OUT_MOST_AHEAD);
    }
    gd_buf_clear(&out->text);
}

void out_write(struct repl_out *out, const char *text, size_t len)
{
    if (!out_is_text(out)) {
        return;
    }
    gd_buf_add(&out->text, text, len);
    if (out->text.len >= OUT_FLUSH_SIZE && out->text.data[out->text.len - 1] == '\n') {
        out_flush(out);
    }
}

void out_printf(struct repl_out *out, const char *format, ...)
{
    va_list args;

    if (!out_is_text(out)) {
        return;
    }
    va_start(args, format);
    gd_buf_vprintf(&out->text, format, args);
    va_end(args);
    if (out->text.len >= OUT_FLUSH_SIZE && out->text.data[out->text.len - 1] == '\n') {
        out_flush(out);
    }
}

int out_end(struct repl_out *out, bool failed, struct gd_err *err)
{
    int rc = GD_OK;

    if (out_is_json(out) && !failed && (out->record || out->command)) {
        cJSON *record = out_record(out, "ok");
        if (out->command) {
            cJSON_AddStringToObject(record, "command", out->command);
            repl_request_answer(out->repl, record);
        }
        repl_write_json(out->repl, out->repl->options.words ? NULL : out->sink.file, out->type,
                        record);
        out->record = NULL;
    }
    out_flush(out);
    if (out->sink.file) {
        bool nothing = out->csv && !out->csv_written && !failed;
        rc = newfile_close(&out->sink, !failed && !nothing, err);
        rc = rc == GD_OK && nothing
                 ? gd_fail(err, GD_EUNSUPPORTED,
                           "%s printed no table, and a .csv file gets only tables",
                           out->command ? out->command : "the command")
                 : rc;
    }
    cJSON_Delete(out->record);
    out->record = NULL;
    gd_buf_deinit(&out->text);
    return rc;
}

struct repl_out *out_report_begin(struct out_report *report, struct repl *repl)
{
    gd_arena_init(&report->arena, REPORT_MEMORY);
    out_begin(&report->out, repl, &report->arena, NULL);
    return &report->out;
}

void out_report_end(struct out_report *report)
{
    out_end(&report->out, false, NULL);
    gd_arena_deinit(&report->arena);
}

/* An error is one line, also where the help page breaks a long usage. */
static void add_in_one_line(struct gd_buf *text, const char *usage)
{
    for (const char *c = usage; *c; c++) {
        if (*c != '\n') {
            gd_buf_putc(text, *c);
            continue;
        }
        gd_buf_putc(text, ' ');
        c += strspn(c + 1, " ");
    }
}

void repl_print_error(struct repl *repl, const struct command *command, const char *name,
                      const struct gd_err *err)
{
    const char *usage = command && err->code == GD_EUSAGE ? command->usage : NULL;

    if (repl->options.json) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "code", gd_status_name(err->code));
        cJSON_AddStringToObject(object, "message", err->text);
        if (usage) {
            cJSON_AddStringToObject(object, "usage", usage);
        }
        if (repl->script.source_path) {
            cJSON_AddStringToObject(object, "file", repl->script.source_path);
            cJSON_AddNumberToObject(object, "line", repl->script.source_line);
        }
        out_set(object, OUT_TEXT("command", name ? name : command ? command->name : ""));
        repl_request_answer(repl, object);
        repl_write_json(repl, NULL, "error", object);
        return;
    }
    struct gd_buf text = GD_BUF_INIT(65536);
    gd_buf_puts(&text, "error: ");
    if (repl->script.source_path) {
        out_add_safe(&text, repl->script.source_path, repl_is_utf8(repl));
        gd_buf_printf(&text, ":%d: ", repl->script.source_line);
    }
    out_add_safe(&text, err->text, repl_is_utf8(repl));
    if (usage) {
        gd_buf_puts(&text, " (usage: ");
        add_in_one_line(&text, usage);
        gd_buf_putc(&text, ')');
    }
    gd_buf_putc(&text, '\n');
    repl_spell_names(repl, &text);
    repl_write_text(repl, gd_buf_text(&text), text.len, true);
    gd_buf_deinit(&text);
}
