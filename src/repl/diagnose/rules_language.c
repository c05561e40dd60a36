// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about language models. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule diagnose_rules_language[] = {
    {.name = NULL},
};
