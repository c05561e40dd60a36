// SPDX-License-Identifier: GPL-3.0-or-later
/* `rank check`: compare tensors between the ranks of a job, by digests. */
#include <stdlib.h>

#include "engine/ranks.h"
#include "repl/commands/running/running.h"
#include "repl/core/await.h"
#include "repl/core/repl_impl.h"

#define CHECK_ROWS 40 /* differing tensors that are shown; the rest is counted */

struct digests {
    struct await await;
    struct command_call *call;
    struct gd_err err;
};

static void add_digests(cJSON *list, const struct gd_ranks_digests *digests,
                        const struct gd_ranks_digest *tensor)
{
    cJSON *item = out_push(list);
    cJSON *hashes = cJSON_CreateArray();
    char text[24];

    out_set(item, OUT_TEXT("name", tensor->name), OUT_INT("rank", tensor->differs));
    for (size_t i = 0; i < digests->rank_count; i++) {
        snprintf(text, sizeof(text), "%016llx", (unsigned long long)tensor->hash[i]);
        cJSON_AddItemToArray(hashes,
                             tensor->hash[i] != 0 ? cJSON_CreateString(text) : cJSON_CreateNull());
    }
    out_set(item, OUT_JSON("digests", hashes));
}

static void show_digests(struct command_call *call, const struct gd_ranks_digests *digests)
{
    static const struct out_column columns[] = {{"name", "Tensor", false}, {"rank", "Rank", true}};
    cJSON *record = out_record(call->out, "rank_check");
    cJSON *ranks = out_list(record, "ranks");
    out_set(record, OUT_INT("tensors", digests->compared), OUT_INT("alone", digests->alone),
            OUT_INT("left_out", digests->left_out));
    cJSON *differing = out_list(record, "differing");

    for (size_t i = 0; i < digests->rank_count; i++) {
        out_push_int(ranks, digests->rank[i]);
    }
    for (size_t i = 0; i < digests->tensor_count; i++) {
        if (digests->tensor[i].differs >= 0) {
            add_digests(differing, digests, &digests->tensor[i]);
        }
    }
    out_say(call->out, record,
            digests->differing == 0
                ? "{tensors|tensor} [{?one}agrees][{!one}agree] on {rank_count} ranks.\n"
                : "{count} of {tensors|tensor} [{?one}differs][{!one}differ] between {rank_count} "
                  "ranks; first differing rank of each:\n",
            OUT_INT("count", digests->differing), OUT_INT("rank_count", digests->rank_count),
            OUT_BOOL("one", (digests->differing ? digests->differing : digests->compared) == 1));
    out_table_of(call->out, differing, CHECK_ROWS, columns, 2);
    out_say(
        call->out, record,
        "[... and {more} more\n]"
        "[{?skipped}Not compared: {left_out} sharded or unreadable, {alone} on one rank only.\n]",
        OUT_INT("more", digests->differing > CHECK_ROWS ? digests->differing - CHECK_ROWS : 0),
        OUT_BOOL("skipped", digests->left_out + digests->alone > 0));
}

static void on_digests(void *ctx, const struct gd_ranks_digests *digests, const struct gd_err *err)
{
    struct digests *asked = ctx;

    if (!await_take(asked)) {
        return;
    }
    if (err) {
        asked->err = *err;
    } else if (digests->compared == 0) {
        gd_fail(&asked->err, GD_ENODATA,
                "no tensor was compared on %zu ranks: %zu are sharded or unreadable, %zu are on "
                "one rank only",
                digests->rank_count, digests->left_out, digests->alone);
    } else {
        show_digests(asked->call, digests);
        if (digests->differing > 0) {
            repl_add_status(asked->call->repl, STATUS_DIFFERS);
        }
    }
}

int rank_check(struct command_call *call, const char *what, struct gd_err *err)
{
    const struct gd_session *current = call->debugger->current;
    struct gd_ranks *ranks = current ? gd_ranks_of(current) : NULL;

    if (!ranks) {
        return gd_fail(err, GD_ESTATE,
                       "rank check: the session does not belong to a job of several ranks");
    }
    struct digests *asked = calloc(1, sizeof(*asked));
    if (!asked) {
        return gd_fail_nomem(err);
    }
    asked->call = call;
    out_flush(call->out);
    int rc = gd_ranks_digest(ranks, what, on_digests, asked, err);
    if (rc == GD_OK && repl_await(call->repl, asked, -1) != GD_OK) {
        return gd_fail(err, GD_EINTR, "interrupted while the ranks computed their digests");
    }
    if (rc == GD_OK && asked->err.code != GD_OK) {
        rc = asked->err.code;
        *err = asked->err;
    }
    free(asked);
    return rc;
}
