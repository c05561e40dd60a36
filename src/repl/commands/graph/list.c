// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: list */
#include <stdlib.h>
#include <string.h>

#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/srcfile.h"
#include "repl/values/stacks.h"

static uint32_t selected_frame(struct command_call *call)
{
    return inspect_frame(call, stack_node(call, call->session->current, false));
}

/* What is selected: `list` continues while it stays the same. */
static void note_selection(struct command_call *call, struct inspect_state *state)
{
    state->list_node = call->session->current;
    state->list_frame = selected_frame(call);
    state->list_stop = call->session->stop.sequence;
}

static bool selection_changed(struct command_call *call, const struct inspect_state *state)
{
    return state->list_node != call->session->current ||
           state->list_frame != selected_frame(call) ||
           state->list_stop != call->session->stop.sequence;
}

static int remember_place(struct command_call *call, struct inspect_state *state, const char *file,
                          const struct srcfile_part *part, uint32_t mark, struct gd_err *err)
{
    char *copy = strdup(file);
    if (!copy) {
        return gd_fail_nomem(err);
    }
    free(state->list_file);
    state->list_file = copy;
    state->list_first = part->first;
    state->list_next = part->first + part->count;
    state->list_mark = mark;
    note_selection(call, state);
    return GD_OK;
}

static void show_lines(struct command_call *call, const char *file, const struct srcfile_part *part,
                       uint32_t mark)
{
    cJSON *record = out_record(call->out, "source");
    out_set(record, OUT_TEXT("file", file), OUT_TEXT("path", part->path),
            OUT_IF(mark > 0, OUT_INT("mark", mark)));
    cJSON *lines = out_list(record, "lines");
    for (uint32_t i = 0; i < part->count; i++) {
        cJSON *item = out_push(lines);
        out_set(item, OUT_INT("line", part->first + i), OUT_TEXT("text", part->line[i]));
        out_say(call->out, item, "{mark:2} {line:5}  {text}\n",
                OUT_TEXT("mark", part->first + i == mark ? "=>" : ""));
    }
}

/* Whether this is the line that ran. The one sent with the stack may be cut; its tabs are
 * blanks. */
static bool is_what_ran(struct command_call *call, const char *line, const char *ran)
{
    size_t len = strcspn(ran, "\t\r\n");
    while (len > 0 && ran[len - 1] == ' ') {
        len--;
    }
    const char *text = out_safe(call, inspect_printf(call, "%.*s", (int)len, ran));
    return strncmp(line + strspn(line, " "), text, strlen(text)) == 0;
}

/* Warns, as gdb does, of a file that is newer than the run. ran: the marked line as it ran; "":
 * unknown. */
static void warn_of_changes(struct command_call *call, const struct srcfile_part *part,
                            uint32_t mark, const char *ran)
{
    ran += strspn(ran, " \t");
    bool has_line = mark >= part->first && mark - part->first < part->count;
    bool known = ran[0] != '\0' && has_line;
    bool changed = known ? !is_what_ran(call, part->line[mark - part->first], ran) : part->newer;

    if (changed) {
        out_set(out_record(call->out, "source"), OUT_BOOL("changed", true));
        out_say(call->out, NULL,
                known ? "warning: {path} has changed: when it ran, line {line} was: {ran}\n"
                      : "warning: {path} is newer than this run: its lines may differ from those "
                        "that ran\n",
                OUT_TEXT("path", part->path), OUT_INT("line", mark), OUT_TEXT("ran", ran));
    }
}

static int list_lines(struct command_call *call, const char *file, uint32_t first, uint32_t count,
                      uint32_t mark, const char *ran, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    struct srcfile_part part;
    const char *kept = gd_arena_strdup(call->arena, file); /* state->list_file may be it */
    if (!state || !kept) {
        return gd_fail_nomem(err);
    }
    int rc = srcfile_read(call, kept, first, count, &part, err);
    if (rc == GD_OK && part.count == 0) {
        rc = gd_fail(err, GD_ENODATA, "%.300s has no line %u", out_safe(call, kept), part.first);
    }
    bool goes_on =
        state->list_file && strcmp(state->list_file, kept) == 0 && mark == state->list_mark;
    if (rc == GD_OK && !goes_on) {
        warn_of_changes(call, &part, mark, ran);
    }
    rc = rc != GD_OK ? rc : remember_place(call, state, kept, &part, mark, err);
    if (rc == GD_OK) {
        show_lines(call, kept, &part, mark);
    }
    return rc;
}

static int list_around(struct command_call *call, const char *file, uint32_t line, const char *ran,
                       struct gd_err *err)
{
    uint32_t count = srcfile_lines_wanted(call);
    uint32_t before = count / 2;
    uint32_t first = line > before ? line - before : 1;
    return list_lines(call, file, first, count, line, ran, err);
}

/* Lists around a frame of a node. If the file cannot be read, shows the line sent with the stack,
 * then the error. */
static int list_node(struct command_call *call, gd_node_id node, uint32_t number,
                     struct gd_err *err)
{
    struct stack_places places;
    int rc = stack_places(call, node, &places, err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *name = out_safe(call, gd_graph_name(call->session->graph, node));
    if (number >= places.count) {
        return stack_missing(call, node, err);
    }
    const struct gd_frame *frame = &places.frame[places.place[number]];
    out_printf(call->out, "%s:%u, %s\n", out_safe(call, frame->file), frame->line,
               node == GD_NO_NODE ? out_safe(call, frame->function) : name);
    rc = list_around(call, frame->file, frame->line, frame->code, err);
    if (rc != GD_OK && frame->code[0]) {
        out_printf(call->out, "=> %5u  %s\n", frame->line, out_safe(call, frame->code));
    }
    return rc;
}

/* Lists the lines after those shown last, or around the selected frame if the selection has
 * changed. */
static int list_on(struct command_call *call, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    gd_node_id node;
    if (state && state->list_file && !selection_changed(call, state)) {
        return list_lines(call, state->list_file, state->list_next, srcfile_lines_wanted(call),
                          state->list_mark, "", err);
    }
    int rc = stack_subject(call, NULL, &node, err);
    if (rc == GD_OK) {
        node = stack_node(call, node, true);
        rc = list_node(call, node, inspect_frame(call, node), err);
    }
    return rc;
}

static int list_back(struct command_call *call, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    if (!state || !state->list_file) {
        return list_on(call, err);
    }
    if (state->list_first <= 1) {
        return gd_fail(err, GD_ENODATA, "the beginning of %.300s has already been shown",
                       out_safe(call, state->list_file));
    }
    uint32_t count = srcfile_lines_wanted(call);
    uint32_t end = state->list_first;
    uint32_t first = end > count ? end - count : 1;
    return list_lines(call, state->list_file, first, end - first, state->list_mark, "", err);
}

/* Parses "12" or "12,30", lines of the file shown last. False: something else. */
static bool parse_range(const char *text, uint32_t *first, uint32_t *last)
{
    char *end = NULL;
    unsigned long a = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || a > INT32_MAX) {
        return false;
    }
    *first = (uint32_t)a;
    *last = 0;
    if (*end == ',') {
        const char *p = end + 1 + strspn(end + 1, " ");
        unsigned long b = strtoul(p, &end, 10);
        if (p[0] < '0' || p[0] > '9' || b > INT32_MAX) {
            return false;
        }
        *last = (uint32_t)b;
    }
    return *end == '\0';
}

static int list_range(struct command_call *call, uint32_t first, uint32_t last, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    if (!state || !state->list_file) {
        return gd_fail(err, GD_ESTATE, "no file has been listed yet: specify FILE:LINE");
    }
    if (last == 0) {
        return list_around(call, state->list_file, first, "", err);
    }
    if (last < first || first == 0) {
        return gd_fail(err, GD_EINVAL, "lines %u,%u are not a range", first, last);
    }
    return list_lines(call, state->list_file, first, last - first + 1, state->list_mark, "", err);
}

/* "model.c" as the stacks spell it; unchanged if no stack contains it. */
static const char *known_file(struct command_call *call, const char *file)
{
    struct node_list list = {0};
    const char *found = NULL;

    if (!call->session) {
        return file;
    }
    gd_graph_search_source(call->session->graph, file, 0, node_list_add, &list);
    for (size_t i = 0; i < list.count && !found; i++) {
        uint32_t frames = 0;
        const struct gd_frame *frame = gd_graph_stack(call->session->graph, list.node[i], &frames);
        for (uint32_t f = 0; f < frames && !found; f++) {
            found = srcfile_path_matches(frame[f].file, file) ? frame[f].file : NULL;
        }
    }
    node_list_deinit(&list);
    return found ? found : file;
}

static int run_list(struct command_call *call, struct gd_err *err)
{
    if (call->argc == 0) {
        return list_on(call, err);
    }
    const char *text = inspect_join(call, 0, call->argc);
    uint32_t first = 0;
    uint32_t last = 0;
    if (strcmp(text, "-") == 0) {
        return list_back(call, err);
    }
    if (parse_range(text, &first, &last)) {
        return list_range(call, first, last, err);
    }
    gd_node_id node;
    int rc = arg_node(call, text, &node, err);
    if (rc == GD_OK) {
        node = stack_node(call, node, true);
        return list_node(call, node, inspect_frame(call, node), err);
    }
    const char *file;
    if (rc == GD_ENOTFOUND && srcfile_parse_place(call, text, &file, &first)) {
        return list_around(call, known_file(call, file), first, "", err);
    }
    return rc;
}

const struct command cmd_list = {
    .name = "list",
    .aliases = "l ll longlist",
    .group = "graph",
    .usage = "list [NODE|FILE:LINE|FIRST[,LAST]|-]",
    .summary = "Show the source code that created a node",
    .help =
        "Without an argument, show the lines around the selected frame of the current node,\n"
        "then each time the lines that follow; `list -` shows the lines before. FIRST and LAST\n"
        "are lines of the file shown last. FILE may be the end of a path. gradb looks for the\n"
        "file under the name that the training process uses, then below the current directory,\n"
        "and warns if it differs from what ran, judged by the line sent with the stack or by\n"
        "its time. `set list-lines` sets the number of lines.",
    .examples = "list\n"
                "list model/block0/attn/linear\n"
                "list model.py:42\n"
                "list 10,30",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS | CMD_REPEATS_BARE,
    .run = run_list,
};
