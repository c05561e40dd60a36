// SPDX-License-Identifier: GPL-3.0-or-later
/* `save overflow`: the inputs of an overflow, so that its call can be repeated. */
#include "repl/commands/breakpoints/overflow.h"
#include "repl/commands/data/save.h"

int save_overflow(struct command_call *call, struct gd_err *err)
{
    cJSON *reply = NULL;
    const char *words = overflow_words(call, "save", 1);
    int rc = repl_need_session(call, err);
    rc = rc != GD_OK ? rc : overflow_ask(call, OVERFLOW_COMMAND, words, &reply, err);
    if (rc == GD_OK) {
        cJSON *record = out_record(call->out, "saved");
        out_set(record, OUT_TEXT("file", out_text_of(reply, "saved")), OUT_INT("count", 1));
        out_say(call->out, record,
                "Saved to {file}; \"python -m gradb.rerun {file}\" repeats the call.\n");
    }
    cJSON_Delete(reply);
    return rc;
}
