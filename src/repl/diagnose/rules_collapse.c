// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about symmetry and collapse: units that stay equal, that are dead or saturated, outputs
 * that become equal, copies that are aliases, dropout, batch normalization. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"

/* Rounding makes rows that get equal gradients differ by about 1e-6 of what they moved. */
#define SAME_ROWS 1e-3
#define FEW_LOOKS 3   /* steps in which the same must have been seen */
#define MOST_DEAD 0.9 /* of a layer's units; healthy ReLU networks lose up to a half */
#define FEW_UNITS 8   /* of fewer units, some may be dead by chance */
#define HIGH_RATE 0.8 /* of dropout; papers use up to 0.5, and 0.8 for inputs kept */
#define KERAS_RATE                                                                                 \
    0.9 /* momentum: PyTorch's default is 0.1, Keras writes the same as 0.9 or 0.99 */
#define SLOW_RATE       0.005 /* momentum; the smallest in use, of EfficientNet, is 0.01 */
#define LARGE_RMS       8.0  /* factor by which a layer multiplies what it gets; Kaiming's is 1.4 */
#define LARGE_DATA      10.0 /* root mean square of normalized data is 1 */
#define TINY_RMS        0.05 /* the same for several layers in a row; GPT-2's smallest is 0.1 */
#define COLLAPSED       0.05 /* of the largest spread that was seen */
#define COLLAPSED_ANGLE 0.01 /* 1 - |mean|^2 of the outputs as unit vectors */
#define NO_INFORMATION                                                                             \
    0.03             /* nats: what a latent says about an example; useful ones have several */
#define LATE_STEP 64 /* from which on a training has begun to learn */

static enum diagnose_verdict judge_equal_rows(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    bool same =
        diagnose_number(piece, "apart", 1) <= SAME_ROWS * diagnose_number(piece, "moved", 0);
    return same && diagnose_number(piece, "gradients", 0) > FEW_LOOKS ? DIAGNOSE_FAULT
                                                                      : DIAGNOSE_SILENT;
}

/* Every matrix starts so; what differs (biases, dropout) lets units come apart slowly. */
static enum diagnose_verdict judge_constant(cJSON *piece, const struct diagnose_evidence *all)
{
    double matrices = diagnose_number(piece, "matrices", 0);
    bool every = matrices > 1 && diagnose_number(piece, "equal", 0) == matrices;

    return every && judge_equal_rows(piece, all) == DIAGNOSE_SILENT ? DIAGNOSE_SUSPECT
                                                                    : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_no_gradient(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    bool zero = diagnose_is(piece, "constant") && diagnose_number(piece, "value", 1) == 0;
    if (!zero || diagnose_number(piece, "gradients", 0) <= FEW_LOOKS) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_number(piece, "count", 0) > 1 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

static bool is_long_enough(const cJSON *piece)
{
    return diagnose_number(piece, "looks", 0) >= FEW_LOOKS && diagnose_has(piece, "since");
}

static enum diagnose_verdict judge_dead(cJSON *piece, const struct diagnose_evidence *all)
{
    double share = diagnose_number(piece, "share", 0), units = diagnose_number(piece, "units", 0);

    (void)all;
    if (!is_long_enough(piece) || !diagnose_is(piece, "feeds")) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * share);
    if (share == 1 && units > 1) {
        return DIAGNOSE_FAULT;
    }
    return share >= MOST_DEAD && units >= FEW_UNITS ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_dead_output(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    bool dead = is_long_enough(piece) && diagnose_number(piece, "share", 0) == 1;
    return dead && diagnose_is(piece, "targets") ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Adds "cause": what makes the inputs of a sigmoid or tanh large. */
static enum diagnose_verdict judge_saturated(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!is_long_enough(piece) || !diagnose_is(piece, "feeds") ||
        diagnose_number(piece, "share", 0) < MOST_DEAD) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "share", 0));
    if (diagnose_number(piece, "given", 0) > LARGE_DATA) {
        diagnose_set(piece, "large_data", 1);
    } else if (diagnose_number(piece, "scale", 0) > LARGE_RMS / 2) {
        diagnose_set(piece, "large_weights", 1);
    } else { /* a consequence of something else */
        diagnose_set(piece, "grown", 1);
        return DIAGNOSE_NOTE;
    }
    return DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_own_copy(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (diagnose_is(piece, "fresh")) { /* never trained: there is nothing to put back */
        return DIAGNOSE_SUSPECT;
    }
    return diagnose_number(piece, "step", 0) > 1 ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Keys that fit nothing are usual (a head that is new, adapters alone); none that fits is not, nor
 * is a key that would fit under another beginning. */
static enum diagnose_verdict judge_loaded(cJSON *piece, const struct diagnose_evidence *all)
{
    double matched = diagnose_number(piece, "matched", 0);
    bool renamed = diagnose_number(piece, "renamed", 0) > 0;

    (void)all;
    if (!renamed) {
        cJSON_DeleteItemFromObjectCaseSensitive(piece, "renamed");
    }
    if (matched > 0) {
        return renamed ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "nothing", 1);
    return diagnose_number(piece, "given", 0) > 0 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* Equal in each step: a copy of the network as it was would differ after the first update. */
static enum diagnose_verdict judge_same_network(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (diagnose_number(piece, "steps", 0) <= FEW_LOOKS || !diagnose_holds_always(piece)) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "both") ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_average(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) >= FEW_LOOKS && !diagnose_is(piece, "moved")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_dropout(cJSON *piece, const struct diagnose_evidence *all)
{
    double rate = diagnose_number(piece, "rate", 0);

    (void)all;
    diagnose_set(piece, "percent", 100 * rate);
    return rate >= 1 ? DIAGNOSE_FAULT : rate > HIGH_RATE ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_evaluation_dropout(cJSON *piece,
                                                      const struct diagnose_evidence *all)
{
    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "rate", 0));
    return diagnose_number(piece, "again", 0) > 0 ? DIAGNOSE_SILENT : DIAGNOSE_SUSPECT;
}

/* Normalized, two different numbers are -1 and 1 whatever they were. */
static enum diagnose_verdict judge_small_batch(cJSON *piece, const struct diagnose_evidence *all)
{
    double most = diagnose_number(piece, "most", 0);

    (void)all;
    return most > 0 && most <= 2 && diagnose_number(piece, "batches", 0) >= FEW_LOOKS
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_momentum(cJSON *piece, const struct diagnose_evidence *all)
{
    double momentum = diagnose_number(piece, "momentum", 0.1);

    (void)all;
    if (diagnose_number(piece, "batches", 0) < FEW_LOOKS) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "meant", 1 - momentum);
    return momentum == 0 || momentum >= KERAS_RATE ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* After n batches, (1 - momentum)^n of a running statistic is still its start. */
static enum diagnose_verdict judge_slow(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double momentum = diagnose_number(piece, "momentum", 0.1);
    double steps = diagnose_number(course, "last_step", 0);

    if (momentum <= 0 || momentum > SLOW_RATE || diagnose_number(piece, "batches", 0) < FEW_LOOKS) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "steps", steps);
    diagnose_set(piece, "percent", 100 * pow(1 - momentum, steps));
    return steps > 0 && momentum * steps < 0.7 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_fresh(cJSON *piece, const struct diagnose_evidence *all)
{
    double applied = diagnose_number(piece, "applied", 0);

    (void)all;
    return applied >= FEW_LOOKS && diagnose_number(piece, "fresh", 0) == applied &&
                   diagnose_number(piece, "batches", 0) == 0
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_weight_scale(cJSON *piece, const struct diagnose_evidence *all)
{
    double given = diagnose_number(piece, "given", 0), made = diagnose_number(piece, "made", 0);

    (void)all;
    if (diagnose_is(piece, "normalized") || diagnose_number(piece, "scale", 0) < LARGE_RMS ||
        made < LARGE_RMS / 2 * given || made < LARGE_RMS / 2) { /* one of many inputs: one-hot */
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "feeds") ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

static enum diagnose_verdict judge_tiny(cJSON *piece, const struct diagnose_evidence *all)
{
    double count = diagnose_number(piece, "count", 0);

    (void)all;
    return count >= 2 && 2 * count >= diagnose_number(piece, "layers", 0) &&
                   diagnose_number(piece, "scale", 1) < TINY_RMS
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_collapse(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *loss = diagnose_find(all, "loss-course");
    double last = diagnose_number(piece, "last", 1);

    if (!diagnose_is(piece, "itself") || diagnose_is(piece, "feeds")) {
        return DIAGNOSE_SILENT;
    }
    /* a cosine compares directions only */
    bool one_direction =
        diagnose_number(piece, "angle", 1) <= COLLAPSED_ANGLE &&
        diagnose_number(piece, "angle", 1) <= COLLAPSED * diagnose_number(piece, "widest", 0);
    bool solved =
        loss && diagnose_number(loss, "late", 1) <= COLLAPSED * diagnose_number(loss, "early", 0);
    bool one_point = last <= COLLAPSED / 2 * diagnose_number(piece, "size", 0);
    bool shrunk = last <= COLLAPSED * diagnose_number(piece, "most", 0) && (solved || one_point);
    return shrunk || one_direction ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* At the start of a training it says little, too. */
static enum diagnose_verdict judge_posterior(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "looks", 0) > FEW_LOOKS && diagnose_is(piece, "feeds") &&
                   diagnose_number(piece, "step", 0) >= LATE_STEP &&
                   diagnose_number(piece, "divergence", 1) < NO_INFORMATION
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* Adds the rates of two optimizers, where one is much larger. */
static void add_rates(cJSON *piece, const struct diagnose_evidence *all)
{
    double low = INFINITY, high = 0;
    const cJSON *one;

    cJSON_ArrayForEach(one, all->pieces)
    {
        double top = diagnose_number(one, "top", 0);
        if (strcmp(diagnose_text(one, "kind"), "rate") == 0 && top > 0) {
            low = fmin(low, top);
            high = fmax(high, top);
        }
    }
    if (high >= 5 * low) {
        diagnose_set(piece, "low_rate", low);
        diagnose_set(piece, "high_rate", high);
    }
}

/* They go from one place to the next, and cover more for a moment; or never cover anything. */
static enum diagnose_verdict judge_modes(cJSON *piece, const struct diagnose_evidence *all)
{
    double step = diagnose_number(piece, "step", 0);
    bool never = step >= LATE_STEP && diagnose_number(piece, "ratio", 1) < COLLAPSED;

    if (diagnose_number(piece, "looks", 0) <= FEW_LOOKS ||
        (!never && diagnose_number(piece, "fallen", 0) < 2)) {
        return DIAGNOSE_SILENT;
    }
    add_rates(piece, all);
    return DIAGNOSE_SUSPECT;
}

#define NAMED "{names}[ and {more} more]"

const struct diagnose_rule diagnose_rules_collapse[] = {
    {.name = "equal-units",
     .evidence = "equal-rows",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_equal_rows,
     .cause = "All units of " NAMED " start with the same weights (a constant initialization) and "
              "get the same gradient, so they stay equal: a layer of {rows} units works as one",
     .numbers =
         "{count} of {matrices} weight matrices have equal rows at the start; in {steps|step} "
         "the rows moved by {moved:g3} and came apart by {apart:g3}",
     .advice =
         "Initialize weights at random (nn.init.kaiming_uniform_, or leave PyTorch's default); "
         "only biases may start constant",
     .look = "print {node}",
     .source = "Goodfellow et al., Deep Learning, 8.4; Humbatova et al. (ICSE 2020): weights "
               "initialization"},
    {.name = "constant-start",
     .evidence = "equal-rows",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_constant,
     .cause = "Every weight matrix starts with equal rows (a constant initialization of " NAMED
              "), so the units of a layer are told apart by nothing but biases or dropout",
     .numbers =
         "{equal} of {matrices} weight matrices have equal rows at the start, {zero} are all 0",
     .advice =
         "Initialize weights at random (nn.init.kaiming_uniform_, or leave PyTorch's default); "
         "only biases may start constant",
     .look = "print {node}",
     .source = "Goodfellow et al., Deep Learning, 8.4"},
    {.name = "zero-product",
     .evidence = "never-a-gradient",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_no_gradient,
     .cause = NAMED " start at 0, and their gradients are all 0, because what each weight is "
                    "multiplied by is 0, too: these weights never change",
     .numbers = "{count} weight matrices start at 0; their gradients were all 0 in each of "
                "{gradients|step} examined",
     .advice = "Initialize at random; of two factors that are multiplied, as of a low-rank adapter "
               "(LoRA), only one may start at 0",
     .look = "print {node}.grad",
     .source = "Hu et al., LoRA (2021): A random, B zero; Goodfellow et al., Deep Learning, 8.4"},
    {.name = "mode-collapse",
     .evidence = "generated",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_modes,
     .cause = "The generator collapses: the examples that it makes in a batch are nearly the same "
              "(mode collapse), while the real ones differ[; the learning rates of the two "
              "networks are far apart, {high_rate:g3} and {low_rate:g3}, so one of them does not "
              "keep up]",
     .numbers = "standard deviation over the batch {made:g3} of generated examples and {real:g3} "
                "of real ones in step {step}; {fallen|time} it had fallen far below what it was",
     .advice = "Draw a noise vector for each example; bring the learning rates of both networks "
               "closer together (about 2e-4 for Adam with "
               "beta1=0.5), train the critic more often, or use a loss that punishes it (WGAN-GP, "
               "minibatch discrimination)",
     .look = "print {node}",
     .source = "Goodfellow, NIPS 2016 tutorial: Generative Adversarial Networks, 5.1.1"},
    {.name = "posterior-collapse",
     .evidence = "latent",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_posterior,
     .cause = "The posterior has collapsed: the encoder gives the prior N(0, 1) for every example, "
              "so the latent {node} carries no information and the decoder ignores it",
     .numbers = "KL divergence from the prior {divergence:g3} nats over {units|unit} ({first:g3} "
                "at first), and the mean differs by {spread:g3} between examples; in step {step}",
     .advice = "Weigh the KL term less: reduce the reconstruction as the KL, by a sum over the "
               "elements of an example (a mean over them is too small beside it), raise the "
               "weight of the KL slowly from 0, or use free bits",
     .look = "print {node}",
     .source = "Bowman et al. (CoNLL 2016); Lucas et al. (NeurIPS 2019): posterior collapse"},
    {.name = "dead-units",
     .evidence = "dead",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_dead,
     .cause =
         "{percent:g3} % of the {units} units of {node} are dead: for every example their input "
         "is in the flat part, where no gradient passes[; the bias of {layer} is {bias_mean:g3} "
         "on average]",
     .numbers =
         "dead in {looks|step} examined, since step {since}; batches of {batch}; inputs from "
         "{smallest:g3} to {largest:g3}",
     .advice = "Start the biases at 0 and the weights at the usual scale[ ({bias})]; if units died "
               "during training, lower the learning rate, or use leaky_relu",
     .look = "print {node}",
     .source = "Lu et al., Dying ReLU (2019); AutoTrainer (ICSE 2021)"},
    {.name = "dead-output",
     .evidence = "dead",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_dead_output,
     .cause =
         "The output of the model is constant for every example: {node} cuts off all of it, so "
         "no gradient passes and nothing is learned",
     .numbers = "all {units} units in the flat part in {looks|step}, since step {since}",
     .advice = "Leave out the activation after the last layer, or use one that reaches all targets",
     .look = "print {node}",
     .source = "UMLAUT (CHI 2021); Lu et al., Dying ReLU (2019)"},
    {.name = "saturated-units",
     .evidence = "saturated",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_saturated,
     .cause =
         "{node} is saturated, so its gradients vanish: [{?large_data}the inputs of {layer} are "
         "large (they are not normalized)][{?large_weights}the weights of {layer} are "
         "initialized too large][{?grown}its inputs are too large]",
     .numbers =
         "{percent:g3} % of its values have a derivative below 0.001, since step {since}; mean "
         "magnitude of its inputs {size:g3}[; root mean square of what {layer} gets "
         "{given:g3}][; it multiplies that by about {scale:g3}]",
     .advice =
         "[{?large_data}Normalize the data: subtract its mean, divide by its standard "
         "deviation][{?large_weights}Initialize {weight} with a standard deviation of about 1 / "
         "sqrt(number of inputs)][{?grown}Lower the learning rate or normalize before the "
         "activation]",
     .look = "print {node}",
     .source = "Glorot and Bengio (AISTATS 2010)"},
    {.name = "own-copy",
     .evidence = "own-copy",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_own_copy,
     .cause =
         "{how} copies the network onto itself: [{!fresh}source and target are the same tensors, "
         "an alias and not a copy, so the target network, average or saved state follows every "
         "step][{?fresh}the state holds nothing but the network's own, fresh tensors, so no "
         "weights of a checkpoint are loaded]",
     .numbers = "{tensors|tensor} with the same memory, [{module}, ]{times|time}",
     .advice = "[{!fresh}Make a real copy once: copy.deepcopy(model), or clone each tensor of the "
               "state_dict()][{?fresh}Compare the keys of the checkpoint with those of "
               "model.state_dict() before they are filtered]",
     .source =
         "PyTorch documentation of Module.state_dict (it returns references); Mnih et al. 2015"},
    {.name = "state-not-loaded",
     .evidence = "loaded-state",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_loaded,
     .cause = "load_state_dict() loads [{?nothing}nothing]"
              "[{!nothing}only {matched} of {tensors} tensors] into {module}: [the keys of the "
              "state begin differently ({given_key} is given, {wanted_key} is wanted), ]"
              "[{!renamed}no key of the state is one of the module's, ]and strict=False hides it, "
              "so [{!nothing}the others][{?nothing}the weights] stay as they were initialised",
     .numbers = "{given|key} given, {missing} of {tensors|tensor} of the module missing"
                "[; {renamed} of them are there under other names]",
     .advice =
         "Rename the keys (remove or add the prefix), and load with strict=True, or check the "
         "missing_keys that load_state_dict() returns",
     .source = "PyTorch documentation of Module.load_state_dict; pytorch/examples#1029"},
    {.name = "same-network",
     .evidence = "same-network",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_same_network,
     .cause = "[{?both}Both sides of the difference {node} are computed by the same parameters and "
              "keep their graphs, so it is 0 and its gradients cancel: nothing is learned from it "
              "(a ratio of new and old probabilities stays 1)][{!both}The reference network is the "
              "trained network itself, not a copy of it: it follows each update, so the difference "
              "{node} between them is 0 in each step]",
     .numbers = "both sides equal in each element, in {held} of {steps} differences examined",
     .advice = "[{?both}Compute the old value once, when the data is gathered, with "
               "torch.no_grad() or detach(), and store it][{!both}Copy the network before it is "
               "trained: copy.deepcopy(model).eval().requires_grad_(False)]",
     .look = "print {node}",
     .source = "Schulman et al. 2017 (PPO); Rafailov et al. 2023 (DPO)"},
    {.name = "average-lost",
     .evidence = "average-lost",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_average,
     .cause = "The moving average of {node} and {trained} is computed and thrown away: it is "
              "assigned to a local name only, so the target network keeps the weights it had at "
              "the start",
     .numbers = "{count|average} lost in each of {steps|step} examined; the target has not changed",
     .advice = "Write it into the target: target.mul_(tau).add_(online, alpha=1 - tau), or "
               "target.data.copy_(average)",
     .look = "print {node}",
     .source = "Grill et al. 2020 (BYOL); Lillicrap et al. 2016 (target networks)"},
    {.name = "dropout-rate",
     .evidence = "dropout",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_dropout,
     .cause = "Dropout zeroes {percent:g3} % of the values: p is the probability of being dropped, "
              "not of being kept",
     .numbers = "p = {rate:g3}",
     .advice = "Use p = {kept:g2} or less; usual is 0.1 to 0.5",
     .source = "PyTorch documentation of Dropout; Humbatova et al. (ICSE 2020)"},
    {.name = "dropout-in-evaluation",
     .evidence = "evaluation-dropout",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_evaluation_dropout,
     .cause =
         "Dropout stays active in evaluations: the model is in evaluation mode, but {operator} "
         "does not follow it[{?loose}: its module is not a part of the model (it is made in "
         "forward() or held by a plain list), so eval() does not reach it], so {percent:g3} % of "
         "the values are zeroed at random and validation results are worse than the model is",
     .numbers = "p = {rate:g3} in {calls|call} during evaluations",
     .advice = "[{?loose}Make the nn.Dropout in __init__() and assign it to an attribute of the "
               "model (several in an nn.ModuleList)][{!loose}Pass training=self.training to "
               "dropout (dropout_p=p if self.training else 0.0 to attention), or use nn.Dropout, "
               "which model.eval() turns off]",
     .source = "huggingface/transformers pull request 33844; TrainCheck (OSDI 2025)"},
    {.name = "batch-of-two",
     .evidence = "batch-norm",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_small_batch,
     .cause =
         "Batch normalization has {most} values per channel: normalized over so few, the values "
         "say nothing but which is larger",
     .numbers = "{least} to {most} values per channel in {batches} batches",
     .advice = "Use a larger batch, or a normalization that needs none (LayerNorm, GroupNorm)",
     .source = "Ioffe and Szegedy 2015; Wu and He, Group Normalization (2018)"},
    {.name = "running-statistics",
     .evidence = "batch-norm",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_momentum,
     .cause =
         "momentum={momentum:g3} of batch normalization spoils the running statistics that eval() "
         "uses: in PyTorch it is the weight of the new batch",
     .numbers = "momentum {momentum:g3} in {batches} batches examined",
     .advice = "Use momentum=0.1 or less[ (Keras' {momentum:g3} is {meant:g3} here)]",
     .source = "PyTorch documentation of BatchNorm2d, note on momentum"},
    {.name = "slow-statistics",
     .evidence = "batch-norm",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_slow,
     .cause =
         "momentum={momentum:g3} of batch normalization is so small that the running statistics "
         "stay near their start (mean 0, variance 1): eval() normalizes with other numbers than "
         "train()",
     .numbers =
         "after {steps|step}, {percent:g3} % of the running statistics are still their start",
     .advice = "Use momentum=0.1: in PyTorch it is the weight of the new batch",
     .source = "PyTorch documentation of BatchNorm2d, note on momentum"},
    {.name = "fresh-statistics",
     .evidence = "batch-norm",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_fresh,
     .cause =
         "Batch normalization is trained in evaluation mode: it uses running statistics that no "
         "batch has ever updated (mean 0, variance 1), so it normalizes nothing",
     .numbers = "{applied|call} examined, in all of them the statistics were 0 and 1",
     .advice = "Call model.train() before training",
     .source = "PyTorch documentation of BatchNorm2d"},
    {.name = "weight-scale",
     .evidence = "weight-scale",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_weight_scale,
     .cause =
         "The weights of {weight} are initialized too large: the layer multiplies the scale of "
         "what it gets by {scale:g3}",
     .numbers = "root mean square {given:g3} at its input and {made:g3} at its output in the first "
                "step; {fan_in} inputs",
     .advice = "Use a standard deviation of about 1 / sqrt({fan_in}), as nn.Linear does by default",
     .look = "print {weight}",
     .source = "Glorot and Bengio (AISTATS 2010); He et al. (ICCV 2015)"},
    {.name = "weights-tiny",
     .evidence = "weights-tiny",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_tiny,
     .cause = "The weights of {count} of {layers} layers are initialized too small ({weight} and "
              "others), so the signal and its gradient shrink at each layer",
     .numbers = "each multiplies the scale of what it gets by at most {scale:g3}",
     .advice = "Use a standard deviation of about 1 / sqrt(number of inputs), as nn.Linear does by "
               "default",
     .look = "print {weight}",
     .source = "Glorot and Bengio (AISTATS 2010); He et al. (ICCV 2015)"},
    {.name = "collapse",
     .evidence = "spread",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_collapse,
     .cause =
         "The outputs of {node} collapse to one point: the loss only pulls them together and "
         "nothing keeps different examples apart, so the same output for all examples solves it",
     .numbers = "standard deviation over the batch {first:g3} at first, {last:g3} in step {step}; "
                "their directions differed by {widest:g3} at most, and by {angle:g3} at last",
     .advice =
         "Add negative pairs (a contrastive or triplet loss), a term that keeps the variance, or "
         "stop the gradient of one side (BYOL, SimSiam)",
     .look = "print {node}",
     .source = "Hadsell et al. (CVPR 2006); Chen and He, SimSiam (CVPR 2021)"},
    {.name = NULL},
};
