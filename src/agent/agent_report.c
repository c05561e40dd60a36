// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_varint.h"
#include "agent/agent_watch.h"
#include "agent/agent_words.h"
#include "proto/envelope.h"

#define REPORT_VALUES 256 /* values per message; the rest follow in further messages */
#define REPORT_BYTES  ((size_t)256 * 1024) /* bytes per message, not counting its last value */
#define FIELD(name)   GRADB__V1__STAT_FIELD__STAT_##name

/* ---- triggers ------------------------------------------------------------------------------- */

static double share_of(uint64_t part, uint64_t count)
{
    return count ? (double)part / (double)count : 0;
}

static double cosine_of(const struct gd_stats *s)
{
    double norms = sqrt(s->sum_sq) * sqrt(s->sum_sq_prev);
    return norms > 0 ? s->dot / norms : NAN;
}

/* Statistics of the difference from the previous step. */
static double difference_value(const struct gd_stats *s, Gradb__V1__StatField field)
{
    if (!s->has_prev) {
        return NAN;
    }
    switch (field) {
    case FIELD(MEAN_ABS_DELTA): return s->mean_abs_delta;
    case FIELD(MAX_ABS_DELTA): return s->max_abs_delta;
    case FIELD(MISMATCH): return (double)s->mismatch;
    case FIELD(MISMATCH_SHARE): return share_of(s->mismatch, s->count);
    case FIELD(MEAN_ABS_PREVIOUS): return s->mean_abs_prev;
    case FIELD(UPDATE_RATIO): return s->mean_abs_delta / (s->mean_abs_prev + 1e-9);
    case FIELD(MEAN_DELTA): return s->mean_delta;
    case FIELD(DELTA_NORM): return sqrt(s->sum_sq_delta);
    case FIELD(PREVIOUS_NORM): return sqrt(s->sum_sq_prev);
    case FIELD(COSINE): return cosine_of(s);
    case FIELD(UNPAIRED): return (double)s->unpaired;
    default: return NAN;
    }
}

/* Statistics of a range, and of dead units. */
static double share_value(const struct gd_stats *s, const Gradb__V1__Trigger *trigger)
{
    if (trigger->field == FIELD(DEAD_SHARE)) {
        return s->units ? share_of(s->dead_units, s->units) : NAN;
    }
    if (trigger->range >= (uint32_t)s->range_count) {
        return NAN;
    }
    uint64_t inside = s->in_range[trigger->range];
    switch (trigger->field) {
    case FIELD(IN_RANGE_SHARE): return share_of(inside, s->count);
    case FIELD(OUT_RANGE_SHARE): return share_of(s->count - inside, s->count);
    default: return NAN;
    }
}

/* Statistics of the elements; NaN: there are none. */
static double own_value(const struct gd_stats *s, Gradb__V1__StatField field)
{
    switch (field) {
    case FIELD(COUNT): return (double)s->count;
    case FIELD(NAN): return (double)s->nan;
    case FIELD(INF): return (double)(s->pos_inf + s->neg_inf);
    case FIELD(POS_INF): return (double)s->pos_inf;
    case FIELD(NEG_INF): return (double)s->neg_inf;
    case FIELD(NON_FINITE): return (double)(s->nan + s->pos_inf + s->neg_inf);
    case FIELD(ZERO): return (double)s->zero;
    case FIELD(NEG_ZERO): return (double)s->neg_zero;
    case FIELD(POSITIVE): return (double)s->positive;
    case FIELD(NEGATIVE): return (double)s->negative;
    case FIELD(DENORMAL): return (double)s->denormal;
    case FIELD(MIN): return s->min;
    case FIELD(MAX): return s->max;
    case FIELD(SPREAD): return s->max - s->min;
    case FIELD(MAX_ABS): return fmax(fabs(s->min), fabs(s->max));
    case FIELD(MEAN): return s->mean;
    case FIELD(ABS_MEAN): return s->abs_mean;
    case FIELD(STD): return s->std;
    case FIELD(SUM_SQ): return s->sum_sq;
    case FIELD(NORM): return sqrt(s->sum_sq);
    case FIELD(ZERO_SHARE): return share_of(s->zero, s->count);
    default: return NAN;
    }
}

static double field_value(const Gradb__V1__Trigger *trigger, const struct agent_look *look,
                          int64_t step)
{
    switch (trigger->field) {
    case FIELD(AGE): return look->value.step >= 0 ? (double)(step - look->value.step) : NAN;
    case FIELD(IN_RANGE_SHARE):
    case FIELD(OUT_RANGE_SHARE):
    case FIELD(DEAD_SHARE): return share_value(&look->stats, trigger);
    case FIELD(MEAN_ABS_DELTA):
    case FIELD(MAX_ABS_DELTA):
    case FIELD(MISMATCH):
    case FIELD(MISMATCH_SHARE):
    case FIELD(MEAN_ABS_PREVIOUS):
    case FIELD(UPDATE_RATIO):
    case FIELD(MEAN_DELTA):
    case FIELD(DELTA_NORM):
    case FIELD(PREVIOUS_NORM):
    case FIELD(UNPAIRED):
    case FIELD(COSINE): return difference_value(&look->stats, trigger->field);
    default: return own_value(&look->stats, trigger->field);
    }
}

static bool trigger_holds(const Gradb__V1__Trigger *trigger, const struct agent_look *look,
                          int64_t step)
{
    double x = field_value(trigger, look, step);
    if (isnan(x)) {
        return false;
    }
    switch (trigger->op) {
    case GRADB__V1__COMPARISON__GT: return x > trigger->value;
    case GRADB__V1__COMPARISON__GE: return x >= trigger->value;
    case GRADB__V1__COMPARISON__LT: return x < trigger->value;
    case GRADB__V1__COMPARISON__LE: return x <= trigger->value;
    case GRADB__V1__COMPARISON__EQ: return !(x < trigger->value || x > trigger->value);
    case GRADB__V1__COMPARISON__NE: return x < trigger->value || x > trigger->value;
    default: return false;
    }
}

bool agent_worth_reporting(const struct agent_watch_item *item, const struct agent_look *look,
                           int64_t step)
{
    const Gradb__V1__WatchItem *m = item->message;
    if (m->n_report_if == 0 || look->code != -1 ||
        (m->options && m->options->against_previous && !look->stats.has_prev)) {
        return true;
    }
    for (size_t i = 0; i < m->n_report_if; i++) {
        if (trigger_holds(m->report_if[i], look, step)) {
            return true;
        }
    }
    return false;
}

/* ---- infinities that are meant to be there --------------------------------------------------- */

enum { ODD_POSITIVE = 1, ODD_NEGATIVE = 2, ODD_OTHER = 4 };

static unsigned char odd_of(const struct agent_look *look)
{
    const struct gd_stats *s = &look->stats;
    if (look->code != -1 || s->nan || s->count < 2) {
        return ODD_OTHER;
    }
    return (unsigned char)((s->pos_inf ? ODD_POSITIVE : 0) | (s->neg_inf ? ODD_NEGATIVE : 0));
}

bool agent_is_meant(const struct agent *a, const struct agent_watch_item *item,
                    const struct agent_look *look)
{
    return item->meant && item->meant_at == a->graph_changes && !(odd_of(look) & ~item->meant);
}

/* What is not reported again, the debugger counts when it gets the record of the step. */
static bool may_be_meant(const struct agent_watch_item *item)
{
    const Gradb__V1__WatchPlan *plan = item->plan->plan;
    return item->seeks_not_finite && plan->hold && plan->record && item->plan->exact;
}

void agent_report_meant(struct agent *a, gradb_node node, uint64_t moment)
{
    const struct agent_node *known = agent_node_at(a, node);
    for (struct agent_watch_item *i = known ? known->watch : NULL; i; i = i->next_of_node) {
        if (i->odd_at == moment && !(i->odd & ODD_OTHER)) {
            i->meant = i->meant_at == a->graph_changes ? i->meant | i->odd : i->odd;
            i->meant_at = a->graph_changes;
        }
    }
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Appends "values { ... }" of a WatchReport. */
static bool put_value(struct gd_buf *to, const struct agent_watch_item *item,
                      struct agent_look *look)
{
    struct agent_stats_message m;
    if (agent_pack_is_for(item, look)) {
        return agent_pack_value(to, item, look);
    }
    agent_stats_message(look, item->message->options, &m);
    m.value.node = item->node;
    m.value.slot = item->slot;
    if (item->message->scalar[0]) {
        m.value.scalar = item->message->scalar;
    }
    size_t len = gradb__v1__tensor_stats__get_packed_size(&m.value);
    size_t before = to->len;
    unsigned char head[2 * AGENT_VARINT_MOST];
    const unsigned char *end = agent_put_varint(agent_put_varint(head, 4 << 3 | 2), len);
    bool ok =
        gd_buf_add(to, head, (size_t)(end - head)) == GD_OK && gd_buf_reserve(to, len) == GD_OK;
    if (ok) {
        gradb__v1__tensor_stats__pack(&m.value, (unsigned char *)to->data + to->len);
        to->len += len;
    } else {
        to->len = before;
        to->failed = false;
    }
    agent_stats_message_free(&m);
    return ok;
}

/* Queues a packet to be filled, unless more than `most` bytes would be queued then. */
static struct agent_packet *append_packet(struct agent *a, size_t len, size_t most)
{
    bool fits = a->reports_bytes + len <= most;
    struct agent_packet *packet = fits ? malloc(sizeof(*packet) + len) : NULL;
    if (packet) {
        packet->next = NULL;
        packet->step = PEEK(a->step);
        packet->len = len;
        *a->reports_end = packet;
        a->reports_end = &packet->next;
        a->reports_bytes += len;
    }
    return packet;
}

/* Wraps packed values into a FromTrainer message. Reports that do not hold the training leave room
 * in the queue for those that do. */
static struct agent_packet *packet_of(struct agent *a, const Gradb__V1__WatchReport *head,
                                      const char *values, size_t len)
{
    unsigned char envelope[2 * AGENT_VARINT_MOST];
    size_t head_len = gradb__v1__watch_report__get_packed_size(head);
    const unsigned char *end =
        agent_put_varint(agent_put_varint(envelope, 12 << 3 | 2), head_len + len);
    size_t n = (size_t)(end - envelope);
    struct agent_packet *packet = append_packet(
        a, n + head_len + len, head->holding ? AGENT_MAX_REPORTS : AGENT_MAX_REPORTS / 2);
    if (!packet) {
        agent_set_error(a, "a watch report was dropped because the debugger is too slow");
        return NULL;
    }
    memcpy(packet->data, envelope, n);
    gradb__v1__watch_report__pack(head, packet->data + n);
    memcpy(packet->data + n + head_len, values, len);
    return packet;
}

bool agent_queue(struct agent *a, const ProtobufCMessage *message)
{
    Gradb__V1__FromTrainer from = GRADB__V1__FROM_TRAINER__INIT;
    gd_envelope_fill(&from.base, message);
    size_t len = gradb__v1__from_trainer__get_packed_size(&from);
    struct agent_packet *packet = append_packet(a, len, AGENT_MAX_REPORTS / 2);
    if (packet) {
        gradb__v1__from_trainer__pack(&from, packet->data);
    }
    return packet != NULL;
}

static bool enqueue_packet(struct agent *a, struct agent_watch_plan *plan,
                           Gradb__V1__WatchReport *head, const char *values, size_t len)
{
    head->plan = plan->plan->id;
    head->step = agent_said_step(a, PEEK(a->step));
    head->cost_ns = plan->step == PEEK(a->step) ? plan->step_ns : 0;
    struct agent_packet *packet = packet_of(a, head, values, len);
    if (!packet) {
        return false;
    }
    plan->reports++;
    plan->report_bytes += packet->len;
    return true;
}

/* ---- reports of a moment -------------------------------------------------------------------- */

static void flush_values(struct agent_moment *m, bool more)
{
    Gradb__V1__WatchReport head = GRADB__V1__WATCH_REPORT__INIT;
    if (m->count == 0) {
        return;
    }
    m->report = m->report ? m->report : ++m->a->report_id;
    head.id = m->report;
    head.holding = m->plan->plan->hold;
    head.more = more;
    if (head.holding && m->wait == 0) {
        m->a->verdict.first = head.id;
    }
    if (enqueue_packet(m->a, m->plan, &head, m->values.data, m->values.len) && head.holding &&
        !more) {
        m->wait = head.id;
        m->wait_serial = m->plan->serial;
    }
    m->count = 0;
    gd_buf_clear(&m->values);
}

void agent_report_end(struct agent_moment *m)
{
    flush_values(m, false);
    m->report = 0;
}

void agent_report_value(struct agent_moment *m, struct agent_watch_item *item,
                        struct agent_look *look)
{
    if (m->count >= REPORT_VALUES || m->values.len >= REPORT_BYTES) {
        flush_values(m, true);
    }
    if (may_be_meant(item)) {
        item->odd = odd_of(look);
        item->odd_at = m->number;
    }
    look->value.step = agent_said_step(m->a, look->value.step);
    if (put_value(&m->values, item, look)) {
        m->count++;
    } else {
        agent_set_error(m->a, "out of memory for a watch report");
    }
}

/* ---- records -------------------------------------------------------------------------------- */

void agent_record_value(struct agent *a, struct agent_watch_item *item, struct agent_look *look)
{
    item->recorded_step = PEEK(a->step);
    look->value.step = agent_said_step(a, look->value.step);
    if (!put_value(&item->plan->record, item, look)) {
        agent_set_error(a, "out of memory for the record of watched values");
    }
}

/* The number of packed bytes at `from` that fit into one report. */
static size_t report_size(const unsigned char *from, size_t len)
{
    size_t at = 0;
    for (size_t count = 0; at < len && count < REPORT_VALUES && at < REPORT_BYTES; count++) {
        uint64_t size = 0;
        at++; /* the tag */
        for (unsigned shift = 0;; shift += 7) {
            unsigned char byte = from[at++];
            size |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80) {
                break;
            }
        }
        at += size;
    }
    return at;
}

void agent_record_send(struct agent *a, struct agent_watch_plan *plan)
{
    struct gd_buf *record = &plan->record;
    uint64_t id = record->len ? ++a->report_id : 0;
    for (size_t at = 0; at < record->len;) {
        const char *from = record->data + at;
        size_t len = report_size((const unsigned char *)from, record->len - at);
        at += len;
        Gradb__V1__WatchReport head = GRADB__V1__WATCH_REPORT__INIT;
        head.id = id;
        head.more = at < record->len;
        head.record = true;
        enqueue_packet(a, plan, &head, from, len);
    }
    gd_buf_clear(record);
}
