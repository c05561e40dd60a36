// SPDX-License-Identifier: GPL-3.0-or-later
/* The tables of rules, in the order in which equally certain findings are ranked. */
#include "repl/diagnose/rule.h"

const struct diagnose_rule *const diagnose_tables[] = {
    diagnose_rules_numbers,   diagnose_rules_calls,
    diagnose_rules_updates,   diagnose_rules_schedules,
    diagnose_rules_backward,  diagnose_rules_loss,
    diagnose_rules_targets,   diagnose_rules_objectives,
    diagnose_rules_data,      diagnose_rules_axes,
    diagnose_rules_collapse,  diagnose_rules_language,
    diagnose_rules_structure, diagnose_rules_ranks,
    diagnose_rules_why,       NULL,
};
