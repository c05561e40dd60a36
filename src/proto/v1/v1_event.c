// SPDX-License-Identifier: GPL-3.0-or-later
/* Events at which the training process waits for a verdict. */
#include <stdio.h>
#include <stdlib.h>

#include "proto/v1/v1_impl.h"

static const Gradb__V1__Comparison comparisons[] = {
    [GD_CMP_GT] = GRADB__V1__COMPARISON__GT, [GD_CMP_GE] = GRADB__V1__COMPARISON__GE,
    [GD_CMP_LT] = GRADB__V1__COMPARISON__LT, [GD_CMP_LE] = GRADB__V1__COMPARISON__LE,
    [GD_CMP_EQ] = GRADB__V1__COMPARISON__EQ, [GD_CMP_NE] = GRADB__V1__COMPARISON__NE};

struct packing {
    Gradb__V1__EventWish *wish;
    Gradb__V1__EventWish **wishes;
    Gradb__V1__NumberTest *test;
    Gradb__V1__NumberTest **tests;
    size_t used;
};

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
    struct packing p = {.wish = calloc(count + 1, sizeof(*p.wish)),
                        .wishes = calloc(count + 1, sizeof(Gradb__V1__EventWish *)),
                        .test = calloc(tests, sizeof(*p.test)),
                        .tests = calloc(tests, sizeof(Gradb__V1__NumberTest *))};
    int rc = p.wish && p.wishes && p.test && p.tests ? GD_OK : gd_fail_nomem(err);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        pack_wish(&p, i, &wishes[i]);
    }
    m.wishes = p.wishes;
    m.n_wishes = count;
    rc = rc != GD_OK ? rc : v1_target_send((struct v1_target *)base, &m.base, err);
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
