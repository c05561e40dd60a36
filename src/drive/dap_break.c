// SPDX-License-Identifier: GPL-3.0-or-later
/* Breakpoints: each request replaces those of its kind, or of its file. */
#include "drive/dap_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "repl/core/repl_impl.h"

#define FUNCTIONS  "function"
#define EXCEPTIONS "exception"

void dap_forget_breaks(struct dap *dap)
{
    for (size_t i = 0; i < dap->break_count; i++) {
        free(dap->breaks[i].owner);
    }
    dap->break_count = 0;
}

static void keep_break(struct dap *dap, int number, const char *owner)
{
    char *copy = strdup(owner);

    if (!copy ||
        !gd_grow_list(&dap->breaks, dap->break_count, &dap->break_room, sizeof(*dap->breaks))) {
        free(copy);
        return;
    }
    dap->breaks[dap->break_count++] = (struct dap_break){.number = number, .owner = copy};
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

/* Runs a line that sets a breakpoint or a watchpoint, and describes it to the client. */
static void set_break(struct dap *dap, const char *line, const char *owner, cJSON *list)
{
    struct drive_answer answer;
    cJSON *item = out_push(list);

    if (!is_plain(line)) {
        out_set(item, OUT_BOOL("verified", false),
                OUT_TEXT("message", "the text contains a control character"));
        return;
    }
    drive_run(dap->drive, line, DAP_SECONDS, &answer);
    int number = (int)out_number_of(answer.record, "number");
    bool set = answer.rc == GD_OK && number > 0;
    bool here = out_number_of(answer.record, "nodes") > 0;
    if (set) {
        keep_break(dap, number, owner);
    }
    out_set(item, OUT_IF(set, OUT_INT("id", number)), OUT_BOOL("verified", set && here),
            OUT_IF(!set, OUT_TEXT("message", out_text_of(answer.record, "message"))),
            OUT_IF(set && !here, OUT_TEXT("message", "nothing here yet: it is set when the "
                                                     "training gets there")));
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
        int number = (int)out_number_of(breakpoint, "line");
        gd_buf_printf(&line, "break %s:%d", path, number);
        add_condition(breakpoint, &line);
        set_break(dap, gd_buf_text(&line), path, list);
        cJSON *item = cJSON_GetArrayItem(list, cJSON_GetArraySize(list) - 1);
        out_set(item, OUT_INT("line", number));
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
        set_break(dap, gd_buf_text(&line), FUNCTIONS, list);
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
            set_break(dap, "watch TO on all", EXCEPTIONS, list);
        } else if (strcmp(name, "all") == 0 || strcmp(name, "uncaught") == 0) {
            set_exceptions(dap, name, list);
        } else {
            out_set(out_push(list), OUT_BOOL("verified", false),
                    OUT_TEXT("message", "there is no such filter"));
        }
    }
    dap_answer(dap, request, body);
}
