// SPDX-License-Identifier: GPL-3.0-or-later
/* backtrace, frame, up, down: the source places that made a node. `list` is in cmd_list.c. */
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "repl/core/commands.h"
#include "repl/values/inspect.h"
#include "repl/values/srcfile.h"
#include "repl/values/stacks.h"

#define FRAMES_SHOWN 20
#define MAKERS_SHOWN 4    /* places of a value that has none itself */
#define MAKERS_DEEP  4    /* nodes from it to one that has */
#define MAKERS_MOST  1000 /* nodes that are looked at for it */

/* ---- frames -------------------------------------------------------------------------------- */

int stack_places(struct command_call *call, gd_node_id node, struct stack_places *ret,
                 struct gd_err *err)
{
    uint32_t count = 0;
    const struct gd_frame *frame = gd_graph_stack(call->session->graph, node, &count);
    struct stack_places places = {.frame = frame, .frame_count = count};
    places.place = gd_arena_alloc(call->arena, ((size_t)count + 1) * sizeof(*places.place));
    if (!places.place) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!frame[i].is_title && frame[i].file[0]) {
            places.place[places.count++] = i;
        }
    }
    *ret = places;
    return GD_OK;
}

/* A gradient of an eager program that nothing makes: the node stands for what may come. */
static bool is_unreached(const struct gd_node_info *info)
{
    const char *dot = strrchr(info->name, '.');
    return info->kind == GD_NODE_GRADIENT && info->input_count == 0 &&
           (strcmp(info->type, "Gradient") == 0 || strcmp(info->type, "InputGradient") == 0) &&
           dot && strcmp(dot, ".grad") == 0;
}

int stack_missing(struct command_call *call, gd_node_id node, struct gd_err *err)
{
    struct gd_node_info info = {.name = ""};
    if (gd_graph_node(call->session->graph, node, &info) && is_unreached(&info)) {
        const char *name = out_safe(call, info.name);
        return gd_fail(err, GD_ENODATA,
                       "%.*s has no gradient: no backward pass that was seen came to it (`why "
                       "%.200s` says what keeps it off)",
                       (int)(strlen(name) > 200 ? 200 : strlen(name) - strlen(".grad")), name,
                       name);
    }
    return gd_fail(err, GD_ENODATA, "the %s no stack for %.300s",
                   gd_catalog_of(call->session) ? "dump has" : "trainer sent",
                   out_safe(call, info.name));
}

/* As stack_places, and GD_ENODATA when there is no place. */
static int need_places(struct command_call *call, gd_node_id node, struct stack_places *ret,
                       struct gd_err *err)
{
    int rc = stack_places(call, node, ret, err);
    if (rc == GD_OK && ret->count == 0) {
        return stack_missing(call, node, err);
    }
    return rc;
}

static const char *frame_text(struct command_call *call, const struct gd_frame *frame)
{
    const char *text = out_safe(call, frame->file);
    if (frame->line > 0) {
        text = inspect_printf(call, "%s:%u", text, frame->line);
    }
    if (frame->function[0]) {
        text = inspect_printf(call, "%s in %s", text, out_safe(call, frame->function));
    }
    return text;
}

/* The source line of a frame: as the trainer sent it, else from the file; "" when neither has it.
 */
static const char *frame_code(struct command_call *call, const struct gd_frame *frame)
{
    struct srcfile_part part;
    if (frame->code[0]) {
        return out_safe(call, frame->code + strspn(frame->code, " \t"));
    }
    if (frame->line > 0 && srcfile_read(call, frame->file, frame->line, 1, &part, NULL) == GD_OK &&
        part.count == 1) {
        return part.line[0] + strspn(part.line[0], " ");
    }
    return "";
}

void stack_print_frame(struct command_call *call, uint32_t number, const struct gd_frame *frame)
{
    const char *code = frame_code(call, frame);
    out_printf(call->out, "#%-2u %s\n", number, frame_text(call, frame));
    if (code[0]) {
        out_printf(call->out, "      %s\n", code);
    }
}

void stack_add_frame(struct command_call *call, cJSON *object, uint32_t number,
                     const struct gd_frame *frame)
{
    cJSON_AddNumberToObject(object, "frame", number);
    inspect_add_text(call, object, "file", frame->file);
    cJSON_AddNumberToObject(object, "line", frame->line);
    if (frame->function[0]) {
        inspect_add_text(call, object, "function", frame->function);
    }
    inspect_add_text(call, object, "code", frame_code(call, frame));
}

/* ---- backtrace ----------------------------------------------------------------------------- */

bool stack_own_frame(const struct stack_places *places, uint32_t *ret)
{
    for (uint32_t i = 0; i < places->count; i++) {
        if (!gd_frame_is_library(&places->frame[places->place[i]])) {
            *ret = i;
            return true;
        }
    }
    *ret = 0;
    return places->count > 0;
}

static bool any_own(const struct stack_places *places)
{
    uint32_t own;
    return stack_own_frame(places, &own) &&
           !gd_frame_is_library(&places->frame[places->place[own]]);
}

struct trace {
    bool all;
    bool skip_library;
    int64_t limit;
    uint32_t number; /* of the next place */
    uint32_t shown, hidden;
    cJSON *list; /* JSON only */
};

static void trace_frame(struct command_call *call, struct trace *trace,
                        const struct gd_frame *frame)
{
    if (frame->is_title || !frame->file[0]) {
        if (trace->list) {
            cJSON *item = cJSON_CreateObject();
            inspect_add_text(call, item, "title", frame->code);
            cJSON_AddItemToArray(trace->list, item);
        } else if (frame->code[0]) {
            out_printf(call->out, "    %s\n", out_safe(call, frame->code));
        }
        return;
    }
    uint32_t number = trace->number++;
    if (!trace->all &&
        (trace->shown >= trace->limit || (trace->skip_library && gd_frame_is_library(frame)))) {
        trace->hidden++;
        return;
    }
    trace->shown++;
    if (trace->list) {
        cJSON *item = cJSON_CreateObject();
        stack_add_frame(call, item, number, frame);
        cJSON_AddItemToArray(trace->list, item);
    } else {
        stack_print_frame(call, number, frame);
    }
}

static int backtrace_of(struct command_call *call, gd_node_id node, bool all, int64_t limit,
                        struct gd_err *err)
{
    struct stack_places places;
    int rc = need_places(call, node, &places, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct trace trace = {.all = all, .limit = limit, .skip_library = any_own(&places)};
    struct gd_node_info info;
    if (gd_graph_node(call->session->graph, node, &info)) {
        out_printf(call->out, "%s (%s)\n", out_safe(call, info.name), out_safe(call, info.type));
    }
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "stack");
        inspect_add_node(call, record, node);
        cJSON_AddNumberToObject(record, "selected", inspect_frame(call, node));
        trace.list = cJSON_AddArrayToObject(record, "frames");
    }
    for (uint32_t i = 0; i < places.frame_count; i++) {
        trace_frame(call, &trace, &places.frame[i]);
    }
    if (trace.hidden > 0) {
        out_printf(call->out, "(%s not shown: backtrace all)\n",
                   inspect_plural(call, trace.hidden, "frame"));
    }
    return GD_OK;
}

/* ---- what has no place of its own ------------------------------------------------------------ */

struct makers {
    gd_node_id node[MAKERS_SHOWN];
    const struct gd_frame *stack[MAKERS_SHOWN];
    uint32_t count, more, looked;
};

/* False: it has no place. One stack is taken once. */
static bool take_maker(struct command_call *call, gd_node_id node, struct makers *makers)
{
    uint32_t frames = 0;
    const struct gd_frame *stack = gd_graph_stack(call->session->graph, node, &frames);

    if (frames == 0) {
        return false;
    }
    for (uint32_t i = 0; i < makers->count; i++) {
        if (makers->stack[i] == stack) {
            return true;
        }
    }
    if (makers->count == MAKERS_SHOWN) {
        makers->more++;
        return true;
    }
    makers->node[makers->count] = node;
    makers->stack[makers->count++] = stack;
    return true;
}

/* A gradient is made by the backward pass through what it is the gradient of. */
static void find_makers(struct command_call *call, gd_node_id node, int depth,
                        struct makers *makers)
{
    struct gd_node_info info;

    if (!gd_graph_node(call->session->graph, node, &info)) {
        return;
    }
    for (uint32_t i = 0; i < info.input_count && makers->looked++ < MAKERS_MOST; i++) {
        if (!info.inputs[i].control && !take_maker(call, info.inputs[i].node, makers) &&
            depth < MAKERS_DEEP) {
            find_makers(call, info.inputs[i].node, depth + 1, makers);
        }
    }
}

/* A weight is where it is used. */
static void find_users(struct command_call *call, gd_node_id node, struct makers *makers)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(call->session->graph, node, &edges);

    for (uint32_t i = 0; i < count; i++) {
        take_maker(call, edges[i].node, makers);
    }
}

/* "used by" or "made by": what stands for a stack that is not there. */
static const char *find_others(struct command_call *call, const struct gd_node_info *info,
                               gd_node_id node, struct makers *makers)
{
    if (info->kind == GD_NODE_WEIGHT || info->kind == GD_NODE_PARAMETER) {
        find_users(call, node, makers);
        return "used by";
    }
    if (info->kind == GD_NODE_GRADIENT) {
        find_makers(call, node, 1, makers);
    }
    return "made by";
}

static int backtrace_around(struct command_call *call, gd_node_id node, bool all, int64_t limit,
                            struct gd_err *err)
{
    struct gd_node_info info;
    struct gd_err refused = *err;
    struct makers makers = {.count = 0};
    const char *how = "";

    if (gd_graph_node(call->session->graph, node, &info)) {
        how = find_others(call, &info, node, &makers);
    }
    if (makers.count == 0) {
        *err = refused;
        return refused.code;
    }
    out_printf(call->out, "%s (%s) has no place of its own. It is %s\n", out_safe(call, info.name),
               out_safe(call, info.type), how);
    for (uint32_t i = 0; i < makers.count; i++) {
        int rc = backtrace_of(call, makers.node[i], all, limit, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (makers.more > 0) {
        out_printf(call->out, "and at %s\n", inspect_plural(call, makers.more, "other place"));
    }
    return GD_OK;
}

gd_node_id stack_node(struct command_call *call, gd_node_id node, bool tell)
{
    struct gd_node_info info, other;
    struct makers makers = {.count = 0};
    uint32_t count = 0;

    gd_graph_stack(call->session->graph, node, &count);
    if (count > 0 || !gd_graph_node(call->session->graph, node, &info)) {
        return node;
    }
    const char *how = find_others(call, &info, node, &makers);
    if (makers.count == 0 || !gd_graph_node(call->session->graph, makers.node[0], &other)) {
        return node;
    }
    if (tell) {
        out_printf(call->out, "%s (%s) has no place of its own. It is %s %s (%s)\n",
                   out_safe(call, info.name), out_safe(call, info.type), how,
                   out_safe(call, other.name), out_safe(call, other.type));
    }
    return makers.node[0];
}

static bool is_number(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == '\0';
}

static int run_backtrace(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "all") || inspect_take_flag(call, "-a");
    int64_t limit = FRAMES_SHOWN;
    int rc = GD_OK;
    if (call->argc > 0 && is_number(call->argv[call->argc - 1])) {
        rc = arg_count(call->argv[--call->argc], 1, INT32_MAX, &limit, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    gd_node_id node;
    rc = inspect_node(call, call->argc ? inspect_join(call, 0, call->argc) : NULL, &node, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = backtrace_of(call, node, all, limit, err);
    return rc == GD_ENODATA ? backtrace_around(call, node, all, limit, err) : rc;
}

int inspect_info_stack(struct command_call *call, struct gd_err *err)
{
    return run_backtrace(call, err);
}

/* ---- frame, up, down ----------------------------------------------------------------------- */

static int show_frame(struct command_call *call, gd_node_id node, uint32_t number,
                      const struct stack_places *places)
{
    const struct gd_frame *frame = &places->frame[places->place[number]];
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "frame");
        inspect_add_node(call, record, node);
        stack_add_frame(call, record, number, frame);
    } else {
        stack_print_frame(call, number, frame);
    }
    return GD_OK;
}

static int select_frame(struct command_call *call, gd_node_id node, int64_t number,
                        const struct stack_places *places, struct gd_err *err)
{
    if (number < 0 || number >= places->count) {
        return gd_fail(err, GD_ENOTFOUND, "there is no frame %lld: %.300s has frames 0 to %u",
                       (long long)number, out_safe(call, gd_graph_name(call->session->graph, node)),
                       places->count - 1);
    }
    inspect_set_frame(call, node, (uint32_t)number);
    return show_frame(call, node, (uint32_t)number, places);
}

static int run_frame(struct command_call *call, struct gd_err *err)
{
    gd_node_id node;
    struct stack_places places;
    int rc = inspect_node(call, NULL, &node, err);
    if (rc == GD_OK) {
        node = stack_node(call, node, true);
        rc = need_places(call, node, &places, err);
    }
    int64_t number = rc == GD_OK ? inspect_frame(call, node) : 0;
    if (rc == GD_OK && call->argc > 0) {
        rc = arg_count(call->argv[0], 0, UINT32_MAX, &number, err);
    }
    return rc == GD_OK ? select_frame(call, node, number, &places, err) : rc;
}

int inspect_info_frame(struct command_call *call, struct gd_err *err)
{
    return run_frame(call, err);
}

/* Outwards is up, as in gdb: towards the callers. Going past an end stops at it, when there is a
 * way to go at all. */
static int move_frame(struct command_call *call, int direction, struct gd_err *err)
{
    int64_t count = 1;
    int rc = call->argc > 0 ? arg_count(call->argv[0], 1, INT32_MAX, &count, err) : GD_OK;
    gd_node_id node;
    struct stack_places places;
    if (rc == GD_OK) {
        rc = inspect_node(call, NULL, &node, err);
    }
    if (rc == GD_OK) {
        node = stack_node(call, node, false);
        rc = need_places(call, node, &places, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    int64_t from = inspect_frame(call, node);
    int64_t last = (int64_t)places.count - 1;
    if (direction > 0 && from >= last) {
        return gd_fail(err, GD_ENOTFOUND, "the outermost frame is selected: there is none above");
    }
    if (direction < 0 && from <= 0) {
        return gd_fail(err, GD_ENOTFOUND, "the innermost frame is selected: there is none below");
    }
    int64_t to = from + direction * count;
    to = to < 0 ? 0 : to > last ? last : to;
    return select_frame(call, node, to, &places, err);
}

static int run_up(struct command_call *call, struct gd_err *err)
{
    return move_frame(call, 1, err);
}

static int run_down(struct command_call *call, struct gd_err *err)
{
    return move_frame(call, -1, err);
}

const struct command cmd_stack_table[] = {
    {
        .name = "list",
        .aliases = "l",
        .group = "graph",
        .usage = "list [NODE|FILE:LINE|FIRST[,LAST]|-]",
        .summary = "Show the source around the place that made the node",
        .help = "Without an argument: around the selected frame of the current node, then,\n"
                "each time, the lines that follow; `list -` shows the lines before. FIRST\n"
                "and LAST are lines of the file shown last. FILE may be the end of a path. A\n"
                "file is looked for as the trainer names it, then below the current\n"
                "directory. One that is not what ran is said to be so: by the line that came\n"
                "with the stack, else by its time. `set list-lines` says how many lines are\n"
                "shown.\n"
                "\n"
                "  list\n"
                "  list attn/MatMul-op4\n"
                "  list model.c:42\n"
                "  list 10,30\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS | CMD_REPEATS_BARE,
        .run = inspect_list,
    },
    {
        .name = "backtrace",
        .aliases = "bt where",
        .group = "graph",
        .usage = "backtrace [NODE] [COUNT] [all]",
        .summary = "Show the stack of source places that made a node",
        .help = "The innermost place is #0. Frames of frameworks and their helpers are left out\n"
                "unless `all` is given or there are no others. A gradient is shown by what\n"
                "makes it, a weight by what uses it.\n"
                "\n"
                "  backtrace\n"
                "  bt attn/MatMul-op4 all\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_backtrace,
    },
    {
        .name = "frame",
        .aliases = "f",
        .group = "graph",
        .usage = "frame [N]",
        .summary = "Select frame N of the current node's stack, or show the selected one",
        .help = "Of a gradient it is the stack of what makes it, of a weight of what uses it:\n"
                "the first one that `backtrace` shows.\n"
                "\n"
                "  frame 1\n",
        .args = {ARG_WORD},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_frame,
    },
    {
        .name = "up",
        .group = "graph",
        .usage = "up [N]",
        .summary = "Select the frame that called this one",
        .help = "  up\n  up 2\n",
        .args = {ARG_WORD},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_up,
    },
    {
        .name = "down",
        .aliases = "dow",
        .group = "graph",
        .usage = "down [N]",
        .summary = "Select the frame that this one called",
        .help = "  down\n",
        .args = {ARG_WORD},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_down,
    },
    {
        .name = "sources",
        .aliases = "ls",
        .group = "graph",
        .usage = "sources [TEXT]",
        .summary = "List the source files that made nodes, with their node counts",
        .help = "TEXT keeps the files whose path contains it.\n"
                "\n"
                "  sources\n"
                "  ls model\n",
        .args = {ARG_WORD},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = inspect_info_source,
    },
    {
        .name = "annotate",
        .aliases = "ps",
        .group = "graph",
        .usage = "annotate FILE[:LINE]",
        .summary = "Show a source file with the number of nodes that each line made",
        .help = "Without LINE it starts at the first line that made a node.\n"
                "`info line FILE:LINE` lists the nodes of one line.\n"
                "\n"
                "  annotate model.c\n"
                "  annotate model.c:120\n",
        .args = {ARG_FILE},
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_annotate,
    },
    {.name = NULL},
};
