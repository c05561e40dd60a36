// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/inspect.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format.h"
#include "engine/graph/part.h"
#include "engine/line/line.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"

/* ---- arguments ----------------------------------------------------------------------------- */

static void take_word(struct command_call *call, int index)
{
    for (int i = index; i + 1 < call->argc; i++) {
        call->argv[i] = call->argv[i + 1];
    }
    call->argc--;
}

bool inspect_take_flag(struct command_call *call, const char *flag)
{
    for (int i = 0; i < call->argc; i++) {
        if (strcmp(call->argv[i], flag) == 0) {
            take_word(call, i);
            return true;
        }
    }
    return false;
}

int inspect_take_count(struct command_call *call, const char *flag, int64_t min, int64_t max,
                       int64_t *ret, struct gd_err *err)
{
    size_t len = strlen(flag);
    for (int i = 0; i < call->argc; i++) {
        if (strncmp(call->argv[i], flag, len) != 0) {
            continue;
        }
        const char *text = call->argv[i] + len;
        bool apart = text[0] == '\0';
        if (apart && i + 1 == call->argc) {
            return gd_fail(err, GD_EUSAGE, "%s needs a number", flag);
        }
        int rc = arg_count(apart ? call->argv[i + 1] : text, min, max, ret, err);
        if (rc != GD_OK) {
            return rc;
        }
        take_word(call, i);
        if (apart) {
            take_word(call, i);
        }
        return GD_OK;
    }
    return GD_OK;
}

int inspect_take_option(struct command_call *call, const char *option, const char **ret,
                        struct gd_err *err)
{
    size_t len = strlen(option);
    for (int i = 0; i < call->argc;) {
        const char *word = call->argv[i];
        if (strncmp(word, option, len) != 0 || (word[len] != '\0' && word[len] != '=')) {
            i++;
            continue;
        }
        take_word(call, i);
        *ret = word[len] == '=' ? word + len + 1 : "";
        if (word[len] == '\0' && i < call->argc) {
            *ret = call->argv[i];
            take_word(call, i);
        }
        if (**ret == '\0') {
            return gd_fail(err, GD_EUSAGE, "%s: a value is missing after %s", call->command->name,
                           option);
        }
    }
    return GD_OK;
}

int inspect_no_options(const struct command_call *call, struct gd_err *err)
{
    for (int i = 0; i < call->argc; i++) {
        const char *word = call->argv[i];
        if (word[0] == '-' && word[1] >= 'a' && word[1] <= 'z') {
            return gd_fail(err, GD_EUSAGE, "%s: unknown option %.40s", call->command->name, word);
        }
    }
    return GD_OK;
}

void inspect_join_slices(struct command_call *call)
{
    int kept = 0;
    for (int i = 0; i < call->argc; i++) {
        if (kept > 0 && call->argv[i][0] == '[') {
            const char *text = inspect_printf(call, "%s%s", call->argv[kept - 1], call->argv[i]);
            call->argv[kept - 1] = gd_arena_strdup(call->arena, text);
        } else {
            call->argv[kept++] = call->argv[i];
        }
    }
    call->argc = kept;
}

const char *inspect_join(struct command_call *call, int first, int last)
{
    const char *text = "";
    for (int i = first; i < last; i++) {
        text = i == first ? call->argv[i] : inspect_printf(call, "%s %s", text, call->argv[i]);
    }
    return text;
}

int inspect_node(struct command_call *call, const char *text, gd_node_id *ret, struct gd_err *err)
{
    if (text && strcmp(text, ".") != 0) {
        return arg_node(call, text, ret, err);
    }
    gd_node_id node = call->session->current;
    struct gd_node_info info;
    if (node == GD_NO_NODE || !gd_graph_node(call->session->graph, node, &info)) {
        if (call->session->stop.reason == GD_STOP_EXCEPTION &&
            strncmp(call->session->stop.text, "the program ends", 16) == 0) {
            return gd_fail(err, GD_ESTATE,
                           "it is unknown which operator raised the exception: with `catch "
                           "exception` the training stops at the operator");
        }
        return gd_fail(err, GD_ESTATE,
                       "no node is selected: name one, or select one with `node NAME`");
    }
    *ret = node;
    return GD_OK;
}

/* ---- cells --------------------------------------------------------------------------------- */

const char *inspect_printf(struct command_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = len >= 0 ? gd_arena_alloc(call->arena, (size_t)len + 1) : NULL;
    if (text) {
        vsnprintf(text, (size_t)len + 1, format, again);
    }
    va_end(again);
    return text ? text : "";
}

const char *inspect_name(struct command_call *call, const char *text)
{
    return out_is_json(call->out) && out_is_utf8(text) ? text : out_safe(call, text);
}

const char *inspect_take(struct command_call *call, struct gd_buf *text)
{
    const char *copy = gd_arena_strdup(call->arena, gd_buf_text(text));
    gd_buf_deinit(text);
    return copy ? copy : "";
}

const char *inspect_number(struct command_call *call, uint64_t value)
{
    struct gd_buf text = GD_BUF_INIT(64);
    if (out_is_json(call->out)) {
        gd_buf_printf(&text, "%llu", (unsigned long long)value);
    } else {
        out_add_number(&text, value);
    }
    return inspect_take(call, &text);
}

const char *inspect_plural(struct command_call *call, uint64_t value, const char *noun)
{
    return inspect_printf(call, "%s %s%s", inspect_number(call, value), noun,
                          value == 1 ? "" : "s");
}

const char *inspect_shape(struct command_call *call, const struct gd_shape *shape)
{
    bool known = true;
    for (int i = 0; i < shape->rank; i++) {
        known = known && shape->dim[i] >= 0;
    }
    char text[32 * GD_MAX_RANK];
    if (known) {
        const char *copy = gd_arena_strdup(call->arena, gd_shape_text(shape, text, sizeof(text)));
        return copy ? copy : "";
    }
    const char *so_far = "(";
    for (int i = 0; i < shape->rank; i++) {
        const char *gap = i > 0 ? ", " : "";
        so_far = shape->dim[i] < 0
                     ? inspect_printf(call, "%s%s?", so_far, gap)
                     : inspect_printf(call, "%s%s%lld", so_far, gap, (long long)shape->dim[i]);
    }
    return inspect_printf(call, "%s%s)", so_far, shape->rank == 1 ? "," : "");
}

const char *inspect_index(struct command_call *call, const struct gd_shape *shape, int64_t flat)
{
    const char *text = "";

    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        int64_t dim = shape->dim[axis] > 0 ? shape->dim[axis] : 1;

        text = inspect_printf(call, "%lld%s%s", (long long)(flat % dim), text[0] ? ", " : "", text);
        flat /= dim;
    }
    return inspect_printf(call, "[%s]", text);
}

const char *inspect_bytes(struct command_call *call, uint64_t bytes)
{
    char text[32];
    const char *copy = gd_arena_strdup(call->arena, gd_format_bytes(bytes, text, sizeof(text)));
    return copy ? copy : "";
}

const char *inspect_duration(struct command_call *call, double seconds)
{
    struct gd_buf text = GD_BUF_INIT(64);
    out_add_duration(&text, seconds);
    return inspect_take(call, &text);
}

const char *inspect_double(struct command_call *call, double value)
{
    if (isnan(value)) {
        return "nan";
    }
    if (isinf(value)) {
        return value > 0 ? "inf" : "-inf";
    }
    return inspect_printf(call, "%.6g", value);
}

const char *inspect_outputs(struct command_call *call, gd_node_id node)
{
    struct gd_node_info info = {0};
    struct gd_output output;
    struct gd_graph *graph = call->session->graph;
    if (!gd_graph_node(graph, node, &info) || !gd_graph_output(graph, node, 0, &output)) {
        const char *declared = gd_node_attr(&info, "output");
        return info.kind == GD_NODE_COMPILED && declared ? out_safe(call, declared) : "";
    }
    const char *text = inspect_printf(call, "%s %s", gd_dtype_name(output.dtype),
                                      inspect_shape(call, &output.shape));
    if (info.output_count > 1) {
        text = inspect_printf(call, "%s +%u", text, info.output_count - 1);
    }
    return text;
}

const char *inspect_slot(struct command_call *call, gd_node_id node, uint32_t slot)
{
    char text[16];

    gd_graph_slot_name(call->session->graph, node, slot, text);
    return inspect_printf(call, "%s", text);
}

const char *inspect_tensor_name(struct command_call *call, gd_node_id node, uint32_t slot)
{
    return inspect_printf(call, "%s:%s", gd_graph_name(call->session->graph, node),
                          inspect_slot(call, node, slot));
}

const char *inspect_fit(struct command_call *call, const char *name, int used)
{
    char room[512];
    const char *safe = out_safe(call, name);
    const char *fit = repl_fit_name(call->out, safe, used, room, sizeof(room));
    return fit == room ? inspect_printf(call, "%s", room) : safe;
}

/* ---- records ------------------------------------------------------------------------------- */

cJSON *inspect_shape_json(const struct gd_shape *shape)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < shape->rank; i++) {
        out_push_int(list, shape->dim[i]);
    }
    return list;
}

void inspect_add_node(struct command_call *call, cJSON *object, gd_node_id node)
{
    struct gd_node_info info;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return;
    }
    out_set(object, OUT_TEXT("node", info.name), OUT_TEXT("node_type", info.type),
            OUT_TEXT("kind", gd_node_kind_name(info.kind)));
    int batch = gd_session_micro_batch(call->session, node);
    out_set(object, OUT_IF(batch > 0, OUT_INT("micro_batch", batch)));
    uint32_t order = gd_graph_order(call->session->graph, node);
    out_set(object, OUT_IF(order != GD_NO_ORDER, OUT_INT("order", order)));
}

const char *inspect_micro_batch(struct command_call *call, const struct gd_session *session,
                                gd_node_id node)
{
    char text[32];

    gd_session_micro_batch_text(session, node, text, sizeof(text));
    return text[0] != '\0' ? inspect_printf(call, "%s", text) : "";
}

const char *inspect_pass(const struct gd_session *session, gd_node_id node)
{
    struct gd_node_info info;

    if (!session->graph || !gd_graph_node(session->graph, node, &info)) {
        return "";
    }
    const char *phase = gd_node_attr(&info, "phase"), *batch = gd_node_attr(&info, GD_MICRO_BATCH);
    switch (gd_graph_part(session->graph, node)) {
    case GD_PART_EVALUATION: return "evaluation";
    case GD_PART_DATA: return "data";
    default: return !phase || (batch && strcmp(batch, "none") == 0) ? "" : phase;
    }
}

/* ---- state --------------------------------------------------------------------------------- */

static void free_state(void *data)
{
    struct inspect_state *state = data;
    free(state->list_file);
    free(state->x_text);
    free(state);
}

struct inspect_state *inspect_state(struct repl *repl)
{
    struct inspect_state *state = repl_slot(repl, REPL_SLOT_INSPECT);
    if (!state) {
        state = calloc(1, sizeof(*state));
        if (state) {
            state->node = GD_NO_NODE;
            repl_set_slot(repl, REPL_SLOT_INSPECT, state, free_state);
        }
    }
    return state;
}

/* Index of the node's own frame among the frames with a file; GD_NO_NODE: of the training thread's.
 * Does not allocate: the panes ask for each picture. */
static uint32_t own_frame(const struct command_call *call, gd_node_id node)
{
    uint32_t count = 0, place = 0;
    const struct gd_frame *frame = node == GD_NO_NODE
                                       ? gd_session_line_stack(call->session, &count)
                                       : gd_graph_stack(call->session->graph, node, &count);
    const struct gd_frame *own = gd_frame_place(frame, count);

    for (; own && frame != own; frame++) {
        place += !frame->is_title && frame->file[0] != '\0';
    }
    return place;
}

/* Something was selected at this stop; NULL: nothing. */
static const struct inspect_state *selection_now(struct command_call *call)
{
    const struct inspect_state *state = repl_slot(call->repl, REPL_SLOT_INSPECT);

    return state && state->session == call->session->number &&
                   state->stop == call->session->stop.sequence
               ? state
               : NULL;
}

uint32_t inspect_frame(struct command_call *call, gd_node_id node)
{
    const struct inspect_state *state = selection_now(call);
    return state && !state->live && state->node == node ? state->frame : own_frame(call, node);
}

bool inspect_chosen_frame(struct command_call *call, gd_node_id *node, uint32_t *frame)
{
    const struct inspect_state *state = selection_now(call);

    if (!state || state->live) {
        return false;
    }
    *node = state->node;
    *frame = state->frame;
    return true;
}

bool inspect_live_frame(struct command_call *call, uint32_t *frame)
{
    const struct inspect_state *state = selection_now(call);

    *frame = state && state->live ? state->frame : 0;
    return state && state->live;
}

static void select_frame(struct command_call *call, gd_node_id node, uint32_t frame, bool live)
{
    struct inspect_state *state = inspect_state(call->repl);
    if (state) {
        state->session = call->session->number;
        state->node = node;
        state->stop = call->session->stop.sequence;
        state->frame = frame;
        state->live = live;
    }
}

void inspect_set_frame(struct command_call *call, gd_node_id node, uint32_t frame)
{
    select_frame(call, node, frame, false);
}

void inspect_set_live_frame(struct command_call *call, uint32_t frame)
{
    select_frame(call, GD_NO_NODE, frame, true);
}

/* ---- previous values ----------------------------------------------------------------------- */

/* Whether the setting already contains the name. */
static bool is_kept(const char *setting, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = setting; *p; p += *p ? 1 : 0) {
        p += strspn(p, " ,");
        size_t term = strcspn(p, ",");
        if (term == len && memcmp(p, name, len) == 0) {
            return true;
        }
        p += term;
    }
    return false;
}

int inspect_keep_previous(struct command_call *call, gd_node_id node, struct gd_err *err)
{
    struct gd_target *target = call->session->target;
    struct gd_settings *settings = &call->debugger->settings;
    const char *name = gd_graph_name(call->session->graph, node);
    if (!target || !target->ops->keep_previous || !(target->capabilities & GD_CAN_PREVIOUS)) {
        return gd_fail(err, GD_EUNSUPPORTED, "this training process cannot keep previous values");
    }
    if (is_kept(settings->keep_previous, name)) {
        return GD_OK;
    }
    char before[sizeof(settings->keep_previous)];
    memcpy(before, settings->keep_previous, sizeof(before));
    size_t used = strlen(before);
    bool plain = !strpbrk(name, ",|*?[] ") && !strstr(before, "except");
    if (!plain || used + strlen(name) + 3 > sizeof(before)) {
        return gd_fail(err, GD_ELIMIT,
                       "`set keep-previous` is full: name it there together with others");
    }
    snprintf(settings->keep_previous + used, sizeof(before) - used, "%s%s", used > 0 ? ", " : "",
             name);
    int rc = gd_debugger_apply_keep_previous(call->debugger, err);
    if (rc != GD_OK) {
        memcpy(settings->keep_previous, before, sizeof(before));
    }
    return rc;
}

const char *inspect_home_path(struct command_call *call, const char *path)
{
    const char *home = getenv("HOME");

    return strncmp(path, "~/", 2) == 0 && home ? inspect_printf(call, "%s%s", home, path + 1)
                                               : path;
}
