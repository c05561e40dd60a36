// SPDX-License-Identifier: GPL-3.0-or-later
/* `save overflow`: the inputs of an overflow, so that its call can be repeated. */
#include "base/buf.h"
#include "repl/commands/breakpoints/overflow.h"
#include "repl/commands/data/save.h"
#include "repl/values/inspect.h"

int save_overflow(struct command_call *call, const char *which, const char *folder,
                  struct gd_err *err)
{
    cJSON *reply = NULL;
    struct gd_buf words = GD_BUF_INIT(OVERFLOW_MAX_WORDS);
    int rc = repl_need_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    overflow_add_word(&words, "save");
    overflow_add_word(&words, which);
    overflow_add_word(&words, folder);
    rc = overflow_ask(call, OVERFLOW_COMMAND, gd_buf_text(&words), &reply, err);
    gd_buf_deinit(&words);
    if (rc == GD_OK) {
        cJSON *record = out_record(call->out, "saved");
        out_set(record, OUT_TEXT("file", out_text_of(reply, "saved")), OUT_INT("count", 1));
        out_say(call->out, record,
                "Saved to {file}; \"python -m gradb.rerun {file}\" repeats the call.\n");
    }
    cJSON_Delete(reply);
    return rc;
}
