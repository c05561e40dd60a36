// SPDX-License-Identifier: GPL-3.0-or-later
/* `diagnose` where a dump is open: the commands that search one give the evidence. */
#include <string.h>

#include "engine/session.h"
#include "repl/core/repl_impl.h"
#include "repl/diagnose/follow.h"

struct caught { /* the record of a command that runs inside this one */
    const char *type;
    cJSON *record; /* NULL: it gave none */
};

static void catch_record(void *ctx, const char *type, cJSON *record)
{
    struct caught *caught = ctx;

    if (strcmp(type, caught->type) == 0 && !caught->record) {
        caught->record = record;
    } else {
        cJSON_Delete(record);
    }
}

/* Runs the line; the exit status stays as it was. The caller deletes *ret. */
static int run_for_record(struct repl *repl, const char *line, const char *type, cJSON **ret)
{
    struct caught caught = {.type = type};
    repl_record_fn record = repl->front.record;
    void *ctx = repl->front.record_ctx;
    struct repl_options options = repl->options;
    enum exit_status status = repl->end.status;

    repl->front.record = catch_record;
    repl->front.record_ctx = &caught;
    repl->options.json = true;
    repl->options.words = false;
    int rc = repl_run_line(repl, line, LINE_SCRIPT);
    repl->options = options;
    repl->front.record = record;
    repl->front.record_ctx = ctx;
    repl->end.status = status;
    *ret = caught.record;
    return rc;
}

int diagnose_recorded(struct command_call *call, struct diagnose_run *run, struct gd_err *err)
{
    cJSON *found = NULL;
    int rc = run_for_record(call->repl, "first-nonfinite", "first-nonfinite", &found);

    run->pieces = cJSON_CreateArray();
    run->looked_at = cJSON_CreateObject();
    if (rc != GD_OK || !found) {
        cJSON_Delete(found);
        return gd_fail(err, rc == GD_EINTR ? rc : GD_ENODATA,
                       "what is open cannot be searched for values that are not finite");
    }
    out_set(run->looked_at, OUT_INT("steps", out_number_of(found, "steps")),
            OUT_INT("tensors", out_number_of(found, "checked")),
            OUT_INT("not_checked", out_number_of(found, "not_checked")));
    if (cJSON_IsTrue(cJSON_GetObjectItem(found, "found"))) {
        cJSON_DeleteItemFromObject(found, "type");
        out_set(found, OUT_TEXT("origin", out_text_of(found, "kind")));
        cJSON_ReplaceItemInObject(found, "kind", cJSON_CreateString("dump-nonfinite"));
        cJSON_AddItemToArray(run->pieces, found);
    } else {
        cJSON_Delete(found);
    }
    return GD_OK;
}
