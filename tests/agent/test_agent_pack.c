// SPDX-License-Identifier: GPL-3.0-or-later
/* Values of watch reports are packed by hand: the bytes are those of the protobuf library. */
#include <math.h>

#include "../base/random_bits.h"
#include "../unit.h"
#include "agent/agent_watch.h"

/* What is packed by hand, and what the library makes of the same message. */
static void expect_same(const struct agent_watch_item *item, struct agent_look *look)
{
    struct gd_buf bytes = GD_BUF_INIT(1 << 16);
    struct agent_stats_message m;
    assert_true(agent_pack_is_for(item, look));
    assert_true(agent_pack_value(&bytes, item, look));
    agent_stats_message(look, item->message->options, &m);
    m.value.node = item->node;
    m.value.slot = item->slot;
    Gradb__V1__TensorStats *values[1] = {&m.value};
    Gradb__V1__WatchReport report = GRADB__V1__WATCH_REPORT__INIT;
    report.values = values;
    report.n_values = 1;
    size_t len = gradb__v1__watch_report__get_packed_size(&report);
    unsigned char *expected = malloc(len);
    assert_non_null(expected);
    gradb__v1__watch_report__pack(&report, expected);
    assert_int_equal(bytes.len, len);
    assert_memory_equal(bytes.data, expected, len);
    free(expected);
    agent_stats_message_free(&m);
    gd_buf_deinit(&bytes);
}

/* Of every length as a varint, often 0. */
static uint64_t some_number(void)
{
    uint64_t bits = random_bits();
    return bits % 4 == 0 ? 0 : random_bits() >> bits % 61;
}

static double some_double(void)
{
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, -1.0};
    uint64_t bits = random_bits(), which = random_bits() % 16;
    double x;
    memcpy(&x, &bits, sizeof(x));
    return which < sizeof(odd) / sizeof(odd[0]) ? odd[which] : x;
}

static void fill_item(struct agent_watch_item *item, struct agent_look *look)
{
    struct gd_stats *s = &look->stats;
    struct gd_tensor *tensor = &look->value.tensor;
    uint64_t *counts[] = {&s->count,    &s->nan,      &s->pos_inf,   &s->neg_inf,
                          &s->zero,     &s->neg_zero, &s->positive,  &s->negative,
                          &s->denormal, &s->units,    &s->dead_units};
    double *sums[] = {&s->min, &s->max, &s->mean, &s->abs_mean, &s->sum_sq, &s->std};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        *counts[i] = some_number();
    }
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        *sums[i] = some_double();
    }
    s->range_count = (int)(random_bits() % (GD_MAX_RANGES + 1));
    for (int i = 0; i < s->range_count; i++) {
        s->in_range[i] = some_number();
    }
    tensor->dtype = (enum gd_dtype)(random_bits() % GD_DT_COUNT);
    tensor->shape.rank = (int)(random_bits() % (GD_MAX_RANK + 1));
    for (int i = 0; i < tensor->shape.rank; i++) {
        tensor->shape.dim[i] = (int64_t)some_number();
    }
    look->value.step = (int64_t)some_number() - 1;
    look->cost_ns = some_number();
    item->node = (gradb_node)some_number();
    item->slot = (uint32_t)some_number();
}

static void every_field_is_where_it_belongs(void **state)
{
    Gradb__V1__WatchItem message = GRADB__V1__WATCH_ITEM__INIT;
    struct agent_watch_item item = {.message = &message};
    for (int i = 0; i < 20000; i++) {
        struct agent_look look = {.code = -1, .located = true};
        fill_item(&item, &look);
        expect_same(&item, &look);
    }
}

static void the_longest_fits(void **state)
{
    Gradb__V1__WatchItem message = GRADB__V1__WATCH_ITEM__INIT;
    struct agent_watch_item item = {.message = &message, .node = UINT32_MAX, .slot = UINT32_MAX};
    struct agent_look look = {.code = -1, .located = true, .cost_ns = UINT64_MAX};
    struct gd_stats *s = &look.stats;
    memset(s, 0xff, offsetof(struct gd_stats, has_prev));
    s->units = s->dead_units = UINT64_MAX;
    s->range_count = GD_MAX_RANGES;
    look.value.step = -1;
    look.value.tensor.dtype = GD_COMPLEX128;
    look.value.tensor.shape.rank = GD_MAX_RANK;
    memset(look.value.tensor.shape.dim, 0xff, sizeof(look.value.tensor.shape.dim));
    expect_same(&item, &look);
}

/* A buffer that is full keeps what it has, and takes what fits. */
static void there_is_a_limit(void **state)
{
    Gradb__V1__WatchItem message = GRADB__V1__WATCH_ITEM__INIT;
    struct agent_watch_item item = {.message = &message, .node = 7};
    struct agent_look look = {.code = -1, .located = true};
    struct gd_buf bytes = GD_BUF_INIT(40);
    unsigned taken = 0;
    while (agent_pack_value(&bytes, &item, &look)) {
        taken++;
    }
    size_t len = bytes.len;
    assert_true(taken > 1 && len % taken == 0);
    look.stats.std = 1;
    assert_false(agent_pack_value(&bytes, &item, &look));
    assert_int_equal(bytes.len, len);
    assert_false(bytes.failed);
    gd_buf_deinit(&bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_field_is_where_it_belongs),
    cmocka_unit_test(the_longest_fits),
    cmocka_unit_test(there_is_a_limit),
};

RUN_TESTS()
