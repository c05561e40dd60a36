// SPDX-License-Identifier: GPL-3.0-or-later
/* `info optimizer` and `info lr`. */
#include <string.h>

#include "base/buf.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

#define GROUPS_SHOWN 40

/* The error where a program does not say what its optimizers are. */
static int fail_unknown(struct command_call *call, struct gd_err *err)
{
    return gd_fail(err, GD_EUNSUPPORTED,
                   gd_session_is_live(call->session) && !gd_session_is_record(call->session)
                       ? "this training process does not report its optimizers; \"info scalars\" "
                         "shows its metrics, \"search optimizer\" the nodes"
                       : "what is open has no optimizer to ask; \"info history lr\" shows the "
                         "learning rate, if it was recorded");
}

/* "betas 0.9, 0.999; eps 1e-08". What is off is left out. */
static void add_options(struct command_call *call, const cJSON *options, struct gd_buf *text)
{
    const cJSON *item, *part;

    cJSON_ArrayForEach(item, options)
    {
        if (cJSON_IsFalse(item) || cJSON_IsNull(item)) {
            continue;
        }
        gd_buf_printf(text, "%s%s", text->len > 0 ? "; " : "", out_safe(call, item->string));
        if (cJSON_IsNumber(item)) {
            gd_buf_printf(text, " %s", repl_scalar_text(call->arena, item->valuedouble, 6));
        } else if (cJSON_IsString(item)) {
            gd_buf_printf(text, " %s", out_safe(call, item->valuestring));
        }
        cJSON_ArrayForEach(part, item)
        {
            if (cJSON_IsNumber(part)) {
                gd_buf_printf(text, "%s %s", part == item->child ? "" : ",",
                              repl_scalar_text(call->arena, part->valuedouble, 6));
            }
        }
    }
}

static void show_groups(struct command_call *call, const cJSON *groups)
{
    static const struct out_column columns[] = {
        {"group", "Group", true},
        {"lr", "Rate", true, ":.6"},
        {"parameters", "Parameters", true, ":n"},
        {"elements", "Elements", true, ":n"},
        {"frozen", "Frozen", true, ":n"},
        {"text", "Options", false},
    };
    struct out_table *table =
        out_is_json(call->out) ? NULL : out_table_begin(call->out, NULL, columns, 6);
    const cJSON *group;
    int shown = 0, count = cJSON_GetArraySize(groups);

    cJSON_ArrayForEach(group, groups)
    {
        if (!table || shown++ == GROUPS_SHOWN) {
            break;
        }
        struct gd_buf text = GD_BUF_INIT(4096);
        double frozen = out_number_of(group, "frozen");
        add_options(call, cJSON_GetObjectItem(group, "options"), &text);
        cJSON *lr = cJSON_GetObjectItem(group, "lr");
        out_put(table, OUT_INT("group", out_number_of(group, "group")),
                OUT_IF(cJSON_IsNumber(lr), OUT_REAL("lr", lr->valuedouble)),
                OUT_INT("parameters", out_number_of(group, "parameters")),
                OUT_INT("elements", out_number_of(group, "elements")),
                OUT_IF(frozen > 0, OUT_INT("frozen", frozen)),
                OUT_TEXT("text", gd_buf_text(&text)));
        gd_buf_deinit(&text);
    }
    out_table_end(table);
    if (count > GROUPS_SHOWN) {
        out_printf(call->out, "... %d more groups (--json has all)\n", count - GROUPS_SHOWN);
    }
}

static int ask_process(struct command_call *call, const char *type, cJSON **record,
                       struct gd_err *err)
{
    *record = out_record(call->out, type);
    int rc = info_ask(call, "optimizer", *record, err);
    return rc == GD_EUNSUPPORTED ? fail_unknown(call, err) : rc;
}

int info_optimizer(struct command_call *call, struct gd_err *err)
{
    cJSON *record;
    const cJSON *one;
    int rc = ask_process(call, "optimizers", &record, err);

    if (rc != GD_OK) {
        return rc;
    }
    info_say_moment(call, record);
    out_printf(call->out, "\n");
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(record, "optimizers"))
    {
        out_say(call->out, one,
                "{name}[, {?main}the main one]: {parameters|parameter}, {elements|element}, state "
                "{state_bytes:bytes} in {state_tensors|tensor}\n");
        show_groups(call, cJSON_GetObjectItem(one, "groups"));
        out_say_each(call->out, cJSON_GetObjectItem(one, "schedulers"),
                     "Scheduler: {name}[ ({place})]\n");
    }
    return GD_OK;
}

/* ---- info lr ------------------------------------------------------------------------------- */

static const char *schedulers_of(struct command_call *call, const cJSON *optimizer)
{
    struct gd_buf text = GD_BUF_INIT(4096);
    const cJSON *one;

    cJSON_ArrayForEach(one, cJSON_GetObjectItem(optimizer, "schedulers"))
    {
        const char *place = out_text_of(one, "place");
        gd_buf_printf(&text, "%s%s%s%s%s", text.len > 0 ? ", " : "",
                      out_safe(call, out_text_of(one, "name")), place[0] != '\0' ? " (" : "",
                      out_safe(call, place), place[0] != '\0' ? ")" : "");
    }
    return inspect_take(call, &text);
}

/* A program that has only the metric. */
static int show_metric(struct command_call *call, cJSON *record, struct gd_err *err)
{
    const struct gd_scalar *lr = gd_session_scalar(call->session, "lr");

    if (!lr) {
        return gd_fail(err, GD_ENODATA,
                       "the learning rate is unknown: the training has not reported the metric lr");
    }
    info_add_moment(call, record);
    out_set(record, OUT_INT("step", lr->step), OUT_REAL("lr", lr->value));
    info_say_moment(call, record);
    out_say(call->out, record, ": lr = {text}\n",
            OUT_TEXT("text", repl_scalar_text(call->arena, lr->value, 9)));
    return GD_OK;
}

int info_lr(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"lr", "Rate", true, ":.6"},
                                                {"group", "Group", true},
                                                {"optimizer", "Optimizer", false},
                                                {"schedulers", "Scheduler", false}};
    cJSON *record;
    const cJSON *one, *group;
    int rc = ask_process(call, "lr", &record, err);

    if (rc != GD_OK && rc != GD_EUNSUPPORTED) {
        return rc;
    }
    if (rc == GD_EUNSUPPORTED) {
        return show_metric(call, record, err);
    }
    info_say_moment(call, record);
    out_printf(call->out, ": the rates that the next step uses; \"set lr\" changes them\n");
    cJSON *optimizers = cJSON_DetachItemFromObject(record, "optimizers");
    struct out_table *table = out_table_begin(call->out, "rates", columns, 4);
    cJSON_ArrayForEach(one, optimizers)
    {
        const char *schedulers = schedulers_of(call, one);
        cJSON_ArrayForEach(group, cJSON_GetObjectItem(one, "groups"))
        {
            cJSON *lr = cJSON_GetObjectItem(group, "lr");
            out_put(table, OUT_TEXT("optimizer", out_text_of(one, "name")),
                    OUT_INT("group", out_number_of(group, "group")),
                    OUT_IF(cJSON_IsNumber(lr), OUT_REAL("lr", lr->valuedouble)),
                    OUT_TEXT("schedulers", schedulers));
        }
    }
    out_table_end(table);
    cJSON_Delete(optimizers);
    return GD_OK;
}
