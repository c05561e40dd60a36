// SPDX-License-Identifier: GPL-3.0-or-later
/* Breakpoints: each request replaces those of its kind, or of its file. */
#include "drive/dap_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "engine/line/line.h"
#include "repl/core/repl_impl.h"
#include "repl/values/srcfile.h"

#define FUNCTIONS  "function"
#define EXCEPTIONS "exception"

void dap_forget_breaks(struct dap *dap)
{
    for (size_t i = 0; i < dap->break_count; i++) {
        free(dap->breaks[i].owner);
    }
    dap->break_count = 0;
}

static struct dap_break *keep_break(struct dap *dap, int number, const char *owner)
{
    char *copy = strdup(owner);

    if (!copy ||
        !gd_grow_list(&dap->breaks, dap->break_count, &dap->break_room, sizeof(*dap->breaks))) {
        free(copy);
        return NULL;
    }
    dap->breaks[dap->break_count] = (struct dap_break){.number = number, .owner = copy};
    return &dap->breaks[dap->break_count++];
}

static void delete_breaks(struct dap *dap, const char *owner)
{
    size_t kept = 0;

    for (size_t i = 0; i < dap->break_count; i++) {
        struct dap_break *b = &dap->breaks[i];
        if (strcmp(b->owner, owner) != 0) {
            dap->breaks[kept++] = *b;
            continue;
        }
        char line[40];
        struct drive_answer answer;
        snprintf(line, sizeof(line), "delete %d", b->number);
        drive_run(dap->drive, line, DAP_SECONDS, &answer);
        drive_answer_free(&answer);
        free(b->owner);
    }
    dap->break_count = kept;
}

/* One line of text that the command language takes. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ') {
            return false;
        }
    }
    return true;
}

/* ---- what is known of one ---- */

#define LINES_READ 500 /* that may come before one with code */

/* The first line from there on that is not empty and no comment, in a file of Python's; 0: none, or
 * it cannot be read here. The training process, when there is one, knows better. */
static uint32_t find_code(struct dap *dap, const char *path, uint32_t line)
{
    static const struct command reader = {.name = "break"};
    size_t len = strlen(path);
    struct srcfile_part part;
    struct own_call own;
    uint32_t found = 0;

    if (len < 3 || strcmp(path + len - 3, ".py") != 0 || access(path, R_OK) != 0 || line == 0) {
        return 0;
    }
    struct command_call *call = repl_begin_call(&own, dap->repl, &reader, NULL);
    if (srcfile_read(call, path, line, LINES_READ, &part, NULL) == GD_OK) {
        for (uint32_t i = 0; i < part.count && found == 0; i++) {
            const char *text = part.line[i] + strspn(part.line[i], " \t\f");
            found = *text != '\0' && *text != '#' ? part.first + i : 0;
        }
    }
    out_report_end(&own.report);
    return found;
}

/* Whether it can be hit, and at which line. *why: "" or why it cannot. */
static void look_at(struct dap *dap, struct dap_break *b, const char **why)
{
    const struct gd_breakpoint *at = gd_debugger_breakpoint(dap->repl->debugger, b->number);
    const struct gd_line *line = at ? at->line : NULL;

    *why = "";
    if (line && line->state == GD_LINE_FOUND && line->place_count > 0) {
        b->verified = true;
        b->line = line->place[0].line;
    } else if (line && line->state == GD_LINE_NOWHERE) {
        b->verified = false;
        *why = line->why;
    } else if (line && line->line > 0) {
        uint32_t code = find_code(dap, b->owner, line->line);
        b->verified = code > 0;
        b->line = code > 0 ? code : b->line;
    } else {
        b->verified = b->verified || (at && at->matched);
    }
    if (!b->verified && !(*why)[0]) {
        *why = "nothing here yet: it is set when the training gets there";
    }
}

static void describe_break(const struct dap_break *b, const char *why, cJSON *item)
{
    out_set(item, OUT_INT("id", b->number), OUT_BOOL("verified", b->verified),
            OUT_IF(b->line > 0, OUT_INT("line", b->line)),
            OUT_IF(!b->verified, OUT_TEXT("message", why)));
}

void dap_on_breakpoints(void *ctx, const struct gd_event *event)
{
    struct dap *dap = ctx;

    for (size_t i = 0; event->type == GD_EV_BREAKPOINTS && i < dap->break_count; i++) {
        struct dap_break *b = &dap->breaks[i], before = *b;
        const char *why;
        look_at(dap, b, &why);
        if (b->verified != before.verified || b->line != before.line) {
            cJSON *body = cJSON_CreateObject();
            out_set(body, OUT_TEXT("reason", "changed"));
            describe_break(b, why, out_object(body, "breakpoint"));
            dap_event(dap, "breakpoint", body);
        }
    }
}

/* ---- setting ---- */

/* Runs a line that sets a breakpoint or a watchpoint, and describes it to the client. at: the line
 * that it asks for; 0: none. */
static void set_break(struct dap *dap, const char *line, const char *owner, uint32_t at,
                      cJSON *list)
{
    struct drive_answer answer;
    cJSON *item = out_push(list);
    const char *why;

    if (!is_plain(line)) {
        out_set(item, OUT_BOOL("verified", false),
                OUT_TEXT("message", "the text contains a control character"));
        return;
    }
    drive_run(dap->drive, line, DAP_SECONDS, &answer);
    int number = (int)out_number_of(answer.record, "number");
    struct dap_break *b = answer.rc == GD_OK && number > 0 ? keep_break(dap, number, owner) : NULL;
    if (b) {
        b->verified = out_number_of(answer.record, "nodes") > 0;
        b->line = at;
        look_at(dap, b, &why);
        describe_break(b, why, item);
    } else {
        out_set(item, OUT_BOOL("verified", false), OUT_IF(at > 0, OUT_INT("line", at)),
                OUT_TEXT("message", out_text_of(answer.record, "message")));
    }
    drive_answer_free(&answer);
}

static cJSON *begin_list(cJSON *body)
{
    return out_list(body, "breakpoints");
}

static void add_condition(const cJSON *breakpoint, struct gd_buf *line)
{
    const char *condition = out_text_of(breakpoint, "condition");

    if (condition[0] != '\0') {
        gd_buf_printf(line, " if %s", condition);
    }
}

void dap_break_lines(struct dap *dap, struct dap_request *request)
{
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(request->arguments, "source");
    const char *path = out_text_of(source, "path");
    const cJSON *breakpoint;
    cJSON *body = cJSON_CreateObject(), *list = begin_list(body);

    if (path[0] == '\0') {
        cJSON_Delete(body);
        dap_refuse(dap, request, "setBreakpoints needs the path of a source");
        return;
    }
    delete_breaks(dap, path);
    cJSON_ArrayForEach(breakpoint,
                       cJSON_GetObjectItemCaseSensitive(request->arguments, "breakpoints"))
    {
        struct gd_buf line = GD_BUF_INIT(16384);
        double number = out_number_of(breakpoint, "line");
        uint32_t at = number >= 1 && number < 1e9 ? (uint32_t)number : 1;
        gd_buf_printf(&line, "break %s:%u", path, at);
        add_condition(breakpoint, &line);
        set_break(dap, gd_buf_text(&line), path, at, list);
        gd_buf_deinit(&line);
    }
    dap_answer(dap, request, body);
}

/* A node, a scope, a selector; or a whole command: "watch TO on all". */
void dap_break_functions(struct dap *dap, struct dap_request *request)
{
    static const char *const commands[] = {"watch ", "trace ", "twatch ", "catch ", "break "};
    const cJSON *breakpoint;
    cJSON *body = cJSON_CreateObject(), *list = begin_list(body);

    delete_breaks(dap, FUNCTIONS);
    cJSON_ArrayForEach(breakpoint,
                       cJSON_GetObjectItemCaseSensitive(request->arguments, "breakpoints"))
    {
        struct gd_buf line = GD_BUF_INIT(16384);
        const char *name = out_text_of(breakpoint, "name");
        bool whole = false;
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
            whole = whole || strncmp(name, commands[i], strlen(commands[i])) == 0;
        }
        gd_buf_printf(&line, "%s%s", whole ? "" : "break ", name);
        add_condition(breakpoint, &line);
        set_break(dap, gd_buf_text(&line), FUNCTIONS, 0, list);
        gd_buf_deinit(&line);
    }
    dap_answer(dap, request, body);
}

/* Not a breakpoint: a mode of the training process, which may not have exceptions. */
static void set_exceptions(struct dap *dap, const char *mode, cJSON *list)
{
    struct drive_answer answer;
    char line[64];
    cJSON *item = list ? out_push(list) : NULL;

    if (!dap->repl->debugger->current) { /* dap_apply_exceptions does it */
        snprintf(dap->exceptions, sizeof(dap->exceptions), "%s", mode);
        out_set(item, OUT_BOOL("verified", true));
        return;
    }
    snprintf(line, sizeof(line), "catch exception %s", mode);
    drive_run(dap->drive, line, DAP_SECONDS, &answer);
    if (item) {
        out_set(
            item, OUT_BOOL("verified", answer.rc == GD_OK),
            OUT_IF(answer.rc != GD_OK, OUT_TEXT("message", out_text_of(answer.record, "message"))));
    }
    drive_answer_free(&answer);
}

void dap_apply_exceptions(struct dap *dap)
{
    if (dap->exceptions[0] != '\0') {
        set_exceptions(dap, dap->exceptions, NULL);
    }
}

void dap_break_exceptions(struct dap *dap, struct dap_request *request)
{
    const cJSON *filter;
    cJSON *body = cJSON_CreateObject(), *list = begin_list(body);

    delete_breaks(dap, EXCEPTIONS);
    cJSON_ArrayForEach(filter, cJSON_GetObjectItemCaseSensitive(request->arguments, "filters"))
    {
        const char *name = cJSON_IsString(filter) ? filter->valuestring : "";
        if (strcmp(name, "nonfinite") == 0) {
            set_break(dap, "watch TO on all", EXCEPTIONS, 0, list);
        } else if (strcmp(name, "all") == 0 || strcmp(name, "uncaught") == 0) {
            set_exceptions(dap, name, list);
        } else {
            out_set(out_push(list), OUT_BOOL("verified", false),
                    OUT_TEXT("message", "there is no such filter"));
        }
    }
    dap_answer(dap, request, body);
}
