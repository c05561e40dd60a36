// SPDX-License-Identifier: GPL-3.0-or-later
/* Tensors that should agree across ranks, compared by digests that the processes compute. A process
 * answers the command "digest" with a line per tensor, "HASH NAME" with 16 hexadecimal digits, or
 * "- NAME" for one that ranks hold different parts of. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/ranks_impl.h"

struct asked { /* one rank's answer */
    struct check *check;
    int rank;
    char *text; /* owned; its lines are split when it is read */
    size_t left_out;
};

struct check {
    gd_ranks_digests_fn fn;
    void *ctx;
    struct asked *asked;
    size_t count, waiting;
    bool begun; /* all were asked */
    struct gd_err err;
    struct gd_ranks_digest *tensor;
    size_t tensor_count, room;
};

static void check_free(struct check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        free(check->asked[i].text);
    }
    for (size_t i = 0; i < check->tensor_count; i++) {
        free((void *)(uintptr_t)check->tensor[i].hash);
    }
    free(check->tensor);
    free(check->asked);
    free(check);
}

/* The tensor of that name; `hint` is where it is if all ranks list theirs in the same order. */
static size_t place_of(struct check *check, const char *name, size_t hint)
{
    if (hint < check->tensor_count && strcmp(check->tensor[hint].name, name) == 0) {
        return hint;
    }
    for (size_t i = 0; i < check->tensor_count; i++) {
        if (strcmp(check->tensor[i].name, name) == 0) {
            return i;
        }
    }
    if (!gd_grow_list(&check->tensor, check->tensor_count, &check->room, sizeof(*check->tensor))) {
        return SIZE_MAX;
    }
    uint64_t *hash = calloc(check->count, sizeof(*hash));
    if (!hash) {
        return SIZE_MAX;
    }
    check->tensor[check->tensor_count] =
        (struct gd_ranks_digest){.name = name, .hash = hash, .differs = -1};
    return check->tensor_count++;
}

static bool read_line(struct check *check, size_t rank, char *line, size_t hint, size_t *place)
{
    char *end = NULL;
    uint64_t hash = strtoull(line, &end, 16);

    if (end == line || *end != ' ') {
        check->asked[rank].left_out++; /* a part of a tensor: nothing to compare */
        return true;
    }
    *place = place_of(check, end + 1, hint);
    if (*place == SIZE_MAX) {
        return false;
    }
    ((uint64_t *)(uintptr_t)check->tensor[*place].hash)[rank] = hash ? hash : 1; /* 0 means none */
    return true;
}

static bool read_answer(struct check *check, size_t rank)
{
    char *line = check->asked[rank].text, *next;
    size_t place = SIZE_MAX;

    for (; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (!read_line(check, rank, line, place + 1, &place)) {
            return false;
        }
    }
    return true;
}

static struct gd_ranks_digests compare_digests(struct check *check)
{
    struct gd_ranks_digests all = {.tensor = check->tensor, .tensor_count = check->tensor_count};

    for (size_t i = 0; i < check->tensor_count; i++) {
        struct gd_ranks_digest *tensor = &check->tensor[i];
        uint64_t first = 0;
        size_t have = 0;
        for (size_t k = 0; k < check->count; k++) {
            have += tensor->hash[k] != 0;
        }
        all.compared += have > 1;
        all.alone += have == 1;
        for (size_t k = 0; k < check->count && tensor->differs < 0; k++) {
            first = first ? first : tensor->hash[k];
            if (tensor->hash[k] && tensor->hash[k] != first) {
                tensor->differs = check->asked[k].rank;
            }
        }
        all.differing += tensor->differs >= 0;
    }
    for (size_t k = 0; k < check->count; k++) {
        size_t left_out = check->asked[k].left_out;
        all.left_out = left_out > all.left_out ? left_out : all.left_out;
    }
    return all;
}

static void finish_check(struct check *check)
{
    int *rank = calloc(check->count, sizeof(*rank));

    for (size_t i = 0; rank && i < check->count && check->err.code == GD_OK; i++) {
        rank[i] = check->asked[i].rank;
        if (!read_answer(check, i)) {
            gd_fail_nomem(&check->err);
        }
    }
    if (!rank) {
        gd_fail_nomem(&check->err);
    }
    if (check->err.code != GD_OK) {
        check->fn(check->ctx, NULL, &check->err);
    } else {
        struct gd_ranks_digests all = compare_digests(check);
        all.rank = rank;
        all.rank_count = check->count;
        check->fn(check->ctx, &all, NULL);
    }
    free(rank);
    check_free(check);
}

static void on_answer(void *ctx, const char *text, const struct gd_err *err)
{
    struct asked *asked = ctx;
    struct check *check = asked->check;

    if (err && check->err.code == GD_OK) {
        gd_fail(&check->err, err->code != GD_OK ? err->code : GD_EIO, "rank %d: %.200s",
                asked->rank, err->text);
    } else if (!err) {
        asked->text = strdup(text);
        if (!asked->text) {
            gd_fail(&check->err, GD_ENOMEM, "out of memory for the digests of rank %d",
                    asked->rank);
        }
    }
    if (--check->waiting == 0 && check->begun) {
        finish_check(check);
    }
}

static struct check *make_check(size_t count, gd_ranks_digests_fn fn, void *ctx)
{
    struct check *check = calloc(1, sizeof(*check));

    if (check) {
        check->asked = calloc(count + 1, sizeof(*check->asked));
        check->fn = fn;
        check->ctx = ctx;
    }
    if (check && !check->asked) {
        free(check);
        check = NULL;
    }
    return check;
}

static int need_standing(const struct gd_ranks *ranks, struct gd_session *const *list, size_t count,
                         struct gd_err *err)
{
    if (count < 2) {
        return gd_fail(err, GD_ESTATE,
                       "only one rank of %d is connected: nothing to compare it with",
                       ranks->world_size);
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i]->state != GD_STOPPED) {
            return gd_fail(err, GD_ESTATE, "rank %d is not stopped: see `info ranks`",
                           list[i]->peer.rank);
        }
    }
    return GD_OK;
}

/* Those that were asked answer, even if another one could not be asked. */
static void ask_digests(struct check *check, struct gd_session *const *list, size_t count,
                        const char *what)
{
    for (size_t i = 0; i < count && check->err.code == GD_OK; i++) {
        struct asked *asked = &check->asked[check->count++];
        struct gd_err why;
        *asked = (struct asked){.check = check, .rank = list[i]->peer.rank};
        check->waiting++;
        int rc = list[i]->target ? gd_target_command(list[i]->target, "digest", what, GD_NO_NODE,
                                                     on_answer, asked, &why)
                                 : gd_fail(&why, GD_ELOST, "it is gone");
        if (rc != GD_OK) {
            check->waiting--;
            gd_fail(&check->err, rc, "rank %d: %.200s", asked->rank, why.text);
        }
    }
}

int gd_ranks_digest(struct gd_ranks *ranks, const char *what, gd_ranks_digests_fn fn, void *ctx,
                    struct gd_err *err)
{
    size_t count;
    struct gd_session **list = ranks_list(ranks, &count);
    struct check *check = list ? make_check(count, fn, ctx) : NULL;
    int rc = list ? need_standing(ranks, list, count, err) : GD_ENOMEM;

    if (!check) {
        rc = gd_fail_nomem(err);
    }
    if (rc != GD_OK) {
        free(list);
        if (check) {
            check_free(check);
        }
        return rc;
    }
    ask_digests(check, list, count, what);
    free(list);
    check->begun = true;
    if (check->waiting == 0) {
        finish_check(check);
    }
    return GD_OK;
}
