// SPDX-License-Identifier: GPL-3.0-or-later
/* Reports of memory (engine/memory/memory.h): read from a training process's reply, and shown. */
#ifndef GD_REPL_MEMORY_H
#define GD_REPL_MEMORY_H

#include "engine/memory/memory.h"
#include "repl/core/command.h"

/* Asks the training process, or reads what its target knows. The caller deinitialises *ret, which
 * is initialised here, whatever is returned. */
int memory_ask(struct command_call *call, struct gd_memory *ret, struct gd_err *err);

/* From the graph: without a training process that can count. GD_ENODATA. */
int memory_guess(struct command_call *call, struct gd_memory *report, struct gd_err *err);

/* Rows without a source line get that of the operator that reads or makes the node; modules that of
 * their largest node. */
void memory_place(struct command_call *call, struct gd_memory *report);

/* From the reply of the process's command "memory-report". GD_EPROTO. */
int memory_read(const cJSON *reply, struct gd_memory *report, struct gd_err *err);

/* Fills the record and prints it; all: all rows, else the largest. The report is sorted. */
void memory_show(struct command_call *call, const struct gd_memory *report, bool all);

/* The members of a report. */
void memory_record(cJSON *record, const struct gd_memory *report);

/* What the record says about memory that ran out; nothing if it did not. */
void memory_show_oom(struct command_call *call, const cJSON *record, bool all);

#endif
