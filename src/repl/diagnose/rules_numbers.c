// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about numbers: NaN, infinity, divergence. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_numbers[] = {
    {.name = NULL},
};
