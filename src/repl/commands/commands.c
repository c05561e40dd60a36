// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * All commands in the order in which help lists them. Each is defined in the file of its name,
 * repl/commands/<group>/<name>.c.
 */
#include "repl/core/command.h"

extern const struct command cmd_run;
extern const struct command cmd_listen;
extern const struct command cmd_continue;
extern const struct command cmd_step;
extern const struct command cmd_reverse_step;
extern const struct command cmd_goto;
extern const struct command cmd_next;
extern const struct command cmd_run_to;
extern const struct command cmd_finish;
extern const struct command cmd_interrupt;
extern const struct command cmd_kill;
extern const struct command cmd_detach;
extern const struct command cmd_checkpoint;
extern const struct command cmd_undo;
extern const struct command cmd_skip_update;
extern const struct command cmd_zero_grad;
extern const struct command cmd_rank;
extern const struct command cmd_session;
extern const struct command cmd_break;
extern const struct command cmd_tbreak;
extern const struct command cmd_dprintf;
extern const struct command cmd_delete;
extern const struct command cmd_enable;
extern const struct command cmd_disable;
extern const struct command cmd_ignore;
extern const struct command cmd_commands;
extern const struct command cmd_watch;
extern const struct command cmd_trace;
extern const struct command cmd_twatch;
extern const struct command cmd_unwatch;
extern const struct command cmd_condition;
extern const struct command cmd_edit;
extern const struct command cmd_exclude;
extern const struct command cmd_recheck;
extern const struct command cmd_hit;
extern const struct command cmd_next_hit;
extern const struct command cmd_previous_hit;
extern const struct command cmd_advice;
extern const struct command cmd_recommend;
extern const struct command cmd_info;
extern const struct command cmd_open;
extern const struct command cmd_dump;
extern const struct command cmd_check_config;
extern const struct command cmd_table;
extern const struct command cmd_convert;
extern const struct command cmd_export;
extern const struct command cmd_scan;
extern const struct command cmd_merge;
extern const struct command cmd_print;
extern const struct command cmd_plot;
extern const struct command cmd_call;
extern const struct command cmd_interact;
extern const struct command cmd_x;
extern const struct command cmd_whatis;
extern const struct command cmd_stats;
extern const struct command cmd_tensor;
extern const struct command cmd_tensors;
extern const struct command cmd_find;
extern const struct command cmd_save;
extern const struct command cmd_compare;
extern const struct command cmd_first_divergence;
extern const struct command cmd_lockstep;
extern const struct command cmd_first_nonfinite;
extern const struct command cmd_check;
extern const struct command cmd_display;
extern const struct command cmd_metric;
extern const struct command cmd_undisplay;
extern const struct command cmd_search;
extern const struct command cmd_slash;
extern const struct command cmd_inputs;
extern const struct command cmd_outputs;
extern const struct command cmd_node;
extern const struct command cmd_node_info;
extern const struct command cmd_scope;
extern const struct command cmd_list;
extern const struct command cmd_backtrace;
extern const struct command cmd_frame;
extern const struct command cmd_up;
extern const struct command cmd_down;
extern const struct command cmd_sources;
extern const struct command cmd_annotate;
extern const struct command cmd_diagnose;
extern const struct command cmd_why;
extern const struct command cmd_picture;
extern const struct command cmd_tensor_graph;
extern const struct command cmd_set;
extern const struct command cmd_show;
extern const struct command cmd_help;
extern const struct command cmd_apropos;
extern const struct command cmd_echo;
extern const struct command cmd_source;
extern const struct command cmd_define;
extern const struct command cmd_document;
extern const struct command cmd_alias;
extern const struct command cmd_quit;
extern const struct command cmd_tui;
extern const struct command cmd_disconnect;
extern const struct command cmd_shell;
extern const struct command cmd_pipe;
extern const struct command cmd_history;
extern const struct command cmd_cd;
extern const struct command cmd_pwd;
extern const struct command cmd_complete;
extern const struct command cmd_layout;
extern const struct command cmd_focus;
extern const struct command cmd_winheight;
extern const struct command cmd_refresh;
extern const struct command cmd_bind;
extern const struct command cmd_agent;
extern const struct command cmd_aten;
extern const struct command cmd_digest;
extern const struct command cmd_memory;
extern const struct command cmd_operators;
extern const struct command cmd_scale;
extern const struct command cmd_step_of;
extern const struct command cmd_training;
extern const struct command cmd_on;
extern const struct command cmd_catch;
extern const struct command cmd_tcatch;
extern const struct command cmd_overflow;
extern const struct command cmd_rerun;

// clang-format off
const struct command *const command_table[] = {
    &cmd_run,
    &cmd_listen,
    &cmd_continue,
    &cmd_step,
    &cmd_reverse_step,
    &cmd_goto,
    &cmd_next,
    &cmd_run_to,
    &cmd_finish,
    &cmd_interrupt,
    &cmd_kill,
    &cmd_detach,
    &cmd_checkpoint,
    &cmd_undo,
    &cmd_skip_update,
    &cmd_zero_grad,
    &cmd_rank,
    &cmd_session,
    &cmd_break,
    &cmd_tbreak,
    &cmd_dprintf,
    &cmd_delete,
    &cmd_enable,
    &cmd_disable,
    &cmd_ignore,
    &cmd_commands,
    &cmd_watch,
    &cmd_trace,
    &cmd_twatch,
    &cmd_unwatch,
    &cmd_condition,
    &cmd_edit,
    &cmd_exclude,
    &cmd_recheck,
    &cmd_hit,
    &cmd_next_hit,
    &cmd_previous_hit,
    &cmd_advice,
    &cmd_recommend,
    &cmd_info,
    &cmd_memory,
    &cmd_training,
    &cmd_digest,
    &cmd_scale,
    &cmd_step_of,
    &cmd_aten,
    &cmd_operators,
    &cmd_open,
    &cmd_dump,
    &cmd_table,
    &cmd_check_config,
    &cmd_convert,
    &cmd_export,
    &cmd_scan,
    &cmd_merge,
    &cmd_print,
    &cmd_plot,
    &cmd_call,
    &cmd_interact,
    &cmd_x,
    &cmd_whatis,
    &cmd_stats,
    &cmd_tensor,
    &cmd_tensors,
    &cmd_find,
    &cmd_save,
    &cmd_compare,
    &cmd_first_divergence,
    &cmd_lockstep,
    &cmd_first_nonfinite,
    &cmd_check,
    &cmd_display,
    &cmd_metric,
    &cmd_undisplay,
    &cmd_search,
    &cmd_slash,
    &cmd_inputs,
    &cmd_outputs,
    &cmd_node,
    &cmd_node_info,
    &cmd_scope,
    &cmd_list,
    &cmd_backtrace,
    &cmd_frame,
    &cmd_up,
    &cmd_down,
    &cmd_sources,
    &cmd_annotate,
    &cmd_diagnose,
    &cmd_why,
    &cmd_picture,
    &cmd_tensor_graph,
    &cmd_set,
    &cmd_show,
    &cmd_help,
    &cmd_apropos,
    &cmd_echo,
    &cmd_source,
    &cmd_define,
    &cmd_document,
    &cmd_alias,
    &cmd_quit,
    &cmd_tui,
    &cmd_disconnect,
    &cmd_shell,
    &cmd_pipe,
    &cmd_history,
    &cmd_cd,
    &cmd_pwd,
    &cmd_complete,
    &cmd_layout,
    &cmd_focus,
    &cmd_winheight,
    &cmd_refresh,
    &cmd_bind,
    &cmd_agent,
    &cmd_on,
    &cmd_catch,
    &cmd_tcatch,
    &cmd_overflow,
    &cmd_rerun,
    NULL,
};
// clang-format on
