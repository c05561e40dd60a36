// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/commands/breakpoints/dprintf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format.h"
#include "engine/statistic.h"
#include "engine/watch/expression.h"
#include "engine/watch/numbers.h"
#include "repl/commands/breakpoints/dprintf_text.h"
#include "repl/core/events.h"
#include "repl/core/repl_impl.h"
#include "repl/out/out_impl.h"
#include "repl/values/evaluate.h"
#include "repl/values/inspect.h"
#include "repl/values/number.h"

#define MAX_TEXT ((size_t)64 << 20) /* of one print */

enum wanted { WANT_STRING, WANT_NUMBER, WANT_TENSOR, WANT_STATISTIC, WANT_PYTHON };

struct value {
    struct print *print;
    const char *text; /* the argument as typed */
    enum wanted want;
    const char *string; /* WANT_STRING: what is printed; NULL: the text */
    const char *digits; /* WANT_NUMBER: of a Python int, which may be exact where a double is not */
    bool is_metric;     /* `number` is that of a metric, in case that Python has no such variable */
    enum gd_statistic statistic;
    double number;
    struct gd_tensor_ref ref;
    struct gd_slice slice;
    struct gd_tensor *tensor; /* owned */
    struct gd_stats stats;
    enum gd_dtype dtype;
    struct gd_err err; /* why it is unknown; GD_OK: it is known */
};

struct line { /* one dprintf */
    int number;
    struct dprintf_text text;
    struct value *value; /* arg_count; with a guard that needs statistics one more */
    int count;
    bool guard_needs;
};

/* What one stop prints. It is freed when the last answer has come. */
struct print {
    struct repl *repl; /* NULL: gone */
    struct gd_session *session;
    gd_node_id node;
    int64_t step;
    struct gd_arena arena;
    struct line *line;
    int line_count;
    size_t waiting; /* answers; one more while the requests are made */
    struct print *next;
};

struct printing { /* of a REPL */
    struct repl *repl;
    struct print *first;
};

/* ---- the values ---------------------------------------------------------------------------- */

static bool metric_of(void *ctx, const char *name, double *ret)
{
    const struct print *print = ctx;
    struct gd_numbers numbers = {.session = print->session, .step = print->step};

    return gd_numbers_get(&numbers, name, ret);
}

static bool observe_value(const struct value *value, struct gd_observation *ret)
{
    *ret =
        (struct gd_observation){.stats = value && value->err.code == GD_OK ? &value->stats : NULL,
                                .error = value && value->err.code != GD_OK ? GD_HIT_NO_VALUE : 0,
                                .dtype = value ? value->dtype : GD_DT_NONE,
                                .range = -1,
                                .step = value ? value->print->step : 0,
                                .value_step = -1,
                                .scalar = metric_of,
                                .scalar_ctx = value ? value->print : NULL};
    return ret->stats != NULL;
}

static void compute_statistic(struct value *value)
{
    struct gd_observation seen;
    unsigned why = 0;

    if (observe_value(value, &seen) &&
        !gd_statistic_value(value->statistic, &seen, &value->number, &why)) {
        value->number = NAN; /* nothing finite */
    }
}

/* Whether the text is WORD followed by an end, a slot or a slice; *rest is what follows. */
static bool begins_with(const char *text, const char *word, const char **rest)
{
    size_t len = strlen(word);

    *rest = text + len;
    return strncmp(text, word, len) == 0 && (!**rest || **rest == ':' || **rest == '[');
}

/* "in0": a dumped input, or the tensor of the node that produced it. */
static int find_input(struct command_call *call, struct value *value, struct gd_err *err)
{
    struct print *print = value->print;
    char *rest = NULL;
    unsigned long index = strtoul(value->text + 2, &rest, 10);
    struct tensor_arg arg;
    struct gd_node_info info;

    if (gd_graph_node(print->session->graph, print->node, &info) && info.input_slots == 0) {
        if (index >= info.input_count || info.inputs[index].node == GD_NO_NODE) {
            return gd_fail(err, GD_ENOTFOUND, "%.200s has no known input %lu", info.name, index);
        }
        value->ref =
            (struct gd_tensor_ref){info.inputs[index].node, info.inputs[index].slot, GD_CURRENT};
        size_t used = 0;
        return *rest ? gd_slice_parse(rest, strlen(rest), &used, &value->slice, err) : GD_OK;
    }
    int rc =
        arg_tensor(call, inspect_printf(call, "%s:in%lu%s", info.name, index, rest), &arg, err);
    value->ref = arg.ref;
    value->slice = arg.slice;
    return rc;
}

/* ".", "in0" and names: a tensor. */
static int find_tensor(struct command_call *call, struct value *value, const char *text,
                       struct gd_err *err)
{
    struct print *print = value->print;
    struct tensor_arg arg;
    const char *rest;

    if (strncmp(text, "in", 2) == 0 && text[2] >= '0' && text[2] <= '9' &&
        strspn(text + 2, "0123456789") + 2 == strcspn(text, "[")) {
        const char *typed = value->text;
        value->text = text;
        int rc = find_input(call, value, err);
        value->text = typed;
        return rc;
    }
    if (begins_with(text, ".", &rest) && print->node == GD_NO_NODE) {
        return gd_fail(err, GD_EINVAL, "a line has no output: name a node");
    }
    if (begins_with(text, ".", &rest)) {
        text =
            inspect_printf(call, "%s%s", gd_graph_name(print->session->graph, print->node), rest);
    }
    int rc = text[0] == '$' ? gd_fail(err, GD_EINVAL, "a value from the history cannot be printed")
                            : arg_tensor(call, text, &arg, err);
    if (rc == GD_OK) {
        value->ref = arg.ref;
        value->slice = arg.slice;
    }
    return rc;
}

/* STATISTIC(TENSOR); false: it is not one. */
static bool find_statistic(struct command_call *call, struct value *value, int *rc)
{
    size_t len = strlen(value->text), open = strcspn(value->text, "(");
    const char *name = inspect_printf(call, "%.*s", (int)open, value->text);
    bool bare = open == len;

    value->statistic = gd_statistic_find(name, NULL);
    if (value->statistic == GD_STAT_NONE || (!bare && value->text[len - 1] != ')')) {
        return false;
    }
    value->want = WANT_STATISTIC;
    const char *inside =
        bare ? "." : inspect_printf(call, "%.*s", (int)(len - open - 2), value->text + open + 1);
    if (gd_statistic_needs(value->statistic) & GD_NEED_MORE) {
        *rc = gd_fail(&value->err, GD_EUNSUPPORTED, "%s cannot be printed: watch it", name);
    } else {
        *rc = find_tensor(call, value, strcmp(inside, "cur") == 0 ? "." : inside, &value->err);
    }
    return true;
}

/* "best(loss)", "mean(loss, 20)"; false: it is not a function of metrics. mean(TENSOR) is none. */
static bool find_function(struct command_call *call, struct value *value, int *rc)
{
    struct gd_expr *expr = NULL;
    const char *why;
    bool known;

    if (!strchr(value->text, '(') || gd_expr_parse(value->text, &expr, NULL) != GD_OK) {
        return false;
    }
    gd_expr_destroy(expr);
    if (!number_find(call, value->text, &value->number, &known, &why)) {
        return false;
    }
    value->want = WANT_NUMBER;
    *rc = known ? GD_OK : gd_fail(&value->err, GD_ENODATA, "%s", why);
    return true;
}

/* What an argument means: a number, a metric, a statistic of a tensor, or a tensor. */
static int resolve_value(struct command_call *call, struct value *value)
{
    char *end = NULL;
    int rc = GD_OK;

    value->number = strtod(value->text, &end);
    if (end != value->text && *end == '\0') {
        value->want = WANT_NUMBER;
        return GD_OK;
    }
    if (find_function(call, value, &rc) || find_statistic(call, value, &rc)) {
        return rc;
    }
    if (metric_of(value->print, value->text, &value->number)) {
        value->want = WANT_NUMBER;
        value->is_metric = strcmp(value->text, "step") != 0; /* gradb's own everywhere */
        return GD_OK;
    }
    value->want = WANT_TENSOR;
    rc = find_tensor(call, value, value->text, &value->err);
    if (rc == GD_ENOTFOUND && !strpbrk(value->text, "/[(")) {
        rc = gd_fail(&value->err, rc, "it is neither a node nor a metric so far");
    }
    return rc;
}

static void finish_print(struct print *print);

static void take_answer(struct print *print)
{
    if (--print->waiting == 0) {
        finish_print(print);
    }
}

static void fail_value(struct value *value, const struct gd_err *err)
{
    value->err = *err;
    value->err.code = err->code != GD_OK ? err->code : GD_EIO;
}

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct value *value = ctx;

    (void)step;
    if (err) {
        fail_value(value, err);
    } else if (value->want == WANT_TENSOR) {
        value->tensor = gd_tensor_ref(tensor);
    } else {
        value->dtype = tensor->dtype;
        if (gd_stats_compute(tensor, NULL, NULL, &value->stats, &value->err) == GD_OK) {
            value->err.code = GD_OK;
        }
    }
    take_answer(value->print);
}

static void on_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct value *value = ctx;

    (void)shape;
    (void)step;
    if (err) {
        fail_value(value, err);
    } else {
        value->dtype = dtype;
        value->stats = *stats;
    }
    take_answer(value->print);
}

/* Lines of the program's, without what could move the cursor. In the arena. */
static const char *make_safe(struct print *print, const char *text)
{
    struct gd_buf safe = GD_BUF_INIT(MAX_TEXT);

    for (; *text != '\0' && print->repl; text += strspn(text, "\t\n")) {
        size_t len = strcspn(text, "\t\n"), white = strspn(text + len, "\t\n");
        char *part = gd_arena_strndup(&print->arena, text, len);
        out_add_safe(&safe, part ? part : "?", repl_is_utf8(print->repl));
        gd_buf_add(&safe, text + len, white);
        text += len;
    }
    const char *copy = gd_arena_strdup(&print->arena, gd_buf_text(&safe));
    gd_buf_deinit(&safe);
    return copy ? copy : "?";
}

/* A number, or a text without its quotes. */
static void take_text(struct value *value, const cJSON *reply)
{
    const cJSON *string = cJSON_GetObjectItem(reply, "string");
    const char *text = make_safe(value->print, out_text_of(reply, "text"));
    const char *type = out_text_of(reply, "type");
    char *end = NULL;

    value->number = strcmp(type, "bool") == 0 ? strcmp(text, "True") == 0 : strtod(text, &end);
    bool number = strcmp(type, "bool") == 0 ||
                  ((strcmp(type, "int") == 0 || strcmp(type, "float") == 0) && end && *end == '\0');
    value->want = number ? WANT_NUMBER : WANT_STRING;
    value->digits = number && strcmp(type, "int") == 0 ? text : NULL;
    value->string = cJSON_IsString(string) ? make_safe(value->print, string->valuestring)
                    : strcmp(out_text_of(reply, "kind"), "none") == 0 ? "None"
                                                                      : text;
}

static void on_python(void *ctx, const char *text, const struct gd_err *err)
{
    struct value *value = ctx;
    cJSON *reply = err ? NULL : cJSON_Parse(text);
    const char *kind = out_text_of(reply, "kind");
    struct gd_err why = {.code = GD_OK};

    if (err) {
        why = *err;
    } else if (!reply) {
        gd_fail(&why, GD_EPROTO, "the training process sent an answer that is not JSON");
    } else if (strcmp(kind, "error") == 0) {
        gd_fail(&why, GD_EINVAL, "%.300s", make_safe(value->print, out_text_of(reply, "text")));
    } else if (strcmp(kind, "tensor") == 0) {
        value->want = WANT_TENSOR;
        evaluate_small_tensor(reply, &value->tensor, &why);
    } else {
        take_text(value, reply);
    }
    if (reply && gd_session_is_live(value->print->session)) {
        evaluate_note_changes(value->print->session, value->text, reply);
    }
    if ((why.code != GD_OK || err) && value->is_metric) { /* no variable has its name */
        value->want = WANT_NUMBER;
    } else if (why.code != GD_OK || err) {
        fail_value(value, &why);
    }
    cJSON_Delete(reply);
    take_answer(value->print);
}

/* An expression of Python's, in the frame of the line or in that which called the operator. */
static void ask_python(struct command_call *call, struct value *value)
{
    struct print *print = value->print;
    int rc = evaluate_may_now(call, &value->err);
    char *request = rc == GD_OK ? evaluate_request(call, "dprintf", value->text) : NULL;

    if (rc != GD_OK || !request) {
        value->err.code = rc != GD_OK ? rc : GD_ENOMEM;
        return;
    }
    value->err.code = GD_OK;
    value->want = WANT_PYTHON;
    print->waiting++;
    rc = gd_target_command(print->session->target, EVALUATE_COMMAND, request, GD_NO_NODE, on_python,
                           value, &value->err);
    cJSON_free(request);
    if (rc != GD_OK) {
        value->err.code = rc;
        print->waiting--;
    }
}

static void ask_value(struct command_call *call, struct value *value)
{
    struct print *print = value->print;
    int rc = value->want == WANT_STRING ? GD_OK : resolve_value(call, value);

    if (rc == GD_ENOTFOUND && evaluate_is_python(print->session)) {
        ask_python(call, value);
        return;
    }
    if (rc == GD_OK && value->is_metric && print->node == GD_NO_NODE &&
        evaluate_is_python(print->session) && evaluate_may_now(call, &value->err) == GD_OK) {
        ask_python(call, value); /* at a line, `loss` is the variable: the metric is of the past */
        return;
    }
    if (rc == GD_OK) {
        value->err.code = GD_OK; /* of an attempt before the one that succeeded */
    }
    if (rc != GD_OK || value->want == WANT_NUMBER || value->want == WANT_STRING) {
        return;
    }
    print->waiting++;
    bool whole = value->slice.count == 0;
    value->slice.abridge = value->want == WANT_TENSOR;
    rc = value->want == WANT_STATISTIC && whole
             ? gd_session_stats(print->session, &value->ref, on_stats, value, &value->err)
             : gd_session_fetch(print->session, &value->ref, &value->slice, on_tensor, value,
                                &value->err);
    if (rc != GD_OK) {
        value->err.code = rc;
        print->waiting--;
    }
}

/* ---- the text ------------------------------------------------------------------------------ */

/* A MindSpore 2 process prints what it computes outside of compiled graphs. */
static bool has_commas(const struct gd_session *session)
{
    return session->target && strcmp(session->peer.framework, "mindspore") == 0 &&
           strcmp(session->target->ops->kind, "gradb.v1") == 0;
}

static void add_tensor(const struct value *value, struct gd_buf *out)
{
    struct gd_err err;

    if (gd_format_print(value->tensor, has_commas(value->print->session), out, &err) != GD_OK) {
        gd_buf_printf(out, "<%s: %s>", value->text, err.text);
    }
}

static bool is_known(const struct value *value)
{
    return value->err.code == GD_OK && (value->want != WANT_TENSOR || value->tensor);
}

/* A tensor with one element is a number where one is wanted. */
static bool is_number(const struct value *value)
{
    return value->want == WANT_NUMBER || value->want == WANT_STATISTIC ||
           (value->tensor && gd_tensor_count(value->tensor) == 1);
}

static double number_of(const struct value *value)
{
    return value->want == WANT_TENSOR ? gd_dtype_load(value->tensor->dtype, value->tensor->data)
                                      : value->number;
}

/* As Print writes it, on a line of its own: a string or a tensor as it is, a number shortly. */
static void add_value(const struct value *value, const struct dprintf_piece *piece,
                      struct gd_buf *out)
{
    struct gd_buf text = GD_BUF_INIT(MAX_TEXT);

    if (!is_known(value)) {
        gd_buf_printf(&text, "<%s: %s>", value->text, value->err.text);
        dprintf_string(out, &(struct dprintf_piece){.text = "%"}, gd_buf_text(&text));
    } else if (value->want == WANT_STRING) {
        dprintf_string(out, piece, value->string ? value->string : value->text);
    } else if (value->want == WANT_TENSOR && (piece->conversion == 's' || !is_number(value))) {
        add_tensor(value, &text);
        dprintf_string(out, piece->conversion == 's' ? piece : &(struct dprintf_piece){.text = "%"},
                       gd_buf_text(&text));
    } else if (value->digits && value->want == WANT_NUMBER) {
        dprintf_whole(out, piece, value->digits);
    } else {
        dprintf_number(out, piece, number_of(value));
    }
    gd_buf_deinit(&text);
}

static void compose_line(const struct line *line, struct gd_buf *out)
{
    static const struct dprintf_piece plain = {"%", 's'};
    const struct dprintf_text *text = &line->text;
    int next = 0;

    if (!text->is_format) {
        for (int i = 0; i < text->arg_count; i++) {
            add_value(&line->value[i], &plain, out);
            gd_buf_putc(out, '\n');
        }
        return;
    }
    for (int i = 0; i < text->piece_count; i++) {
        if (text->piece[i].conversion) {
            add_value(&line->value[next++], &text->piece[i], out);
        } else {
            gd_buf_puts(out, text->piece[i].text);
        }
    }
    if (out->len == 0 || out->data[out->len - 1] != '\n') {
        gd_buf_putc(out, '\n');
    }
}

static void record_values(const struct line *line, cJSON *record)
{
    cJSON *list = out_list(record, "values");

    for (int i = 0; i < line->text.arg_count; i++) {
        const struct value *value = &line->value[i];
        cJSON *item = out_push(list);
        bool number = is_known(value) && value->want != WANT_STRING && is_number(value);
        const struct gd_tensor *tensor = value->tensor;
        out_set(item, OUT_TEXT("argument", value->text),
                OUT_IF(number, OUT_REAL("value", number ? number_of(value) : 0)),
                OUT_IF(tensor, OUT_TEXT("dtype", gd_dtype_name(tensor ? tensor->dtype : 0))),
                OUT_IF(tensor,
                       OUT_JSON("shape", inspect_shape_json(tensor->abridged ? &tensor->whole
                                                                             : &tensor->shape))),
                OUT_IF(!is_known(value), OUT_TEXT("error", value->err.text)));
    }
}

static void show_line(const struct print *print, const struct line *line)
{
    struct out_report report;
    struct repl_out *out = out_report_begin(&report, print->repl);
    struct gd_buf text = GD_BUF_INIT(MAX_TEXT);
    char prefix[EVENT_PREFIX];

    compose_line(line, &text);
    if (text.failed) {
        gd_buf_clear(&text);
        gd_buf_printf(&text, "<dprintf %d: the text is longer than %zu MiB>\n", line->number,
                      MAX_TEXT >> 20);
    }
    if (out_is_json(out)) {
        cJSON *record = out_record(out, "dprintf");
        event_add_session(record, print->session);
        out_set(record, OUT_INT("number", line->number), OUT_INT("step", print->step),
                OUT_TEXT("node", gd_graph_name(print->session->graph, print->node)),
                OUT_TEXT("text", gd_buf_text(&text)));
        record_values(line, record);
    }
    if (out_is_text(out)) {
        out_printf(out, "%s", event_prefix(print->repl, print->session, prefix));
        out_write(out, gd_buf_text(&text), text.len);
    }
    out_report_end(&report);
    gd_buf_deinit(&text);
}

/* Unknown is not true. */
static bool guard_holds(const struct print *print, const struct line *line,
                        const struct gd_breakpoint *at)
{
    struct gd_observation seen;
    unsigned why = 0;

    observe_value(line->guard_needs ? &line->value[line->text.arg_count] : NULL, &seen);
    seen.step = print->step;
    seen.scalar_ctx = (void *)(uintptr_t)print;
    return !at->guard || gd_expr_evaluate(at->guard, &seen, &why) == GD_TRUE;
}

static void end_line(struct print *print, struct line *line)
{
    struct gd_debugger *debugger = print->session->debugger;
    struct gd_breakpoint *at = gd_debugger_breakpoint(debugger, line->number);

    for (int i = 0; i < line->count; i++) {
        if (line->value[i].want == WANT_STATISTIC && line->value[i].err.code == GD_OK) {
            compute_statistic(&line->value[i]);
        }
    }
    if (!at || !at->enabled || !guard_holds(print, line, at) || !gd_breakpoint_reached(at)) {
        return;
    }
    show_line(print, line);
    if (repl_count_stop(print->repl, line->number)) { /* enable once, enable count */
        gd_debugger_enable_breakpoint(debugger, line->number, false, NULL);
    }
    if (at->temporary) { /* enable delete */
        gd_debugger_delete_breakpoint(debugger, line->number, NULL);
        repl_forget_number(print->repl, line->number);
    }
}

static void free_print(struct print *print)
{
    for (int i = 0; i < print->line_count; i++) {
        for (int k = 0; k < print->line[i].count; k++) {
            gd_tensor_unref(print->line[i].value[k].tensor);
        }
    }
    gd_arena_deinit(&print->arena);
    free(print);
}

static void finish_print(struct print *print)
{
    struct gd_session *session = print->session;

    if (print->repl && !print->repl->end.closing && gd_session_is_live(session)) {
        for (int i = 0; i < print->line_count; i++) {
            end_line(print, &print->line[i]);
        }
    }
    if (print->repl) {
        struct printing *printing = repl_slot(print->repl, REPL_SLOT_PRINT);
        struct print **link = &printing->first;
        while (*link != print) {
            link = &(*link)->next;
        }
        *link = print->next;
    }
    free_print(print);
    gd_session_printed(session);
    gd_session_release(session);
}

/* ---- the event ----------------------------------------------------------------------------- */

/* Parsed again each time: it is short, and the text is all that is kept of it. */
static int make_line(struct print *print, const struct gd_breakpoint *at, struct line *line)
{
    int rc = dprintf_parse(&print->arena, at->print[0] ? at->print : ".", &line->text, NULL);

    line->number = at->number;
    line->guard_needs = at->guard && gd_expr_has_statistic(at->guard);
    line->count = rc == GD_OK ? line->text.arg_count + line->guard_needs : 0;
    line->value = gd_arena_zalloc(&print->arena, ((size_t)line->count + 1) * sizeof(*line->value));
    for (int i = 0; line->value && i < line->count; i++) {
        bool guard = i == line->text.arg_count;
        line->value[i].print = print;
        line->value[i].text = guard ? "." : line->text.arg[i].text;
        line->value[i].want = !guard && line->text.arg[i].is_string ? WANT_STRING : WANT_TENSOR;
    }
    return line->value ? rc : GD_ENOMEM;
}

static void ask_guard(struct value *value)
{
    struct print *print = value->print;

    value->want = WANT_NUMBER; /* judged as a whole by the guard */
    value->ref = (struct gd_tensor_ref){.node = print->node};
    print->waiting++;
    if (gd_session_stats(print->session, &value->ref, on_stats, value, &value->err) != GD_OK) {
        print->waiting--;
    }
}

static void ask_all(struct print *print)
{
    static const struct command asker = {.name = "dprintf"};
    struct own_call own;
    struct command_call *call = repl_begin_call(&own, print->repl, &asker, print->session);

    for (int i = 0; i < print->line_count; i++) {
        struct line *line = &print->line[i];
        for (int k = 0; k < line->count; k++) {
            if (k == line->text.arg_count) {
                ask_guard(&line->value[k]);
            } else {
                ask_value(call, &line->value[k]);
            }
        }
    }
    out_report_end(&own.report);
}

static void begin_print(struct printing *printing, struct gd_session *session)
{
    struct print *print = calloc(1, sizeof(*print));
    int count = 0;

    for (struct gd_breakpoint *at = NULL; (at = gd_session_next_print(session, at));) {
        count++;
    }
    if (!print || count == 0) {
        free(print);
        return;
    }
    gd_arena_init(&print->arena, MAX_TEXT);
    print->repl = printing->repl;
    print->session = session;
    print->node = session->stop.at_line ? GD_NO_NODE : session->stop.node;
    print->step = session->stop.step;
    print->line = gd_arena_zalloc(&print->arena, (size_t)count * sizeof(*print->line));
    if (!print->line) {
        free_print(print);
        return;
    }
    for (struct gd_breakpoint *at = NULL; (at = gd_session_next_print(session, at));) {
        if (make_line(print, at, &print->line[print->line_count]) == GD_OK) {
            print->line_count++;
        }
    }
    print->next = printing->first;
    printing->first = print;
    print->waiting = 1;
    gd_session_hold(session);
    gd_session_hold_print(session);
    ask_all(print);
    take_answer(print);
}

static void on_event(void *ctx, const struct gd_event *event)
{
    if (event->type == GD_EV_PRINT) {
        begin_print(ctx, event->session);
    }
}

/* Answers that are under way find nobody. */
static void free_printing(void *data)
{
    struct printing *printing = data;

    gd_debugger_unobserve(repl_debugger(printing->repl), on_event, printing);
    for (struct print *print = printing->first; print; print = print->next) {
        print->repl = NULL;
    }
    free(printing);
}

int dprintf_watch_events(struct repl *repl, struct gd_err *err)
{
    struct printing *printing = repl_slot(repl, REPL_SLOT_PRINT);

    if (printing) {
        return GD_OK;
    }
    printing = repl_make_slot(repl, REPL_SLOT_PRINT, sizeof(*printing), free_printing);
    if (!printing) {
        return gd_fail_nomem(err);
    }
    printing->repl = repl;
    if (gd_debugger_observe(repl_debugger(repl), on_event, printing) != GD_OK) {
        return gd_fail_nomem(err);
    }
    return GD_OK;
}
