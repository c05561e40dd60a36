// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the data. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_data[] = {
    {.name = NULL},
};
