// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "engine/hash_index.h"
#include "engine/timing/cost.h"
#include "engine/timing/report.h"

#define TEXT_MAX ((size_t)1 << 26) /* bytes of all names of a report */

/* Texts are stored once, so that two are equal if their pointers are. */
struct time_report_impl {
    struct gd_arena texts;
    struct gd_hash_index text_index, op_index;
    const char **text;
    size_t text_count, text_cap;
    struct gd_time_operator *op;
    size_t op_cap;
};

const char *gd_time_name(enum gd_time part)
{
    static const char *const names[GD_TIMES] = {"data",      "compiled", "forward", "backward",
                                                "optimizer", "rest",     "total"};
    return names[part];
}

const char *gd_time_phase_name(enum gd_time_phase phase)
{
    static const char *const names[GD_TIME_IN_COUNT] = {"", "forward", "backward", "optimizer"};
    return names[phase];
}

const char *gd_time_lane_name(enum gd_time_lane lane)
{
    static const char *const names[GD_LANE_COUNT] = {"host", "device", "communication"};
    return names[lane];
}

int gd_time_report_create(struct gd_time_report **ret, struct gd_err *err)
{
    struct gd_time_report *report = calloc(1, sizeof(*report));
    struct time_report_impl *impl = calloc(1, sizeof(*impl));
    struct gd_time_step *recent = calloc(GD_TIME_STEPS, sizeof(*recent));
    if (!report || !impl || !recent) {
        free(report);
        free(impl);
        free(recent);
        return gd_fail_nomem(err);
    }
    gd_arena_init(&impl->texts, TEXT_MAX);
    report->impl = impl;
    report->recent = recent;
    report->first = report->last = gd_time_unknown_step(0);
    report->facts.compile = report->facts.compiled_seconds = -1;
    report->facts.bucket_limit = report->facts.communication = report->facts.hidden = -1;
    report->facts.loader = (struct gd_time_loader){
        .workers = -1, .prefetch = -1, .batch_size = -1, .pinned = -1, .persistent = -1};
    *ret = report;
    return GD_OK;
}

void gd_time_report_destroy(struct gd_time_report *report)
{
    if (!report) {
        return;
    }
    gd_arena_deinit(&report->impl->texts);
    gd_hash_index_deinit(&report->impl->text_index);
    gd_hash_index_deinit(&report->impl->op_index);
    free(report->impl->text);
    free(report->impl->op);
    free(report->impl);
    free(report->recent);
    free(report->facts.gradient);
    free(report);
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct gd_time_step gd_time_unknown_step(int64_t step)
{
    struct gd_time_step unknown = {
        .step = step, .tail = -1, .communication = -1, .exposed = -1, .cost = -1};
    for (int i = 0; i < GD_TIMES; i++) {
        unknown.part[i] = -1;
    }
    return unknown;
}

static double known_time(double seconds)
{
    return isfinite(seconds) && seconds >= 0 ? seconds : -1;
}

static struct gd_time_step clean_step(const struct gd_time_step *given)
{
    struct gd_time_step step = *given;
    for (int i = 0; i < GD_TIMES; i++) {
        step.part[i] = known_time(step.part[i]);
    }
    step.tail = known_time(step.tail);
    step.communication = known_time(step.communication);
    step.exposed = known_time(step.exposed);
    step.cost = known_time(step.cost);
    step.epoch = step.epoch > 0 ? step.epoch : 0;
    step.batch = step.batch > 0 ? step.batch : 0;
    return step;
}

static void rank_slowest(struct gd_time_report *report, const struct gd_time_step *step)
{
    int at = report->slowest_count;
    while (at > 0 && report->slowest[at - 1].part[GD_TIME_TOTAL] < step->part[GD_TIME_TOTAL]) {
        at--;
    }
    if (at == GD_TIME_SLOWEST || step->part[GD_TIME_TOTAL] < 0) {
        return;
    }
    if (report->slowest_count < GD_TIME_SLOWEST) {
        report->slowest_count++;
    }
    memmove(&report->slowest[at + 1], &report->slowest[at],
            (size_t)(report->slowest_count - 1 - at) * sizeof(*step));
    report->slowest[at] = *step;
}

void gd_time_add_step(struct gd_time_report *report, const struct gd_time_step *given)
{
    struct gd_time_step step = clean_step(given);
    int64_t at = report->count++ % GD_TIME_STEPS;
    report->recent[at] = step;
    report->last = step;
    for (int i = 0; i < GD_TIMES; i++) {
        report->sum[i] =
            report->sum[i] < 0 || step.part[i] < 0 ? -1 : report->sum[i] + step.part[i];
    }
    if (report->count == 1) {
        report->first = step;
    } else if (!step.timed) {
        rank_slowest(report, &step);
    }
    if (step.timed) {
        report->first_timed = report->timed_steps++ == 0 ? step.step : report->first_timed;
        report->last_timed = step.step;
        report->timed_seconds += step.part[GD_TIME_TOTAL] > 0 ? step.part[GD_TIME_TOTAL] : 0;
    }
}

static void update_last(struct gd_time_report *report)
{
    const struct gd_time_step *last = &report->last;
    report->recent[(report->count - 1) % GD_TIME_STEPS] = *last;
    if (report->count == 1) {
        report->first = *last;
    }
    for (int i = 0; i < report->slowest_count; i++) {
        if (report->slowest[i].step == last->step) {
            report->slowest[i] = *last;
        }
    }
}

void gd_time_note_place(struct gd_time_report *report, int64_t step, const char *name,
                        int64_t number)
{
    bool is_epoch = strcmp(name, "epoch") == 0;
    if (report->count == 0 || report->last.step != step ||
        (!is_epoch && strcmp(name, "batch") != 0)) {
        return;
    }
    *(is_epoch ? &report->last.epoch : &report->last.batch) = number;
    update_last(report);
}

void gd_time_note_costs(struct gd_time_report *report, int64_t step, double tail, double cost)
{
    if (report->count > 0 && report->last.step == step) {
        report->last.tail = known_time(tail);
        report->last.cost = known_time(cost);
        update_last(report);
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

/* The stored copy; NULL: out of memory. */
static const char *store_text(struct time_report_impl *impl, const char *text, struct gd_err *err)
{
    size_t len = text ? strlen(text) : 0;
    uint64_t hash = gd_hash_index_hash(&impl->text_index, text ? text : "", len);
    uint32_t number;
    size_t at = 0;
    while (gd_hash_index_next(&impl->text_index, hash, &at, &number)) {
        if (strcmp(impl->text[number], text ? text : "") == 0) {
            return impl->text[number];
        }
    }
    const char *copy = gd_arena_strndup(&impl->texts, text ? text : "", len);
    if (!copy || !gd_grow_list(&impl->text, impl->text_count, &impl->text_cap, sizeof(copy)) ||
        gd_hash_index_add(&impl->text_index, hash, (uint32_t)impl->text_count, err) != GD_OK) {
        return NULL;
    }
    impl->text[impl->text_count++] = copy;
    return copy;
}

/* Without padding, so that its bytes can be hashed: the dimensions beyond the rank are zero. */
static struct gd_time_tensor clean_tensor(const struct gd_time_tensor *given)
{
    struct gd_time_tensor tensor;
    memset(&tensor, 0, sizeof(tensor));
    tensor.dtype = given->dtype;
    tensor.rank = given->rank < 0 || given->rank > GD_TIME_DIMS ? -1 : given->rank;
    for (int i = 0; i < tensor.rank; i++) {
        tensor.dim[i] = given->dim[i];
    }
    return tensor;
}

/* What makes two operators the same. */
struct op_key {
    const char *type, *name, *module, *place;
    struct gd_time_tensor in[GD_TIME_INPUTS], out;
    int64_t phase, lane, in_count;
};

static bool make_key(struct time_report_impl *impl, const struct gd_time_record *record,
                     struct op_key *key, struct gd_err *err)
{
    memset(key, 0, sizeof(*key));
    key->phase = record->phase < GD_TIME_IN_COUNT ? record->phase : GD_TIME_IN_OTHER;
    key->lane = record->lane < GD_LANE_COUNT ? record->lane : GD_LANE_HOST;
    key->in_count = record->in_count < GD_TIME_INPUTS ? record->in_count : GD_TIME_INPUTS;
    for (int i = 0; i < key->in_count; i++) {
        key->in[i] = clean_tensor(&record->in[i]);
    }
    key->out = clean_tensor(&record->out);
    key->type = store_text(impl, record->type, err);
    key->name = store_text(impl, record->name, err);
    key->module = store_text(impl, record->module, err);
    key->place = store_text(impl, record->place, err);
    return key->type && key->name && key->module && key->place;
}

static bool has_key(const struct gd_time_operator *op, const struct op_key *key)
{
    return op->name == key->name && op->type == key->type && op->module == key->module &&
           op->place == key->place && op->phase == (enum gd_time_phase)key->phase &&
           op->lane == (enum gd_time_lane)key->lane && op->in_count == (int)key->in_count &&
           memcmp(op->in, key->in, sizeof(op->in)) == 0 &&
           memcmp(&op->out, &key->out, sizeof(op->out)) == 0;
}

static struct gd_time_operator *add_new(struct gd_time_report *report, const struct op_key *key,
                                        uint64_t hash, struct gd_err *err)
{
    struct time_report_impl *impl = report->impl;
    if (!gd_grow_list(&impl->op, report->op_count, &impl->op_cap, sizeof(*impl->op))) {
        gd_fail_nomem(err);
        return NULL;
    }
    if (gd_hash_index_add(&impl->op_index, hash, report->op_count, err) != GD_OK) {
        return NULL;
    }
    struct gd_time_operator *op = &impl->op[report->op_count++];
    report->op = impl->op;
    *op = (struct gd_time_operator){.type = key->type,
                                    .name = key->name,
                                    .module = key->module,
                                    .place = key->place,
                                    .phase = (enum gd_time_phase)key->phase,
                                    .lane = (enum gd_time_lane)key->lane,
                                    .in_count = (int)key->in_count,
                                    .last_step = -1};
    memcpy(op->in, key->in, sizeof(op->in));
    memcpy(&op->out, &key->out, sizeof(op->out));
    gd_time_cost_of(op, &op->flops, &op->bytes);
    return op;
}

/* full: only known operators are found; NULL is not an error then. */
static struct gd_time_operator *find_or_add(struct gd_time_report *report, const struct op_key *key,
                                            bool full, struct gd_err *err)
{
    struct time_report_impl *impl = report->impl;
    uint64_t hash = gd_hash_index_hash(&impl->op_index, key, sizeof(*key));
    uint32_t number;
    size_t at = 0;
    while (gd_hash_index_next(&impl->op_index, hash, &at, &number)) {
        if (has_key(&impl->op[number], key)) {
            return &impl->op[number];
        }
    }
    return full ? NULL : add_new(report, key, hash, err);
}

int gd_time_add_operator(struct gd_time_report *report, const struct gd_time_record *record,
                         struct gd_err *err)
{
    struct op_key key;
    struct gd_time_operator *op = NULL;
    bool full = report->op_count >= GD_TIME_OPERATORS;
    if (!(isfinite(record->seconds) && record->seconds >= 0)) {
        return GD_OK;
    }
    if (make_key(report->impl, record, &key, err)) {
        op = find_or_add(report, &key, full, err);
    }
    if (!op) {
        report->op_dropped += record->calls ? record->calls : 1;
        return full ? GD_OK : gd_fail_nomem(err);
    }
    op->calls += record->calls ? record->calls : 1;
    op->seconds += record->seconds;
    op->steps += op->last_step != record->step;
    op->last_step = record->step;
    return GD_OK;
}
