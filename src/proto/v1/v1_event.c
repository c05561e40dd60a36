// SPDX-License-Identifier: GPL-3.0-or-later
/* Events at which the training process waits for a verdict. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "proto/envelope.h"
#include "proto/v1/v1_impl.h"

static const Gradb__V1__Comparison comparisons[] = {
    [GD_CMP_GT] = GRADB__V1__COMPARISON__GT, [GD_CMP_GE] = GRADB__V1__COMPARISON__GE,
    [GD_CMP_LT] = GRADB__V1__COMPARISON__LT, [GD_CMP_LE] = GRADB__V1__COMPARISON__LE,
    [GD_CMP_EQ] = GRADB__V1__COMPARISON__EQ, [GD_CMP_NE] = GRADB__V1__COMPARISON__NE};

_Static_assert((int)GD_TERM_COMPARE + (int)GD_CMP_NE == (int)GRADB__V1__NUMBER_TERM__CODE__NE &&
                   (int)GD_TERM_MAX == (int)GRADB__V1__NUMBER_TERM__CODE__MAX,
               "codes of terms are sent as they are");

#define MAX_MEMORY ((size_t)64 << 20)

struct packing {
    const struct gd_session *session;
    struct gd_arena arena; /* of terms and past values */
    bool failed;
    Gradb__V1__EventWish *wish;
    Gradb__V1__EventWish **wishes;
    Gradb__V1__NumberTest *test;
    Gradb__V1__NumberTest **tests;
    size_t used;
};

/* How many past values the agent needs of a metric. */
static size_t past_of(const struct gd_term *term, const struct gd_past_values *past)
{
    size_t need = term->code == GD_TERM_MEAN       ? (size_t)term->count
                  : term->code == GD_TERM_PREVIOUS ? 2
                                                   : 1;
    return need < past->count ? need : past->count;
}

static void pack_past(struct packing *p, const struct gd_term *from, Gradb__V1__NumberTerm *to)
{
    const struct gd_scalar *scalar = gd_session_scalar(p->session, from->name);
    if (!scalar) {
        return;
    }
    const struct gd_past_values *past = &scalar->values;
    bool best = from->code == GD_TERM_LEAST || from->code == GD_TERM_MOST;
    size_t count = best ? 2 : past_of(from, past);
    to->name = gd_envelope_text(scalar->name);
    to->count = (uint32_t)from->count;
    to->step = scalar->step;
    to->late = scalar->late;
    to->past = gd_arena_alloc(&p->arena, (count + 1) * sizeof(*to->past));
    if (!to->past) {
        p->failed = true;
        return;
    }
    to->n_past = count;
    for (size_t i = 0; i < count && !best; i++) {
        to->past[i] = gd_past_value(past, i);
    }
    if (best) {
        bool least = from->code == GD_TERM_LEAST;
        to->past[0] = least ? past->least.value : past->most.value;
        to->past[1] = least ? past->least_before.value : past->most_before.value;
    }
}

static void pack_terms(struct packing *p, const struct gd_test_of *from, Gradb__V1__NumberTest *to)
{
    size_t count = from->term_count;
    Gradb__V1__NumberTerm *terms = gd_arena_alloc(&p->arena, count * sizeof(*terms));
    to->terms = gd_arena_alloc(&p->arena, count * sizeof(Gradb__V1__NumberTerm *));
    p->failed = p->failed || !terms || !to->terms;
    for (size_t i = 0; !p->failed && i < count; i++) {
        gradb__v1__number_term__init(&terms[i]);
        terms[i].code = (Gradb__V1__NumberTerm__Code)from->term[i].code; /* the same numbers */
        terms[i].number = from->term[i].number;
        to->terms[i] = &terms[i];
        to->n_terms = i + 1;
        if (from->term[i].name[0]) {
            pack_past(p, &from->term[i], &terms[i]);
        }
    }
}

static void pack_wish(struct packing *p, size_t i, const struct gd_event_wish *wish)
{
    gradb__v1__event_wish__init(&p->wish[i]);
    p->wishes[i] = &p->wish[i];
    p->wish[i].kind = (char *)wish->kind;
    p->wish[i].every = wish->every < UINT32_MAX ? (uint32_t)wish->every : UINT32_MAX;
    p->wish[i].hold_if = p->tests + p->used;
    p->wish[i].n_hold_if = wish->test_count;
    for (size_t k = 0; k < wish->test_count; k++) {
        Gradb__V1__NumberTest *test = &p->test[p->used];
        gradb__v1__number_test__init(test);
        test->number = (char *)wish->tests[k].number;
        test->op = comparisons[wish->tests[k].op];
        test->value = wish->tests[k].value;
        test->is_nan = wish->tests[k].is_nan;
        const struct gd_scalar *scalar = gd_session_scalar(p->session, wish->tests[k].number);
        test->known = scalar != NULL;
        test->last = scalar ? scalar->value : 0;
        if (wish->tests[k].term_count > 0) {
            pack_terms(p, &wish->tests[k], test);
        }
        p->tests[p->used++] = test;
    }
}

int v1_event_wishes(struct gd_target *base, const struct gd_event_wish *wishes, size_t count,
                    struct gd_err *err)
{
    Gradb__V1__EventWishes m = GRADB__V1__EVENT_WISHES__INIT;
    size_t tests = 1;

    for (size_t i = 0; i < count; i++) {
        tests += wishes[i].test_count;
    }
    struct packing p = {.session = base->session,
                        .wish = calloc(count + 1, sizeof(*p.wish)),
                        .wishes = calloc(count + 1, sizeof(Gradb__V1__EventWish *)),
                        .test = calloc(tests, sizeof(*p.test)),
                        .tests = calloc(tests, sizeof(Gradb__V1__NumberTest *))};
    gd_arena_init(&p.arena, MAX_MEMORY);
    int rc = p.wish && p.wishes && p.test && p.tests ? GD_OK : gd_fail_nomem(err);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        pack_wish(&p, i, &wishes[i]);
    }
    m.wishes = p.wishes;
    m.n_wishes = count;
    m.scalars = ((struct v1_target *)base)->scalars;
    rc = rc != GD_OK || !p.failed ? rc : gd_fail_nomem(err);
    rc = rc != GD_OK ? rc : v1_target_send((struct v1_target *)base, &m.base, err);
    gd_arena_deinit(&p.arena);
    free(p.tests);
    free(p.test);
    free(p.wishes);
    free(p.wish);
    return rc;
}

void v1_event_verdict(struct gd_target *base, bool stop)
{
    struct v1_target *t = (struct v1_target *)base;
    Gradb__V1__EventVerdict m = GRADB__V1__EVENT_VERDICT__INIT;

    m.id = t->event_id;
    m.stop = stop;
    v1_target_send(t, &m.base, NULL);
}

void v1_event_happened(struct v1_target *t, const Gradb__V1__Happening *m)
{
    struct gd_happened what = {.kind = gd_happening_find(m->kind),
                               .step = m->step > 0 ? m->step : 0,
                               .epoch = m->epoch > 0 ? m->epoch : 0,
                               .batch = m->batch > 0 ? m->batch : 0};

    snprintf(what.text, sizeof(what.text), "%s", m->text);
    t->event_id = m->id;
    enum gd_event_verdict verdict =
        what.kind ? gd_session_on_happening(t->base.session, &what, m->holding) : GD_VERDICT_GO;
    if (m->holding && verdict != GD_VERDICT_LATER) {
        v1_event_verdict(&t->base, verdict == GD_VERDICT_STOP);
    }
}
