// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the ranks of one job, whose digests are compared here. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"

#define SAME_WAY   1e-3 /* of the norm: sums in another order differ by less */
#define RANK_STATE "rank-state"
#define FEW_LOOKS  3    /* steps; some jobs average their weights now and then */
#define SUM        1e-4 /* of the largest element */
#define FAR_APART  0.25 /* standard deviations; batches of 8 examples of one source: about 0.1 */
#define FAR_SCALED 2    /* variance of one rank over that of another */
#define MOVED      8    /* steps after which running statistics are compared */

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

/* Whether the other piece is about the same thing on another rank. */
static bool is_counterpart(const cJSON *own, const cJSON *other)
{
    const char *kind = diagnose_text(own, "kind");

    return other != own && strcmp(diagnose_text(other, "kind"), kind) == 0 &&
           (strcmp(kind, RANK_STATE) == 0 ||
            (strcmp(diagnose_text(other, "file"), diagnose_text(own, "file")) == 0 &&
             strcmp(diagnose_text(other, "node"), diagnose_text(own, "node")) == 0 &&
             diagnose_number(other, "line", 0) == diagnose_number(own, "line", 0) &&
             diagnose_number(other, "rank", 0) != diagnose_number(own, "rank", 0)));
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
        if (!is_counterpart(own, other)) {
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

/* Ranks of a model that is cut into parts read the same data: only where gradients are averaged, or
 * all ranks have the same model. */
static enum diagnose_verdict judge_same_data(cJSON *piece, const struct diagnose_evidence *all)
{
    if (!is_first(piece, all) || !(diagnose_is(piece, "wrapped") || starts_equal(all, piece))) {
        return DIAGNOSE_SILENT;
    }
    struct comparison input = compare_digests(all, piece, "input");
    diagnose_set(piece, "compared", input.compared);
    return input.compared >= FEW_LOOKS && input.equal == input.compared ? DIAGNOSE_SUSPECT
                                                                        : DIAGNOSE_SILENT;
}

static double read_element(const cJSON *object, const char *key, int i)
{
    return cJSON_GetNumberValue(
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(object, key), i));
}

/* Whether the gradients of a step are the sum of those that each rank's backward pass made. */
static bool is_sum(const struct diagnose_evidence *all, const cJSON *own, const cJSON *look)
{
    int count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(look, "used"));
    double largest = 0, error = 0, ranks = 1;
    const cJSON *other;

    if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(look, "own")) != count) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        double sum = read_element(look, "own", i);
        ranks = 1;
        cJSON_ArrayForEach(other, all->pieces)
        {
            const cJSON *same = is_counterpart(own, other)
                                    ? find_look(other, diagnose_number(look, "step", -1))
                                    : NULL;
            sum += same ? read_element(same, "own", i) : 0;
            ranks += same != NULL;
        }
        largest = fmax(largest, fabs(sum));
        error = fmax(error, fabs(sum - read_element(look, "used", i)));
    }
    return count > 0 && ranks == diagnose_number(own, "world", 0) && largest > 0 &&
           error <= SUM * largest;
}

/* A loss that is not a mean may have been divided by the number of ranks already. */
static enum diagnose_verdict judge_summed(cJSON *piece, const struct diagnose_evidence *all)
{
    int looks = 0, sums = 0;
    const cJSON *look;

    if (!is_first(piece, all) || !diagnose_is(piece, "mean")) {
        return DIAGNOSE_SILENT;
    }
    cJSON_ArrayForEach(look, cJSON_GetObjectItemCaseSensitive(piece, "looks"))
    {
        if (diagnose_has(look, "own") && diagnose_has(look, "used")) {
            looks++;
            sums += is_sum(all, piece, look);
        }
    }
    diagnose_set(piece, "compared", looks);
    return looks >= FEW_LOOKS && sums == looks ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* Draws of other steps differ, but those of other ranks do not, though their data does. */
static enum diagnose_verdict judge_same_draws(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *state = diagnose_find(all, RANK_STATE), *look;
    const cJSON *looks = cJSON_GetObjectItemCaseSensitive(piece, "looks");
    const char *first = diagnose_text(cJSON_GetArrayItem(looks, 0), "drawn");
    bool varies = false;

    if (!state || !starts_equal(all, state) ||
        diagnose_number(piece, "rank", 0) != diagnose_number(state, "rank", 0)) {
        return DIAGNOSE_SILENT;
    }
    cJSON_ArrayForEach(look, looks)
    {
        varies |= strcmp(diagnose_text(look, "drawn"), first) != 0;
    }
    struct comparison drawn = compare_digests(all, piece, "drawn"),
                      input = compare_digests(all, state, "input");
    diagnose_set(piece, "compared", drawn.compared);
    return varies && drawn.compared >= FEW_LOOKS && drawn.equal == drawn.compared &&
                   input.compared > 0 && input.equal < input.compared
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_sampler(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "iterations", 0) >= 2 &&
                   diagnose_number(piece, "passes", 0) >= 2 &&
                   diagnose_number(piece, "epochs", 0) == 1
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* The last step from the MOVED-th on in which both ranks were observed; *ret: what the other one
 * had then. */
static const cJSON *find_last_common(const cJSON *own, const cJSON *other, const cJSON **ret)
{
    const cJSON *looks = cJSON_GetObjectItemCaseSensitive(own, "looks");

    for (int i = cJSON_GetArraySize(looks) - 1; i >= 0; i--) {
        const cJSON *look = cJSON_GetArrayItem(looks, i);
        double step = diagnose_number(look, "step", 0);
        *ret = step >= MOVED ? find_look(other, step) : NULL;
        if (*ret) {
            return look;
        }
    }
    return NULL;
}

/* Adds how far two ranks' statistics are apart, where that is more than what the piece has. */
static void compare_statistics(cJSON *piece, const cJSON *look, const cJSON *other)
{
    int count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(look, "mean"));
    double apart = 0, scaled = 0;

    for (int i = 0; i < count; i++) {
        double a = read_element(look, "variance", i), b = read_element(other, "variance", i);
        apart += fabs(read_element(look, "mean", i) - read_element(other, "mean", i)) /
                 sqrt((a + b) / 2 + 1e-12);
        scaled += fabs(log((a + 1e-12) / (b + 1e-12)));
    }
    diagnose_set(piece, "distance", fmax(diagnose_number(piece, "distance", 0), apart / count));
    diagnose_set(piece, "ratio", fmax(diagnose_number(piece, "ratio", 1), exp(scaled / count)));
    diagnose_set(piece, "steps", diagnose_number(look, "step", 0));
}

/* The distance of two ranks' running means, in standard deviations, or how much their variances
 * differ. */
static enum diagnose_verdict judge_statistics(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *other, *state = diagnose_find(all, RANK_STATE);

    cJSON_ArrayForEach(other, all->pieces)
    {
        const cJSON *its = NULL;
        const cJSON *look =
            is_counterpart(piece, other) ? find_last_common(piece, other, &its) : NULL;
        if (look && diagnose_number(other, "rank", 0) > diagnose_number(piece, "rank", 0)) {
            compare_statistics(piece, look, its);
        }
    }
    if (!state || !starts_equal(all, state) || compare_digests(all, state, "after").equal == 0) {
        return DIAGNOSE_SILENT; /* the models differ, too */
    }
    return diagnose_number(piece, "distance", 0) > FAR_APART ||
                   diagnose_number(piece, "ratio", 1) > FAR_SCALED
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* A rank has ended, and another one failed in a later step, waiting for it. */
static enum diagnose_verdict judge_left(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *state = diagnose_find(all, RANK_STATE);
    const cJSON *places = cJSON_GetObjectItemCaseSensitive(state, "also");

    if (places && !diagnose_has(piece, "also")) {
        cJSON_AddItemToObject(piece, "also", cJSON_Duplicate(places, true));
    }
    return diagnose_has(piece, "ended_step") &&
                   diagnose_number(piece, "step", 0) > diagnose_number(piece, "ended_step", 0)
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_ranks[] = {
    {.name = "unequal-steps",
     .evidence = "exception",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_left,
     .cause = "The ranks have different numbers of batches: rank {ended_rank} has ended after step "
              "{ended_step}, and rank {rank} waits for it in step {step}, in a collective that "
              "fails or never returns",
     .numbers = "{text}",
     .advice = "Give all ranks the same number of batches (DistributedSampler, drop_last=True), or "
               "train in DistributedDataParallel.join()",
     .source = "PyTorch documentation: Distributed training with uneven inputs (join)"},
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
    {.name = "gradients-summed",
     .evidence = RANK_STATE,
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_summed,
     .cause =
         "The gradients are summed over the {world} ranks and not divided by their number: the "
         "loss is a mean, so each update is {world} times as large as that of the average",
     .numbers = "at step() the gradients equal the sum of those of the ranks, in all "
                "{compared|step} compared",
     .advice = "Divide by the number of ranks after all_reduce (grad /= dist.get_world_size()), or "
               "reduce with ReduceOp.AVG",
     .look = "digest gradients",
     .source = "PyTorch documentation: Writing distributed applications"},
    {.name = "same-draws-of-ranks",
     .evidence = "rank-draw",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_same_draws,
     .cause = "All ranks draw the same random numbers here ({operator}), because their seeds are "
              "equal: {world} ranks have the same noise or augmentation for different data",
     .numbers = "equal draws on {world} ranks in all {compared|step} compared",
     .advice = "Seed each rank differently after the model is made and wrapped: "
               "torch.manual_seed(seed + rank)",
     .source = "PyTorch documentation: Reproducibility; Hugging Face Accelerate: set_seed with "
               "device_specific"},
    {.name = "epoch-never-set",
     .evidence = "sampler",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_sampler,
     .cause = "set_epoch() is never called on the DistributedSampler, so each epoch has the same "
              "order of examples, and each rank always sees the same part of them",
     .numbers = "{iterations|iteration} over the loader, all with one epoch number",
     .advice = "Call sampler.set_epoch(epoch) at the start of each epoch",
     .source = "PyTorch documentation of DistributedSampler"},
    {.name = "statistics-part",
     .evidence = "rank-statistics",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_statistics,
     .cause = "The running statistics (buffers) of batch normalization differ between the ranks: "
              "each rank has those of its own data, and evaluation and checkpoints use one rank's",
     .numbers = "the running means are {distance:g3} standard deviations apart on average; the "
                "variances differ by a factor of {ratio:g3}, after {steps|step}",
     .advice =
         "Use SyncBatchNorm (nn.SyncBatchNorm.convert_sync_batchnorm), or average the buffers "
         "over the ranks before evaluation, and give each rank a random part of the data",
     .look = "print {node}",
     .source = "PyTorch documentation of SyncBatchNorm and DistributedDataParallel"},
    {.name = NULL},
};
