// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about hand-written backward passes. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_backward[] = {
    {.name = NULL},
};
