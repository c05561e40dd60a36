// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: print */
#include <string.h>

#include "engine/watch/numbers.h"
#include "repl/commands/data/metric.h"
#include "repl/core/parse.h"
#include "repl/values/dump_notes.h"
#include "repl/values/evaluate.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/number.h"
#include "repl/values/value.h"

struct print_job {
    struct gd_format format;
    enum value_which which;
    bool summary; /* -s: no elements */
    cJSON *list;  /* for the records of several tensors; NULL: there is one */
};

static cJSON *next_record(struct command_call *call, const struct print_job *job, const char *type)
{
    return job->list ? out_push(job->list) : out_record(call->out, type);
}

/* Copies a slice, so that the history does not keep a large tensor alive. */
static int remember_value(struct command_call *call, const struct value *value)
{
    struct gd_tensor *copy = NULL;
    if (value->arg.slice.count == 0) {
        return repl_remember(call->repl, value->tensor, value->label);
    }
    const struct gd_tensor *view = value->tensor;
    if (gd_tensor_create(view->dtype, &view->shape, 0, &copy, NULL) != GD_OK) {
        return 0;
    }
    if (gd_tensor_count(view) > 0) {
        gd_strided_copy(gd_tensor_bytes_mut(copy), view->data, &view->shape, view->stride,
                        gd_dtype_size(view->dtype));
    }
    int number = repl_remember(call->repl, copy, value->label);
    gd_tensor_unref(copy);
    return number;
}

static int show_value(struct command_call *call, const struct print_job *job, struct value *value,
                      struct gd_err *err)
{
    const char *of_dump = value->is_history ? NULL : dump_note(call, &value->arg.ref, value->step);
    int number = 0;
    if (value->tensor && !value->is_history) {
        number = remember_value(call, value);
    }
    value_know_change(call, value);
    if (out_is_json(call->out)) {
        cJSON *record = next_record(call, job, "tensor");
        out_set(record, OUT_IF(of_dump, OUT_TEXT("stored", of_dump)),
                OUT_IF(number > 0, OUT_INT("history", number)));
        value_record(call, value, job->summary ? NULL : &job->format, record);
    }
    if (!out_is_text(call->out)) {
        return GD_OK;
    }
    if (number > 0) {
        out_printf(call->out, "$%d = ", number);
    }
    out_printf(call->out, "%s\n", value_title(call, value));
    value_print_summary(call, value);
    if (job->summary) {
        return GD_OK;
    }
    if (value->note) {
        out_printf(call->out, "(%s)\n", value->note);
    }
    if (of_dump) {
        out_printf(call->out, "(%s)\n", out_safe(call, of_dump));
    }
    return value_print_elements(call, value, &job->format, err);
}

/* One line for each slot of a node, with the reason if it has no value. */
static int print_slots(struct command_call *call, const struct print_job *job, struct value *value,
                       uint32_t count, struct gd_err *err)
{
    for (uint32_t slot = 0; slot < count; slot++) {
        struct value one = *value;
        one.arg.ref.slot = slot;
        one.label = inspect_tensor_name(call, value->arg.ref.node, slot);
        struct gd_err why = {0};
        int rc = value_fetch(call, &one, VALUE_STATS, &why);
        if (rc == GD_EINTR) {
            value_deinit(&one);
            return gd_fail(err, rc, "interrupted");
        }
        if (out_is_json(call->out)) {
            cJSON *record = next_record(call, job, "tensor");
            if (rc == GD_OK) {
                value_record(call, &one, NULL, record);
            } else {
                out_set(record, OUT_TEXT("name", one.label), OUT_TEXT("error", why.text));
            }
        }
        if (rc == GD_OK) {
            out_printf(call->out, "%s\n  ", value_title(call, &one));
            value_print_summary(call, &one);
        } else {
            out_printf(call->out, "%s\n  no value: %s\n", out_safe(call, one.label), why.text);
        }
        value_deinit(&one);
    }
    return GD_OK;
}

static bool print_scalar(struct command_call *call, const struct print_job *job, const char *name)
{
    const struct gd_scalar *scalar = call->session ? gd_session_scalar(call->session, name) : NULL;
    if (scalar) {
        cJSON *record = next_record(call, job, "scalar");
        out_set(record, OUT_TEXT("name", scalar->name), OUT_REAL("value", scalar->value),
                OUT_INT("step", scalar->step));
        out_say(call->out, record, "{name} = {text} (step {step})\n",
                OUT_TEXT("text", repl_scalar_text(call->arena, scalar->value, 9)));
    }
    return scalar != NULL;
}

/* The word selects nodes instead of naming one. */
static bool is_selector(const char *word)
{
    size_t len = strlen(word);
    return strpbrk(word, "*?") || strncmp(word, "type:", 5) == 0 || strncmp(word, "at:", 3) == 0 ||
           (len > 2 && word[0] == '/' && word[len - 1] == '/');
}

/* One line for each slot of each node that the selector covers. */
static int print_selected(struct command_call *call, struct print_job *job, const char *word,
                          struct gd_err *err)
{
    struct node_list list;
    int rc = nodes_select(call, word, &list, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (list.count == 0) {
        rc = gd_fail(err, GD_ENOTFOUND, "nothing matches %.200s", out_safe(call, word));
    }
    if (!job->list) {
        job->list = out_list(out_record(call->out, "tensors"), "tensors");
    }
    size_t shown = job->format.all || list.count <= NODES_SHOWN ? list.count : NODES_SHOWN;
    for (size_t i = 0; rc == GD_OK && i < shown; i++) {
        struct gd_node_info info;
        struct value value = {.which = job->which, .step = -1, .prev_step = -1};
        value.arg.ref.node = list.node[i];
        if (gd_graph_node(call->session->graph, list.node[i], &info)) {
            rc = print_slots(call, job, &value, info.output_count, err);
        }
    }
    if (rc == GD_OK && shown < list.count) {
        out_printf(call->out, "... %s more (print -a %s)\n",
                   inspect_number(call, list.count - shown), out_safe(call, word));
    }
    node_list_deinit(&list);
    return rc;
}

/* A number, a metric or an expression over metrics, which is not the name of a node. */
static bool print_number(struct command_call *call, const struct print_job *job, const char *text,
                         int *rc, struct gd_err *err)
{
    double value;
    bool known;
    const char *why;

    if (!number_find(call, text, &value, &known, &why)) {
        return false;
    }
    *rc = known ? GD_OK : gd_fail(err, GD_ENODATA, "\"%.200s\" has no value: %s", text, why);
    if (known) {
        cJSON *record = next_record(call, job, "number");
        bool constant = number_is_constant(text);
        out_set(record, OUT_TEXT("expression", text), OUT_REAL("value", value),
                OUT_IF(!constant, OUT_INT("step", gd_session_step(call->session))));
        out_say(call->out, record, constant ? "{text}\n" : "{expression} = {text} (step {step})\n",
                OUT_TEXT("text", repl_scalar_text(call->arena, value, 9)));
    }
    return true;
}

static int print_word(struct command_call *call, struct print_job *job, const char *word,
                      struct gd_err *err)
{
    struct value value;
    int rc = value_parse(call, word, &value, err);
    if (rc == GD_ENOTFOUND && word && print_scalar(call, job, word)) {
        return GD_OK;
    }
    if (rc == GD_ENOTFOUND && word && metric_is_awaited(call, word, err)) {
        return GD_ENODATA;
    }
    if (rc != GD_OK && rc != GD_EAMBIGUOUS && word && number_is_constant(word) &&
        print_number(call, job, word, &rc, err)) {
        return rc;
    }
    if (rc != GD_OK && rc != GD_EAMBIGUOUS && call->session && word && word[0] != '$' &&
        is_selector(word)) {
        return print_selected(call, job, word, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    value.which = job->which;
    uint32_t slots = value_slots(call, &value);
    if (slots > 1) {
        if (!job->list) {
            job->list = out_list(out_record(call->out, "tensors"), "tensors");
        }
        rc = print_slots(call, job, &value, slots, err);
    } else {
        enum value_need need = job->summary      ? VALUE_STATS
                               : job->format.all ? VALUE_ELEMENTS
                                                 : VALUE_SHOW;
        rc = value_fetch(call, &value, need, err);
        rc = rc != GD_OK ? rc : show_value(call, job, &value, err);
    }
    value_deinit(&value);
    return rc;
}

/* Words, or an expression over metrics. */
static int print_part(struct command_call *call, struct print_job *job, struct gd_err *err)
{
    struct tensor_arg ignored;
    bool names_node = call->argc == 1 && call->argv[0][0] != '"' &&
                      arg_tensor(call, call->argv[0], &ignored, NULL) == GD_OK;
    double number;
    bool is_metric = call->argc == 1 && call->session &&
                     gd_session_scalar(call->session, call->argv[0]) &&
                     !gd_numbers_of_event(call->session, call->argv[0], &number);
    int rc = GD_OK;
    if (call->argc > 0 && !names_node && !is_metric &&
        print_number(call, job, call->line, &rc, err)) {
        return rc;
    }
    job->format.all = inspect_take_flag(call, "-a") || job->format.all;
    job->summary = inspect_take_flag(call, "-s") || job->summary;
    rc = inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    job->which = value_take_which(call);
    inspect_join_slices(call);
    if (call->argc > 1 && !job->list) {
        job->list = out_list(out_record(call->out, "tensors"), "tensors");
    }
    if (call->argc == 0) {
        return print_word(call, job, NULL, err);
    }
    for (int i = 0; i < call->argc && rc == GD_OK; i++) {
        rc = print_word(call, job, call->argv[i], err);
    }
    return rc;
}

/* ---- Python ---------------------------------------------------------------------------------- */

/* "*" also multiplies: a glob that covers no node is not meant as one. */
static bool covers_nodes(struct command_call *call, const char *word)
{
    struct node_list list;

    if (!is_selector(word)) {
        return false;
    }
    if (!strpbrk(word, "*?")) {
        return true;
    }
    int rc = nodes_select(call, word, &list, NULL);
    bool any = rc == GD_OK && list.count > 0;
    if (rc == GD_OK) {
        node_list_deinit(&list);
    }
    return any;
}

/* A word that gradb itself can print: a node, a metric, a number, a selector, $N. */
static bool is_own_word(struct command_call *call, const char *word)
{
    struct tensor_arg ignored;
    struct gd_err err;
    int rc =
        word[0] == '$' || strcmp(word, ".") == 0 ? GD_OK : arg_tensor(call, word, &ignored, &err);

    return rc != GD_ENOTFOUND || word[0] == '-' || gd_session_scalar(call->session, word) ||
           metric_is_awaited(call, word, &err) || covers_nodes(call, word);
}

/* Whether the line can only be Python: the program is stopped and a word in it is neither a node
 * nor anything else that gradb knows. Nodes and metrics win. */
static bool print_is_python(struct command_call *call)
{
    const struct gd_session *session = call->session;
    double value;
    bool known;
    const char *why;

    if (!evaluate_is_python(session) || session->state != GD_STOPPED || call->argc == 0 ||
        number_find(call, call->line, &value, &known, &why)) {
        return false;
    }
    struct command_call words = *call;
    words.argv = gd_arena_alloc(call->arena, (size_t)call->argc * sizeof(char *));
    if (!words.argv) {
        return false;
    }
    memcpy(words.argv, call->argv, (size_t)call->argc * sizeof(char *));
    value_take_which(&words);
    inspect_join_slices(&words);
    for (int i = 0; i < words.argc; i++) {
        if (!is_own_word(&words, words.argv[i])) {
            return true;
        }
    }
    return false;
}

/* A lone name: it may be meant as a node. */
static bool is_name(const char *text)
{
    return text[strspn(
               text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789./")] == '\0';
}

/* Neither a node nor Python: says so of both. */
static int fail_as_node(struct command_call *call, const char *python, struct gd_err *err)
{
    struct tensor_arg ignored;
    struct gd_err why = {0};

    arg_tensor(call, call->line, &ignored, &why);
    return gd_fail(err, GD_ENOTFOUND, "%.700s; %.300s", why.text, python);
}

static bool is_unknown(const cJSON *reply)
{
    const char *text = out_text_of(reply, "text");
    return strcmp(out_text_of(reply, "kind"), "error") == 0 &&
           (strncmp(text, "NameError", 9) == 0 || strncmp(text, "SyntaxError", 11) == 0);
}

static int print_python(struct command_call *call, const struct gd_format *format,
                        struct gd_err *err)
{
    bool lone = is_name(call->line);
    cJSON *reply = NULL;
    struct gd_err why;
    int rc = evaluate_may(call, &why);

    if (rc != GD_OK) {
        return lone ? fail_as_node(call, why.text, err) : gd_fail(err, rc, "%s", why.text);
    }
    rc = evaluate_run(call, "print", call->line, &reply, err);
    if (rc == GD_OK && lone && is_unknown(reply)) {
        const char *place = evaluate_place(call, reply);
        rc = fail_as_node(call, inspect_printf(call, "no variable of that name %s", place), err);
    } else if (rc == GD_OK) {
        rc = evaluate_show(call, call->line, reply, format, err);
    }
    cJSON_Delete(reply);
    return rc;
}

/* Length of the text up to a comma that is in no bracket and no quotes. */
static size_t part_length(const char *text)
{
    size_t len = 0;
    int depth = 0;
    for (bool quoted = false; text[len] && (text[len] != ',' || depth > 0 || quoted); len++) {
        quoted = quoted != (text[len] == '"');
        depth += strchr("([{", text[len]) ? 1 : strchr(")]}", text[len]) ? -1 : 0;
    }
    return len;
}

/* One expression: what gradb knows, or Python. */
static int print_expression(struct command_call *call, struct print_job *job, struct gd_err *err)
{
    return print_is_python(call) ? print_python(call, &job->format, err)
                                 : print_part(call, job, err);
}

static int run_print(struct command_call *call, struct gd_err *err)
{
    struct print_job job = {0};
    int rc = value_format(call, call->format, &job.format, err);
    call->session = call->debugger->current;
    size_t len = part_length(call->line);
    if (rc != GD_OK || call->line[len] == '\0') {
        return rc != GD_OK ? rc : print_expression(call, &job, err);
    }
    job.list = out_list(out_record(call->out, "tensors"), "tensors");
    for (const char *rest = call->line; rc == GD_OK && rest; len = rest ? part_length(rest) : 0) {
        struct command_call part = *call;
        struct parsed_args args = {.file = NULL};
        size_t blanks = strspn(rest, " \t");
        const char *text = inspect_printf(call, "%.*s", (int)(len - blanks), rest + blanks);
        rc = parse_args(text, call->arena, &args, err);
        if (rc == GD_OK && args.argc == 0) {
            rc = gd_fail(err, GD_EUSAGE, "print: an expression is missing next to a comma");
        }
        part.line = args.line;
        part.argc = args.argc;
        part.argv = args.argv;
        rc = rc != GD_OK ? rc : print_expression(&part, &job, err);
        rest = rest[len] == ',' ? rest + len + 1 : NULL;
    }
    return rc;
}

const struct command cmd_print = {
    .name = "print",
    .aliases = "p pp pt po inspect output expr expression",
    .group = "data",
    .usage = "print[/f|e|x|d|a] [-a] [-s] [NODE[:SLOT][SLICE]|SELECTOR|EXPR|$N ...] [prev|diff]",
    .summary = "Show a tensor: one line of statistics, then the values",
    .help =
        "Without an argument, show the current node. Slices work as in numpy; only the slice is\n"
        "transferred. For a node with several outputs, show one line for each; NODE:1 selects\n"
        "one. For a glob or another selector (*/weight, type:relu), show one line for each\n"
        "tensor, up to 40 nodes unless -a is given. A metric or an expression over metrics shows\n"
        "its number: loss, best(loss), mean(loss, 20) / prev(loss), elapsed (\"help "
        "conditions\").\n"
        "Several are separated by blanks, or by commas where one is an expression.\n"
        "Each value gets a number: $1, $2, ... can be printed and sliced later, after the\n"
        "training has moved on. `$` is the last value, `$$` the one before it; `$_` is the last\n"
        "tensor, fetched again.\n"
        "\n"
        "  -a /a  all values, never abbreviated with ...\n"
        "  -s     only the statistics, computed where the tensor is\n"
        "  /f /e  fixed or scientific notation\n"
        "  /x /d  the bits in hexadecimal; integers\n"
        "  prev   the value of the previous step, which is kept from now on\n"
        "  diff   the current value minus the previous one",
    .examples = "print model/block0/attn/linear\n"
                "print model/block0/attn/softmax[0, 0, :, 1:3]\n"
                "print/e model/head/weight[:2] diff\n"
                "print */weight\n"
                "print $1[::2]",
    .args = {ARG_TENSOR},
    .flags = CMD_REPEATS | CMD_METRICS | CMD_SHOWS,
    .run = run_print,
};
