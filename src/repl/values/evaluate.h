// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Python code of the user's that the stopped training process evaluates: `print EXPR`, `call`,
 * `interact`, `info locals`. The other side is python/gradb/evaluate.py.
 *
 * Only what the user typed is sent, and only if `set evaluate-code` allows it.
 */
#ifndef GD_REPL_EVALUATE_H
#define GD_REPL_EVALUATE_H

#include "engine/format.h"
#include "repl/core/command.h"

#define EVALUATE_COMMAND "evaluate" /* of the training process */

/* Whether call->session is a stopped training process that runs Python. GD_ESTATE, GD_EUNSUPPORTED;
 * `what`: "call", for the message. */
int evaluate_need_python(struct command_call *call, const char *what, struct gd_err *err);
bool evaluate_is_python(const struct gd_session *session);

/* Whether the user allows it; asks once if the setting says so. GD_EUNSUPPORTED with the reason. */
int evaluate_may(struct command_call *call, struct gd_err *err);

/* The same without a question: as it is now. */
int evaluate_may_now(struct command_call *call, struct gd_err *err);

/* Whether nothing is evaluated whatever is answered: by the setting, or because others can reach
 * gradb. Training processes learn it, and refuse by themselves. */
bool evaluate_is_off(const struct gd_debugger *debugger);

/* The selected frame for a request of the training process; NULL: none was selected, and the
 * innermost frame of the user's code is meant. The caller owns it. */
cJSON *evaluate_frame(struct command_call *call);

/* Sends a request and waits. Ctrl-C interrupts the code; a second one gives up the wait. The reply
 * belongs to the caller. mode: "print", "call", "interact" or "dprintf". */
int evaluate_run(struct command_call *call, const char *mode, const char *code, cJSON **ret,
                 struct gd_err *err);
/* The arguments of the request, for a caller that sends it by itself and does not wait. NULL: out
 * of memory. cJSON_free. */
char *evaluate_request(struct command_call *call, const char *mode, const char *code);
/* The tensor of a reply that has all of it. GD_ELIMIT: it is too large. */
int evaluate_small_tensor(const cJSON *reply, struct gd_tensor **ret, struct gd_err *err);
/* Shows a reply, and notes what the code changed. GD_EINVAL: the code raised, as err says. */
int evaluate_show(struct command_call *call, const char *code, const cJSON *reply,
                  const struct gd_format *format, struct gd_err *err);

/* Notes as an event what the code of a reply changed in the run. Returns how many things. */
int evaluate_note_changes(struct gd_session *session, const char *code, const cJSON *reply);

/* "in train (train.py:35)", of the member "frame" of a reply; "" when there is none. */
const char *evaluate_place(struct command_call *call, const cJSON *reply);

#endif
