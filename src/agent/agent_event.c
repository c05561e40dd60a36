// SPDX-License-Identifier: MIT
#include "agent/agent_event.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_io.h"
#include "agent/agent_mark.h"
#include "agent/agent_metric.h"
#include "agent/agent_stop.h"
#include "agent/agent_turn.h"
#include "agent/agent_words.h"

static const char *const kinds[] = {"begin",      "epoch-begin", "epoch-end",
                                    "step-begin", "step-end",    "eval-begin",
                                    "eval-end",   "checkpoint",  "end"};
#define KINDS      (sizeof(kinds) / sizeof(kinds[0]))
#define STEP_BEGIN 3
#define STEP_END   4
#define EVAL_BEGIN 5
#define EVAL_END   6
#define STEP       "step"
#define ELAPSED    "elapsed"
#define MOST       1024        /* wishes, and numbers of all of them */
#define MOST_TERMS 64          /* of a calculation */
#define MOST_PAST  (1UL << 17) /* values that all of them keep */

typedef Gradb__V1__NumberTerm__Code term_code;
#define TERM(name) GRADB__V1__NUMBER_TERM__CODE__##name

struct agent_term { /* of a calculation */
    term_code code;
    double number; /* the constant, or the mean */
    char name[64];
    /* A ring from `newest` on; of LEAST and MOST: the best value, and the best of earlier steps. */
    double *past;
    size_t need, count, newest;
    int64_t step; /* of the last report */
    bool late;
};

struct agent_number { /* a test of a wish */
    char name[64];
    Gradb__V1__Comparison op;
    double value, last;
    bool known;              /* `last` is; of a calculation: the past of all its terms */
    bool unsure;             /* there is a newer value than `last`: it counts as true */
    bool is_nan;             /* instead of op and value */
    struct agent_term *term; /* instead of all */
    size_t term_count;
};

struct agent_wish {
    size_t kind;
    uint32_t every;
    size_t first, count; /* its tests */
};

struct agent_events {
    struct agent_wish *wish;
    struct agent_number *number;
    size_t wish_count, number_count;
    size_t past_count;  /* values that terms keep */
    atomic_uint wanted; /* bit i: kind i */
    bool any_step;      /* some wish for steps must be checked in each */
    double since;       /* when they came */
    int64_t since_step;
    uint64_t id, awaited;
    bool stop;
};

static size_t find_kind(const char *name)
{
    size_t i = 0;
    while (i < KINDS && strcmp(kinds[i], name) != 0) {
        i++;
    }
    return i;
}

/* ---- calculations -------------------------------------------------------------------------- */

static bool is_best(const struct agent_term *term)
{
    return term->code == TERM(LEAST) || term->code == TERM(MOST);
}

static double past_value(const struct agent_term *term, size_t back)
{
    return back < term->count ? term->past[(term->newest + back) % term->need] : NAN;
}

static void compute_mean(struct agent_term *term)
{
    double sum = 0;
    for (size_t i = 0; i < term->need; i++) {
        sum += past_value(term, i);
    }
    term->number = sum / (double)term->need;
}

/* A step that is reported again replaces its value. */
static void add_to_past(struct agent_term *term, double value, int64_t step, bool late)
{
    bool again = term->count > 0 && term->step == step;
    term->late = late && (!again || term->late);
    term->step = step;
    if (is_best(term)) {
        double before = term->past[again ? 1 : 0];
        bool better =
            isfinite(value) &&
            (isnan(before) || (term->code == TERM(LEAST) ? value < before : value > before));
        term->past[1] = before;
        term->past[0] = better ? value : before;
        return;
    }
    if (!again) {
        term->newest = (term->newest + term->need - 1) % term->need;
        term->count += term->count < term->need;
    }
    term->past[term->newest] = value;
    if (term->code == TERM(MEAN)) {
        compute_mean(term);
    }
}

/* False: there is no memory for its past. */
static bool take_past(struct agent_events *events, struct agent_term *term,
                      const Gradb__V1__NumberTerm *m)
{
    term->need = term->code == TERM(MEAN) ? m->count : term->code == TERM(METRIC) ? 1 : 2;
    if (term->need == 0 || events->past_count + term->need > MOST_PAST ||
        !(term->past = calloc(term->need, sizeof(*term->past)))) {
        return false;
    }
    events->past_count += term->need;
    term->count = m->n_past < term->need ? m->n_past : term->need;
    if (term->count > 0) {
        memcpy(term->past, m->past, term->count * sizeof(*term->past));
    }
    term->step = m->step;
    term->late = m->late;
    if (term->code == TERM(MEAN)) {
        compute_mean(term);
    }
    return !is_best(term) || term->count == 2;
}

/* Whether each operator has its operands, and one result is left. */
static bool is_calculable(const Gradb__V1__NumberTest *m)
{
    size_t depth = 0;
    for (size_t i = 0; i < m->n_terms; i++) {
        term_code code = m->terms[i]->code;
        size_t operands = code < TERM(NEGATE) ? 0 : code < TERM(ADD) ? 1 : 2;
        if (code < 0 || code > TERM(NE) || depth < operands) {
            return false;
        }
        depth = depth - operands + 1;
    }
    return depth == 1 && m->n_terms <= MOST_TERMS;
}

/* `known` is set where the past is complete. Otherwise the calculation counts as true. */
static void take_terms(struct agent_events *events, struct agent_number *number,
                       const Gradb__V1__NumberTest *m, bool complete)
{
    number->term = is_calculable(m) ? calloc(m->n_terms, sizeof(*number->term)) : NULL;
    number->term_count = m->n_terms;
    number->known = complete && number->term;
    for (size_t i = 0; number->term && i < m->n_terms; i++) {
        struct agent_term *term = &number->term[i];
        term->code = m->terms[i]->code;
        term->number = m->terms[i]->number;
        strncpy(term->name, m->terms[i]->name, sizeof(term->name) - 1);
        bool of_metric = term->code >= TERM(METRIC) && term->code < TERM(NEGATE);
        if (of_metric && !take_past(events, term, m->terms[i])) {
            number->known = false;
        }
    }
}

static double operand_value(const struct agent_term *term, int64_t step)
{
    bool is_new = term->step >= step || (term->late && term->step == step - 1);
    switch (term->code) {
    case TERM(STEP): return (double)step;
    case TERM(METRIC):
    case TERM(LEAST):
    case TERM(MOST): return past_value(term, 0);
    case TERM(PREVIOUS): return past_value(term, is_new ? 1 : 0);
    default: return term->number;
    }
}

static double compare_values(term_code code, double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return NAN;
    }
    switch (code) {
    case TERM(GT): return a > b;
    case TERM(GE): return a >= b;
    case TERM(LT): return a < b;
    case TERM(LE): return a <= b;
    case TERM(EQ): return !(a < b || a > b);
    default: return a < b || a > b;
    }
}

static double apply_code(term_code code, double a, double b)
{
    switch (code) {
    case TERM(NEGATE): return -a;
    case TERM(ABS): return fabs(a);
    case TERM(SQRT): return sqrt(a);
    case TERM(LOG): return log(a);
    case TERM(LOG10): return log10(a);
    case TERM(EXP): return exp(a);
    case TERM(ADD): return a + b;
    case TERM(SUBTRACT): return a - b;
    case TERM(MULTIPLY): return a * b;
    case TERM(DIVIDE): return a / b;
    case TERM(MIN): return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case TERM(MAX): return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default: return compare_values(code, a, b);
    }
}

/* As gradb evaluates it: what is undefined is not true. */
static bool test_terms(const struct agent_number *number, int64_t step)
{
    double stack[MOST_TERMS];
    size_t depth = 0;
    for (size_t i = 0; number->known && i < number->term_count; i++) {
        const struct agent_term *term = &number->term[i];
        if (term->code < TERM(NEGATE)) {
            stack[depth++] = operand_value(term, step);
        } else if (term->code < TERM(ADD)) {
            stack[depth - 1] = apply_code(term->code, stack[depth - 1], 0);
        } else {
            depth--;
            stack[depth - 1] = apply_code(term->code, stack[depth - 1], stack[depth]);
        }
    }
    return !number->known || (!isnan(stack[0]) && (stack[0] < 0 || stack[0] > 0));
}

static void free_numbers(struct agent_number *number, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; number[i].term && k < number[i].term_count; k++) {
            free(number[i].term[k].past);
        }
        free(number[i].term);
    }
    free(number);
}

/* ---- wishes -------------------------------------------------------------------------------- */

static void add_numbers(struct agent_events *events, const Gradb__V1__EventWish *m, bool complete)
{
    for (size_t i = 0; i < m->n_hold_if; i++) {
        struct agent_number *number = &events->number[events->number_count++];
        *number = (struct agent_number){.op = m->hold_if[i]->op,
                                        .value = m->hold_if[i]->value,
                                        .last = m->hold_if[i]->last,
                                        .known = m->hold_if[i]->known && complete,
                                        .unsure = m->hold_if[i]->known && !complete,
                                        .is_nan = m->hold_if[i]->is_nan};
        strncpy(number->name, m->hold_if[i]->number, sizeof(number->name) - 1);
        if (m->hold_if[i]->n_terms > 0) {
            take_terms(events, number, m->hold_if[i], complete);
        }
    }
}

static size_t count_numbers(const Gradb__V1__EventWishes *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->n_wishes; i++) {
        count += m->wishes[i]->n_hold_if;
    }
    return count;
}

/* Numbers that were tested before keep their newest value. */
static void keep_values(struct agent_events *to, const struct agent_number *from, size_t count)
{
    for (size_t i = 0; i < to->number_count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (from[j].known && !from[j].term_count && !to->number[i].term_count &&
                strcmp(to->number[i].name, from[j].name) == 0) {
                to->number[i].last = from[j].last;
                to->number[i].known = true;
                to->number[i].unsure = false;
            }
        }
    }
}

/* complete: the debugger has got all scalars. */
static bool take_wishes(struct agent_events *events, const Gradb__V1__EventWishes *m, bool complete)
{
    size_t numbers = count_numbers(m);
    unsigned wanted = 0;
    if (m->n_wishes > MOST || numbers > MOST) {
        return false;
    }
    events->wish = calloc(m->n_wishes + 1, sizeof(*events->wish));
    events->number = calloc(numbers + 1, sizeof(*events->number));
    if (!events->wish || !events->number) {
        return false;
    }
    for (size_t i = 0; i < m->n_wishes; i++) {
        size_t kind = find_kind(m->wishes[i]->kind);
        if (kind == KINDS) {
            continue;
        }
        events->wish[events->wish_count++] =
            (struct agent_wish){.kind = kind,
                                .every = m->wishes[i]->every ? m->wishes[i]->every : 1,
                                .first = events->number_count,
                                .count = m->wishes[i]->n_hold_if};
        add_numbers(events, m->wishes[i], complete);
        wanted |= 1U << kind;
    }
    POKE(events->wanted, wanted);
    return true;
}

/* ---- tests --------------------------------------------------------------------------------- */

static bool test_value(const struct agent_number *number, double x)
{
    switch (number->op) {
    case GRADB__V1__COMPARISON__GT: return x > number->value;
    case GRADB__V1__COMPARISON__GE: return x >= number->value;
    case GRADB__V1__COMPARISON__LT: return x < number->value;
    case GRADB__V1__COMPARISON__LE: return x <= number->value;
    case GRADB__V1__COMPARISON__EQ: return !(x < number->value || x > number->value);
    case GRADB__V1__COMPARISON__NE: return x < number->value || x > number->value;
    default: return true;
    }
}

/* Of a number that is reported. */
static bool test_report(const struct agent_number *number)
{
    bool holds = number->is_nan ? isnan(number->last)
                                : !isnan(number->last) && test_value(number, number->last);
    return number->unsure || (number->known && holds);
}

static bool test_number(const struct agent_events *events, const struct agent_number *number,
                        int64_t step)
{
    if (number->term_count) {
        return test_terms(number, step);
    }
    if (strcmp(number->name, STEP) == 0) { /* an earlier one is of another training */
        return step < events->since_step || test_value(number, (double)step);
    }
    return strcmp(number->name, ELAPSED) == 0 ? test_value(number, agent_now() - events->since)
                                              : test_report(number);
}

/* What a calculation gives may change without a report. */
static bool of_reports(const struct agent_number *number)
{
    return !number->term_count && strcmp(number->name, STEP) != 0 &&
           strcmp(number->name, ELAPSED) != 0;
}

/* Whether some number that is reported satisfies its test. */
static void weigh_reports(struct agent *a)
{
    bool due = false;
    for (size_t i = 0; i < a->events->number_count && !due; i++) {
        due = of_reports(&a->events->number[i]) && test_report(&a->events->number[i]);
    }
    POKE(a->event_due, due);
}

/* No test of a step before its value. */
static bool is_from(const struct agent_number *number)
{
    return number->value < 1e15 &&
           (number->op == GRADB__V1__COMPARISON__GE || number->op == GRADB__V1__COMPARISON__GT ||
            number->op == GRADB__V1__COMPARISON__EQ);
}

/* What may happen at the end of which step. */
static void weigh_wishes(struct agent *a)
{
    struct agent_events *events = a->events;
    int64_t first = INT64_MAX;
    events->any_step = false;
    for (size_t i = 0; i < events->wish_count; i++) {
        const struct agent_wish *wish = &events->wish[i];
        bool open = wish->count == 0;
        for (size_t k = wish->first; k < wish->first + wish->count; k++) {
            const struct agent_number *number = &events->number[k];
            if (strcmp(number->name, STEP) == 0 && is_from(number)) {
                double from = number->value > 0 ? ceil(number->value) : 0;
                first = (double)first > from ? (int64_t)from : first;
            } else {
                open = open || !of_reports(number);
            }
        }
        bool ends = wish->kind == STEP_END;
        events->any_step = events->any_step || wish->kind == STEP_BEGIN || (ends && open);
    }
    POKE(a->event_step, first);
    weigh_reports(a);
}

void agent_event_wishes(struct agent *a, const Gradb__V1__EventWishes *m)
{
    struct agent_events *events = a->events;
    if (!events && (!m || !(events = a->events = calloc(1, sizeof(*events))))) {
        return;
    }
    struct agent_wish *wish = events->wish;
    struct agent_number *number = events->number;
    size_t count = events->number_count;
    events->wish = NULL;
    events->number = NULL;
    events->wish_count = events->number_count = events->past_count = 0;
    POKE(events->wanted, 0U);
    if (m && !take_wishes(events, m, m->scalars == a->scalars_told)) {
        events->wish_count = events->number_count = 0;
        agent_set_error(a, "out of memory for the events that the debugger waits for");
    }
    keep_values(events, number, count);
    events->since = agent_now();
    events->since_step = PEEK(a->step);
    weigh_wishes(a);
    free(wish);
    free_numbers(number, count);
    if (!m && events->awaited) { /* the debugger is gone */
        events->awaited = 0;
        pthread_cond_broadcast(&a->go);
    }
    __atomic_fetch_add(&a->pub.changes, 1, __ATOMIC_RELEASE);
}

void agent_event_verdict(struct agent *a, const Gradb__V1__EventVerdict *m)
{
    struct agent_events *events = a->events;
    if (events && events->awaited && m->id == events->awaited) {
        events->awaited = 0;
        events->stop = m->stop;
        pthread_cond_broadcast(&a->go);
    }
}

bool agent_event_of_steps(const struct agent *a)
{
    return a->events && a->events->any_step;
}

bool agent_event_tests_numbers(const struct agent *a)
{
    return a->events && a->events->number_count > 0;
}

void agent_event_scalar(struct agent *a, const struct agent_scalar *scalar)
{
    for (size_t i = 0; a->events && i < a->events->number_count; i++) {
        struct agent_number *number = &a->events->number[i];
        for (size_t k = 0; number->known && k < number->term_count; k++) {
            if (number->term[k].past && strcmp(number->term[k].name, scalar->name) == 0) {
                add_to_past(&number->term[k], scalar->value, scalar->step, scalar->late);
            }
        }
        if (!number->term_count && strcmp(number->name, scalar->name) == 0) {
            number->last = scalar->value;
            number->known = true;
            number->unsure = false;
            weigh_reports(a);
        }
    }
}

void agent_event_free(struct agent *a)
{
    if (a->events) {
        free(a->events->wish);
        free_numbers(a->events->number, a->events->number_count);
        free(a->events);
        a->events = NULL;
    }
}

/* ---- what happens -------------------------------------------------------------------------- */

static bool is_wished(const struct agent_events *events, size_t kind, int64_t step)
{
    bool wished = false;
    for (size_t i = 0; events && !wished && i < events->wish_count; i++) {
        const struct agent_wish *wish = &events->wish[i];
        bool steps = kind == STEP_BEGIN || kind == STEP_END;
        if (wish->kind != kind || (steps && step % wish->every != 0)) {
            continue;
        }
        wished = wish->count == 0;
        for (size_t k = 0; k < wish->count && !wished; k++) {
            wished = test_number(events, &events->number[wish->first + k], step);
        }
    }
    return wished;
}

/* Waits for the verdict on the event with that id. True: to stop. */
static bool await_verdict(struct agent *a, uint64_t id)
{
    a->events->stop = false;
    a->events->awaited = id;
    agent_wake(a);
    while (a->events->awaited == id && a->link == LINK_UP) {
        pthread_cond_wait(&a->go, &a->lock);
    }
    a->events->awaited = 0;
    return a->events->stop && a->link == LINK_UP;
}

bool agent_event_is_between(const struct agent *a)
{
    return PEEK(a->evaluates) || !PEEK(a->in_step) ||
           (!PEEK(a->entered) && PEEK(a->last_node) == 0);
}

/* What an evaluation between two steps computes does not belong to the next step. */
static void mark_evaluation(struct agent *a, size_t kind)
{
    if (kind == EVAL_BEGIN || kind == EVAL_END) {
        agent_metric_evaluation(a, kind == EVAL_BEGIN);
    }
    if (kind == EVAL_BEGIN) {
        POKE(a->evaluates,
             PEEK(a->as_of) >= 0 ? PEEK(a->as_of) < PEEK(a->step) : agent_event_is_between(a));
    } else if (kind == EVAL_END && PEEK(a->evaluates)) {
        POKE(a->entered, 0);
        POKE(a->last_node, 0);
        POKE(a->evaluates, 0);
    }
}

static bool tell_event(struct agent *a, size_t kind, Gradb__V1__Happening *m)
{
    bool steps = kind == STEP_BEGIN || kind == STEP_END;
    m->kind = (char *)kinds[kind];
    m->holding = is_wished(a->events, kind, m->step);
    if (a->link != LINK_UP || (steps && !m->holding)) {
        return false;
    }
    m->id = a->events ? ++a->events->id : 0;
    if (!agent_queue(a, &m->base)) {
        agent_set_error(a, "an event was dropped because the debugger is too slow");
        return false;
    }
    if (!m->holding || !await_verdict(a, m->id)) {
        agent_wake(a);
        return false;
    }
    bool between = agent_event_is_between(a);
    agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_EVENT, between ? 0 : PEEK(a->last_node),
                      between, "", 0);
    return true;
}

bool agent_event_step(struct agent *a, bool begins, int64_t step)
{
    Gradb__V1__Happening m = GRADB__V1__HAPPENING__INIT;
    m.step = step;
    return a->events && tell_event(a, begins ? STEP_BEGIN : STEP_END, &m);
}

void gradb_happened(gradb *g, const char *kind, int64_t epoch, int64_t batch, const char *text)
{
    struct agent *a = agent_of(g);
    size_t index = kind ? find_kind(kind) : KINDS;
    char kept[AGENT_MAX_LINE];
    if (!a || index == KINDS || index == STEP_BEGIN || index == STEP_END || !PEEK(a->connected) ||
        !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    mark_evaluation(a, index);
    kept[0] = '\0';
    strncat(kept, text ? text : "", sizeof(kept) - 1);
    Gradb__V1__Happening m = GRADB__V1__HAPPENING__INIT;
    m.text = kept;
    m.step = agent_event_is_between(a) && PEEK(a->in_step) ? PEEK(a->ended) : PEEK(a->step);
    m.epoch = epoch;
    m.batch = batch;
    tell_event(a, index, &m);
    agent_turn_end(a);
}

bool gradb_wants_event(gradb *g, const char *kind)
{
    struct agent *a = agent_of(g);
    size_t index = kind ? find_kind(kind) : KINDS;
    if (!a || index == KINDS || !PEEK(a->connected) || !agent_usable(a)) {
        return false;
    }
    pthread_mutex_lock(&a->lock);
    bool wanted = a->events && PEEK(a->events->wanted) & 1U << index;
    pthread_mutex_unlock(&a->lock);
    return wanted;
}
