// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the ranks of one job, whose digests are compared here. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"

#define SAME_WAY   1e-3 /* of the norm: sums in another order differ by less */
#define RANK_STATE "rank-state"
#define FEW_LOOKS  3 /* steps; some jobs average their weights now and then */

static const cJSON *find_look(const cJSON *piece, double step)
{
    const cJSON *look;

    cJSON_ArrayForEach(look, cJSON_GetObjectItemCaseSensitive(piece, "looks"))
    {
        if (diagnose_number(look, "step", -1) == step) {
            return look;
        }
    }
    return NULL;
}

/* How often a digest was compared with those of all other ranks, and how often it was equal. */
struct comparison {
    int compared, equal, first_apart; /* first_apart: the step; 0: none */
};

static bool is_equal_everywhere(const struct diagnose_evidence *all, const cJSON *own,
                                const cJSON *look, const char *key, bool *compared)
{
    const cJSON *other;

    *compared = false;
    cJSON_ArrayForEach(other, all->pieces)
    {
        if (other == own || strcmp(diagnose_text(other, "kind"), RANK_STATE) != 0) {
            continue;
        }
        const cJSON *same = find_look(other, diagnose_number(look, "step", -1));
        if (!same || !diagnose_has(same, key) || !diagnose_has(look, key)) {
            continue;
        }
        *compared = true;
        if (strcmp(diagnose_text(same, key), diagnose_text(look, key)) != 0) {
            return false;
        }
    }
    return true;
}

static struct comparison compare_digests(const struct diagnose_evidence *all, const cJSON *own,
                                         const char *key)
{
    struct comparison ret = {.compared = 0};
    const cJSON *look;

    cJSON_ArrayForEach(look, cJSON_GetObjectItemCaseSensitive(own, "looks"))
    {
        bool compared, equal = is_equal_everywhere(all, own, look, key, &compared);
        ret.compared += compared;
        ret.equal += compared && equal;
        if (compared && !equal && ret.first_apart == 0) {
            ret.first_apart = (int)diagnose_number(look, "step", 0);
        }
    }
    return ret;
}

/* Whether gradients point the same way: all numbers but their length agree, up to rounding. */
static bool is_same_way(const cJSON *look, const cJSON *other)
{
    const cJSON *first = cJSON_GetObjectItemCaseSensitive(look, "direction");
    const cJSON *second = cJSON_GetObjectItemCaseSensitive(other, "direction");
    int count = cJSON_GetArraySize(first);

    for (int i = 0; i < count; i++) {
        double a = cJSON_GetNumberValue(cJSON_GetArrayItem(first, i));
        double b = cJSON_GetNumberValue(cJSON_GetArrayItem(second, i));
        if (!(fabs(a - b) <= SAME_WAY)) {
            return false;
        }
    }
    return count > 0 && cJSON_GetArraySize(second) == count;
}

/* Whether the gradients differ somewhere, but only in length. Adds the two norms of that step. */
static bool is_only_scaled(cJSON *piece, const struct diagnose_evidence *all)
{
    bool found = false;
    const cJSON *other, *look;

    cJSON_ArrayForEach(other, all->pieces)
    {
        if (other == piece || strcmp(diagnose_text(other, "kind"), RANK_STATE) != 0) {
            continue;
        }
        cJSON_ArrayForEach(look, cJSON_GetObjectItemCaseSensitive(piece, "looks"))
        {
            const cJSON *same = find_look(other, diagnose_number(look, "step", -1));
            if (!same ||
                strcmp(diagnose_text(same, "gradients"), diagnose_text(look, "gradients")) == 0) {
                continue;
            }
            if (!is_same_way(look, same)) {
                return false;
            }
            diagnose_set(piece, "norm", diagnose_number(look, "norm", 0));
            diagnose_set(piece, "other_norm", diagnose_number(same, "norm", 0));
            found = true;
        }
    }
    return found;
}

/* One finding for the job: of the first rank's piece. */
static bool is_first(const cJSON *piece, const struct diagnose_evidence *all)
{
    return diagnose_find(all, RANK_STATE) == piece;
}

static bool starts_equal(const struct diagnose_evidence *all, const cJSON *piece)
{
    const cJSON *look = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(piece, "looks"), 0);
    bool compared = false;

    return look && is_equal_everywhere(all, piece, look, "start", &compared) && compared;
}

/* The ranks start with equal weights, get different gradients, and are never equal again. */
static enum diagnose_verdict judge_not_averaged(cJSON *piece, const struct diagnose_evidence *all)
{
    if (!is_first(piece, all) || !starts_equal(all, piece)) {
        return DIAGNOSE_SILENT;
    }
    struct comparison gradients = compare_digests(all, piece, "gradients"),
                      after = compare_digests(all, piece, "after");
    if (gradients.compared < FEW_LOOKS || gradients.equal > 0 || after.equal > 0 ||
        is_only_scaled(piece, all)) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "compared", gradients.compared);
    if (diagnose_is(piece, "wrapper") && !diagnose_is(piece, "wrapped")) {
        diagnose_set(piece, "bypassed", 1);
    }
    return DIAGNOSE_FAULT;
}

/* Gradients are averaged, but the weights were not the same. */
static enum diagnose_verdict judge_other_start(cJSON *piece, const struct diagnose_evidence *all)
{
    if (!is_first(piece, all) || starts_equal(all, piece)) {
        return DIAGNOSE_SILENT;
    }
    struct comparison gradients = compare_digests(all, piece, "gradients"),
                      start = compare_digests(all, piece, "start");
    diagnose_set(piece, "compared", start.compared);
    return start.compared >= FEW_LOOKS && start.equal == 0 && gradients.equal == gradients.compared
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_scaled(cJSON *piece, const struct diagnose_evidence *all)
{
    if (!is_first(piece, all) || !starts_equal(all, piece)) {
        return DIAGNOSE_SILENT;
    }
    struct comparison after = compare_digests(all, piece, "after");
    diagnose_set(piece, "since", after.first_apart);
    return after.compared >= FEW_LOOKS && after.first_apart > 0 && is_only_scaled(piece, all)
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_parted(cJSON *piece, const struct diagnose_evidence *all)
{
    if (!is_first(piece, all) || !starts_equal(all, piece)) {
        return DIAGNOSE_SILENT;
    }
    struct comparison gradients = compare_digests(all, piece, "gradients"),
                      after = compare_digests(all, piece, "after");
    diagnose_set(piece, "compared", after.compared);
    diagnose_set(piece, "since", after.first_apart);
    return after.compared >= FEW_LOOKS && after.first_apart > 0 && gradients.equal > 0 &&
                   (gradients.first_apart == 0 || gradients.first_apart > after.first_apart)
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Ranks of a model that is cut into parts read the same data: only where gradients are averaged. */
static enum diagnose_verdict judge_same_data(cJSON *piece, const struct diagnose_evidence *all)
{
    if (!is_first(piece, all) || !diagnose_is(piece, "wrapped")) {
        return DIAGNOSE_SILENT;
    }
    struct comparison input = compare_digests(all, piece, "input");
    diagnose_set(piece, "compared", input.compared);
    return input.compared >= FEW_LOOKS && input.equal == input.compared ? DIAGNOSE_SUSPECT
                                                                        : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_ranks[] = {
    {.name = "not-averaged",
     .evidence = RANK_STATE,
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_not_averaged,
     .cause =
         "The gradients are not averaged over the ranks, so each rank trains a model of its own"
         "[{?bypassed}: the DistributedDataParallel wrapper is bypassed, the module inside it is "
         "called]",
     .numbers =
         "{world} ranks start with equal parameters; gradients and updated parameters differ in "
         "all {compared|step} compared",
     .advice =
         "[{?bypassed}Call the wrapper itself: model(x), not model.module(x)][{!bypassed}Wrap the "
         "model in DistributedDataParallel, or all-reduce each gradient between backward() and "
         "step()]",
     .look = "digest parameters",
     .source = "PyTorch documentation of DistributedDataParallel; NVIDIA/Megatron-LM#7452"},
    {.name = "scaled-on-one-rank",
     .evidence = RANK_STATE,
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_scaled,
     .cause = "The averaged gradients are clipped or scaled on some ranks only, so the ranks make "
              "different updates and their parameters part in step {since}",
     .numbers = "{world} ranks; the gradients point the same way, but their norms at step() are "
                "{norm:g4} and {other_norm:g4}",
     .advice = "Clip and scale the gradients on all ranks, after they are averaged",
     .look = "digest gradients",
     .source = "PyTorch documentation of DistributedDataParallel"},
    {.name = "different-start",
     .evidence = RANK_STATE,
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_other_start,
     .cause =
         "The ranks start with different parameters: their gradients are averaged, but applied to "
         "models that were not made equal at the start (seed, broadcast)",
     .numbers =
         "{world} ranks; parameters differ in all {compared|step} compared, gradients in none",
     .advice =
         "Broadcast the parameters from rank 0 before the first step (DistributedDataParallel "
         "does), or seed all ranks equally before the model is made",
     .look = "digest parameters",
     .source = "PyTorch documentation: Writing distributed applications"},
    {.name = "parameters-part",
     .evidence = RANK_STATE,
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_parted,
     .cause =
         "The parameters of the ranks part in step {since}, though their gradients are equal: the "
         "ranks make different updates (learning rate, optimizer state, clipping, or a change by "
         "hand that depends on the rank)",
     .numbers = "{world} ranks, {compared|step} compared",
     .advice =
         "Use the same optimizer, rate and schedule on all ranks, and change weights on all ranks "
         "or on none",
     .look = "digest optimizer",
     .source = "NVIDIA/Megatron-LM#7452"},
    {.name = "same-data",
     .evidence = RANK_STATE,
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_same_data,
     .cause =
         "All ranks read the same data: each batch is the same on every rank, so {world} ranks "
         "compute what one would",
     .numbers = "equal inputs in all {compared|step} compared",
     .advice = "Use a DistributedSampler, or seed the data differently on each rank (seed + rank)",
     .source = "PyTorch documentation of DistributedSampler"},
    {.name = NULL},
};
