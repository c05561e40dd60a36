// SPDX-License-Identifier: GPL-3.0-or-later
/* The list of all groups of commands, in the order in which help shows them. */
#include "repl/core/commands.h"

const struct command *const command_tables[] = {
    cmd_start_table,    cmd_run_table,       cmd_ranks_table,
    cmd_break_table,    cmd_watch_table,     cmd_hits_table,
    cmd_advice_table,   cmd_recommend_table, cmd_info_table,
    cmd_dump_table,     cmd_dump_live_table, cmd_convert_table,
    cmd_scan_table,     cmd_print_table,     cmd_tensor_table,
    cmd_data_table,     cmd_compare_table,   cmd_divergence_table,
    cmd_lockstep_table, cmd_nonfinite_table, cmd_check_table,
    cmd_display_table,  cmd_graph_table,     cmd_stack_table,
    cmd_why_table,      cmd_settings_table,  cmd_support_table,
    cmd_shell_table,    cmd_screen_table,    cmd_agent_table,
    cmd_catch_table,    cmd_overflow_table,  NULL,
};
