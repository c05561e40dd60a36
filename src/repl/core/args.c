// SPDX-License-Identifier: GPL-3.0-or-later
/* Arguments that commands take: nodes, tensors, counts. */
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CUTS 64 /* places in a text where a tensor's name may end */

int arg_count(const char *text, int64_t min, int64_t max, int64_t *ret, struct gd_err *err)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (end == text || *end != '\0') {
        return gd_fail(err, GD_EINVAL,
                       "\"%.80s\" is not a number: expected a count of %lld or more", text,
                       (long long)min);
    }
    if (errno == ERANGE || value < min || value > max) {
        return gd_fail(err, GD_EINVAL, "%.80s is out of range: %lld to %lld", text, (long long)min,
                       (long long)max);
    }
    *ret = value;
    return GD_OK;
}

static int find_node(struct command_call *call, const char *name, gd_node_id *ret,
                     struct gd_err *err)
{
    if (strncmp(name, ".../", 4) == 0) {
        name += 4; /* narrow tables show only the end of a name */
    }
    if (strcmp(name, ".") != 0) {
        return gd_graph_find(call->session->graph, name, ret, err);
    }
    if (call->session->current == GD_NO_NODE) {
        return gd_fail(err, GD_ENOTFOUND,
                       "\".\" is the current node, but none is selected yet: name one");
    }
    *ret = call->session->current;
    return GD_OK;
}

int arg_node(struct command_call *call, const char *text, gd_node_id *ret, struct gd_err *err)
{
    int rc = repl_need_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = find_node(call, text, ret, err);
    if (rc != GD_ENOTFOUND) {
        return rc;
    }
    struct tensor_arg tensor; /* "x:0" means node x where a node is expected */
    struct gd_err ignored;
    if (text[0] != '$' && arg_tensor(call, text, &tensor, &ignored) == GD_OK) {
        *ret = tensor.ref.node;
        return GD_OK;
    }
    return rc;
}

/* Reads ":0" or ":in0" and moves *text past it. A value without a node takes numbers only. */
static int parse_slot(struct command_call *call, const char **text, struct tensor_arg *arg,
                      struct gd_err *err)
{
    char name[16];
    const char *p = *text + 1;
    size_t input = strncmp(p, "in", 2) == 0 ? 2 : 0;
    size_t len = input + strspn(p + input, "0123456789");
    unsigned long slot = len > input ? strtoul(p + input, NULL, 10) : ULONG_MAX;

    if (slot > UINT16_MAX || len >= sizeof(name)) {
        return gd_fail(err, GD_EINVAL, "\"%.80s\" is not a slot: write NODE:0%s", *text,
                       input ? ", or NODE:in0 for a dumped input" : "");
    }
    snprintf(name, sizeof(name), "%.*s", (int)len, p);
    arg->ref.slot = (uint32_t)slot;
    if (input && !gd_graph_slot_find(call->session->graph, arg->ref.node, name, &arg->ref.slot)) {
        return gd_fail(err, GD_ENODATA, "%.300s has no dumped input %lu",
                       gd_graph_name(call->session->graph, arg->ref.node), slot);
    }
    arg->has_slot = true;
    *text = p + len;
    return GD_OK;
}

/* "[:SLOT][SLICE]" up to the end of the text; GD_EINVAL for anything else. */
static int parse_suffix(struct command_call *call, const char *text, struct tensor_arg *arg,
                        struct gd_err *err)
{
    const char *p = text;

    if (*p == ':') {
        int rc = parse_slot(call, &p, arg, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (*p == '[') {
        size_t used = 0;
        int rc = gd_slice_parse(p, strlen(p), &used, &arg->slice, err);
        if (rc != GD_OK) {
            return rc;
        }
        p += used;
    }
    if (*p != '\0') {
        return gd_fail(err, GD_EINVAL,
                       "unexpected \"%.80s\" after the tensor: write NODE:SLOT[SLICE]", p);
    }
    return GD_OK;
}

/* $, $$, $$N or $N, each with an optional slice. */
static int parse_value(struct command_call *call, const char *text, struct tensor_arg *arg,
                       struct gd_err *err)
{
    struct repl *repl = call->repl;
    const char *p = text + 1;
    bool back = *p == '$';
    char *end = NULL;

    p += back ? 1 : 0;
    long count = *p >= '0' && *p <= '9' ? strtol(p, &end, 10) : -1;
    const char *rest = end ? end : p;
    int number = repl->value_count;
    if (back) {
        number -= count >= 0 ? (int)(count < REPL_MAX_VALUES ? count : REPL_MAX_VALUES) : 1;
    } else if (count >= 0) {
        number = count <= repl->value_count ? (int)count : -1;
    }
    arg->value = number > 0 ? repl_remembered(repl, number) : NULL;
    if (!arg->value) {
        return gd_fail(err, GD_ENOTFOUND, "there is no value %.40s: the history has %d", text,
                       repl->value_count);
    }
    if (*rest == ':') {
        return gd_fail(err, GD_EINVAL, "a value from the history has no slots: \"%.80s\"", text);
    }
    int rc = parse_suffix(call, rest, arg, err);
    char label[32];
    snprintf(label, sizeof(label), "$%d", number);
    arg->label = gd_arena_strdup(call->arena, label);
    return rc;
}

/* `$_`: the label of the last value as if it were typed; a slice replaces its own. */
static int parse_last(struct command_call *call, const char *text, struct tensor_arg *arg,
                      struct gd_err *err)
{
    const char *label = repl_remembered_label(call->repl, 0);
    if (label[0] == '\0') {
        return gd_fail(err, GD_ENOTFOUND,
                       "$_ is the tensor printed last, but nothing was printed yet");
    }
    int rc = arg_tensor(call, label, arg, err);
    if (rc == GD_OK && text[2] != '\0') {
        gd_slice_clear(&arg->slice);
        rc = parse_suffix(call, text + 2, arg, err);
    }
    return rc;
}

static void set_label(struct command_call *call, struct tensor_arg *arg)
{
    struct gd_buf label = GD_BUF_INIT(64 * 1024);
    char slot[16];

    gd_graph_slot_name(call->session->graph, arg->ref.node, arg->ref.slot, slot);
    gd_buf_printf(&label, "%s:%s", gd_graph_name(call->session->graph, arg->ref.node), slot);
    gd_slice_text(&arg->slice, &label);
    arg->label = gd_arena_strdup(call->arena, gd_buf_text(&label));
    gd_buf_deinit(&label);
}

/* A name and what follows it. On failure, *best is the error of the longest existing name with an
 * invalid rest. */
static int parse_cut(struct command_call *call, const char *name, const char *rest,
                     struct tensor_arg *arg, struct gd_err *best, struct gd_err *err)
{
    struct gd_err why = {.code = GD_OK};
    int rc = find_node(call, name, &arg->ref.node, &why);

    if (rc != GD_OK) {
        if (why.code == GD_EAMBIGUOUS && best->code == GD_OK) {
            *best = why;
        } else if (err) {
            *err = why; /* the shortest name is the one most likely meant */
        }
        return rc;
    }
    arg->has_slot = false;
    arg->ref.slot = 0;
    gd_slice_clear(&arg->slice);
    rc = parse_suffix(call, rest, arg, &why);
    if (rc != GD_OK && best->code == GD_OK) {
        *best = why;
    }
    return rc;
}

/* "NODE[:SLOT][SLICE]": node names may contain these characters too, so the longest existing name
 * wins. */
static int parse_tensor(struct command_call *call, const char *text, struct tensor_arg *arg,
                        struct gd_err *err)
{
    size_t cut = strlen(text);
    char *name = gd_arena_strndup(call->arena, text, cut);
    struct gd_err best = {.code = GD_OK};
    int tries = 0;

    if (!name) {
        return gd_fail_nomem(err);
    }
    int rc = find_node(call, name, &arg->ref.node, err);
    while (rc != GD_OK && cut > 0 && tries < MAX_CUTS) {
        cut--;
        if (text[cut] == ':' || text[cut] == '[') {
            tries++;
            name[cut] = '\0';
            rc = parse_cut(call, name, text + cut, arg, &best, err);
        }
    }
    if (rc == GD_OK) {
        set_label(call, arg);
        return GD_OK;
    }
    if (best.code != GD_OK && err) {
        *err = best;
    }
    return best.code != GD_OK ? best.code : err ? err->code : GD_ENOTFOUND;
}

const char *arg_after(const char *line, const char *word)
{
    size_t len = strlen(word);
    bool begins = strncmp(line, word, len) == 0 && strchr(" \t", line[len]);

    return begins ? line + len + strspn(line + len, " \t") : NULL;
}

int arg_tensor(struct command_call *call, const char *text, struct tensor_arg *ret,
               struct gd_err *err)
{
    struct tensor_arg arg = {.ref = {.node = GD_NO_NODE}};
    bool is_value = text[0] == '$' && text[1] != '_';
    int rc = is_value ? parse_value(call, text, &arg, err) : repl_need_session(call, err);

    if (rc == GD_OK && !is_value) {
        rc = text[0] == '$' ? parse_last(call, text, &arg, err)
                            : parse_tensor(call, text, &arg, err);
    }
    if (rc == GD_OK) {
        *ret = arg;
    }
    return rc;
}
