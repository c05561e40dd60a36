// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Overflows: asking the training process, and showing its replies.
 */
#include <string.h>

#include "base/buf.h"
#include "repl/commands/breakpoints/overflow.h"
#include "repl/core/command.h"
#include "repl/core/everyone.h"
#include "repl/values/inspect.h"

#define OVERFLOW_MAX_WORDS ((size_t)16384)

static int need_commands(struct command_call *call, struct gd_err *err)
{
    if (!call->session->target || !(call->session->target->capabilities & GD_CAN_COMMAND)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "this training process cannot look for overflows; use \"watch TO on all\" "
                       "to find non-finite outputs");
    }
    return GD_OK;
}

/* The caller deletes *ret, also after a failure. */
static int read_reply(const char *text, cJSON **ret, struct gd_err *err)
{
    *ret = cJSON_Parse(text);
    return cJSON_IsObject(*ret)
               ? GD_OK
               : gd_fail(err, GD_EPROTO, "the training process sent a malformed reply");
}

int overflow_ask(struct command_call *call, const char *name, const char *args, cJSON **ret,
                 struct gd_err *err)
{
    const char *text = NULL;
    int rc = need_commands(call, err);
    if (rc == GD_OK) {
        rc = repl_command(call, name, args, GD_NO_NODE, &text, err);
    }
    return rc == GD_OK ? read_reply(text, ret, err) : rc;
}

int overflow_ask_all(struct command_call *call, const char *args, cJSON **ret, struct gd_err *err)
{
    const char *text = NULL;
    int rc = need_commands(call, err);
    if (rc == GD_OK) {
        rc = everyone_command(call, OVERFLOW_COMMAND, args, &text, err);
    }
    return rc == GD_OK ? read_reply(text, ret, err) : rc;
}

const char *overflow_text(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return text ? text : "";
}

double overflow_number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

void overflow_add_word(struct gd_buf *out, const char *word)
{
    gd_buf_puts(out, out->len > 0 ? " '" : "'");
    for (const char *p = word; *p != '\0'; p++) {
        if (*p == '\'') {
            gd_buf_puts(out, "'\"'\"'");
        } else {
            gd_buf_putc(out, *p);
        }
    }
    gd_buf_putc(out, '\'');
}

static void add_bad(const cJSON *tensor, struct gd_buf *out)
{
    static const char *const names[][2] = {{"nan", "nan"}, {"pos_inf", "inf"}, {"neg_inf", "-inf"}};
    size_t before = out->len;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        double count = overflow_number(tensor, names[i][0]);
        if (count > 0) {
            gd_buf_printf(out, "%s%.0f %s", out->len > before ? ", " : "", count, names[i][1]);
        }
    }
}

/* "11 -inf of 64"; "finite, 0 ... 7e+04" */
static const char *tensor_text(struct command_call *call, const cJSON *tensor)
{
    struct gd_buf text = GD_BUF_INIT(1024);
    const cJSON *min = cJSON_GetObjectItem(tensor, "min");
    const cJSON *max = cJSON_GetObjectItem(tensor, "max");
    add_bad(tensor, &text);
    if (text.len > 0) {
        gd_buf_printf(&text, " of %.0f", overflow_number(tensor, "count"));
    } else if (cJSON_IsNumber(min) && cJSON_IsNumber(max)) {
        gd_buf_printf(&text, "%.6g ... %.6g", min->valuedouble, max->valuedouble);
    } else {
        gd_buf_puts(&text, "?");
    }
    const char *copy = out_safe(call, gd_buf_text(&text));
    gd_buf_deinit(&text);
    return copy;
}

/* Up to three tensors of a list: "0 ... 1; 7 ... 9". */
const char *overflow_tensors(struct command_call *call, const cJSON *list)
{
    const char *text = "";
    int count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (++count > 3) {
            return inspect_printf(call, "%s; ...", text);
        }
        text = inspect_printf(call, "%s%s%s", text, count > 1 ? "; " : "", tensor_text(call, item));
    }
    return text;
}

/* The flags of an overflow, and the verdict of rerun. */
static const char *remarks_text(struct command_call *call, const cJSON *entry)
{
    const char *text = overflow_text(entry, "verdict");
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(entry, "flags"))
    {
        text = inspect_printf(call, "%s%s%s", text, text[0] ? ", " : "",
                              cJSON_IsString(item) ? item->valuestring : "");
    }
    if (overflow_number(entry, "times") > 1) {
        text = inspect_printf(call, "%s (%.0f times)", text, overflow_number(entry, "times"));
    }
    return out_safe(call, text);
}

/* The operator was asked to produce infinities, as a mask of -inf is. */
static bool is_intended(const cJSON *entry)
{
    const cJSON *flag;
    cJSON_ArrayForEach(flag, cJSON_GetObjectItem(entry, "flags"))
    {
        if (cJSON_IsString(flag) && strcmp(flag->valuestring, "intended") == 0) {
            return true;
        }
    }
    return false;
}

static size_t count_intended(const cJSON *entries)
{
    size_t count = 0;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, entries)
    {
        count += is_intended(entry);
    }
    return count;
}

static void list_table(struct command_call *call, const cJSON *entries, bool all)
{
    static const struct out_column columns[] = {
        {"number", "Num", true},           {"step", "Step", true},  {"phase", "Phase", false},
        {"node", "Node", false, ":fit60"}, {"line", "Line", false}, {"inputs", "Given", false},
        {"outputs", "Made", false},        {"remarks", "", false}};
    struct out_table *table = out_table_begin(call->out, "rows", columns, 8);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, entries)
    {
        if (!all && is_intended(entry)) {
            continue;
        }
        out_put(table, OUT_INT("number", overflow_number(entry, "number")),
                OUT_INT("step", overflow_number(entry, "step")),
                OUT_TEXT("phase", overflow_text(entry, "phase")),
                OUT_TEXT("node", overflow_text(entry, "node")),
                OUT_TEXT("line", overflow_text(entry, "line")),
                OUT_TEXT("inputs", overflow_tensors(call, cJSON_GetObjectItem(entry, "inputs"))),
                OUT_TEXT("outputs", overflow_tensors(call, cJSON_GetObjectItem(entry, "outputs"))),
                OUT_TEXT("remarks", remarks_text(call, entry)));
    }
    out_table_end(table);
    cJSON_ArrayForEach(entry, entries)
    {
        const char *folder = overflow_text(entry, "folder"), *note = overflow_text(entry, "note");
        if (folder[0] != '\0' || note[0] != '\0') {
            out_printf(call->out, "%.0f: %s\n", overflow_number(entry, "number"),
                       out_safe(call, folder[0] != '\0' ? folder : note));
        }
    }
}

static void state_text(struct command_call *call, const cJSON *reply)
{
    const cJSON *stop = cJSON_GetObjectItem(reply, "stop");
    double stops = overflow_number(reply, "stop"), records = overflow_number(reply, "record");
    if (cJSON_IsString(stop)) {
        out_printf(call->out, "The training stops at every overflow.\n");
    } else if (stops > 0) {
        out_printf(call->out, "The training stops at the next %s.\n",
                   stops > 1 ? inspect_printf(call, "%.0f overflows", stops) : "overflow");
    }
    if (records > 0) {
        out_printf(call->out, "The next %s recorded in %s\n",
                   records > 1 ? inspect_printf(call, "%.0f overflows are", records)
                               : "overflow is",
                   out_safe(call, overflow_text(reply, "folder")));
    }
    if (!cJSON_IsString(stop) && stops <= 0 && records <= 0) {
        out_printf(call->out, "Overflow detection is off.\n");
    }
}

/* Where NaN came from that no operator produced. */
static void hint_text(struct command_call *call, const cJSON *hint)
{
    if (cJSON_IsObject(hint)) {
        out_printf(call->out, "In step %.0f, %s received NaN that no operator produced: %s\n",
                   overflow_number(hint, "step"), out_safe(call, overflow_text(hint, "node")),
                   out_safe(call, overflow_text(hint, "given")));
    }
}

void overflow_take_members(cJSON *record, cJSON *reply)
{
    while (reply->child) {
        cJSON *item = cJSON_DetachItemViaPointer(reply, reply->child);
        out_set(record, OUT_JSON(item->string, item));
    }
}

/* Older agents do not count the operators. */
static void none_text(struct command_call *call, const cJSON *reply)
{
    const cJSON *looked = cJSON_GetObjectItem(reply, "looked");
    double count = overflow_number(reply, "looked");
    if (!cJSON_IsNumber(looked)) {
        out_printf(call->out, "No overflow found; the number of checked operators is unknown.\n");
    } else if (count > 0) {
        out_printf(call->out, "No overflow found: %s checked.\n",
                   inspect_plural(call, (uint64_t)count, "operator"));
    } else {
        out_printf(call->out, "No operator has been checked yet.\n");
    }
}

static void list_overflows(struct command_call *call, const cJSON *reply, bool all)
{
    const cJSON *entries = cJSON_GetObjectItem(reply, "overflows");
    size_t intended = count_intended(entries);
    bool any = (size_t)cJSON_GetArraySize(entries) > (all ? 0 : intended);
    if (any) {
        list_table(call, entries, all);
    } else {
        none_text(call, reply);
    }
    if (!all && intended > 0) {
        out_printf(call->out, "%s hidden: intended, e.g. masks of -inf (info overflows -a)\n",
                   inspect_plural(call, intended, "operator"));
    }
}

void overflow_show(struct command_call *call, cJSON *reply, enum overflow_listing listing)
{
    if (out_is_json(call->out)) {
        overflow_take_members(out_record(call->out, "overflows"), reply);
        return;
    }
    state_text(call, reply);
    if (listing != OVERFLOWS_NONE) {
        list_overflows(call, reply, listing == OVERFLOWS_ALL);
        hint_text(call, cJSON_GetObjectItem(reply, "hint"));
    }
}
