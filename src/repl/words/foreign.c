// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/words/foreign.h"

#include <string.h>

#define REGISTERS                                                                                  \
    "a training has no registers: \"info locals\" shows the variables of the selected frame, "     \
    "\"print NODE\" a tensor"
#define BACKWARDS                                                                                  \
    "a live training cannot go back: start it again with \"run\" and stop it earlier, as with "    \
    "\"until step 10\"; a dump can, with \"reverse-step\""
#define IN_ORDER                                                                                   \
    "a training runs its lines in order: \"until FILE:LINE\" or \"run-to NODE\" goes to a later "  \
    "place"
#define CONTENTS                                                                                   \
    "\"search TEXT\" finds operators and parameters, \"info scopes\" lists the modules, \"info "   \
    "params\" the weights"
#define INSTRUCTIONS                                                                               \
    "an operator is the smallest unit: \"node-info NODE\" shows one, \"list NODE\" its source "    \
    "line, and \"aten on\" shows the calls inside (PyTorch)"
#define VARIABLES                                                                                  \
    "\"set NODE[SLICE] = VALUE\" changes a tensor, \"call NAME = VALUE\" a variable of the "       \
    "program"
#define OVERFLOWS                                                                                  \
    "\"watch TO on all\" stops where a tensor gets Inf or NaN, \"catch overflow\" where finite "   \
    "inputs give them"

const struct foreign foreign_rows[] = {
    /* gdb */
    {"args", "info args", NULL},
    {"attach", NULL,
     "a training process connects by itself: see \"help connect\"; \"gradb attach\", in a shell, "
     "resumes a gradb session"},
    {"backtrace -full", "backtrace all", NULL},
    {"backtrace full", "backtrace all", NULL},
    {"bt -full", "backtrace all", NULL},
    {"bt full", "backtrace all", NULL},
    {"clear", "delete", NULL},
    {"core-file", NULL, "\"open PATH\" reads a dump, a checkpoint or a history"},
    {"disas", NULL, INSTRUCTIONS},
    {"disassemble", NULL, INSTRUCTIONS},
    {"file", NULL,
     "gradb reads no program file: \"run -- python3 train.py\" starts a training, \"open PATH\" "
     "reads a dump or a checkpoint"},
    {"gcore", "checkpoint", NULL},
    {"generate-core-file", "checkpoint", NULL},
    {"inferior", "rank", NULL},
    {"info all-registers", NULL, REGISTERS},
    {"info files", "info target", NULL},
    {"info functions", NULL, CONTENTS},
    {"info proc", "info target", NULL},
    {"info program", "info target", NULL},
    {"info reg", NULL, REGISTERS},
    {"info registers", NULL, REGISTERS},
    {"info signals", NULL, "signals are not caught: \"info events\" lists what can be"},
    {"info variables", NULL, CONTENTS},
    {"j", NULL, IN_ORDER},
    {"jump", NULL, IN_ORDER},
    {"nexti", "next", NULL},
    {"return", NULL, "a function cannot be left early: \"finish\" runs to its end"},
    {"reverse-continue", NULL, BACKWARDS},
    {"reverse-finish", NULL, BACKWARDS},
    {"reverse-next", NULL, BACKWARDS},
    {"set var", NULL, VARIABLES},
    {"set variable", NULL, VARIABLES},
    {"si", "next", NULL},
    {"stepi", "next", NULL},
    {"stop", NULL, "\"interrupt\" stops the training where it is, \"kill\" ends it"},
    {"target", NULL,
     "gradb waits for the training to connect: \"listen ADDRESS\", or \"run -- python3 train.py\""},
    {"thread apply all", "rank all", NULL},
    {"thread apply", "rank", NULL},
    /* pdb */
    {"cl", "delete", NULL},
    {"restart", "run", NULL},
    {"retval", NULL, "\"print NODE\" shows what an operator returned"},
    {"rv", NULL, "\"print NODE\" shows what an operator returned"},
    {"unt", "until", NULL},
    /* lldb */
    {"breakpoint delete", "delete", NULL},
    {"breakpoint disable", "disable", NULL},
    {"breakpoint enable", "enable", NULL},
    {"breakpoint list", "info breakpoints", NULL},
    {"breakpoint set --name", "break", NULL},
    {"breakpoint set -n", "break", NULL},
    {"breakpoint set", NULL, "use \"break NODE\", or \"break FILE:LINE\""},
    {"frame info", "info frame", NULL},
    {"frame select", "frame", NULL},
    {"frame variable", "info locals", NULL},
    {"gui", "tui enable", NULL},
    {"memory read", "x", NULL},
    {"process continue", "continue", NULL},
    {"process detach", "detach", NULL},
    {"process interrupt", "interrupt", NULL},
    {"process kill", "kill", NULL},
    {"process launch", "run", NULL},
    {"process status", "info target", NULL},
    {"register read", NULL, REGISTERS},
    {"settings list", "info settings", NULL},
    {"settings set", "set", NULL},
    {"settings show", "show", NULL},
    {"source list", "list", NULL},
    {"thread backtrace", "backtrace", NULL},
    {"thread continue", "continue", NULL},
    {"thread info", "info target", NULL},
    {"thread list", "info ranks", NULL},
    {"thread select", "rank", NULL},
    {"thread step-in", "next", NULL},
    {"thread step-inst", "next", NULL},
    {"thread step-out", "finish", NULL},
    {"thread step-over", "next", NULL},
    {"thread until", "until", NULL},
    {"watchpoint delete", "delete", NULL},
    {"watchpoint list", "info watchpoints", NULL},
    {"watchpoint set", NULL, "use \"watch CONDITION on SELECTOR\", such as \"watch TO on all\""},
    /* Weights & Biases, Keras, torchinfo */
    {"log", NULL,
     "what the training reports is recorded by itself: \"info history loss\" shows a metric over "
     "the steps, \"info log\" the output"},
    {"named_parameters", "info params", NULL},
    {"parameters", "info params", NULL},
    {"state_dict", "info params", NULL},
    {"summary", NULL,
     "\"info model\" shows the modules with their parameters, \"info scalars\" the metrics"},
    /* commands of training processes that others do */
    {"end-training", "kill training", NULL},
    {"exceptions", NULL, "\"catch exception\" stops at exceptions"},
    {"memory-metrics", NULL, "use \"set memory-metrics on\""},
    {"memory-report", "memory", NULL},
    {"oom", NULL,
     "\"catch oom\" stops where an allocation fails; then \"why\" says what would fit"},
    {"oom-report", "why", NULL},
    {"set-lr", NULL, "use \"set lr = VALUE\"; \"info lr\" shows the rates"},
    /* tfdbg and MindInsight */
    {"check overflow", NULL, OVERFLOWS},
    {"eval", "print", NULL},
    {"invoke_stepper", "next", NULL},
    {"list_inputs", "inputs", NULL},
    {"list_outputs", "outputs", NULL},
    {"list_source", "sources", NULL},
    {"list_tensors", "tensors", NULL},
    {"node_info", "node-info", NULL},
    {"pf", "info batch", NULL},
    {"print_feed", "info batch", NULL},
    {"print_source", "annotate", NULL},
    {"print_tensor", "print", NULL},
    {"run --filter", NULL, "to run until a value is not finite: \"catch nan\", then \"continue\""},
    {"run -f", NULL, "to run until a value is not finite: \"catch nan\", then \"continue\""},
    {"run -t", "step", NULL},
    {"watch overflow", NULL, OVERFLOWS},
    {.words = NULL},
};

/* Where the words end in the line, any blanks between them; NULL: it begins otherwise. */
static const char *after_words(const char *line, const char *words)
{
    while (*words != '\0') {
        size_t len = strcspn(words, " ");
        if (strncmp(line, words, len) != 0 || !strchr(" \t", line[len])) {
            return NULL;
        }
        line += len + strspn(line + len, " \t");
        words += len + (words[len] == ' ' ? 1 : 0);
    }
    return line;
}

const struct foreign *foreign_find(const char *line, const char **rest)
{
    const struct foreign *found = NULL;

    line += strspn(line, " \t");
    for (size_t i = 0; foreign_rows[i].words; i++) {
        const char *after = after_words(line, foreign_rows[i].words);
        if (after && (!found || strlen(foreign_rows[i].words) > strlen(found->words))) {
            found = &foreign_rows[i];
            *rest = after;
        }
    }
    return found;
}
