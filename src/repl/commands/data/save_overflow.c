// SPDX-License-Identifier: GPL-3.0-or-later
/* `save overflow`: the inputs of an overflow, so that its call can be repeated. */
#include "base/buf.h"
#include "repl/commands/breakpoints/overflow.h"
#include "repl/commands/data/save.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

int save_overflow(struct command_call *call, const char *which, const char *folder,
                  struct gd_err *err)
{
    cJSON *reply = NULL;
    struct gd_buf words = GD_BUF_INIT(OVERFLOW_MAX_WORDS);
    int rc = inspect_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    overflow_add_word(&words, "save");
    overflow_add_word(&words, which);
    overflow_add_word(&words, folder);
    rc = overflow_ask(call, OVERFLOW_COMMAND, gd_buf_text(&words), &reply, err);
    gd_buf_deinit(&words);
    if (rc == GD_OK) {
        const char *path = overflow_text(reply, "saved");
        cJSON *record = out_record(call->out, "saved");
        out_set(record, OUT_TEXT("file", path), OUT_INT("count", 1));
        out_printf(call->out, "Saved to %s; \"python -m gradb.rerun %s\" repeats the call.\n",
                   out_safe(call, path), out_safe(call, path));
    }
    cJSON_Delete(reply);
    return rc;
}
