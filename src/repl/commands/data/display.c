// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: display, undisplay. Also "info display". */
#include <stdlib.h>
#include <string.h>

#include "repl/commands/data/metric.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/number.h"
#include "repl/values/value.h"

#define DISPLAY_MAX    64 /* expressions */
#define DISPLAY_VALUES 8  /* elements that are shown without a format letter */

struct display {
    int number;
    char *text;      /* tensor as typed, or a metric's name */
    char letters[8]; /* print format */
    enum value_which which;
    bool disabled;
};

struct display_list {
    struct display item[DISPLAY_MAX];
    int count;
    int last_number;
};

static void free_list(void *data)
{
    struct display_list *list = data;
    for (int i = 0; i < list->count; i++) {
        free(list->item[i].text);
    }
    free(list);
}

static struct display_list *find_list(struct repl *repl)
{
    return repl_slot(repl, REPL_SLOT_DISPLAY);
}

/* ---- showing ------------------------------------------------------------------------------- */

static void show_value(struct command_call *call, const struct display *display,
                       struct value *value, const struct gd_format *format, cJSON *record)
{
    bool values =
        value->tensor && (format->letter != 0 || gd_tensor_count(value->tensor) <= DISPLAY_VALUES);
    if (out_is_json(call->out)) {
        value_record(call, value, values ? format : NULL, record);
        return;
    }
    out_printf(call->out, "%d: %s\n", display->number, value_title(call, value));
    value_print_summary(call, value);
    if (values) {
        value_print_elements(call, value, format, NULL);
    }
}

/* An expression without a value shows the reason; the others are shown all the same. */
static int show_one(struct command_call *call, const struct display *display, cJSON *record)
{
    const struct gd_scalar *scalar = NULL;
    struct gd_err err = {0};
    struct gd_format format;
    struct value value;
    double number;
    bool known;
    const char *why;
    out_set(record, OUT_INT("number", display->number));
    int rc = value_format(call, display->letters, &format, &err);
    rc = rc != GD_OK ? rc : value_parse(call, display->text, &value, &err);
    if (rc == GD_OK) {
        value.which = display->which;
        rc = value_fetch(call, &value, VALUE_SHOW, &err);
        if (rc == GD_OK) {
            show_value(call, display, &value, &format, record);
        }
        value_deinit(&value);
    } else if (call->session) {
        scalar = gd_session_scalar(call->session, display->text);
    }
    if (!scalar && rc != GD_OK && number_find(call, display->text, &number, &known, &why)) {
        out_set(record, OUT_TEXT("name", display->text), OUT_IF(known, OUT_REAL("value", number)),
                OUT_IF(!known, OUT_TEXT("error", why)));
        out_say(call->out, record, "{number}: {name}[ = {text}][: {error}]\n",
                OUT_TEXT("text", known ? repl_scalar_text(call->arena, number, 9) : ""));
        return GD_OK;
    }
    if (scalar) {
        out_set(record, OUT_TEXT("name", scalar->name), OUT_REAL("value", scalar->value),
                OUT_INT("step", scalar->step));
        out_say(call->out, record, "{number}: {name} = {text}[{?old} (step {step})]\n",
                OUT_TEXT("text", repl_scalar_text(call->arena, scalar->value, 9)),
                OUT_BOOL("old", scalar->step != gd_session_step(call->session)));
        return GD_OK;
    }
    if (rc == GD_ENOTFOUND && metric_is_awaited(call, display->text, &err)) {
        out_set(record, OUT_TEXT("name", display->text), OUT_TEXT("error", err.text));
        out_say(call->out, record, "{number}: {error}\n");
        return GD_ENODATA;
    }
    if (rc != GD_OK) {
        out_set(record, OUT_TEXT("name", display->text), OUT_TEXT("error", err.text));
        out_say(call->out, record, "{number}: {name}: {error}\n");
    }
    return rc;
}

static void show_all(struct command_call *call, const struct display_list *list)
{
    cJSON *records = out_list(out_record(call->out, "display"), "displays");
    int rc = GD_OK;
    for (int i = 0; i < list->count && rc != GD_EINTR; i++) {
        if (!list->item[i].disabled) {
            rc = show_one(call, &list->item[i], out_push(records));
        }
    }
}

static void at_stop(struct command_call *call, void *ctx)
{
    struct display_list *list = find_list(call->repl);
    (void)ctx;
    if (list && list->count > 0) {
        show_all(call, list);
    }
}

/* ---- the commands -------------------------------------------------------------------------- */

static struct display_list *make_list(struct repl *repl)
{
    struct display_list *list = find_list(repl);
    if (!list) {
        list = calloc(1, sizeof(*list));
        if (list) {
            repl_set_slot(repl, REPL_SLOT_DISPLAY, list, free_list);
            repl_at_stop(repl, at_stop, NULL);
        }
    }
    return list;
}

static int add_display(struct command_call *call, const char *text, enum value_which which,
                       struct gd_err *err)
{
    struct display_list *list = make_list(call->repl);
    char *copy = strdup(text);
    if (!list || !copy) {
        free(copy);
        return gd_fail_nomem(err);
    }
    if (list->count == DISPLAY_MAX) {
        free(copy);
        return gd_fail(err, GD_ELIMIT, "%d expressions are already displayed: undisplay some first",
                       DISPLAY_MAX);
    }
    struct display *item = &list->item[list->count++];
    *item = (struct display){.number = ++list->last_number, .text = copy, .which = which};
    memcpy(item->letters, call->format, strlen(call->format) + 1);
    if (call->session && call->session->state != GD_RUNNING) {
        show_one(call, item, out_record(call->out, "displayed"));
    } else {
        out_printf(call->out, "%d: %s\n", item->number, out_safe(call, text));
    }
    return GD_OK;
}

static int run_display(struct command_call *call, struct gd_err *err)
{
    struct gd_format format;
    int rc = value_format(call, call->format, &format, err);
    if (rc == GD_OK && strlen(call->format) >= sizeof(((struct display *)0)->letters)) {
        rc = gd_fail(err, GD_EUSAGE, "too many format letters");
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc == 0) {
        const struct display_list *list = find_list(call->repl);
        if (list && list->count > 0) {
            show_all(call, list);
        }
        return GD_OK;
    }
    enum value_which which = call->argc > 1 ? value_take_which(call) : VALUE_CURRENT;
    inspect_join_slices(call);
    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "display: specify one tensor or metric");
    }
    return add_display(call, call->argv[0], which, err);
}

static int remove_display(struct display_list *list, int64_t number, struct gd_err *err)
{
    for (int i = 0; i < list->count; i++) {
        if (list->item[i].number == number) {
            free(list->item[i].text);
            list->count--;
            memmove(&list->item[i], &list->item[i + 1],
                    (size_t)(list->count - i) * sizeof(list->item[0]));
            return GD_OK;
        }
    }
    return gd_fail(err, GD_ENOTFOUND, "there is no display %lld; `info display` lists them",
                   (long long)number);
}

static int run_undisplay(struct command_call *call, struct gd_err *err)
{
    struct display_list *list = find_list(call->repl);
    if (!list || list->count == 0) {
        return gd_fail(err, GD_ENOTFOUND, "nothing is displayed");
    }
    if (call->argc == 0) {
        if (!repl_confirm(call, "Delete all %d displays?", list->count)) {
            return GD_OK;
        }
        while (list->count > 0) {
            free(list->item[--list->count].text);
        }
        return GD_OK;
    }
    for (int i = 0; i < call->argc; i++) {
        int64_t number = 0;
        int rc = arg_count(call->argv[i], 1, INT32_MAX, &number, err);
        rc = rc != GD_OK ? rc : remove_display(list, number, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}

int info_display(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"number", "Num", true},
                                                {"format", "Format", false},
                                                {"which", "Value", false},
                                                {"text", "Expression", false}};
    static const char *const which[] = {"current", "prev", "diff"};
    const struct display_list *list = find_list(call->repl);
    (void)err;
    if ((!list || list->count == 0) && !out_is_json(call->out)) {
        out_printf(call->out, "Nothing is displayed.\n");
        return GD_OK;
    }
    struct out_table *table = out_table_begin(call->out, "displays", columns, 4);
    for (int i = 0; list && i < list->count; i++) {
        const struct display *item = &list->item[i];
        const char *letters = item->letters[0] ? inspect_printf(call, "/%s", item->letters) : "";
        out_put(table, OUT_INT("number", item->number), OUT_TEXT("format", letters),
                OUT_TEXT("which", which[item->which]), OUT_TEXT("text", item->text));
    }
    out_table_end(table);
    return GD_OK;
}

const struct command cmd_display = {
    .name = "display",
    .group = "data",
    .usage = "display[/f|e|x|d] [NODE[:SLOT][SLICE]|SCALAR [prev|diff]]",
    .summary = "Show a tensor or a metric now and at every stop",
    .help = "Show one line of statistics, and the values if there are few or a format letter is\n"
            "given. Without an argument, show all displays again.",
    .examples = "display loss\n"
                "display model/head/weight diff\n"
                "display/e model/head/weight[0, :4]",
    .args = {ARG_TENSOR},
    .flags = CMD_REPEATS_BARE | CMD_METRICS,
    .run = run_display,
};

const struct command cmd_undisplay = {
    .name = "undisplay",
    .group = "data",
    .usage = "undisplay [N ...]",
    .summary = "Stop displaying the given numbers, or all",
    .examples = "undisplay 2\n"
                "undisplay",
    .args = {ARG_WORD},
    .run = run_undisplay,
};
