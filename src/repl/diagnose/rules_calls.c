// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the order of calls. */
#include <string.h>

#include "repl/diagnose/rule.h"
#include "repl/out/out.h"

/* A single step may be the program's start or end. */
#define FEW 2

/* In nearly all steps that were observed; the first one may differ. */
static bool is_usual(const cJSON *piece, const char *count)
{
    double looked = diagnose_number(piece, "looked", 0), times = diagnose_number(piece, count, 0);

    return times >= FEW && times >= looked - 1;
}

static enum diagnose_verdict judge_lost(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return is_usual(piece, "lost") ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Once may be a habit of the program (at an end of an epoch); always is not. */
static enum diagnose_verdict judge_again(cJSON *piece, const struct diagnose_evidence *all)
{
    double again = diagnose_number(piece, "again", 0), looked = diagnose_number(piece, "looked", 0);

    (void)all;
    return again >= 3 && 2 * again >= looked - 1 ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_leaf(cJSON *piece, const struct diagnose_evidence *all)
{
    double leaves = diagnose_number(piece, "leaves", 0);
    const cJSON *order = diagnose_find(all, "order");

    /* No gradient reaches what is stepped. */
    if (leaves < FEW || !order || !is_usual(order, "none")) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_FAULT;
}

/* Whatever has computed gradients would have left them. */
static enum diagnose_verdict judge_no_backward(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "passes", 0) == 0 && diagnose_number(piece, "steps", 0) > 4 &&
                   diagnose_number(piece, "none", 0) == diagnose_number(piece, "looked", -1)
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_unused_loss(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) > FEW && diagnose_holds_always(piece)
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* 20: micro-batches of one step may be many. */
static enum diagnose_verdict judge_no_step(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "passes", 0) >= 20 ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Its gradients were not cleared in between, so they count twice. */
/* Gradients are computed and cleared, which only a training does, and nothing that has them
 * changes.
 */
static enum diagnose_verdict judge_never_updated(cJSON *piece, const struct diagnose_evidence *all)
{
    double passes = diagnose_number(piece, "passes", 0);

    (void)all;
    if (passes < 5 || diagnose_number(piece, "cleared", 0) < passes - 2) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "computed") ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_twice(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return is_usual(piece, "twice") ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Sequences may become longer for a while; the graph of all steps so far grows in each step.
 * PyTorch before 2.1 does not say which nodes are of earlier steps: there the growth must be even.
 */
static enum diagnose_verdict judge_graph_size(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_number(piece, "steps", 0), first = diagnose_number(piece, "first", 0);
    bool told = diagnose_has(piece, "old");

    (void)all;
    if (steps < 6 || diagnose_number(piece, "rises", 0) < steps - 1 ||
        diagnose_number(piece, "last", 0) < 2 * first ||
        (told ? diagnose_number(piece, "old", 0) < steps - 2 : !diagnose_is(piece, "even"))) {
        return DIAGNOSE_SILENT;
    }
    return told ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* Gradients of several micro-batches, each of which was erased before the next. With several
 * optimizers the passes may belong to another one. */
static enum diagnose_verdict judge_erased(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return is_usual(piece, "several_zeroed") && diagnose_number(piece, "optimizers", 0) == 1
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* At the end of an epoch, fewer micro-batches are left than make a step, and what they gave is
 * zeroed before the next epoch. */
static enum diagnose_verdict judge_dropped(cJSON *piece, const struct diagnose_evidence *all)
{
    double times = diagnose_number(piece, "times", 0), steps = diagnose_number(piece, "steps", 0);
    double longest = diagnose_number(piece, "longest", 0);

    (void)all;
    if (longest < 2 || steps < FEW || times > steps ||
        diagnose_number(piece, "passes", 0) >= times * longest ||
        diagnose_number(piece, "optimizers", 0) != 1) {
        return DIAGNOSE_SILENT;
    }
    return times >= FEW ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

/* Nothing divides: neither the loss, nor the gradients before the step. Whether a sum is meant
 * cannot be known; where the size of an update does not depend on it, it is worth a note only. */
static enum diagnose_verdict judge_undivided(cJSON *piece, const struct diagnose_evidence *all)
{
    double most = diagnose_number(piece, "most", 0);

    (void)all;
    if (!is_usual(piece, "several") || diagnose_number(piece, "several_zeroed", 0) > 0 ||
        !is_usual(piece, "untouched") || !diagnose_is(piece, "mean") || most < 2 ||
        diagnose_number(piece, "optimizers", 0) != 1) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "adapts") ? DIAGNOSE_NOTE : DIAGNOSE_SUSPECT;
}

/* ---- which parameters are trained ------------------------------------------------------------ */

/* They got a gradient in nearly all steps that were observed, so they are meant to be trained. */
static bool has_gradients(const cJSON *piece)
{
    return diagnose_number(piece, "steps_with_gradient", 0) >= FEW;
}

/* The optimizer holds others that nothing uses any more: the module was changed after it was made.
 */
static enum diagnose_verdict judge_replaced(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "stale", 0) > 0 ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_unregistered(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return has_gradients(piece) && diagnose_number(piece, "stale", 0) == 0 &&
                   diagnose_is(piece, "unregistered")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Leaving the first layers out of the optimizer is a way to keep them; leaving out the last ones is
 * not. What is optimised may be an input or a style, though: then no module is trained at all. */
static enum diagnose_verdict judge_left_out(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!has_gradients(piece) || diagnose_number(piece, "stale", 0) > 0 ||
        diagnose_is(piece, "unregistered") || diagnose_number(piece, "optimizers", 0) != 1) {
        return DIAGNOSE_SILENT;
    }
    /* With a new layer on top of a pretrained model, that is left out on purpose; a part that has
     * only been initialised was forgotten. */
    bool forgotten = diagnose_is(piece, "registered") && diagnose_is(piece, "after");

    return forgotten || diagnose_is(piece, "fresh") ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

/* One after the other, as Adam and then LBFGS, they may share parameters; but not while others with
 * gradients are left out. */
static enum diagnose_verdict judge_held_twice(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *missing = diagnose_find(all, "not-held");

    if (!missing || !has_gradients(missing)) {
        return DIAGNOSE_SILENT;
    }
    out_set(piece,
            OUT_JSON("missing", cJSON_Duplicate(cJSON_GetObjectItem(missing, "names"), true)),
            OUT_INT("left_out", diagnose_number(missing, "count", 0)));
    return DIAGNOSE_FAULT;
}

static enum diagnose_verdict judge_all_frozen(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) > FEW ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_grad_mode(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *raised = diagnose_find(all, "exception");

    (void)piece;
    return raised && strstr(diagnose_text(raised, "text"), "does not require grad")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* A network of targets, which the program writes itself, needs no gradient. */
static enum diagnose_verdict judge_cut(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *loss = diagnose_find(all, "loss-root");

    if (loss && diagnose_number(loss, "leaves", 0) > 0) { /* nothing has a gradient */
        return DIAGNOSE_SILENT;
    }
    if (!diagnose_has(piece, "by") || diagnose_is(piece, "written") ||
        diagnose_number(piece, "steps", 0) < 3) {
        return DIAGNOSE_SILENT;
    }
    if (diagnose_number(piece, "count", 0) > 1) {
        diagnose_set(piece, "others", diagnose_number(piece, "count", 0) - 1);
    }
    return DIAGNOSE_FAULT;
}

/* Version 1: written once, by its initialisation; loading a state writes it again. */
static enum diagnose_verdict judge_frozen(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "version", 0) == 1 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* Batch normalisation alone is often frozen on purpose; then the model as a whole stays in training
 * mode. */
static enum diagnose_verdict judge_eval(cJSON *piece, const struct diagnose_evidence *all)
{
    double after = diagnose_number(piece, "after", 0);

    (void)all;
    if (diagnose_number(piece, "trained", 0) < 1) {
        diagnose_set(piece, "always", 1);
        bool meant = diagnose_is(piece, "training") || diagnose_is(piece, "partly");
        return after > FEW && !meant ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
    }
    if (after < 1 || diagnose_is(piece, "training")) {
        return DIAGNOSE_SILENT;
    }
    return after >= FEW ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* Evaluations in both modes are meant (several passes with dropout measure uncertainty); what runs
 * in most steps is a part of the training, such as a target. */
static enum diagnose_verdict judge_evaluated(cJSON *piece, const struct diagnose_evidence *all)
{
    double calls = diagnose_number(piece, "calls", 0), of = diagnose_number(piece, "of", 0);
    bool rare = 2 * calls <= of;

    (void)all;
    if (diagnose_is(piece, "grad") &&
        (calls < FEW || 5 * calls > of)) { /* a second term of a loss */
        return DIAGNOSE_SILENT;
    }
    return rare && !diagnose_is(piece, "both") ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_calls[] = {
    {.name = "cleared-before-step",
     .evidence = "order",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_lost,
     .cause =
         "The gradients are zeroed between backward() and the step of {optimizer}, so it steps "
         "without any",
     .numbers = "in {lost} of {looked} observed steps gradients existed after backward(), and were "
                "gone or 0 when {optimizer} stepped",
     .advice = "Call zero_grad() before backward() or after step(), not in between",
     .source = "PyTorch documentation of Optimizer.zero_grad; Humbatova et al. 2020"},
    {.name = "never-backward",
     .evidence = "order",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_no_backward,
     .cause = "{optimizer} steps without any gradient: backward() is never called, so no parameter "
              "changes",
     .numbers = "{steps|step} of {optimizer}, no backward pass; the gradients of all its "
                "parameters are None in all {looked} observed steps",
     .advice = "Call loss.backward(), with parentheses, before the optimizer's step()",
     .source = "PyTorch tutorial: optimizing model parameters"},
    {.name = "batches-skipped",
     .evidence = "loss-unused",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_unused_loss,
     .cause = "Most batches are not trained on: the loss is computed for each of {batches|batch}, "
              "but backward() and step() run once after them, for the last one only",
     .numbers = "{unused} losses of {batches|batch} were never used in the last of {steps|observed "
                "step}; the same in each of them",
     .advice = "Move backward() and step() into the loop over the batches (check the indentation)",
     .source = "PyTorch forum threads on a loss that does not fall: wrong indentation"},
    {.name = "stepped-twice",
     .evidence = "order",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_again,
     .cause =
         "{optimizer} steps again with the same gradients: step() is called more than once per "
         "backward()",
     .numbers = "{again} of {looked} observed steps had no backward pass before them",
     .advice = "Remove one of the calls of step()",
     .source = "PyTorch documentation of torch.optim"},
    {.name = "loss-cut-off",
     .evidence = "loss-root",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_leaf,
     .cause =
         "The loss is a new tensor that is not connected to the graph[ (made by {made})]: it was "
         "rewrapped from a plain number or detached values, so backward() reaches no parameter",
     .numbers =
         "{leaves} losses had no history (grad_fn) though requires_grad was set; no parameter "
         "of the optimizer has a gradient",
     .advice =
         "Call backward() on the tensor that the model's output was reduced to; do not pass it "
         "through item(), detach() or torch.tensor()",
     .source =
         "PyTorch documentation of torch.tensor; forum threads on `requires_grad=True` losses"},
    {.name = "never-zeroed",
     .evidence = "pile-up",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = diagnose_is_fault,
     .cause =
         "The gradients of {optimizer} are not zeroed between its steps: each backward pass adds "
         "to those of the previous steps[, while zero_grad() is called on {other}, which never "
         "steps]",
     .numbers = "added up since step {since}[ in {parameter}.grad]; zero_grad() of {optimizer} was "
                "called {zeros} times in {steps|step}",
     .advice = "Call {optimizer}'s zero_grad() once per step, before backward()",
     .source = "PyTorch documentation of Optimizer.zero_grad; Humbatova et al. 2020"},
    {.name = "never-stepped",
     .evidence = "never-stepped",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_no_step,
     .cause = "{optimizer} never steps: step() of the optimizer is not called after backward(), so "
              "no parameter changes",
     .numbers = "{passes} backward passes, and no step of an optimizer",
     .advice = "Call {optimizer}'s step() after backward() (a scheduler's step() changes the rate "
               "only; with a GradScaler, call scaler.step(optimizer))",
     .source =
         "PyTorch documentation of torch.optim; forum threads on a loss that does not change"},
    {.name = "never-updated",
     .evidence = "never-updated",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_never_updated,
     .cause = "The parameters never change: no optimizer steps[{?computed}, and the update that "
              "the script computes itself is not written back: `p = p - ...` only gives the name "
              "p to a new tensor][{!computed}, and the script does not change them itself]",
     .numbers = "{leaves|tensor} with gradients, unchanged in {passes} observed "
                "backward passes",
     .advice = "Update in place (p -= ..., p.sub_(...), under torch.no_grad()), or use an "
               "optimizer",
     .source = "PyTorch tutorial: learning PyTorch with examples (tensors and autograd)"},
    {.name = "backward-twice",
     .evidence = "graph-again",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_twice,
     .cause = "The same graph goes through backward() twice in a step (retain_graph=True): a loss "
              "that backward() was called on is part of the second one too, so its gradients are "
              "added twice",
     .numbers = "in {twice} of {looked} observed steps the second pass added to the gradients of "
                "the first",
     .advice = "Call backward() once, on the sum of the losses, or on each loss alone; a pass that "
               "is to measure gradients only is torch.autograd.grad",
     .source = "PyTorch documentation of Tensor.backward: retain_graph, gradients accumulate"},
    {.name = "graph-grows",
     .evidence = "graph-size",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_graph_size,
     .cause = "The graph grows in each step: a tensor of the previous step is used again without "
              "detach(), so backward() goes through all steps so far (retain_graph=True), which "
              "becomes slower and uses gradients of weights that have changed since",
     .numbers = "{first:n} nodes in the first observed step, {last:n} in step {last_step}",
     .advice = "Detach what is kept from step to step (state = state.detach()), and remove "
               "retain_graph=True",
     .source = "PyTorch documentation of Tensor.detach; forum threads on truncated "
               "backpropagation and \"backward through the graph a second time\""},
    {.name = "accumulation-erased",
     .evidence = "order",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_erased,
     .cause = "zero_grad() is called before each of {most} micro-batches, so accumulation is lost: "
              "{optimizer} sees the gradients of the last one only",
     .numbers =
         "{most} backward passes per step; zeroed in between in {several_zeroed} of {looked} "
         "observed steps",
     .advice = "Call zero_grad() only after step()",
     .source = "PyTorch forum threads on gradient accumulation"},
    {.name = "last-micro-batches-lost",
     .evidence = "dropped-passes",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_dropped,
     .cause = "The last micro-batches of an epoch are lost: {optimizer} steps after {longest} "
              "backward passes, and the gradients of the incomplete group that is left are zeroed "
              "without a step",
     .numbers = "gradients of {passes} of {total} backward passes were never used, {times} times "
                "in {steps|step}",
     .advice = "Step after the last batch of an epoch, too (if (i + 1) % {longest} == 0 or i + 1 "
               "== len(loader)), and divide by the number of micro-batches in that group; or let "
               "the groups run on into the next epoch",
     .source = "PyTorch forum threads on gradient accumulation; Lightning issue 19987"},
    {.name = "accumulation-not-divided",
     .evidence = "order",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_undivided,
     .cause = "The gradients of {most} micro-batches are added up without dividing the loss by "
              "{most}: the accumulated gradient is that many times too large",
     .numbers =
         "{most} backward passes per step in {several} of {looked} observed steps; each loss "
         "is a mean; nothing changes the gradients before the step",
     .advice = "Call (loss / {most}).backward()",
     .source = "PyTorch forum threads on gradient accumulation"},
    {.name = "optimizer-of-old-parameters",
     .evidence = "not-held",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_replaced,
     .cause = "{optimizer} holds other parameters than those of the model that is trained: it was "
              "created from another model, or before layers were replaced or the model was copied. "
              "It never updates {names}",
     .numbers = "{count} parameters have gradients but are in no optimizer; {stale} parameters of "
                "{optimizer} are read by no operator[, as {stale_name}]",
     .advice =
         "Create the optimizer from the parameters of the model that runs, after its layers are "
         "replaced or it is copied, or add new ones with add_param_group()",
     .look = "info optimizer",
     .source = "TrainCheck (OSDI 2025): optimizers that hold other parameters than the model's"},
    {.name = "unregistered-layers",
     .evidence = "not-held",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_unregistered,
     .cause =
         "Layers of the model are not registered in it (as in a plain Python list or dict), so "
         "parameters() does not contain them, and no optimizer holds them: {names}",
     .numbers =
         "{count} parameters have gradients but are in no optimizer; {optimizer} holds {held}",
     .advice =
         "Keep the layers in nn.ModuleList, nn.ModuleDict or as attributes, and single tensors "
         "as nn.Parameter attributes",
     .source = "PyTorch documentation of nn.ModuleList"},
    {.name = "left-out-of-optimizer",
     .evidence = "not-held",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_left_out,
     .cause = "No optimizer holds {names}, so they stay as they are, though gradients are computed "
              "for them",
     .numbers =
         "{count} parameters have gradients but are in no optimizer; {optimizer} holds {held}",
     .advice =
         "Pass them to the optimizer, or set requires_grad to False if they are meant to stay",
     .source = "Humbatova et al. 2020; TrainCheck (OSDI 2025)"},
    {.name = "parameters-in-two-optimizers",
     .evidence = "held-twice",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_held_twice,
     .cause = "{second} was given parameters that {first} holds already ({names}), while no "
              "optimizer holds {missing}, which have gradients and are never updated",
     .numbers =
         "{count} parameters are in two optimizers; {left_out} have gradients and are in none",
     .advice = "Pass {second} the parameters of the model that it is to train",
     .look = "info optimizer",
     .source = "PyTorch tutorial on DCGAN: one optimizer for each network"},
    {.name = "grad-mode-off",
     .evidence = "grad-mode",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_grad_mode,
     .cause = "Grad mode is off: set_grad_enabled(False) was called, and nothing has turned it on "
              "again, so no gradient can be computed any more",
     .numbers = "grad mode is disabled where backward() is called",
     .advice = "Use `with torch.no_grad():`, which ends by itself, or call "
               "set_grad_enabled(True) afterwards",
     .source = "PyTorch documentation of set_grad_enabled"},
    {.name = "gradient-cut-off",
     .evidence = "no-gradient",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_cut,
     .cause =
         "{by} cuts the graph between {parameter} and the loss[{?checkpoint} (it is reentrant, and "
         "none of its inputs requires a gradient)], so no gradient reaches it[ and {others} more], "
         "and nothing trains it",
     .numbers = "{count} parameters of the optimizer have no gradient in {steps} observed steps; "
                "{reached} others have one",
     .advice =
         "[{?checkpoint}Pass use_reentrant=False (gradient_checkpointing_kwargs in transformers), "
         "or let the input require a gradient (model.enable_input_require_grads())][{!checkpoint}"
         "Remove {by} from the way to the loss, or leave these parameters out of the optimizer]",
     .source = "PyTorch documentation of Tensor.detach and no_grad; Humbatova et al. 2020"},
    {.name = "all-frozen",
     .evidence = "all-frozen",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_all_frozen,
     .cause = "{optimizer} trains nothing: none of the {count} parameters that it holds requires a "
              "gradient (requires_grad is False), so its step() changes no weight",
     .numbers = "in {steps|step}; the first of them is {node}",
     .advice =
         "Do not freeze the parameters that you mean to train, and pass those to the optimizer",
     .source = "TrainCheck (OSDI 2025): PyTorch forum thread 84911"},
    {.name = "frozen-output-layer",
     .evidence = "frozen-end",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_frozen,
     .cause =
         "The last layer, {module}, is frozen (requires_grad is False) at its random start, while "
         "layers before it are trained: the pattern or loop that freezes matches too much",
     .numbers = "{frozen} of the model's {parameters} parameters are frozen; {node} has not been "
                "written since it was initialised",
     .advice = "Leave {module} out of what is frozen",
     .source = "TrainCheck (OSDI 2025); forum threads on freezing by name"},
    {.name = "not-frozen",
     .evidence = "still-trained",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_suspect,
     .cause = "Freezing has no effect on {count|parameter}: [{!of_module}'{attribute}' of a "
              "parameter is a new attribute, which PyTorch does not read][{?of_module}"
              "'{attribute}' of a module is a new attribute, which does nothing to its parameters]",
     .numbers = "{node} has {attribute} = False, and gets gradients and updates",
     .advice = "[{!of_module}Set parameter.requires_grad = False][{?of_module}Call "
               "module.requires_grad_(False), with the underscore at the end]",
     .source = "PyTorch documentation of Module.requires_grad_; forum threads on freezing layers"},
    {.name = "frozen-by-pattern",
     .evidence = "frozen-pattern",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_suspect,
     .cause =
         "More layers are frozen (requires_grad is False) than meant, it seems: all have "
         "\"{pattern}\" in their names, which is the whole name of some only; these keep their "
         "random start: {names}",
     .numbers =
         "{frozen|parameter} frozen, {trained} trained; {count} of the frozen ones have not been "
         "written since they were initialised and have a longer name than {pattern}",
     .advice = "Compare the whole name of the layer, as in name.startswith(\"{pattern}.\"), or "
               "freeze that module's parameters()",
     .source = "TrainCheck (OSDI 2025); forum threads on freezing by name"},
    {.name = "eval-left-on",
     .evidence = "modes",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_eval,
     .cause = "The model was put into evaluation mode and is trained in it[{?always} from the "
              "first step "
              "on][{!always} since then]: eval() is not followed by train(), so {names} "
              "[{?always}does not work][{!always}no longer works] as in training",
     .numbers =
         "[{!always}in training mode until step {until}; ]in evaluation mode in all {after} steps "
         "that were observed since step {since}",
     .advice = "Call model.train() after each evaluation, at the start of the training loop",
     .source = "PyTorch documentation of Module.eval; Humbatova et al. 2020"},
    {.name = "train-in-evaluation",
     .evidence = "evaluated-in-training",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_evaluated,
     .cause = "The model is evaluated in training mode: eval() is not called before it, so {names} "
              "works as in training, and the results are not those of the trained model[; the "
              "batches of the evaluation also contaminate the {statistics}]",
     .numbers = "after {calls} of {of} steps, in training mode; never in evaluation mode",
     .advice = "Call model.eval() before the evaluation, and model.train() after it",
     .source = "PyTorch documentation of Module.eval; Humbatova et al. 2020"},
    {.name = NULL},
};
