// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about axes and structure. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_axes[] = {
    {.name = NULL},
};
