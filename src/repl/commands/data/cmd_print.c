// SPDX-License-Identifier: GPL-3.0-or-later
/* print, whatis, stats (and the entry of x): one tensor at a time. */
#include <math.h>
#include <string.h>

#include "repl/core/commands.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/value.h"

/* ---- print --------------------------------------------------------------------------------- */

struct print_job {
    struct gd_format format;
    enum value_which which;
    bool summary; /* -s: no elements */
    cJSON *list;  /* JSON: where the records of several tensors go; NULL when there is one */
};

static enum value_which take_which(struct command_call *call)
{
    if (call->argc < 1) {
        return VALUE_CURRENT;
    }
    const char *last = call->argv[call->argc - 1];
    bool prev = strcmp(last, "prev") == 0 || strcmp(last, "previous") == 0;
    bool diff = strcmp(last, "diff") == 0;
    if (prev || diff) {
        call->argc--;
    }
    return prev ? VALUE_PREVIOUS : diff ? VALUE_DIFFERENCE : VALUE_CURRENT;
}

static cJSON *next_record(struct command_call *call, const struct print_job *job)
{
    if (!job->list) {
        return out_record(call->out, "tensor");
    }
    cJSON *record = cJSON_CreateObject();
    cJSON_AddItemToArray(job->list, record);
    return record;
}

/* A slice may be a view into a large tensor, which the history must not keep alive. */
static int remember(struct command_call *call, const struct value *value)
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
    const char *of_dump =
        value->is_history ? NULL : inspect_dump_note(call, &value->arg.ref, value->step);
    int number = 0;
    if (value->tensor && !value->is_history) {
        number = remember(call, value);
    }
    value_know_change(call, value);
    if (out_is_json(call->out)) {
        cJSON *record = next_record(call, job);
        if (of_dump) {
            inspect_add_text(call, record, "stored", of_dump);
        }
        if (number > 0) {
            cJSON_AddNumberToObject(record, "history", number);
        }
        value_record(call, value, job->summary ? NULL : &job->format, record);
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

/* Every slot of a node: a line each, with the reason where one has no value. */
static int print_slots(struct command_call *call, const struct print_job *job, struct value *value,
                       uint32_t count, struct gd_err *err)
{
    const char *name = gd_graph_name(call->session->graph, value->arg.ref.node);
    for (uint32_t slot = 0; slot < count; slot++) {
        struct value one = *value;
        one.arg.ref.slot = slot;
        one.label =
            inspect_printf(call, "%s:%s", name, inspect_slot(call, value->arg.ref.node, slot));
        struct gd_err why = {0};
        int rc = value_fetch(call, &one, VALUE_STATS, &why);
        if (rc == GD_EINTR) {
            value_deinit(&one);
            return gd_fail(err, rc, "interrupted");
        }
        if (out_is_json(call->out)) {
            cJSON *record = next_record(call, job);
            if (rc == GD_OK) {
                value_record(call, &one, NULL, record);
            } else {
                inspect_add_text(call, record, "name", one.label);
                inspect_add_text(call, record, "error", why.text);
            }
        } else if (rc == GD_OK) {
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
    const struct gd_session *session = call->session;
    for (int i = 0; session && i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];
        if (strcmp(scalar->name, name) != 0) {
            continue;
        }
        if (out_is_json(call->out)) {
            cJSON *record = job->list ? next_record(call, job) : out_record(call->out, "scalar");
            inspect_add_text(call, record, "name", scalar->name);
            inspect_add_double(record, "value", scalar->value);
            inspect_add_count(record, "step", (uint64_t)scalar->step);
        } else {
            out_printf(call->out, "%s = %s (step %lld)\n", out_safe(call, scalar->name),
                       repl_scalar_text(call->arena, scalar->value, 9), (long long)scalar->step);
        }
        return true;
    }
    return false;
}

/* How many records one word gives: a bare node with several slots gives several. */
static uint32_t slots_of(struct command_call *call, const struct value *value)
{
    struct gd_node_info info;
    bool bare = !value->is_history && !value->arg.has_slot && value->arg.slice.count == 0;
    if (!bare || !gd_graph_node(call->session->graph, value->arg.ref.node, &info)) {
        return 1;
    }
    return info.output_count > 1 ? info.output_count : 1;
}

/* What selects nodes without naming one. */
static bool is_selector(const char *word)
{
    size_t len = strlen(word);
    return strpbrk(word, "*?") || strncmp(word, "type:", 5) == 0 || strncmp(word, "at:", 3) == 0 ||
           (len > 2 && word[0] == '/' && word[len - 1] == '/');
}

/* A line for each slot of all nodes that a glob or another selector takes. */
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
    if (out_is_json(call->out) && !job->list) {
        job->list = cJSON_AddArrayToObject(out_record(call->out, "tensors"), "tensors");
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

static int print_word(struct command_call *call, struct print_job *job, const char *word,
                      struct gd_err *err)
{
    struct value value;
    int rc = value_parse(call, word, &value, err);
    if (rc == GD_ENOTFOUND && word && print_scalar(call, job, word)) {
        return GD_OK;
    }
    if (rc != GD_OK && rc != GD_EAMBIGUOUS && call->session && word && word[0] != '$' &&
        is_selector(word)) {
        return print_selected(call, job, word, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    value.which = job->which;
    uint32_t slots = slots_of(call, &value);
    if (slots > 1) {
        if (out_is_json(call->out) && !job->list) {
            job->list = cJSON_AddArrayToObject(out_record(call->out, "tensors"), "tensors");
        }
        rc = print_slots(call, job, &value, slots, err);
    } else {
        enum value_need need = job->summary      ? VALUE_STATS
                               : job->format.all ? VALUE_ELEMENTS
                                                 : VALUE_SHOW;
        rc = value_fetch(call, &value, need, err);
        if (rc == GD_OK) {
            rc = show_value(call, job, &value, err);
        }
    }
    value_deinit(&value);
    return rc;
}

static int run_print(struct command_call *call, struct gd_err *err)
{
    struct print_job job = {0};
    int rc = value_format(call, call->format, &job.format, err);
    if (rc != GD_OK) {
        return rc;
    }
    job.format.all = inspect_take_flag(call, "-a") || job.format.all;
    job.summary = inspect_take_flag(call, "-s");
    rc = inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    job.which = take_which(call);
    inspect_join_slices(call);
    if (call->argc > 1 && out_is_json(call->out)) {
        job.list = cJSON_AddArrayToObject(out_record(call->out, "tensors"), "tensors");
    }
    if (call->argc == 0) {
        return print_word(call, &job, NULL, err);
    }
    for (int i = 0; i < call->argc && rc == GD_OK; i++) {
        rc = print_word(call, &job, call->argv[i], err);
    }
    return rc;
}

/* ---- whatis -------------------------------------------------------------------------------- */

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
    if (record) {
        inspect_add_text(call, record, "name", value->label);
        cJSON_AddStringToObject(record, "dtype", gd_dtype_name(dtype));
        inspect_add_shape(record, "shape", &shape);
        if (sized) {
            inspect_add_count(record, "count", (uint64_t)count);
            inspect_add_count(record, "bytes", bytes);
        }
        return GD_OK;
    }
    out_printf(call->out, "type = %s %s", gd_dtype_name(dtype), inspect_shape(call, &shape));
    if (sized) {
        out_printf(call->out, ", %s, %s", inspect_plural(call, (uint64_t)count, "element"),
                   inspect_bytes(call, bytes));
    }
    out_printf(call->out, "\n");
    return GD_OK;
}

static int run_whatis(struct command_call *call, struct gd_err *err)
{
    inspect_join_slices(call);
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "one tensor at a time");
    }
    struct value value;
    int rc = value_parse(call, call->argc ? call->argv[0] : NULL, &value, err);
    if (rc != GD_OK) {
        return rc;
    }
    uint32_t slots = slots_of(call, &value);
    bool json = out_is_json(call->out);
    cJSON *record = json ? out_record(call->out, slots > 1 ? "types" : "type") : NULL;
    cJSON *list = json && slots > 1 ? cJSON_AddArrayToObject(record, "types") : NULL;
    for (uint32_t slot = 0; slot < slots && rc == GD_OK; slot++) {
        struct value one = value;
        if (slots > 1) {
            one.arg.ref.slot = slot;
            one.label = inspect_printf(call, "%s:%s",
                                       gd_graph_name(call->session->graph, value.arg.ref.node),
                                       inspect_slot(call, value.arg.ref.node, slot));
            out_printf(call->out, ":%s ", inspect_slot(call, value.arg.ref.node, slot));
        }
        cJSON *item = record;
        if (list) {
            item = cJSON_CreateObject();
            cJSON_AddItemToArray(list, item);
        }
        rc = show_type(call, &one, item, err);
    }
    value_deinit(&value);
    return rc;
}

/* ---- stats --------------------------------------------------------------------------------- */

static void print_share(struct command_call *call, const char *title, uint64_t part,
                        const struct gd_stats *of, unsigned bit)
{
    uint64_t count = of->unknown & GD_UNKNOWN_COUNT ? 0 : of->count;

    bool bound = (of->unknown & bit) != 0;

    if (bound && (part == 0 || !(bit & (GD_UNKNOWN_NAN | GD_UNKNOWN_INF)))) {
        return; /* a dump does not have every figure */
    }
    out_printf(call->out, "  %-12s %s%s", title, bound ? "at least " : "",
               inspect_number(call, part));
    if (part > 0 && count > 0 && !bound) {
        out_printf(call->out, " (%.3g %%)", 100.0 * (double)part / (double)count);
    }
    out_printf(call->out, "\n");
}

static void print_stats(struct command_call *call, const struct value *value)
{
    const struct gd_stats *s = &value->stats;
    size_t bytes = 0;
    gd_shape_bytes(&value->shape, value->dtype, &bytes, NULL);
    out_printf(call->out, "%s\n", value_title(call, value));
    if (!(s->unknown & GD_UNKNOWN_COUNT)) { /* else nobody told the shape */
        out_printf(call->out, "  %-12s %s %s\n", "type", gd_dtype_name(value->dtype),
                   inspect_shape(call, &value->shape));
        out_printf(call->out, "  %-12s %s (%s)\n", "elements", inspect_number(call, s->count),
                   inspect_bytes(call, bytes));
    }
    print_share(call, "NaN", s->nan, s, GD_UNKNOWN_NAN);
    print_share(call, "+Inf", s->pos_inf, s, GD_UNKNOWN_INF);
    print_share(call, "-Inf", s->neg_inf, s, GD_UNKNOWN_INF);
    print_share(call, "zeros", s->zero, s, GD_UNKNOWN_ZERO);
    print_share(call, "positive", s->positive, s, GD_UNKNOWN_SIGNS);
    print_share(call, "negative", s->negative, s, GD_UNKNOWN_SIGNS);
    print_share(call, "denormal", s->denormal, s, GD_UNKNOWN_REST);
    if (s->count > s->nan + s->pos_inf + s->neg_inf || (s->unknown & GD_UNKNOWN_COUNT)) {
        const struct {
            const char *title;
            double value;
            unsigned bit;
        } rows[] = {{"min", s->min, GD_UNKNOWN_MIN},
                    {"max", s->max, GD_UNKNOWN_MAX},
                    {"mean", s->mean, GD_UNKNOWN_MEAN},
                    {"mean |x|", s->abs_mean, GD_UNKNOWN_REST},
                    {"deviation", s->std, GD_UNKNOWN_REST},
                    {"L2 norm", sqrt(s->sum_sq), GD_UNKNOWN_SUM_SQ}};
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if (!(s->unknown & rows[i].bit)) {
                out_printf(call->out, "  %-12s %.9g\n", rows[i].title, rows[i].value);
            }
        }
    } else if (s->count > 0) {
        out_printf(call->out, "  no finite element\n");
    }
    if (s->unknown) {
        out_printf(call->out, "  as the dump has it: other figures were not dumped\n");
    }
}

static int run_stats(struct command_call *call, struct gd_err *err)
{
    enum value_which which = take_which(call);
    inspect_join_slices(call);
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "one tensor at a time; `tensors SELECTOR -s` makes a table");
    }
    struct value value;
    int rc = value_parse(call, call->argc ? call->argv[0] : NULL, &value, err);
    if (rc != GD_OK) {
        return rc;
    }
    value.which = which;
    rc = value_fetch(call, &value, VALUE_STATS, err);
    if (rc == GD_OK && !value.has_stats) {
        rc = gd_fail(err, GD_EUNSUPPORTED, "%s elements have no statistics",
                     gd_dtype_name(value.dtype));
    }
    if (rc == GD_OK && out_is_json(call->out)) {
        value_record(call, &value, NULL, out_record(call->out, "tensor"));
    } else if (rc == GD_OK) {
        print_stats(call, &value);
        if (value.has_change) {
            value_print_change(call, &value.change, value.has_change_count);
        }
    }
    value_deinit(&value);
    return rc;
}

const struct command cmd_print_table[] = {
    {
        .name = "print",
        .aliases = "p pt inspect",
        .group = "data",
        .usage = "print[/f|e|x|d|a] [-a] [-s] [NODE[:SLOT][SLICE]|SELECTOR|$N ...] [prev|diff]",
        .summary = "Show a tensor: one line of statistics, then the values",
        .help = "Without an argument the current node is shown. A slice is numpy's, and\n"
                "only the slice travels. A node with several outputs shows one line for\n"
                "each; NODE:1 picks one. A glob or another selector (*.weight, type:ReLU)\n"
                "shows one line for each tensor, of at most 40 nodes unless -a is given.\n"
                "Each value shown gets a number: $1, $2, ... can be printed (and sliced)\n"
                "later, when the training has moved on. `$` is the last one, `$$` the one\n"
                "before it; `$_` is the last tensor, fetched again.\n"
                "\n"
                "  -a /a  all values, never abbreviated with ...\n"
                "  -s     the statistics alone, computed where the tensor lives\n"
                "  /f /e  fixed or scientific notation\n"
                "  /x /d  the bits in hexadecimal; integers\n"
                "  prev   the value of the step before; asking makes the trainer keep it\n"
                "  diff   the current value minus the previous one\n"
                "\n"
                "  print block0/attn/MatMul-op4\n"
                "  print block0/attn/Softmax-op10[0, 0, :, 1:3]\n"
                "  print/e head.weight[:2] diff\n"
                "  print *.weight\n"
                "  print $1[::2]\n",
        .args = {ARG_TENSOR},
        .flags = CMD_REPEATS,
        .run = run_print,
    },
    {
        .name = "x",
        .group = "data",
        .usage = "x[/[COUNT]f|e|x|d] [NODE[:SLOT][SLICE]|$N]",
        .summary = "Examine COUNT elements from a place in a tensor on, with their indices",
        .help = "Plain indices say where to start; elements follow in C order, across rows.\n"
                "Any other slice is walked from its beginning. An empty line shows the\n"
                "elements that follow.\n"
                "\n"
                "  x/8f head.weight\n"
                "  x/16x head.weight[3, 10]\n"
                "  x/4 head.weight[:, 0]\n",
        .args = {ARG_TENSOR},
        .flags = CMD_REPEATS | CMD_REPEATS_BARE,
        .run = inspect_examine,
    },
    {
        .name = "whatis",
        .aliases = "ptype",
        .group = "data",
        .usage = "whatis [NODE[:SLOT][SLICE]|$N]",
        .summary = "Show the data type, shape and size of a tensor without fetching it",
        .help = "  whatis head.weight\n  whatis head.weight[0, ::2]\n",
        .args = {ARG_TENSOR},
        .flags = CMD_REPEATS,
        .run = run_whatis,
    },
    {
        .name = "stats",
        .group = "data",
        .usage = "stats [NODE[:SLOT][SLICE]|$N] [prev|diff]",
        .summary = "Show all statistics of a tensor, computed where it lives",
        .help = "Smallest, largest and mean value are over the finite elements; counts are\n"
                "over all. `diff` gives the statistics of the change since the previous\n"
                "step.\n"
                "\n"
                "  stats attn/Softmax-op10\n"
                "  stats head.weight diff\n",
        .args = {ARG_TENSOR},
        .flags = CMD_REPEATS,
        .run = run_stats,
    },
    {.name = NULL},
};
