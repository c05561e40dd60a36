// SPDX-License-Identifier: GPL-3.0-or-later
/* `info batch`. */
#include <string.h>

#include "repl/commands/status/info.h"

static void add_scalar(struct command_call *call, cJSON *record, const char *name)
{
    const struct gd_scalar *scalar = gd_session_scalar(call->session, name);

    if (scalar) {
        out_set(record, OUT_REAL(name, scalar->value));
    }
}

int info_batch(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"dtype", "Type", false},    {"shape", "Shape", false, ":shape"},
        {"device", "Device", false}, {"bytes", "Size", true, ":bytes"},
        {"name", "Tensor", false},
    };
    cJSON *record = out_record(call->out, "batch");
    bool is_process = gd_session_is_live(call->session) && !gd_session_is_record(call->session);
    int rc = info_ask(call, "batch", record, err);

    if (rc != GD_OK && rc != GD_EUNSUPPORTED) {
        return rc;
    }
    if (rc == GD_EUNSUPPORTED) {
        info_add_moment(call, record);
        out_set(record, OUT_INT("step", gd_session_step(call->session)));
        add_scalar(call, record, "epoch");
        add_scalar(call, record, "batch");
    }
    info_say_moment(call, record);
    out_say(call->out, record, "[, epoch {epoch}][, batch {batch}]");
    out_say(call->out, record,
            "[: {loader.class}][ of {loader.dataset}][, batch size {loader.batch_size}]"
            "[, {loader.batches:n} batches an epoch][, {loader.samples|sample}]"
            "[, {?loader.shuffle}shuffled][, {loader.workers|worker}]\n");
    cJSON *tensors = cJSON_GetObjectItem(record, "tensors");
    if (rc == GD_EUNSUPPORTED) {
        out_printf(call->out, "The tensors of the batch are unknown: %s.\n",
                   is_process ? "this training process does not report them"
                              : "nothing was recorded of them");
    } else if (cJSON_GetArraySize(tensors) == 0) {
        out_printf(call->out, "No batch was fetched yet: \"step\" runs a step.\n");
    } else {
        out_say(call->out, record,
                "[{?plain}No DataLoader is used: tensors of the program's frame\n]",
                OUT_BOOL("plain", strcmp(out_text_of(record, "source"), "variables") == 0));
        out_table_of(call->out, tensors, 64, columns, 5);
    }
    return GD_OK;
}
