// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Aligns what remains between two matches on both sides so that as many units as possible are
 * paired, in order: skipping one costs 1 on either side, pairing costs nothing and requires similar
 * shapes and operators. Forward, backward and optimizer are aligned separately.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/match_impl.h"

#define MAX_CELLS ((size_t)64 << 20)

enum move { MOVE_PAIR, MOVE_SKIP_A, MOVE_SKIP_B };

/* Operators are alike unless both are known and neither name contains the other. */
static bool same_op(const char *a, const char *b)
{
    char x[128], y[128];

    if (a[0] == '\0' || b[0] == '\0') {
        return true;
    }
    gd_name_common(a, x, sizeof(x));
    gd_name_common(b, y, sizeof(y));
    return strcasestr(x, y) || strcasestr(y, x);
}

/* In the backward pass, operators with like names may differ: a loss and its softmax may be one or
 * two. */
static bool same_work(const struct gd_unit *a, const struct gd_unit *b)
{
    if (gd_unit_is_back(a) && gd_unit_is_back(b)) {
        return gd_op_is_alike_back(a, b);
    }
    return same_op(a->op, b->op) || (a->phase == GD_PHASE_FORWARD && gd_op_is_alike(a->op, b->op));
}

static bool can_pair(struct gd_matcher *m, uint32_t a, uint32_t b)
{
    const struct gd_unit *x = &m->a->unit[a], *y = &m->b->unit[b];
    struct gd_item *p, *q;

    if (gd_unit_goes_on(m->a, a) != gd_unit_goes_on(m->b, b)) {
        return false;
    }
    if (x->count == 0 || y->count == 0 || !same_work(x, y) || gd_name_is_alone(x->name) ||
        gd_name_is_alone(y->name)) {
        return false;
    }
    p = &m->a->item[x->first];
    q = &m->b->item[y->first];
    return p->input == q->input && p->has_shape && q->has_shape && !p->problem && !q->problem &&
           gd_shape_alike(&p->shape, &q->shape);
}

/* Follows the cheapest path back through the cost table. */
static void walk_back(struct gd_matcher *m, const uint32_t *a, size_t count_a, const uint32_t *b,
                      size_t count_b, enum gd_how how, const unsigned char *moves)
{
    size_t i = count_a, j = count_b;

    while (i > 0 && j > 0) {
        switch ((enum move)moves[(i - 1) * count_b + (j - 1)]) {
        case MOVE_PAIR:
            i--;
            j--;
            m->of_a[a[i]] = b[j];
            m->of_b[b[j]] = a[i];
            m->how[b[j]] = how;
            break;
        case MOVE_SKIP_A: i--; break;
        case MOVE_SKIP_B: j--; break;
        }
    }
}

/* False: interrupted. */
static bool fill_costs(struct gd_matcher *m, const uint32_t *a, size_t count_a, const uint32_t *b,
                       size_t count_b, uint32_t *row, unsigned char *moves)
{
    for (size_t j = 0; j <= count_b; j++) {
        row[j] = (uint32_t)j;
    }
    for (size_t i = 1; i <= count_a; i++) {
        uint32_t diagonal = row[0];

        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= count_b; j++) {
            uint32_t skip_a = row[j] + 1, skip_b = row[j - 1] + 1, best;
            bool pair = can_pair(m, a[i - 1], b[j - 1]);
            enum move move = skip_a <= skip_b ? MOVE_SKIP_A : MOVE_SKIP_B;

            best = skip_a <= skip_b ? skip_a : skip_b;
            if (pair && diagonal <= best) {
                best = diagonal;
                move = MOVE_PAIR;
            }
            moves[(i - 1) * count_b + (j - 1)] = (unsigned char)move;
            diagonal = row[j];
            row[j] = best;
        }
        if (m->options->go_on && !m->options->go_on(m->options->go_on_ctx, i)) {
            return false;
        }
    }
    return true;
}

/* For gaps too large for a cost table: pairs each unit with the next one that fits. */
static void pair_in_turn(struct gd_matcher *m, const uint32_t *a, size_t count_a, const uint32_t *b,
                         size_t count_b, enum gd_how how)
{
    size_t next = 0;

    m->guessed = true;
    for (size_t i = 0; i < count_a; i++) {
        for (size_t j = next; j < count_b && j < next + 64; j++) {
            if (can_pair(m, a[i], b[j])) {
                m->of_a[a[i]] = b[j];
                m->of_b[b[j]] = a[i];
                m->how[b[j]] = how;
                next = j + 1;
                break;
            }
        }
    }
}

int gd_align(struct gd_matcher *m, const uint32_t *a, size_t count_a, const uint32_t *b,
             size_t count_b, enum gd_how how, struct gd_err *err)
{
    unsigned char *moves;
    uint32_t *row;
    int rc = GD_OK;

    if (count_a == 0 || count_b == 0) {
        return GD_OK;
    }
    if (count_a > MAX_CELLS / count_b) {
        pair_in_turn(m, a, count_a, b, count_b, how);
        return GD_OK;
    }
    moves = malloc(count_a * count_b);
    row = malloc((count_b + 1) * sizeof(*row));
    if (!moves || !row) {
        rc = gd_fail_nomem(err);
    } else if (!fill_costs(m, a, count_a, b, count_b, row, moves)) {
        rc = gd_fail(err, GD_EINTR, "interrupted");
    } else {
        walk_back(m, a, count_a, b, count_b, how, moves);
    }
    free(row);
    free(moves);
    return rc;
}

static int look_at(struct gd_table *table, const uint32_t *taken, struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < table->unit_count; i++) {
        if (taken[i] == UINT32_MAX && table->unit[i].count > 0) {
            rc = gd_table_look(table, &table->item[table->unit[i].first], err);
        }
    }
    return rc;
}

struct gap {
    uint32_t *a, *b;
    size_t count_a, count_b;
};

/* Takes the units of B in turn; a matched one whose partner in A comes after all earlier partners
 * ends a gap. */
static int align_phase(struct gd_matcher *m, enum gd_phase phase, struct gap *gap,
                       struct gd_err *err)
{
    uint32_t next = 0;
    int rc = GD_OK;

    gap->count_a = gap->count_b = 0;
    for (uint32_t i = 0; rc == GD_OK && i <= m->b->unit_count; i++) {
        uint32_t to = i < m->b->unit_count ? m->of_b[i] : (uint32_t)m->a->unit_count;

        if (i < m->b->unit_count && m->b->unit[i].phase != phase) {
            continue;
        }
        if (to == UINT32_MAX) {
            gap->b[gap->count_b++] = i;
            continue;
        }
        if (to < next) {
            continue;
        }
        for (; next < to; next++) {
            if (m->of_a[next] == UINT32_MAX && m->a->unit[next].phase == phase) {
                gap->a[gap->count_a++] = next;
            }
        }
        next = to + 1;
        rc = gd_align(m, gap->a, gap->count_a, gap->b, gap->count_b, GD_HOW_ORDER, err);
        gap->count_a = gap->count_b = 0;
    }
    return rc;
}

int gd_match_by_order(struct gd_matcher *m, struct gd_err *err)
{
    struct gap gap = {.a = malloc((m->a->unit_count + 1) * sizeof(uint32_t)),
                      .b = malloc((m->b->unit_count + 1) * sizeof(uint32_t))};
    int rc = gap.a && gap.b ? look_at(m->a, m->of_a, err) : gd_fail_nomem(err);

    rc = rc != GD_OK ? rc : look_at(m->b, m->of_b, err);
    for (int phase = GD_PHASE_FORWARD; rc == GD_OK && phase <= GD_PHASE_OPTIMIZER; phase++) {
        rc = align_phase(m, (enum gd_phase)phase, &gap, err);
    }
    free(gap.a);
    free(gap.b);
    return rc;
}
