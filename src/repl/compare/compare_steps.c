// SPDX-License-Identifier: GPL-3.0-or-later
/* The steps and ranks that two sides have in common. */
#include <stdlib.h>

#include "repl/compare/compare_files.h"
#include "repl/core/command.h"

/* The step of the only side that has steps, if none was given: the session's current one, else the
 * last. */
static int64_t step_alone(const struct side *side, const struct gd_catalog_step *steps,
                          size_t count)
{
    return side->session ? side->session->stop.step : steps[count - 1].step;
}

static int add_step(struct compare_step **list, size_t *count, struct compare_step step,
                    struct gd_err *err)
{
    struct compare_step *more = reallocarray(*list, *count + 1, sizeof(*more));

    if (!more) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a list of steps");
    }
    *list = more;
    more[(*count)++] = step;
    return GD_OK;
}

/* The wanted steps if one side has steps; if both do, those in common, or the only one of each. */
static int steps_of_ranks(const struct side *a, const struct side *b, size_t rank_a, size_t rank_b,
                          const struct compare_options *options, struct compare_step **ret,
                          size_t *count, struct gd_err *err)
{
    size_t many_a, many_b, before = *count;
    const struct gd_catalog_step *steps_a = side_steps(a, rank_a, &many_a);
    const struct gd_catalog_step *steps_b = side_steps(b, rank_b, &many_b);
    bool any = options->step == INT64_MIN;
    int rc = GD_OK;

    for (size_t i = 0, j = 0; rc == GD_OK && many_a && many_b && i < many_a && j < many_b;) {
        if (steps_a[i].step != steps_b[j].step) {
            *(steps_a[i].step < steps_b[j].step ? &i : &j) += 1;
            continue;
        }
        if (any || steps_a[i].step == options->step) {
            rc = add_step(ret, count,
                          (struct compare_step){rank_a, rank_b, steps_a[i].step, steps_b[j].step},
                          err);
        }
        i++;
        j++;
    }
    for (size_t i = 0; rc == GD_OK && (many_a == 0) != (many_b == 0) && i < many_a + many_b; i++) {
        int64_t step = many_a ? steps_a[i].step : steps_b[i].step;
        int64_t wanted = !any     ? options->step
                         : many_a ? step_alone(a, steps_a, many_a)
                                  : step_alone(b, steps_b, many_b);

        if (step == wanted) {
            rc = add_step(
                ret, count,
                (struct compare_step){rank_a, rank_b, many_a ? step : -1, many_b ? step : -1}, err);
        }
    }
    if (rc == GD_OK && *count == before && any && many_a == 1 && many_b == 1) {
        rc = add_step(ret, count,
                      (struct compare_step){rank_a, rank_b, steps_a[0].step, steps_b[0].step}, err);
    }
    if (rc == GD_OK && many_a == 0 && many_b == 0) {
        rc = add_step(ret, count, (struct compare_step){rank_a, rank_b, -1, -1}, err);
    }
    return rc;
}

static bool rank_is_wanted(const struct side *side, size_t rank,
                           const struct compare_options *options)
{
    return options->rank < 0 || side->catalog_count == 0 ||
           gd_catalog_rank(side->catalog[rank]) == options->rank;
}

static int need_step(const struct side *side, size_t rank, int64_t step, struct gd_err *err)
{
    size_t count;
    const struct gd_catalog_step *steps = side_steps(side, rank, &count);

    for (size_t i = 0; i < count; i++) {
        if (steps[i].step == step) {
            return GD_OK;
        }
    }
    return count == 0 ? GD_OK
                      : gd_fail(err, GD_ENOTFOUND, "%.200s has no step %lld: it has %lld to %lld",
                                side->label, (long long)step, (long long)steps[0].step,
                                (long long)steps[count - 1].step);
}

/* --steps: one step of each side, of the first wanted rank. */
static int steps_of_each(const struct side *a, const struct side *b,
                         const struct compare_options *options, struct compare_step **ret,
                         size_t *count, struct gd_err *err)
{
    struct compare_step step = {0, 0, options->step, options->step_b};
    int rc;

    while (step.rank_a + 1 < a->catalog_count && !rank_is_wanted(a, step.rank_a, options)) {
        step.rank_a++;
    }
    while (step.rank_b + 1 < b->catalog_count && !rank_is_wanted(b, step.rank_b, options)) {
        step.rank_b++;
    }
    rc = need_step(a, step.rank_a, step.a, err);
    rc = rc == GD_OK ? need_step(b, step.rank_b, step.b, err) : rc;
    return rc == GD_OK ? add_step(ret, count, step, err) : rc;
}

int compare_steps(const struct side *a, const struct side *b, const struct compare_options *options,
                  struct compare_step **ret, size_t *count, struct gd_err *err)
{
    size_t ranks_a = a->catalog_count ? a->catalog_count : 1;
    size_t ranks_b = b->catalog_count ? b->catalog_count : 1;
    int rc = GD_OK;

    *ret = NULL;
    *count = 0;
    if (options->step_b != INT64_MIN) {
        return steps_of_each(a, b, options, ret, count, err);
    }
    for (size_t i = 0; rc == GD_OK && i < ranks_a; i++) {
        for (size_t j = 0; rc == GD_OK && j < ranks_b; j++) {
            bool same = ranks_a == 1 || ranks_b == 1 ||
                        gd_catalog_rank(a->catalog[i]) == gd_catalog_rank(b->catalog[j]);

            if (same && rank_is_wanted(a, i, options) && rank_is_wanted(b, j, options)) {
                rc = steps_of_ranks(a, b, i, j, options, ret, count, err);
            }
        }
    }
    if (rc == GD_OK && *count == 0) {
        rc = gd_fail(err, GD_ENODATA,
                     options->step != INT64_MIN || options->rank >= 0
                         ? "%.150s and %.150s contain nothing for that step and rank"
                         : "%.150s and %.150s have no step in common: choose one with --step "
                           "(\"info steps\" lists them)",
                     a->label, b->label);
    }
    return rc;
}

static size_t left_out_of(const struct side *side, bool is_b, const struct compare_options *options,
                          const struct compare_step *steps, size_t count)
{
    size_t left_out = side->ranks_left_out;

    for (size_t rank = 0; rank < side->catalog_count; rank++) {
        size_t has;
        const struct gd_catalog_step *of = side_steps(side, rank, &has);

        for (size_t i = 0; i < has && rank_is_wanted(side, rank, options); i++) {
            bool found = options->step != INT64_MIN && of[i].step != options->step;

            for (size_t j = 0; j < count && !found; j++) {
                found = (is_b ? steps[j].rank_b : steps[j].rank_a) == rank &&
                        (is_b ? steps[j].b : steps[j].a) == of[i].step;
            }
            left_out += !found;
        }
    }
    return left_out;
}

size_t compare_steps_left_out(const struct side *a, const struct side *b,
                              const struct compare_options *options,
                              const struct compare_step *steps, size_t count)
{
    return options->step_b != INT64_MIN ? 0 /* one step of each side was named */
                                        : left_out_of(a, false, options, steps, count) +
                                              left_out_of(b, true, options, steps, count);
}
