// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/lines.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/watch/numbers.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch_args.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/stacks.h"

#define ANSWER_SECONDS 5.0

/* ---- what is typed ------------------------------------------------------------------------- */

const struct gd_frame *lines_frame(struct command_call *call)
{
    struct stack_places places;
    struct gd_err ignored;
    gd_node_id node;
    const struct gd_frame *found = NULL;

    if (call->session && stack_subject(call, NULL, &node, &ignored) == GD_OK &&
        stack_places(call, node, &places, &ignored) == GD_OK) {
        uint32_t number = inspect_frame(call, node);
        found = number < places.count ? &places.frame[places.place[number]] : NULL;
    }
    return found;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* The file as a name that a user would type: FILE must not contain what a selector means. */
static const char *place_of(struct command_call *call, const char *file, const char *line)
{
    return inspect_printf(call, "%s:%s", file, line);
}

const char *lines_place(struct command_call *call, const char *text)
{
    struct gd_line *line = NULL;
    const struct gd_frame *frame = is_number(text) || text[0] == '\0' ? lines_frame(call) : NULL;

    if (text[0] == '\0') {
        uint32_t count;
        bool here = call->session && gd_session_line_stack(call->session, &count);
        return here && frame ? place_of(call, frame->file, inspect_printf(call, "%u", frame->line))
                             : NULL;
    }
    if (is_number(text)) {
        return frame && strtoul(text, NULL, 10) > 0 ? place_of(call, frame->file, text) : NULL;
    }
    bool ok = gd_line_parse(text, false, &line, NULL) == GD_OK && line;
    gd_line_destroy(line);
    return ok ? text : NULL;
}

static bool is_node(struct command_call *call, const char *text)
{
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL, node;
    size_t count = 0;
    struct gd_err ignored;
    int rc = gd_selector_parse(text, &selector, NULL);

    if (rc == GD_OK) {
        gd_selector_set_extent(selector, GD_EXTENT_FIRST);
    }
    rc = rc == GD_OK ? gd_selector_resolve(selector, call->session->graph, &nodes, &count, NULL)
                     : rc;
    free(nodes);
    gd_selector_destroy(selector);
    if (count > 0 || rc == GD_EAMBIGUOUS) {
        return true;
    }
    return nodes_find_module(call, text, false, &node, &ignored) != GD_ENOTFOUND;
}

int lines_place_of(struct command_call *call, const char *text, bool functions, const char **ret,
                   struct gd_err *err)
{
    struct gd_line *line = NULL;
    const char *place = lines_place(call, text);

    if (!place && is_number(text)) {
        return gd_fail(err, GD_ESTATE, "%s: no source file is selected: write FILE:%.20s",
                       call->command->name, text);
    }
    if (!place && functions && call->session && gd_session_has_lines(call->session) &&
        !is_node(call, text)) {
        place = gd_line_parse(text, true, &line, NULL) == GD_OK && line ? text : NULL;
        gd_line_destroy(line);
    }
    *ret = place;
    return GD_OK;
}

/* ---- setting ------------------------------------------------------------------------------- */

static int parse_guard(struct command_call *call, const char *text, struct gd_expr **ret,
                       struct gd_err *err)
{
    *ret = NULL;
    int rc = text[0] != '\0' ? gd_expr_parse(text, ret, err) : GD_OK;
    if (rc == GD_OK && *ret && gd_expr_has_statistic(*ret)) {
        rc = gd_fail(err, GD_EINVAL,
                     "a line has no tensor: its condition uses metrics only, such as loss or step; "
                     "put a metric that is named like a statistic in double quotes");
    }
    rc = rc == GD_OK && *ret ? gd_numbers_check(call->session, *ret, err) : rc;
    if (rc != GD_OK) {
        gd_expr_destroy(*ret);
        *ret = NULL;
    }
    return rc;
}

int lines_set_guard(struct command_call *call, struct gd_breakpoint *at, const char *guard,
                    struct gd_err *err)
{
    struct gd_expr *parsed = NULL;
    int rc = parse_guard(call, guard, &parsed, err);

    if (rc == GD_OK) {
        gd_expr_destroy(at->guard);
        at->guard = parsed;
        at->told_unknown = false;
    }
    return rc;
}

int lines_break(struct command_call *call, const char *where, enum lines_life life,
                const char *guard, struct gd_breakpoint **ret, struct gd_err *err)
{
    struct gd_expr *parsed = NULL;

    *ret = NULL;
    int rc = parse_guard(call, guard, &parsed, err);
    rc = rc != GD_OK ? rc : gd_debugger_break(call->debugger, where, life == LINES_ONCE, ret, err);
    if (rc != GD_OK) {
        gd_expr_destroy(parsed);
        return rc;
    }
    (*ret)->momentary = life == LINES_MOMENTARY;
    (*ret)->guard = parsed;
    return lines_settle(call, ret, err);
}

struct answer {
    struct gd_debugger *debugger;
    int number; /* the breakpoint may be deleted meanwhile */
};

static bool has_answered(void *ctx)
{
    const struct answer *answer = ctx;
    const struct gd_breakpoint *at = gd_debugger_breakpoint(answer->debugger, answer->number);
    const struct gd_session *session = answer->debugger->current;

    return !at || !at->line || at->line->state != GD_LINE_ASKED || !session ||
           !gd_session_is_live(session);
}

static const char *file_of(struct command_call *call, const struct gd_line *line)
{
    return out_safe(call, line->file[0] != '\0' ? line->file : line->function);
}

static bool may_pend(struct command_call *call, const struct gd_breakpoint *at)
{
    const struct gd_line *line = at->line;

    if (at->momentary && line->file[0] == '\0') {
        return false;
    }
    if (line->file[0] != '\0') {
        return repl_confirm(call,
                            "No source file named %s is loaded. Make the breakpoint pending on its "
                            "import?",
                            file_of(call, line));
    }
    return repl_confirm(
        call,
        "No node and no function is named %s yet. Make the breakpoint pending until "
        "there is one?",
        file_of(call, line));
}

int lines_settle(struct command_call *call, struct gd_breakpoint **ret, struct gd_err *err)
{
    struct answer answer = {.debugger = call->debugger, .number = (*ret)->number};
    const struct gd_session *session = call->session;
    int rc = GD_OK;

    if (!(*ret)->line || (*ret)->matched || !session || !gd_session_is_live(session) ||
        !gd_session_has_lines(session)) {
        return GD_OK;
    }
    bool waits = session->state == GD_STOPPED;
    rc = repl_wait(call->repl, has_answered, &answer, waits ? ANSWER_SECONDS : 0.5);
    *ret = gd_debugger_breakpoint(call->debugger, answer.number);
    const struct gd_line *line = *ret ? (*ret)->line : NULL;
    if (line && line->state == GD_LINE_NOWHERE) {
        rc = gd_fail(err, GD_ENOTFOUND, "%s", out_safe(call, line->why));
    } else if (line && line->state == GD_LINE_PENDING && !may_pend(call, *ret)) {
        rc = GD_OK;
    } else {
        return *ret ? GD_OK : gd_fail(err, GD_ENOTFOUND, "the breakpoint was deleted");
    }
    gd_debugger_delete_breakpoint(call->debugger, answer.number, NULL);
    *ret = NULL;
    return rc;
}

/* ---- showing ------------------------------------------------------------------------------- */

static const char *found_text(struct command_call *call, const struct gd_breakpoint *at)
{
    const struct gd_line *line = at->line;
    const struct gd_line_place *place = &line->place[0];

    if (line->place_count > 1) {
        return inspect_printf(call, "%s: %zu places", out_safe(call, at->where), line->place_count);
    }
    const char *text = inspect_printf(call, "%s:%u (%s)", out_safe(call, place->file), place->line,
                                      out_safe(call, place->function));
    if (line->line > 0 && line->line != place->line) {
        text = inspect_printf(call, "%s; line %u has no code", text, line->line);
    }
    return text;
}

const char *lines_text(struct command_call *call, const struct gd_breakpoint *at)
{
    const struct gd_session *session = call->debugger->current;
    const char *where = out_safe(call, at->where);

    if (at->line->state == GD_LINE_FOUND && at->line->place_count > 0) {
        return found_text(call, at);
    }
    if (!session) {
        return inspect_printf(call, "%s (pending: no training process yet)", where);
    }
    if (at->line->state == GD_LINE_PENDING) {
        return at->line->file[0] != '\0'
                   ? inspect_printf(call, "%s (pending: no source file named %s is loaded)", where,
                                    out_safe(call, at->line->file))
                   : inspect_printf(call, "%s (pending: no node and no function has this name)",
                                    where);
    }
    bool runs = session->state == GD_RUNNING;
    return inspect_printf(call, "%s (pending: %s)", where,
                          at->line->why[0] != '\0' ? out_safe(call, at->line->why)
                          : runs ? "the training runs, and takes it at the end of its step"
                                 : "the training process has not answered yet");
}

void lines_record(cJSON *object, const struct gd_breakpoint *at)
{
    const struct gd_line *line = at->line;
    bool found = line->state == GD_LINE_FOUND && line->place_count > 0;

    out_set(
        object, OUT_TEXT("file", found ? line->place[0].file : line->file),
        OUT_IF(found || line->line > 0, OUT_INT("line", found ? line->place[0].line : line->line)),
        OUT_SOME("function", found ? line->place[0].function : line->function),
        OUT_BOOL("pending", !found));
    cJSON *places = out_list(object, "places");
    for (size_t i = 0; i < line->place_count; i++) {
        out_set(out_push(places), OUT_TEXT("file", line->place[i].file),
                OUT_INT("line", line->place[i].line),
                OUT_TEXT("function", line->place[i].function));
    }
}
