// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_mark.h"
#include "agent/agent_metric.h"
#include "agent/agent_source.h"
#include "agent/agent_tensor.h"
#include "agent/agent_watch.h"
#include "agent/line/agent_line.h"
#include "base/slice.h"

#define TEXT       160
#define MAX_RANGES 16
#define MAX_REPLY  ((size_t)1 << 20) /* bytes in the answer to a command */
#define LOOKS      1024              /* announced at once */

/* ---- calling --------------------------------------------------------------------------------- */

static void call_begin(struct agent *a)
{
    a->calling = true;
    agent_arm(a); /* hooks inside the call must not take the fast path */
    pthread_mutex_unlock(&a->lock);
}

static void call_end(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    a->calling = false;
    agent_arm(a);
}

/* Converts the program's answer into a code; -1 for GRADB_OK. */
static int code_of(gradb_answer answer, char why[GRADB_WHY], const char *fallback, char text[TEXT])
{
    why[GRADB_WHY - 1] = '\0';
    if (answer == GRADB_OK) {
        return -1;
    }
    snprintf(text, TEXT, "%s", why[0] ? why : fallback);
    switch (answer) {
    case GRADB_NO_VALUE: return CODE(NO_VALUE);
    case GRADB_UNSUPPORTED: return CODE(UNSUPPORTED);
    case GRADB_GONE: return CODE(GONE);
    default: return CODE(FAILED);
    }
}

/* ---- locating -------------------------------------------------------------------------------- */

static int64_t now_step(const struct agent *a)
{
    return PEEK(a->step);
}

static bool has_copy(const struct agent *a, const struct agent_slot *slot,
                     Gradb__V1__Iteration iteration)
{
    if (iteration == GRADB__V1__ITERATION__CURRENT) {
        return slot->captured && slot->captured->valid && slot->captured->step == now_step(a);
    }
    return slot->previous && slot->previous->valid;
}

bool agent_has_values(const struct agent *a)
{
    return a->source.locate || a->source.stats;
}

bool agent_asks(const struct agent *a, uint32_t id, uint32_t slot, Gradb__V1__Iteration iteration)
{
    const struct agent_node *node = agent_node_at(a, id);
    return agent_has_values(a) && node && slot < node->slot_count && !node->slots[slot].bound &&
           !has_copy(a, &node->slots[slot], iteration);
}

/* Strides must not exceed the address range. */
static bool strides_are_sane(const gradb_tensor *tensor)
{
    int64_t lowest = 0, highest = 0;
    for (int i = 0; tensor->strides && i < tensor->rank; i++) {
        int64_t reach = 0, last = tensor->shape[i] > 0 ? tensor->shape[i] - 1 : 0;
        if (__builtin_mul_overflow(last, tensor->strides[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? lowest : highest, reach,
                                   reach < 0 ? &lowest : &highest)) {
            return false;
        }
    }
    return highest <= PTRDIFF_MAX / 2 && lowest >= PTRDIFF_MIN / 2;
}

int agent_take_tensor(const gradb_tensor *tensor, struct gd_tensor *ret, bool with_data,
                      char text[TEXT])
{
    const char *wrong = NULL;
    int dtype = (int)tensor->dtype;
    size_t bytes = 0;
    *ret = (struct gd_tensor){.refs = 1};
    if (dtype <= 0 || dtype >= GD_DT_COUNT || gd_dtype_size((enum gd_dtype)dtype) == 0) {
        wrong = "an unknown type";
    } else if (tensor->rank < 0 || tensor->rank > GRADB_MAX_RANK ||
               (tensor->rank > 0 && !tensor->shape)) {
        wrong = "an impossible shape";
    }
    for (int i = 0; !wrong && i < tensor->rank; i++) {
        wrong = tensor->shape[i] < 0 ? "an impossible shape" : NULL;
        ret->shape.dim[i] = tensor->shape[i];
    }
    if (!wrong) {
        ret->dtype = (enum gd_dtype)dtype;
        ret->shape.rank = tensor->rank;
        if (gd_shape_bytes(&ret->shape, ret->dtype, &bytes, NULL) != GD_OK) {
            wrong = "an impossible shape";
        } else if (with_data && bytes > 0 && !tensor->data) {
            wrong = "no address";
        } else if (with_data && !strides_are_sane(tensor)) {
            wrong = "strides outside the address range";
        }
    }
    if (wrong) {
        snprintf(text, TEXT, "the training program returned a value with %s", wrong);
        return CODE(FAILED);
    }
    gd_shape_strides(&ret->shape, gd_dtype_size(ret->dtype), ret->stride);
    for (int i = 0; tensor->strides && i < tensor->rank; i++) {
        ret->stride[i] = tensor->strides[i];
    }
    ret->data = with_data ? tensor->data : NULL;
    return -1;
}

static int ask_locate(struct agent *a, uint32_t id, uint32_t slot, bool previous,
                      struct agent_value *ret, char text[TEXT])
{
    gradb_tensor tensor = {.rank = 0};
    char why[GRADB_WHY] = "";
    int64_t step = -1;
    if (!a->source.locate) {
        snprintf(text, TEXT, "the training program provides only statistics of its values");
        return CODE(UNSUPPORTED);
    }
    a->located = true;
    call_begin(a);
    gradb_answer answer = a->source.locate(a->source.ctx, id, slot, previous, &tensor, &step, why);
    int code = code_of(answer, why, "the training program has no such value", text);
    /* shape and strides belong to the program: read them before other code runs */
    if (code == -1) {
        code = agent_take_tensor(&tensor, &ret->tensor, true, text);
    }
    call_end(a);
    if (code == -1) {
        ret->step = step >= 0 ? step : agent_guess_step(a, id, previous);
    }
    return code;
}

static int find_value(struct agent *a, uint32_t id, uint32_t slot, Gradb__V1__Iteration iteration,
                      struct agent_value *ret, char text[TEXT])
{
    bool previous = iteration != GRADB__V1__ITERATION__CURRENT;
    if (!agent_asks(a, id, slot, iteration)) {
        return agent_locate(a, id, slot, iteration, ret, text);
    }
    int code = ask_locate(a, id, slot, previous, ret, text);
    char ignored[TEXT];
    if (code == CODE(NO_VALUE) && !previous &&
        agent_locate(a, id, slot, iteration, ret, ignored) == -1) {
        return -1; /* falls back to the copy of an earlier step */
    }
    return code;
}

int agent_find(struct agent *a, uint32_t id, uint32_t slot, Gradb__V1__Iteration iteration,
               struct agent_value *ret, char text[TEXT])
{
    int code = find_value(a, id, slot, iteration, ret, text);
    return code == CODE(NO_VALUE) && iteration == GRADB__V1__ITERATION__CURRENT &&
                   agent_capture_left_out(a, id, text)
               ? CODE(TOO_LARGE)
               : code;
}

static void items_of(const Gradb__V1__Fetch *fetch, gradb_slice_item items[GD_MAX_SLICE_ITEMS])
{
    for (size_t i = 0; i < fetch->n_slice; i++) {
        const Gradb__V1__SliceItem *from = fetch->slice[i];
        items[i] = (gradb_slice_item){.kind = (gradb_slice_kind)from->kind,
                                      .has_start = from->has_start,
                                      .has_stop = from->has_stop,
                                      .start = from->start,
                                      .stop = from->stop,
                                      .step = from->has_step ? from->step : 1};
    }
}

static bool is_for_part(const struct agent *a, const Gradb__V1__Fetch *fetch)
{
    bool ok = a->source.locate_part && fetch->n_slice > 0 && fetch->n_slice <= GD_MAX_SLICE_ITEMS &&
              agent_asks(a, fetch->node, fetch->slot, fetch->iteration);
    for (size_t i = 0; ok && i < fetch->n_slice; i++) {
        ok = (int)fetch->slice[i]->kind >= GRADB_SLICE_INDEX &&
             (int)fetch->slice[i]->kind <= GRADB_SLICE_NEWAXIS &&
             (!fetch->slice[i]->has_step || fetch->slice[i]->step != 0);
    }
    return ok;
}

int agent_find_part(struct agent *a, const Gradb__V1__Fetch *fetch, struct agent_value *ret,
                    bool *cut, char text[TEXT])
{
    bool previous = fetch->iteration != GRADB__V1__ITERATION__CURRENT;
    gradb_slice_item items[GD_MAX_SLICE_ITEMS];
    gradb_tensor tensor = {.rank = 0};
    char why[GRADB_WHY] = "";
    int64_t step = -1;
    int code = CODE(UNSUPPORTED);
    *cut = false;
    if (is_for_part(a, fetch)) {
        items_of(fetch, items);
        a->located = true;
        call_begin(a);
        gradb_answer answer =
            a->source.locate_part(a->source.ctx, fetch->node, fetch->slot, previous, items,
                                  fetch->n_slice, &tensor, &step, why);
        code = code_of(answer, why, "the training program has no such value", text);
        if (code == -1) {
            code = agent_take_tensor(&tensor, &ret->tensor, true, text);
        }
        call_end(a);
    }
    if (code == -1) {
        *cut = true;
        ret->step = step >= 0 ? step : agent_guess_step(a, fetch->node, previous);
    } else if (code == CODE(UNSUPPORTED) || code == CODE(NO_VALUE)) {
        code = agent_find(a, fetch->node, fetch->slot, fetch->iteration, ret, text);
    }
    return code;
}

void agent_source_release(struct agent *a)
{
    if (a->located) {
        a->located = false;
        if (a->source.release) {
            call_begin(a);
            a->source.release(a->source.ctx);
            call_end(a);
        }
    }
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Bins over the range of the value itself are wanted later, when that range is known. */
static void wanted_of(const Gradb__V1__StatsOptions *options, gradb_stats_wanted *ret)
{
    *ret = (gradb_stats_wanted){0};
    if (!options) {
        return;
    }
    ret->range_count = (int)options->n_ranges;
    for (size_t i = 0; i < options->n_ranges; i++) {
        ret->range_lo[i] = options->ranges[i]->lo;
        ret->range_hi[i] = options->ranges[i]->hi;
    }
    ret->against_previous = options->against_previous;
    ret->equal_nan = options->equal_nan;
    ret->rtol = options->rtol;
    ret->atol = options->atol;
    if (options->histogram && !options->histogram->own) {
        ret->bins = options->histogram->count;
        ret->bins_lo = options->histogram->lo;
        ret->bins_hi = options->histogram->hi;
    }
}

static void take_stats(const gradb_stats *from, int ranges, struct gd_stats *to)
{
    *to = (struct gd_stats){.count = from->count,
                            .nan = from->nan,
                            .pos_inf = from->pos_inf,
                            .neg_inf = from->neg_inf,
                            .zero = from->zero,
                            .neg_zero = from->neg_zero,
                            .positive = from->positive,
                            .negative = from->negative,
                            .denormal = from->denormal,
                            .min = from->min,
                            .max = from->max,
                            .mean = from->mean,
                            .abs_mean = from->abs_mean,
                            .sum_sq = from->sum_sq,
                            .std = from->std};
    to->range_count = ranges;
    memcpy(to->in_range, from->in_range, (size_t)ranges * sizeof(to->in_range[0]));
    to->has_prev = from->has_previous;
    if (from->has_previous) {
        to->mean_abs_delta = from->mean_abs_delta;
        to->max_abs_delta = from->max_abs_delta;
        to->mean_abs_prev = from->mean_abs_previous;
        to->dot = from->dot;
        to->sum_sq_prev = from->sum_sq_previous;
        to->mismatch = from->mismatch;
        to->unpaired = from->unpaired;
        to->mean_delta = from->mean_delta;
        to->sum_sq_delta = from->sum_sq_delta;
    }
}

/* What the source cannot compute: bins without room for them, units, too many ranges. */
static bool is_for_source(const struct agent *a, const Gradb__V1__StatsOptions *options,
                          struct agent_look *look)
{
    return a->source.stats &&
           (!options || (options->n_ranges <= MAX_RANGES && options->dead_steps == 0 &&
                         (!options->histogram || agent_look_bins(look, options->histogram))));
}

/* The bins of the value's own range, which the first answer shows. */
static gradb_answer ask_for_own_bins(struct agent *a, uint32_t id, uint32_t slot, bool previous,
                                     const Gradb__V1__Bins *bins, const gradb_stats *first,
                                     struct agent_look *look, char *why)
{
    struct gd_stats known = {.min = first->min, .max = first->max};
    gradb_stats_wanted wanted = {.bins = bins->count};
    gradb_stats stats = {.histogram = agent_look_bins(look, bins)};
    gradb_tensor what = {.rank = 0};
    memset(stats.histogram, 0, bins->count * sizeof(*stats.histogram));
    if (!agent_bins_range(bins, &known, &wanted.bins_lo, &wanted.bins_hi)) {
        return GRADB_OK;
    }
    return a->source.stats(a->source.ctx, id, slot, previous, &wanted, &stats, &what, why);
}

bool agent_source_stats(struct agent *a, uint32_t id, uint32_t slot, Gradb__V1__Iteration iteration,
                        const Gradb__V1__StatsOptions *options, struct agent_look *ret)
{
    bool previous = iteration != GRADB__V1__ITERATION__CURRENT;
    if (!is_for_source(a, options, ret)) {
        return false;
    }
    gradb_stats_wanted wanted;
    const Gradb__V1__Bins *bins = options ? options->histogram : NULL;
    gradb_stats stats = {.histogram = bins ? agent_look_bins(ret, bins) : NULL};
    gradb_tensor what = {.rank = 0};
    char why[GRADB_WHY] = "";
    wanted_of(options, &wanted);
    call_begin(a);
    gradb_answer answer =
        a->source.stats(a->source.ctx, id, slot, previous, &wanted, &stats, &what, why);
    if (answer == GRADB_OK) {
        ret->code = agent_take_tensor(&what, &ret->value.tensor, false, ret->text);
    }
    if (answer == GRADB_OK && bins && bins->own) {
        answer = ask_for_own_bins(a, id, slot, previous, bins, &stats, ret, why);
    }
    call_end(a);
    if (answer == GRADB_UNSUPPORTED) {
        return false;
    }
    if (answer != GRADB_OK) {
        ret->code = code_of(answer, why, "the training program has no such value", ret->text);
        ret->located = false;
        return true;
    }
    ret->located = ret->code == -1;
    if (ret->located) {
        ret->value.step = agent_guess_step(a, id, previous);
        take_stats(&stats, wanted.range_count, &ret->stats);
    }
    return true;
}

/* ---- announcing ------------------------------------------------------------------------------ */

struct agent_looking {
    gradb_ask ask[LOOKS];
    gradb_stats_wanted wanted[LOOKS];
    size_t count;
};

void gradb_on_look(gradb *g, void (*call)(void *ctx, const gradb_ask *asks, size_t count),
                   void *ctx)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->on_look = call;
    a->on_look_ctx = ctx;
    pthread_mutex_unlock(&a->lock);
}

struct agent_looking *agent_begin_looking(struct agent *a)
{
    return a->on_look ? calloc(1, sizeof(struct agent_looking)) : NULL;
}

static void announce_asks(struct agent *a, struct agent_looking *looking)
{
    a->located = a->located || looking->count > 0; /* it holds them until it may release them */
    a->looking = true;
    call_begin(a);
    a->on_look(a->on_look_ctx, looking->ask, looking->count);
    call_end(a);
    a->looking = false;
    looking->count = 0;
}

void agent_add_look(struct agent *a, struct agent_looking *looking, uint32_t node, uint32_t slot,
                    const Gradb__V1__StatsOptions *options)
{
    size_t i = looking->count++;
    wanted_of(options, &looking->wanted[i]);
    looking->ask[i] = (gradb_ask){.node = node, .slot = slot, .wanted = &looking->wanted[i]};
    if (looking->count == LOOKS) {
        announce_asks(a, looking);
    }
}

void agent_end_looking(struct agent *a, struct agent_looking *looking)
{
    announce_asks(a, looking);
    free(looking);
}

/* ---- lines, keeping and commands ------------------------------------------------------------- */

void agent_source_lines(struct agent *a)
{
    while (agent_line_is_new(a)) {
        agent_to *message = a->lines.message;
        size_t count = message ? message->line_breaks->n_lines : 0;
        gradb_line *lines = calloc(count + 1, sizeof(*lines));
        a->lines.message = NULL;
        a->lines.clear = false;
        a->lines.known = count > 0;
        if (!lines) {
            agent_set_error(a, "out of memory for %zu lines", count);
            count = 0;
        }
        for (size_t i = 0; i < count; i++) {
            const Gradb__V1__LineBreak *from = message->line_breaks->lines[i];
            lines[i] = (gradb_line){.id = from->id,
                                    .file = from->file,
                                    .line = from->line <= INT32_MAX ? (int)from->line : INT32_MAX,
                                    .function = from->function};
        }
        call_begin(a);
        a->source.lines(a->source.ctx, lines, count);
        call_end(a);
        free(lines);
        if (message) {
            gradb__v1__to_trainer__free_unpacked(message, NULL);
        }
    }
}

void agent_source_keep(struct agent *a)
{
    agent_source_lines(a);
    while (a->kept.asked_new) {
        a->kept.asked_new = false;
        size_t count = a->kept.asked_count;
        gradb_node *nodes = malloc((count + 1) * sizeof(*nodes));
        if (!nodes) {
            agent_set_error(a, "out of memory for %zu nodes whose values must be kept", count);
            return;
        }
        if (count) {
            memcpy(nodes, a->kept.asked, count * sizeof(*nodes));
        }
        call_begin(a);
        a->source.keep(a->source.ctx, nodes, count);
        call_end(a);
        free(nodes);
    }
}

int agent_source_command(struct agent *a, const Gradb__V1__Command *command, char **reply,
                         char text[TEXT])
{
    const char *words = NULL;
    char why[GRADB_WHY] = "";
    *reply = NULL;
    if (!a->source.command && strcmp(command->name, AGENT_METRIC) == 0) {
        return agent_metric_request(a, command->args, reply, text);
    }
    if (!a->source.command) {
        snprintf(text, TEXT, "this training program has no command '%.60s'", command->name);
        return CODE(UNSUPPORTED);
    }
    if (command->node != 0 && !agent_node_at(a, command->node)) {
        snprintf(text, TEXT, "no node %u: the last is %u", command->node, a->node_count - 1);
        return CODE(NOT_FOUND);
    }
    call_begin(a);
    gradb_answer answer =
        a->source.command(a->source.ctx, command->name, command->args, command->node, &words, why);
    int code = code_of(answer, why, "the training program could not do that", text);
    if (code == -1) {
        words = words ? words : "";
        if (strnlen(words, MAX_REPLY + 1) > MAX_REPLY) {
            snprintf(text, TEXT, "the answer exceeds %zu bytes: ask for less", MAX_REPLY);
            code = CODE(TOO_LARGE);
        } else {
            *reply = strdup(words);
        }
    }
    call_end(a);
    if (answer == GRADB_UNSUPPORTED && strcmp(command->name, AGENT_METRIC) == 0) {
        return agent_metric_request(a, command->args, reply,
                                    text); /* the program leaves it to us */
    }
    if (code == -1 && !*reply) {
        snprintf(text, TEXT, "out of memory in the training process");
        code = CODE(NO_MEMORY);
    }
    return code;
}
