// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about jobs of several ranks. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_ranks[] = {
    {.name = NULL},
};
