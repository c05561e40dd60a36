// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about symmetry and collapse. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_collapse[] = {
    {.name = NULL},
};
