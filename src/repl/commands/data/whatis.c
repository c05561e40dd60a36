// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: whatis */
#include "repl/values/inspect.h"
#include "repl/values/value.h"

static int show_type(struct command_call *call, const struct value *value, cJSON *record,
                     struct gd_err *err)
{
    enum gd_dtype dtype;
    struct gd_shape shape;
    int rc = value_declared(call, value, &dtype, &shape, err);
    if (rc != GD_OK) {
        return rc;
    }
    int64_t count = gd_shape_count(&shape);
    size_t bytes = 0;
    bool sized = gd_shape_bytes(&shape, dtype, &bytes, NULL) == GD_OK;
    out_set(record, OUT_TEXT("name", value->label), OUT_TEXT("dtype", gd_dtype_name(dtype)),
            OUT_JSON("shape", inspect_shape_json(&shape)), OUT_IF(sized, OUT_INT("count", count)),
            OUT_IF(sized, OUT_INT("bytes", bytes)));
    out_say(call->out, record,
            sized ? "type = {dtype} {shape}, {count|element}, {bytes:bytes}\n"
                  : "type = {dtype} {shape}\n",
            OUT_TEXT("shape", inspect_shape(call, &shape)));
    return GD_OK;
}

static int run_whatis(struct command_call *call, struct gd_err *err)
{
    inspect_join_slices(call);
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "whatis: specify one tensor");
    }
    struct value value;
    int rc = value_parse(call, call->argc ? call->argv[0] : NULL, &value, err);
    const struct gd_session *session = call->debugger->current;
    const struct gd_scalar *scalar =
        rc == GD_ENOTFOUND && session ? gd_session_scalar(session, call->argv[0]) : NULL;
    if (scalar) {
        cJSON *of_metric = out_record(call->out, "type");
        out_set(of_metric, OUT_TEXT("name", scalar->name), OUT_TEXT("dtype", "metric"),
                OUT_INT("step", scalar->step));
        out_say(call->out, of_metric, "type = number, a metric of the training (step {step})\n");
        return GD_OK;
    }
    if (rc != GD_OK) {
        return rc;
    }
    uint32_t slots = value_slots(call, &value);
    cJSON *record = out_record(call->out, slots > 1 ? "types" : "type");
    cJSON *list = slots > 1 ? out_list(record, "types") : NULL;
    for (uint32_t slot = 0; slot < slots && rc == GD_OK; slot++) {
        struct value one = value;
        if (slots > 1) {
            one.arg.ref.slot = slot;
            one.label = inspect_tensor_name(call, value.arg.ref.node, slot);
            out_printf(call->out, ":%s ", inspect_slot(call, value.arg.ref.node, slot));
        }
        rc = show_type(call, &one, list ? out_push(list) : record, err);
    }
    value_deinit(&value);
    return rc;
}

const struct command cmd_whatis = {
    .name = "whatis",
    .aliases = "ptype",
    .group = "data",
    .usage = "whatis [NODE[:SLOT][SLICE]|$N]",
    .summary = "Show the data type, shape and size of a tensor without fetching it",
    .examples = "whatis model/head/weight\n"
                "whatis model/head/weight[0, ::2]",
    .args = {ARG_TENSOR},
    .flags = CMD_REPEATS,
    .run = run_whatis,
};
