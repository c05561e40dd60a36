// SPDX-License-Identifier: GPL-3.0-or-later
/* `info locals` and `info args`: the variables of the selected frame of a Python program. */
#include "repl/commands/status/info.h"
#include "repl/values/evaluate.h"
#include "repl/values/evaluate_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

static void show_variables(struct command_call *call, const cJSON *reply, bool arguments)
{
    static const struct out_column columns[] = {
        {"name", "Name", false}, {"python_type", "Type", false}, {"value", "Value", false}};
    cJSON *record = out_record(call->out, "locals");
    const cJSON *frame = cJSON_GetObjectItem(reply, "frame");
    const cJSON *item;

    out_set(record, OUT_BOOL("arguments", arguments),
            OUT_INT("step", gd_session_step(call->session)),
            OUT_IF(frame, OUT_JSON("frame", cJSON_Duplicate(frame, true))),
            OUT_INT("more", out_number_of(reply, "more")));
    out_say(call->out, record, "{what} {place}, step {step}:\n",
            OUT_TEXT("what", arguments ? "Arguments"
                             : cJSON_IsTrue(cJSON_GetObjectItem(reply, "module"))
                                 ? "Variables of the module"
                                 : "Variables"),
            OUT_TEXT("place", evaluate_place(call, reply)));
    struct out_table *table = out_table_begin(call->out, "variables", columns, 3);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "variables"))
    {
        out_put(
            table, OUT_TEXT("name", out_text_of(item, "name")),
            OUT_TEXT("python_type", out_text_of(item, "type")),
            OUT_TEXT("value", out_text_of(item, "value")),
            OUT_IF(cJSON_IsTrue(cJSON_GetObjectItem(item, "tensor")), OUT_BOOL("tensor", true)));
    }
    out_table_end(table);
    if (cJSON_GetArraySize(cJSON_GetObjectItem(reply, "variables")) == 0) {
        out_printf(call->out, "none\n");
    }
    out_say(call->out, record, "[({more:n} more)\n]");
}

static int show_frame_variables(struct command_call *call, bool arguments, struct gd_err *err)
{
    cJSON *reply = NULL;
    int rc = evaluate_need_python(call, arguments ? "info args" : "info locals", err);

    if (rc != GD_OK) {
        return rc;
    }
    cJSON *request = cJSON_CreateObject();
    cJSON *frame = evaluate_frame(call);
    cJSON_AddBoolToObject(request, "arguments", arguments);
    if (call->argc > 0) {
        cJSON_AddStringToObject(request, "name", call->argv[0]);
    }
    if (frame) {
        cJSON_AddItemToObject(request, "frame", frame);
    }
    char *text = cJSON_PrintUnformatted(request);
    cJSON_Delete(request);
    rc = text ? evaluate_send(call, "variables", text, &reply, err) : gd_fail_nomem(err);
    cJSON_free(text);
    if (rc == GD_OK && call->argc > 0) {
        struct gd_format format;
        rc = value_format(call, call->format, &format, err);
        rc = rc != GD_OK ? rc : evaluate_show(call, call->argv[0], reply, &format, err);
    } else if (rc == GD_OK) {
        show_variables(call, reply, arguments);
    }
    cJSON_Delete(reply);
    return rc;
}

int info_locals(struct command_call *call, struct gd_err *err)
{
    return show_frame_variables(call, false, err);
}

int info_args(struct command_call *call, struct gd_err *err)
{
    return show_frame_variables(call, true, err);
}
