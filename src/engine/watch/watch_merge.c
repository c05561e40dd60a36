// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Merges what the watchpoints of a node need into as few items as possible. Nodes with the same
 * watchpoints share the result, so this runs a few times and not once per node.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/watch/watch_impl.h"

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}
#define HASH_START UINT64_C(0xcbf29ce484222325)

/* ---- recipes ------------------------------------------------------------------------------- */

struct draft { /* a part under construction */
    bool exact, hold, always, tolerance;
    uint32_t layer;
    bool against_previous, bins;
    uint32_t dead_steps;
    struct gd_stats_options options;
    struct gd_watch_trigger *trigger;
    size_t trigger_count;
    struct watch_serve *serve;
    uint32_t serve_count;
    struct draft *next;
};

static void free_drafts(struct draft *draft)
{
    while (draft) {
        struct draft *next = draft->next;
        free(draft->trigger);
        free(draft->serve);
        free(draft);
        draft = next;
    }
}

static bool same_recipe(const struct watch_recipe *recipe, const struct draft *draft, size_t count)
{
    const struct gd_stats_options *a = &recipe->options, *b = &draft->options;
    if (recipe->against_previous != draft->against_previous ||
        recipe->dead_steps != draft->dead_steps || recipe->bins != draft->bins ||
        recipe->trigger_count != count || a->rtol != b->rtol || a->atol != b->atol ||
        a->equal_nan != b->equal_nan || a->range_count != b->range_count) {
        return false;
    }
    for (int i = 0; i < a->range_count; i++) {
        if (a->range[i].lo != b->range[i].lo || a->range[i].hi != b->range[i].hi) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const struct gd_watch_trigger *x = &recipe->trigger[i], *y = &draft->trigger[i];
        if (x->range != y->range || x->test.statistic != y->test.statistic ||
            x->test.op != y->test.op || x->test.value != y->test.value) {
            return false;
        }
    }
    return true;
}

static const struct watch_recipe *recipe_of(struct gd_watching *w, const struct draft *draft)
{
    size_t count = draft->always ? 0 : draft->trigger_count;
    for (struct watch_recipe *r = w->recipes; r; r = r->next) {
        if (same_recipe(r, draft, count)) {
            return r;
        }
    }
    struct watch_recipe *recipe = calloc(1, sizeof(*recipe) + count * sizeof(*draft->trigger));
    if (!recipe) {
        return NULL;
    }
    recipe->options = draft->options;
    recipe->against_previous = draft->against_previous;
    recipe->dead_steps = draft->dead_steps;
    recipe->bins = draft->bins;
    recipe->trigger_count = count;
    if (count) {
        memcpy(recipe->trigger, draft->trigger, count * sizeof(*draft->trigger));
    }
    recipe->next = w->recipes;
    w->recipes = recipe;
    return recipe;
}

void watching_clear_recipes(struct watch_recipe *recipes)
{
    while (recipes) {
        struct watch_recipe *next = recipes->next;
        free(recipes);
        recipes = next;
    }
}

/* ---- joining ------------------------------------------------------------------------------- */

static int range_in(const struct draft *draft, const struct gd_range *range)
{
    for (int i = 0; i < draft->options.range_count; i++) {
        if (draft->options.range[i].lo == range->lo && draft->options.range[i].hi == range->hi) {
            return i;
        }
    }
    return -1;
}

static bool fits_recipe(const struct draft *draft, const struct gd_condition_want *want)
{
    if ((want->needs & GD_NEED_TOLERANCE) && draft->tolerance &&
        (draft->options.rtol != want->rtol || draft->options.atol != want->atol ||
         draft->options.equal_nan != want->equal_nan)) {
        return false;
    }
    if ((want->needs & GD_NEED_UNITS) && draft->dead_steps &&
        draft->dead_steps != want->dead_steps) {
        return false;
    }
    return !(want->needs & GD_NEED_RANGE) || draft->options.range_count < GD_MAX_RANGES ||
           range_in(draft, &want->range) >= 0;
}

static struct draft *draft_for(struct draft **drafts, bool exact,
                               const struct gd_condition_want *want)
{
    uint32_t layer = 0;
    for (; *drafts; drafts = &(*drafts)->next) {
        if ((*drafts)->exact != exact) {
            continue;
        }
        if (fits_recipe(*drafts, want)) {
            return *drafts;
        }
        layer++;
    }
    struct draft *draft = calloc(1, sizeof(*draft));
    if (!draft) {
        return NULL;
    }
    draft->exact = exact;
    draft->layer = layer;
    draft->options.rtol = GD_RTOL;
    draft->options.atol = GD_ATOL;
    *drafts = draft;
    return draft;
}

static bool add_draft_trigger(struct draft *draft, const struct gd_comparison_of *test, int range)
{
    struct gd_watch_trigger trigger = {.test = *test, .range = range < 0 ? 0 : (uint32_t)range};
    for (size_t i = 0; i < draft->trigger_count; i++) {
        const struct gd_watch_trigger *t = &draft->trigger[i];
        if (t->test.statistic == test->statistic && t->test.op == test->op &&
            t->test.value == test->value && t->range == trigger.range) {
            return true;
        }
    }
    struct gd_watch_trigger *grown =
        realloc(draft->trigger, (draft->trigger_count + 1) * sizeof(*grown));
    if (!grown) {
        return false;
    }
    draft->trigger = grown;
    grown[draft->trigger_count++] = trigger;
    return true;
}

static bool add_draft_triggers(struct draft *draft, const struct watch_wants *wants, int range,
                               bool excluded)
{
    for (size_t i = 0; i < wants->trigger_count; i++) {
        const struct gd_comparison_of *test = &wants->trigger[i];
        if (excluded &&
            (test->statistic == GD_STAT_NONFINITE || test->statistic == GD_STAT_UNPAIRED)) {
            continue;
        }
        bool in_range = gd_statistic_needs(test->statistic) & GD_NEED_RANGE;
        if (!add_draft_trigger(draft, test, in_range ? range : -1)) {
            return false;
        }
    }
    return true;
}

/* Adds a watchpoint to an item. */
static bool join_draft(struct draft *draft, uint32_t which, const struct watch_cover *cover,
                       bool excluded, bool stop_on_hit)
{
    const struct watch_wants *wants = &cover->wants;
    const struct gd_condition_want *want = &wants->want;
    int range = -1;
    struct watch_serve *serve =
        realloc(draft->serve, (draft->serve_count + 1) * sizeof(*draft->serve));
    if (!serve) {
        return false;
    }
    draft->serve = serve;
    if (want->needs & GD_NEED_RANGE) {
        range = range_in(draft, &want->range);
        if (range < 0) {
            range = draft->options.range_count++;
            draft->options.range[range] = want->range;
        }
    }
    serve[draft->serve_count++] = (struct watch_serve){which, range};
    if (want->needs & GD_NEED_TOLERANCE) {
        draft->tolerance = true;
        draft->options.rtol = want->rtol;
        draft->options.atol = want->atol;
        draft->options.equal_nan = want->equal_nan;
    }
    if (want->needs & (GD_NEED_PREVIOUS | GD_NEED_TOLERANCE)) {
        draft->against_previous = true;
    }
    if (want->needs & GD_NEED_UNITS) {
        draft->dead_steps = want->dead_steps;
    }
    draft->bins = draft->bins || want->needs & GD_NEED_BINS;
    if (cover->watch->action == GD_WATCH_STOP && stop_on_hit) {
        draft->hold = true;
    }
    draft->always = draft->always || wants->always;
    return add_draft_triggers(draft, wants, range, excluded);
}

/* Conditions that only look for NaN and Inf do nothing where those are normal. */
static bool is_left_out(const struct watch_set *set, const struct watch_cover *cover)
{
    return set->excluded && cover->wants.nonfinite;
}

static bool join_all(struct gd_watching *w, const struct watch_set *set, struct draft **drafts)
{
    const struct gd_session *session = w->session;
    bool can_exact =
        set->executes && session->target && (session->target->capabilities & GD_CAN_WATCH_EXACT);
    bool any_exact = false;
    for (uint32_t i = 0; i < set->cover_count; i++) {
        const struct watch_cover *cover = &w->covers[set->cover[i]];
        any_exact = any_exact || (cover->wants.exact && !is_left_out(set, cover));
    }
    for (uint32_t i = 0; i < set->cover_count; i++) {
        const struct watch_cover *cover = &w->covers[set->cover[i]];
        if (is_left_out(set, cover)) {
            continue;
        }
        bool exact = can_exact && any_exact && !cover->wants.step_end_only;
        struct draft *draft = draft_for(drafts, exact, &cover->wants.want);
        if (!draft ||
            !join_draft(draft, i, cover, set->excluded, session->debugger->settings.stop_on_hit)) {
            return false;
        }
    }
    return true;
}

/* ---- sets ---------------------------------------------------------------------------------- */

static bool finish_parts(struct gd_watching *w, struct watch_set *set, struct draft *drafts)
{
    uint32_t count = 0;
    for (const struct draft *d = drafts; d; d = d->next) {
        count++;
    }
    set->part = calloc((size_t)count + 1, sizeof(*set->part));
    if (!set->part) {
        return false;
    }
    for (struct draft *d = drafts; d; d = d->next) {
        struct watch_part *part = &set->part[set->part_count];
        *part = (struct watch_part){.exact = d->exact,
                                    .hold = d->hold,
                                    .layer = d->layer,
                                    .recipe = recipe_of(w, d),
                                    .serve = d->serve,
                                    .serve_count = d->serve_count};
        if (!part->recipe) {
            return false;
        }
        d->serve = NULL;
        set->part_count++;
    }
    return true;
}

static void free_set(struct watch_set *set)
{
    for (uint32_t i = 0; i < set->part_count; i++) {
        free(set->part[i].serve);
    }
    free(set->part);
    free(set->cover);
    free(set);
}

void watching_clear_sets(struct watch_set **sets)
{
    for (size_t i = 0; sets && i < WATCH_BUCKETS; i++) {
        while (sets[i]) {
            struct watch_set *next = sets[i]->next;
            free_set(sets[i]);
            sets[i] = next;
        }
    }
    free(sets);
}

static struct watch_set *make_set(struct gd_watching *w, const uint32_t *covers, uint32_t count,
                                  bool executes, bool excluded)
{
    struct draft *drafts = NULL;
    struct watch_set *set = calloc(1, sizeof(*set));
    if (!set) {
        return NULL;
    }
    set->cover = malloc(((size_t)count + 1) * sizeof(*covers));
    set->executes = executes;
    set->excluded = excluded;
    set->cover_count = count;
    if (set->cover) {
        memcpy(set->cover, covers, count * sizeof(*covers));
        for (uint32_t i = 0; i < count; i++) {
            set->series |= (w->covers[covers[i]].wants.want.needs & GD_NEED_SERIES) != 0;
        }
    }
    bool ok = set->cover && join_all(w, set, &drafts) && finish_parts(w, set, drafts);
    free_drafts(drafts);
    if (!ok) {
        free_set(set);
        return NULL;
    }
    return set;
}

const struct watch_set *watching_set(struct gd_watching *w, const uint32_t *covers, uint32_t count,
                                     bool executes, bool excluded)
{
    uint64_t hash = hash_bytes(HASH_START, covers, count * sizeof(*covers));
    hash = hash_bytes(hash, &executes, sizeof(executes));
    hash = hash_bytes(hash, &excluded, sizeof(excluded));
    struct watch_set **bucket = &w->sets[hash % WATCH_BUCKETS];
    for (struct watch_set *s = *bucket; s; s = s->next) {
        if (s->hash == hash && s->executes == executes && s->excluded == excluded &&
            s->cover_count == count && memcmp(s->cover, covers, count * sizeof(*covers)) == 0) {
            return s;
        }
    }
    struct watch_set *set = make_set(w, covers, count, executes, excluded);
    if (!set) {
        return NULL;
    }
    set->hash = hash;
    set->next = *bucket;
    *bucket = set;
    return set;
}
