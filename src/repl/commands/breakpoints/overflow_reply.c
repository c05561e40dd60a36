// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Overflows: asking the training process, and showing its replies.
 */
#include <string.h>

#include "base/buf.h"
#include "repl/commands/breakpoints/overflow.h"
#include "repl/core/everyone.h"
#include "repl/values/inspect.h"

#define MAX_WORDS ((size_t)16384) /* bytes of a command of the training process */

static int fail_unable(const struct command_call *call, struct gd_err *err)
{
    return gd_fail(err, GD_EUNSUPPORTED, "%s; use \"watch TO on all\" to find non-finite outputs",
                   gd_session_is_record(call->session)
                       ? "what is open was recorded, and runs no operators"
                       : "this training process cannot look for overflows");
}

static int need_commands(struct command_call *call, struct gd_err *err)
{
    bool can = call->session->target && call->session->target->capabilities & GD_CAN_COMMAND;
    return can ? GD_OK : fail_unable(call, err);
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
    rc = rc != GD_OK ? rc : repl_command(call, name, args, GD_NO_NODE, &text, err);
    rc =
        rc == GD_EUNSUPPORTED ? fail_unable(call, err) : rc; /* it has commands, but not this one */
    return rc == GD_OK ? read_reply(text, ret, err) : rc;
}

int overflow_ask_all(struct command_call *call, const char *args, cJSON **ret, struct gd_err *err)
{
    const char *text = NULL;
    int rc = need_commands(call, err);
    rc = rc != GD_OK ? rc : everyone_command(call, OVERFLOW_COMMAND, args, &text, err);
    rc = rc == GD_EUNSUPPORTED ? fail_unable(call, err) : rc;
    return rc == GD_OK ? read_reply(text, ret, err) : rc;
}

static void add_word(struct gd_buf *out, const char *word)
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

const char *overflow_words(struct command_call *call, const char *first, int from)
{
    struct gd_buf text = GD_BUF_INIT(MAX_WORDS);
    add_word(&text, first);
    for (int i = from; i < call->argc; i++) {
        add_word(&text, call->argv[i]);
    }
    return inspect_take(call, &text);
}

static void add_bad(const cJSON *tensor, struct gd_buf *out)
{
    static const char *const names[][2] = {{"nan", "nan"}, {"pos_inf", "inf"}, {"neg_inf", "-inf"}};
    size_t before = out->len;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        double count = out_number_of(tensor, names[i][0]);
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
        gd_buf_printf(&text, " of %.0f", out_number_of(tensor, "count"));
    } else if (cJSON_IsNumber(min) && cJSON_IsNumber(max)) {
        gd_buf_printf(&text, "%.6g ... %.6g", min->valuedouble, max->valuedouble);
    } else {
        gd_buf_puts(&text, "?");
    }
    return out_safe(call, inspect_take(call, &text));
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

/* Remarks: the verdict of rerun, and the flags of the overflow. */
static void list_entries(struct command_call *call, const cJSON *entries, const cJSON *shown)
{
    static const struct out_column columns[] = {
        {"number", "Num", true},
        {"step", "Step", true},
        {"phase", "Phase", false},
        {"node", "Node", false, ":fit60"},
        {"line", "Line", false},
        {"inputs_text", "Given", false},
        {"outputs_text", "Made", false},
        {"verdict", "", false,
         "[{verdict}][{?verdict}{?flags}, ][{flags}][{?repeats} ({times} times)]"}};
    out_table_of(call->out, shown, SIZE_MAX, columns, sizeof(columns) / sizeof(columns[0]));
    out_say_each(call->out, entries, "[{number}: {folder}\n][{!folder}[{number}: {note}\n]]");
}

static void show_state(struct command_call *call, const cJSON *reply)
{
    const cJSON *stop = cJSON_GetObjectItem(reply, "stop");
    double stops = out_number_of(reply, "stop"), records = out_number_of(reply, "record");
    bool every = cJSON_IsString(stop);
    out_say(call->out, reply,
            "[{?every}The training stops at every overflow.\n]"
            "[{?once}The training stops at the next overflow.\n]"
            "[{?often}The training stops at the next {stop} overflows.\n]"
            "[The next {recorded} recorded in {folder}\n]"
            "[{?off}Overflow detection is off.\n]",
            OUT_BOOL("every", every), OUT_BOOL("once", stops > 0 && stops <= 1),
            OUT_BOOL("often", stops > 1),
            OUT_TEXT("recorded", records <= 0  ? ""
                                 : records > 1 ? inspect_printf(call, "%.0f overflows are", records)
                                               : "overflow is"),
            OUT_BOOL("off", !every && stops <= 0 && records <= 0));
}

/* Older agents do not count the operators. */
static const char *none_template(const cJSON *reply)
{
    const cJSON *looked = cJSON_GetObjectItem(reply, "looked");
    if (!cJSON_IsNumber(looked)) {
        return "No overflow found; the number of checked operators is unknown.\n";
    }
    return looked->valuedouble > 0 ? "No overflow found: {looked|operator} checked.\n"
                                   : "No operator has been checked yet.\n";
}

static void list_overflows(struct command_call *call, const cJSON *reply, bool all)
{
    const cJSON *entries = cJSON_GetObjectItem(reply, "overflows");
    cJSON *shown = cJSON_CreateArray(), *entry;
    uint64_t intended = 0;
    cJSON_ArrayForEach(entry, entries)
    {
        intended += is_intended(entry);
        if (all || !is_intended(entry)) {
            const cJSON *inputs = cJSON_GetObjectItem(entry, "inputs");
            const cJSON *outputs = cJSON_GetObjectItem(entry, "outputs");
            out_set(entry, OUT_TEXT("inputs_text", overflow_tensors(call, inputs)),
                    OUT_TEXT("outputs_text", overflow_tensors(call, outputs)),
                    OUT_BOOL("repeats", out_number_of(entry, "times") > 1));
            cJSON_AddItemReferenceToArray(shown, entry);
        }
    }
    if (cJSON_GetArraySize(shown) > 0) {
        list_entries(call, entries, shown);
    } else {
        out_say(call->out, reply, none_template(reply));
    }
    cJSON_Delete(shown);
    out_say(call->out, NULL,
            "[{hidden|operator} hidden: intended, e.g. masks of -inf (info overflows -a)\n]",
            OUT_INT("hidden", all ? 0 : intended));
}

void overflow_show(struct command_call *call, cJSON *reply, enum overflow_listing listing)
{
    if (out_is_json(call->out)) {
        out_move(out_record(call->out, "overflows"), reply);
        return;
    }
    show_state(call, reply);
    if (listing != OVERFLOWS_NONE) {
        list_overflows(call, reply, listing == OVERFLOWS_ALL);
        /* where NaN came from that no operator produced */
        const cJSON *hint = cJSON_GetObjectItem(reply, "hint");
        if (cJSON_IsObject(hint)) {
            out_say(call->out, hint,
                    "In step {step}, {node} received NaN that no operator produced: {given}\n");
        }
    }
}