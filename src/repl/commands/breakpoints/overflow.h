// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Overflows: operators with finite inputs and an output that is not finite. The training process
 * finds them, keeps the inputs of their calls and makes the calls again; gradb asks it.
 */
#ifndef GD_REPL_OVERFLOW_H
#define GD_REPL_OVERFLOW_H

#include "repl/core/command.h"

/* The command of the training process: "stop 3", "record 3 DIR", "off", "save 1 DIR", "" */
#define OVERFLOW_COMMAND "overflow"
#define OVERFLOW_NEEDS   (CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE)

/* Asks the selected process. The caller deletes *ret, also after a failure. GD_EUNSUPPORTED: this
 * process cannot look for overflows; GD_EPROTO: an unreadable reply. */
int overflow_ask(struct command_call *call, const char *name, const char *args, cJSON **ret,
                 struct gd_err *err);
/* Asks every process of the training; *ret is the selected one's reply. */
int overflow_ask_all(struct command_call *call, const char *args, cJSON **ret, struct gd_err *err);

/* Tensors of a reply: "11 -inf of 64; 0 ... 1". In the arena. */
const char *overflow_tensors(struct command_call *call, const cJSON *list);
/* "first", then call->argv from number `from` on, as the training process reads them back. */
const char *overflow_words(struct command_call *call, const char *first, int from);

enum overflow_listing { OVERFLOWS_NONE, OVERFLOWS_FOUND, OVERFLOWS_ALL };
void overflow_show(struct command_call *call, cJSON *reply, enum overflow_listing listing);

/* `catch overflow [N]`, `tcatch overflow`: call->line is what follows. */
int catch_overflow(struct command_call *call, bool temporary, struct gd_err *err);

#endif
