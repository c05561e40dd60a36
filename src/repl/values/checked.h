// SPDX-License-Identifier: GPL-3.0-or-later
/* What an answer is based on: how much was checked, and why the rest was not. */
#ifndef GD_REPL_CHECKED_H
#define GD_REPL_CHECKED_H

#include "repl/core/command.h"

/* An answer that all is well states both counts. */
struct inspect_checked {
    uint64_t done, not_done;
    const char *why; /* reason of the first that was not checked; NULL: none. In call->arena */
};
void inspect_not_checked(struct command_call *call, struct inspect_checked *checked,
                         const char *why);
/* "12 tensors compared", "12 tensors compared, 3 not: no value" */
const char *inspect_checked_text(struct command_call *call, const struct inspect_checked *checked,
                                 const char *noun, const char *verb);
/* "checked", "not_checked" and, when known, "why_not_checked". */
void inspect_add_checked(cJSON *object, const struct inspect_checked *checked);
/* GD_ENODATA when nothing was checked: "no tensor was compared: 3 could not be (no value)". */
int inspect_need_checked(const struct inspect_checked *checked, const char *noun, const char *verb,
                         struct gd_err *err);

/* The same for checks of watchpoints: "612 checks", "570 checks, 42 more could not be made: NaN";
 * in records checks, unclear and why_unclear. `checks` includes the unclear ones. */
const char *hits_checked(struct command_call *call, uint64_t checks, uint64_t unclear,
                         unsigned errors);
void hits_add_checked(cJSON *record, uint64_t checks, uint64_t unclear, unsigned errors);
/* GD_ENODATA: nothing fired, and nothing could be checked. */
int hits_need_checked(uint64_t hits, uint64_t checks, uint64_t unclear, unsigned errors,
                      struct gd_err *err);

#endif
