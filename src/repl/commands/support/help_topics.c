// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What `help` explains that is not a command, and the names in its examples: they are those of a
 * PyTorch program, and are replaced where the session shows a program of another framework.
 */
#include <string.h>

#include "base/buf.h"
#include "repl/commands/support/support.h"
#include "repl/values/inspect.h"

const struct command help_topics[] = {
    {.name = "selectors",
     .aliases = "selector",
     .group = "data",
     .usage = "SELECTOR",
     .summary = "Choose nodes by name, kind, type or source line",
     .help =
         "One term, or several joined by ',' or '|'. \"except\" removes what the terms after it\n"
         "select, \"with\" adds to it again: weights except *bias with fc2/bias\n\n"
         "  NAME             a node by its full name, or by the end of one, with slashes or\n"
         "                   dots: h/0/fc/weight, h.0.fc.weight\n"
         "  GRAPH/NAME       the same in one graph, if several contain a node of that name\n"
         "  SCOPE            all nodes below a scope, which may be a module\n"
         "  CLASS            all nodes below the modules of that class\n"
         "  GLOB             with * ? []; '*' also matches '/'\n"
         "  /REGEX/          a POSIX extended regular expression, anywhere in the name\n"
         "  weights, gradients, activations, parameters, all\n"
         "  trainable, frozen  weights that are trained, and that are not\n"
         "  lora             LoRA adapters: their weights, gradients and operators\n"
         "  model, outside   the forward pass of the training: in modules, and outside of\n"
         "                   them, such as the loss\n"
         "  eval             what runs in evaluation\n"
         "  activations:relu activations of one function\n"
         "  type:relu        operators of one type: a glob, in either case\n"
         "  at:FILE[:LINE]   operators that a source line called\n"
         "  \"NAME\"           a name in quotes, with any characters\n\n"
         "A node or scope named like one of these words is meant instead of the word.\n"
         "If several nodes have that end, the forward pass of the training comes first, then\n"
         "the gradients of parameters, the optimizer, the backward pass, and the rest."},
    {.name = "conditions",
     .aliases = "condition-names expressions expression",
     .group = "breakpoints",
     .usage = "CONDITION [PARAM=VALUE]... | EXPRESSION",
     .summary = "Say what a watchpoint looks for: a condition or an expression",
     .help = "\"info conditions\" lists the conditions with their parameters and abbreviations,\n"
             "\"info conditions TL\" shows one, \"advice TL\" explains what it usually means.\n\n"
             "An expression compares statistics of the watched tensor (\"info statistics\": min,\n"
             "max, mean, nan, norm(cur-prev), ...) and metrics of the training (\"info scalars\":\n"
             "loss, lr, ...; step) with + - * / < <= > >= == != && || ! ( ) and the functions\n"
             "abs sqrt log log10 exp min max. Quote it if it contains blanks before an option.\n"
             "After \"if\", an expression restricts when a condition can fire.",
     .examples = "watch TL abs_mean_gt=1000 on gradients\n"
                 "watch 'max > 1e4 || nan > 0' on gradients\n"
                 "watch norm(cur-prev) > 100 * norm(prev) on model/head/weight\n"
                 "watch GL max_gt=1e6 on gradients if step > 10"},
    {.name = "batch",
     .aliases = "scripts status",
     .group = "support",
     .usage = "gradb --batch [-x FILE] [-ex COMMAND]... [run -- PROGRAM...]",
     .summary = "Run gradb without a prompt, in scripts and CI",
     .help = "gradb runs the commands of -x and -ex in the order given, asks no questions, and\n"
             "exits after the last one. Commands that run the training wait for its next stop;\n"
             "\"continue\" waits until a process stops or the job ends. With --json each result\n"
             "is one line of JSON. \"set on-error\" says what happens to the training when a\n"
             "command fails.\n\n"
             "Exit status:\n"
             "  0    success\n"
             "  1    a command failed, or a breakpoint never matched\n"
             "  2    wrong options\n"
             "  3    no training process was reached\n"
             "  4    a watchpoint fired\n"
             "  5    the training failed\n"
             "  6    a comparison found a difference, or a search a non-finite value\n"
             "  130  interrupted",
     .examples = "gradb --batch -ex 'watch TO on all' -ex continue run -- python train.py"},
    {.name = "python",
     .aliases = "pytorch torch mindspore",
     .group = "running",
     .usage = "python -m gradb train.py",
     .summary = "Debug a PyTorch or MindSpore script",
     .help =
         "\"run -- python train.py\" needs no change to the script. To let a script connect to\n"
         "a gradb that listens, start it with \"python -m gradb train.py\", or call\n"
         "gradb.torch.attach() in it; without a debugger both cost next to nothing.\n"
         "gradb.torch.log(name, value) reports a metric, gradb.torch.step() ends a step\n"
         "that no optimizer ends, and gradb.torch.on_checkpoint(function) serves the command\n"
         "checkpoint. \"agent\" lists what the process can be asked for. gradb itself has no\n"
         "Python interpreter: drive it with --batch --json.\n"
         "\n"
         "MindSpore 2.7 and later is debugged in the same way: gradb.mindspore has attach, log\n"
         "and step. Operators need 2.9. In graph mode, and inside @jit, a step whose operators\n"
         "are watched runs twice: once uncompiled, which shows them, then compiled as always.\n"
         "\"operators on\" does so for every step. Only the CPU was tried.",
     .examples = "run -- python train.py --epochs 3\n"
                 "listen\n"
                 "agent memory"},
    {.name = NULL},
};

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = words; p && *p != '\0'; p += p[strcspn(p, " ")] != '\0') {
        size_t here = strcspn(p, " ");
        if (here == len && memcmp(p, word, len) == 0) {
            return true;
        }
        p += here;
    }
    return false;
}

const struct command *help_find_topic(const char *word)
{
    const struct command *topic = help_topics;

    while (topic->name && strcmp(topic->name, word) != 0 && !has_word(topic->aliases, word)) {
        topic++;
    }
    return topic->name ? topic : NULL;
}

/* Names of a PyTorch program, and those of the same things in the graphs of MindSpore and C. Longer
 * names come first. */
static const char *const example_names[][2] = {
    {"model/block0/attn/linear", "Default/network/block0/attn/MatMul-op4"},
    {"model/block0/attn/softmax", "attn/Softmax-op10"},
    {"model/block0", "Default/network/block0"},
    {"model.block0.attn", "network.block0.attn"},
    {"info scopes model", "info scopes Default/network"},
    {"model/head/weight", "head.weight"},
    {"model/head/bias", "head.bias"},
    {"fc2/bias", "fc2.bias"},
    {"*/weight", "*.weight"},
    {"model/loss/log", "loss/Log-op49"},
    {"model/loss/nll_loss", "NLLLoss-op50"},
    {"type:softmax", "type:Softmax"},
    {"type:linear", "type:MatMul"},
    {"type:relu", "type:ReLU"},
    {"type:gelu", "type:GeLU"},
    {"layer_norm", "LayerNorm"},
    {"search linear", "search matmul"},
    {"grep linear", "grep MatMul"},
    {"model.py", "model.c"}, /* the last: not for MindSpore */
};
#define EXAMPLE_NAMES (sizeof(example_names) / sizeof(example_names[0]))

static size_t replace_name(const char *at, size_t names, struct gd_buf *out)
{
    for (size_t i = 0; i < names; i++) {
        size_t len = strlen(example_names[i][0]);
        if (strncmp(at, example_names[i][0], len) == 0) {
            gd_buf_puts(out, example_names[i][1]);
            return len;
        }
    }
    gd_buf_putc(out, *at);
    return 1;
}

/* Whether the names of the nodes are paths of modules or cells, as in the help; MindSpore 1.x has
 * others. */
static bool has_module_names(const struct gd_session *session)
{
    const char *framework = session->peer.framework;

    return framework[0] == '\0' || strcasestr(framework, "torch") ||
           (strcasestr(framework, "mindspore") &&
            strcmp(session->target->ops->kind, "gradb.v1") == 0);
}

const char *help_text(struct command_call *call, const struct command *command)
{
    const struct gd_session *session = call->debugger->current;
    const char *framework = session ? session->peer.framework : "";
    struct gd_buf text = GD_BUF_INIT(1 << 16), out = GD_BUF_INIT(1 << 16);
    size_t names = strcasestr(framework, "mindspore") ? EXAMPLE_NAMES - 1 : EXAMPLE_NAMES;

    command_add_help(command, &text);
    if (!session || has_module_names(session)) {
        return inspect_take(call, &text);
    }
    for (const char *p = gd_buf_text(&text); *p != '\0';) {
        p += replace_name(p, names, &out);
    }
    gd_buf_deinit(&text);
    return inspect_take(call, &out);
}
