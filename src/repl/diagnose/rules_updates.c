// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about what an update is made of. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_updates[] = {
    {.name = NULL},
};
