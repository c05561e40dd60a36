// SPDX-License-Identifier: MIT
/* The class and the prediction of each sample of a batch, found once for all metrics that need
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/metric_impl.h"

#define KEPT ((size_t)1 << 16) /* samples whose memory is kept between two batches */

struct gd_metric_samples {
    struct metric_sample *list;
    size_t room;
    bool filled;
    struct metric_batch of; /* what it was filled from */
};

struct gd_metric_samples *gd_metric_samples_create(void)
{
    return calloc(1, sizeof(struct gd_metric_samples));
}

void gd_metric_samples_clear(struct gd_metric_samples *s)
{
    if (s && s->room > KEPT) {
        free(s->list);
        s->list = NULL;
        s->room = 0;
    }
    if (s) {
        s->filled = false;
    }
}

void gd_metric_samples_destroy(struct gd_metric_samples *s)
{
    if (s) {
        free(s->list);
        free(s);
    }
}

/* Whether two metrics see the same classes in the same tensors. */
static bool is_same(const struct metric_batch *a, const struct metric_batch *b)
{
    bool thresholds = !(a->threshold < b->threshold) && !(a->threshold > b->threshold);
    return a->outputs == b->outputs && a->labels == b->labels && a->axis == b->axis &&
           a->samples == b->samples && a->classes == b->classes && a->shares == b->shares &&
           a->ready == b->ready && thresholds && a->has_ignore == b->has_ignore &&
           (!a->has_ignore || a->ignore == b->ignore);
}

static void fill_list(const struct metric_batch *b, struct metric_sample *list)
{
    for (int64_t i = 0; i < b->samples; i++) {
        int64_t label = 0;
        bool nan = false;
        enum metric_label kind = metric_label_of(b, i, &label);
        int32_t predicted = kind == LABEL_OK ? (int32_t)metric_predicted(b, i, &nan) : 0;
        list[i] =
            (struct metric_sample){.label = kind == LABEL_OK ? (int32_t)label : -(int32_t)kind,
                                   .predicted = nan ? ~predicted : predicted};
    }
}

const struct metric_sample *metric_samples_of(const struct metric_batch *b,
                                              struct metric_sample **own)
{
    struct gd_metric_samples *s = b->shared;
    size_t count = b->samples > 0 ? (size_t)b->samples : 1;
    *own = NULL;
    if (s && s->filled && is_same(&s->of, b)) {
        return s->list;
    }
    struct metric_sample *list = s ? gd_grow_to(s->list, count, &s->room, sizeof(*list))
                                   : (*own = malloc(count * sizeof(*list)));
    if (!list) {
        return NULL;
    }
    fill_list(b, list);
    if (s) {
        s->list = list;
        s->of = *b;
        s->filled = true;
    }
    return list;
}
