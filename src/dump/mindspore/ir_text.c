// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ir_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/grow.h"
#include "dump/mindspore/ir_type.h"
#include "engine/hash_index.h"

#define MAX_LINE     ((size_t)1 << 20)
#define MAX_OPERANDS 4096
#define MAX_FRAMES   64
#define MAX_ATTRS    48

struct variable { /* "%3", "%para1_x" */
    const char *name;
    uint32_t scope; /* number of the IR graph; 0: parameters of the whole */
    gd_node_id node;
};

struct link { /* an edge to add when all nodes exist */
    gd_node_id node;
    uint32_t scope;
    const char *operands;
};

struct pending { /* the node whose lines are being read */
    bool is_open, has_types, failed;
    const char *variable, *debug, *op, *operands, *attrs, *full_name, *scope;
    struct gd_output output[GD_IR_MAX_OUTPUTS];
    uint32_t outputs;
    struct gd_frame frame[MAX_FRAMES];
    uint32_t frames;
    bool outermost_first;
};

struct reading {
    struct gd_graph *graph;
    struct gd_arena arena;
    struct gd_hash_index lookup;
    struct variable *variable;
    size_t variables, variable_cap;
    struct link *link;
    size_t links, link_cap;
    struct pending at;
    uint32_t scope;
    const char *scope_name;
    bool inside; /* inside "subgraph @... {" */
    bool fails;  /* the next node is where compilation failed */
    uint32_t *order;
    struct gd_ir_facts *facts;
    struct gd_err *err;
};

static const char *keep_text(struct reading *in, const char *text, size_t len)
{
    return gd_arena_strndup(&in->arena, text, len);
}

/* ---- variables ------------------------------------------------------------------------------- */

static gd_node_id find_variable(struct reading *in, const char *name, size_t len, uint32_t scope)
{
    uint64_t hash = gd_hash_index_hash(&in->lookup, name, len);
    gd_node_id outer = GD_NO_NODE;
    uint32_t number;
    size_t at = 0;

    while (gd_hash_index_next(&in->lookup, hash, &at, &number)) {
        const struct variable *of = &in->variable[number];

        if (strlen(of->name) != len || memcmp(of->name, name, len) != 0) {
            continue;
        }
        if (of->scope == scope) {
            return of->node;
        }
        if (strncmp(name, "%para", 5) == 0) {
            outer = of->node; /* parameter numbers are global */
        }
    }
    return outer;
}

static int add_variable(struct reading *in, const char *name, size_t len, gd_node_id node)
{
    struct variable variable = {.name = keep_text(in, name, len), .scope = in->scope, .node = node};

    if (!gd_grow_list(&in->variable, in->variables, &in->variable_cap, sizeof(*in->variable))) {
        return gd_fail_nomem(in->err);
    }
    if (!variable.name || in->variables >= UINT32_MAX - 1) {
        return gd_fail_nomem(in->err);
    }
    in->variable[in->variables] = variable;
    return gd_hash_index_add(&in->lookup, gd_hash_index_hash(&in->lookup, name, len),
                             (uint32_t)in->variables++, in->err);
}

static int add_link(struct reading *in, gd_node_id node, const char *operands)
{
    if (!gd_grow_list(&in->link, in->links, &in->link_cap, sizeof(*in->link))) {
        return gd_fail_nomem(in->err);
    }
    in->link[in->links++] = (struct link){.node = node, .scope = in->scope, .operands = operands};
    return GD_OK;
}

/* ---- adding nodes ---------------------------------------------------------------------------- */

/* A name already taken gets a number appended. */
static int add_node(struct reading *in, struct gd_node_desc *desc, gd_node_id *ret)
{
    struct gd_buf name = GD_BUF_INIT(MAX_LINE);
    int rc = GD_EINVAL;

    gd_buf_puts(&name, desc->name);
    for (int i = 2; rc == GD_EINVAL && i < 100000 && !name.failed; i++) {
        size_t len = name.len;
        char number[16];

        desc->name = gd_buf_text(&name);
        rc = gd_graph_add(in->graph, desc, ret, in->err);
        if (rc != GD_EINVAL || len == 0) {
            break;
        }
        snprintf(number, sizeof(number), "#%d", i);
        while (i > 2 && len > 0 && name.data[--len] != '#') {
        }
        name.len = len;
        gd_buf_puts(&name, number);
    }
    gd_buf_deinit(&name);
    return rc;
}

/* "%para1_x": a node named x. */
static int add_parameter(struct reading *in, const char *name, size_t len, const char *rest)
{
    size_t digits = strspn(name + 5, "0123456789"), skip = 5 + digits;
    struct gd_output output[GD_IR_MAX_OUTPUTS];
    const char *type = strchr(rest, '<');
    bool weight = strstr(rest, "is_parameter") || strstr(rest, "has_default") ||
                  strstr(rest, "IsWeight:true") || strstr(rest, "IsWeight: true");
    struct gd_node_desc desc = {.type = "Parameter",
                                .kind = weight ? GD_NODE_WEIGHT : GD_NODE_PARAMETER,
                                .outputs = output,
                                .output_count = 1,
                                .order = GD_NO_ORDER};
    gd_node_id node;
    int rc;

    if (find_variable(in, name, len, in->scope) != GD_NO_NODE) {
        return GD_OK;
    }
    skip += skip < len && name[skip] == '_';
    desc.name = keep_text(in, skip < len ? name + skip : name, skip < len ? len - skip : len);
    if (!desc.name) {
        return gd_fail_nomem(in->err);
    }
    output[0] = (struct gd_output){.dtype = GD_DT_NONE};
    if (type && gd_ir_types(type, strlen(type), output) == 0) {
        output[0] = (struct gd_output){.dtype = GD_DT_NONE};
    }
    rc = add_node(in, &desc, &node);
    if (rc == GD_OK) {
        in->facts->parameters++;
        rc = add_variable(in, name, len, node);
    }
    return rc;
}

static void reverse_frames(struct pending *at)
{
    for (uint32_t begin = 0, end; begin < at->frames; begin = end + 1) {
        for (end = begin; end < at->frames && !at->frame[end].is_title; end++) {
        }
        for (uint32_t i = begin, k = end; i + 1 < k; i++) {
            struct gd_frame frame = at->frame[--k];

            at->frame[k] = at->frame[i];
            at->frame[i] = frame;
        }
    }
}

/* Parses "{a: 1, b: (2, 3)}" as attributes. */
static uint32_t split_attrs(struct reading *in, const char *text, struct gd_attr *ret)
{
    uint32_t count = 0;

    for (size_t len; text && *text && count < MAX_ATTRS; text += len + (text[len] == ',')) {
        const char *colon;

        text += strspn(text, " ");
        len = gd_ir_item(text);
        if (len == 0 && *text != ',') {
            break;
        }
        colon = memchr(text, ':', len);
        if (colon) {
            const char *value = colon + 1 + (colon[1] == ' ');
            size_t size = (size_t)(text + len - value);

            if (value > text + len) {
                continue;
            }
            ret[count].name = keep_text(in, text, (size_t)(colon - text));
            ret[count].value = keep_text(in, value, size);
            count += ret[count].name && ret[count].value;
        }
    }
    return count;
}

static int name_pending(struct reading *in, struct gd_buf *name)
{
    const struct pending *at = &in->at;

    if (at->full_name && at->full_name[0]) {
        gd_buf_puts(name, at->full_name);
    } else {
        if (at->scope && at->scope[0]) {
            gd_buf_printf(name, "%s/", at->scope);
        } else if (in->scope_name) {
            gd_buf_printf(name, "%s/", in->scope_name);
        }
        gd_buf_puts(name, at->debug && at->debug[0] ? at->debug : at->op);
    }
    return name->failed ? gd_fail_nomem(in->err) : GD_OK;
}

static int close_node(struct reading *in)
{
    struct pending *at = &in->at;
    struct gd_buf name = GD_BUF_INIT(MAX_LINE);
    struct gd_attr attr[MAX_ATTRS];
    struct gd_node_desc desc = {.type = at->op,
                                .outputs = at->output,
                                .output_count = at->outputs,
                                .frames = at->frame,
                                .attrs = attr};
    gd_node_id node = GD_NO_NODE;
    int rc;

    if (!at->is_open) {
        return GD_OK;
    }
    at->is_open = false;
    if (at->outermost_first) {
        reverse_frames(at);
    }
    desc.frame_count = at->frames;
    desc.attr_count = split_attrs(in, at->attrs, attr);
    desc.order = (*in->order)++;
    rc = name_pending(in, &name);
    desc.name = gd_buf_text(&name);
    rc = rc != GD_OK ? rc : add_node(in, &desc, &node);
    rc = rc != GD_OK || !at->variable ? rc
                                      : add_variable(in, at->variable, strlen(at->variable), node);
    rc = rc != GD_OK ? rc : add_link(in, node, at->operands);
    in->facts->nodes++;
    if (at->failed) {
        in->facts->failed = node;
    }
    gd_buf_deinit(&name);
    return rc;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The text between the brackets that open at `text`; NULL: they do not close. */
static const char *in_brackets(struct reading *in, const char *text, const char **end)
{
    size_t len = gd_ir_bracket(text);

    *end = text + len;
    return len >= 2 ? keep_text(in, text + 1, len - 2) : NULL;
}

/* "%1(debug) = ": the node's variable. Returns what follows; NULL: no variable can be read. */
static const char *take_variable(struct reading *in, const char *text)
{
    size_t len = 1 + strcspn(text + 1, "( =");
    const char *equals = text + len;

    in->at.variable = keep_text(in, text, len);
    if (*equals == '(') {
        in->at.debug = in_brackets(in, equals, &equals);
    }
    equals += strspn(equals, " ");
    return *equals == '=' && in->at.variable ? equals + 1 + strspn(equals + 1, " ") : NULL;
}

/* "  %1(debug) = Op(operands) {...} primitive_attrs: {...}" */
static int open_node(struct reading *in, const char *line)
{
    struct pending *at = &in->at;
    const char *text = line + 2, *end, *attrs;
    int rc = close_node(in);
    size_t len;

    if (rc != GD_OK) {
        return rc;
    }
    at->variable = at->debug = at->full_name = at->scope = at->attrs = NULL;
    at->outputs = at->frames = 0;
    at->has_types = at->outermost_first = false;
    at->failed = in->fails;
    text = *text == '%' ? take_variable(in, text) : text;
    if (!text) {
        return GD_OK; /* type unknown */
    }
    end = text;
    len = strcspn(text, "(");
    attrs = strncmp(text, "PrimFunc_", 9) == 0 ? text + 9 : text;
    at->op = *attrs == '%'                     ? "call"
             : strncmp(attrs, "call ", 5) == 0 ? "call"
                                               : keep_text(in, attrs, len - (size_t)(attrs - text));
    if (!at->op || !at->op[0]) {
        return GD_OK;
    }
    at->operands = text[len] == '(' ? in_brackets(in, text + len, &end) : "";
    if (!at->operands) {
        return GD_OK;
    }
    attrs = text[len] == '(' ? strstr(end, "primitive_attrs: {") : NULL;
    at->attrs = attrs ? in_brackets(in, attrs + 17, &end) : NULL;
    at->is_open = true;
    in->fails = false;
    return GD_OK;
}

/* "# In file PATH:9~10, 4~42/code/", "# In file PATH(9)/code/" */
static int take_frame(struct reading *in, const char *text)
{
    struct pending *at = &in->at;
    const char *colon = NULL, *code;
    unsigned long line;
    char *end;

    if (at->frames == MAX_FRAMES) {
        return GD_OK;
    }
    for (const char *c = text; *c; c++) {
        if ((*c == ':' || *c == '(') && c[1] >= '0' && c[1] <= '9') {
            colon = c;
            break;
        }
    }
    if (!colon) {
        return GD_OK;
    }
    line = strtoul(colon + 1, &end, 10);
    at->outermost_first = at->outermost_first || strncmp(end, ", ", 2) == 0 || *end == '~';
    code = strchr(end, '/');
    code = code ? code + 1 : "";
    code += strspn(code, " \t");
    at->frame[at->frames] = (struct gd_frame){
        .file = keep_text(in, text, (size_t)(colon - text)),
        .line = line < UINT32_MAX ? (uint32_t)line : 0,
        .function = "",
        .code = keep_text(in, code, strlen(code) - (*code && code[strlen(code) - 1] == '/'))};
    if (!at->frame[at->frames].file || !at->frame[at->frames].code) {
        return gd_fail_nomem(in->err);
    }
    at->frames++;
    return GD_OK;
}

static int take_title(struct reading *in, const char *text)
{
    struct pending *at = &in->at;

    if (at->frames == MAX_FRAMES) {
        return GD_OK;
    }
    at->frame[at->frames] = (struct gd_frame){
        .file = "", .function = "", .code = keep_text(in, text, strlen(text)), .is_title = true};
    return at->frame[at->frames].code ? (at->frames++, GD_OK) : gd_fail_nomem(in->err);
}

/* Parses "# Fullname with scope: (X)" and similar. */
static bool take_named(struct reading *in, const char *text, const char **ret,
                       const char *const *words)
{
    for (; *words; words++) {
        const char *end, *name;
        size_t len = strlen(*words);

        if (strncmp(text, *words, len) != 0) {
            continue;
        }
        name = in_brackets(in, text + len, &end);
        if (name && name[0] == '{' && name[strlen(name) - 1] == '}') {
            name = keep_text(in, name + 1, strlen(name) - 2);
        }
        *ret = name;
        return true;
    }
    return false;
}

/* A line after the node's. */
static int take_detail(struct reading *in, const char *text)
{
    static const char *const full[] = {"# Fullname with scope: ", "# fullname_with_scope: ", NULL};
    static const char *const scope[] = {"# Scope: ", "# scope: ", "#scope: ", NULL};
    struct pending *at = &in->at;
    const char *arrow;

    if (!at->is_open || take_named(in, text, &at->full_name, full) ||
        take_named(in, text, &at->scope, scope)) {
        return GD_OK;
    }
    if (strncmp(text, "# In file ", 10) == 0) {
        return take_frame(in, text + 10);
    }
    if (strncmp(text, "# Corresponding ", 16) == 0) {
        return take_title(in, text + 2);
    }
    if (strncmp(text, ": (", 3) != 0) {
        return GD_OK;
    }
    arrow = strstr(text, "-> (");
    if (arrow && !at->has_types) {
        at->outputs = gd_ir_types(arrow + 4, strlen(arrow + 4), at->output);
        at->has_types = true;
    } else if (!arrow && !strchr(text, '<') && !at->full_name) {
        const char *end;

        at->full_name = in_brackets(in, text + 2, &end); /* old grammar */
    }
    return GD_OK;
}

/* "subgraph @name(%para1_x, ...) {" */
static int open_graph(struct reading *in, const char *text)
{
    size_t len = strcspn(text, "( {");
    const char *at = strchr(text, '(');
    int rc = close_node(in);

    in->scope_name = keep_text(in, text, len);
    in->scope++;
    in->inside = true;
    in->facts->graphs++;
    if (!in->scope_name) {
        return gd_fail_nomem(in->err);
    }
    while (rc == GD_OK && at && (at = strstr(at, "%para"))) {
        size_t size = strcspn(at, " :,){");

        if (find_variable(in, at, size, in->scope) == GD_NO_NODE) {
            rc = add_parameter(in, at, size, "");
        }
        at += size;
    }
    return rc;
}

static int take_line(struct reading *in, const char *line)
{
    const char *text = line + strspn(line, " \t");
    size_t blanks = (size_t)(text - line);

    if (strncmp(text, "#----", 5) == 0 && strstr(text, "->")) {
        in->fails = true;
    } else if (blanks == 0 && strncmp(text, "subgraph @", 10) == 0) {
        return open_graph(in, text + 10);
    } else if (blanks == 0 && strncmp(text, "%para", 5) == 0) {
        return add_parameter(in, text, strcspn(text, " :"), text);
    } else if (blanks == 0 && *text == '}') {
        in->inside = false;
        return close_node(in);
    } else if (blanks == 0 && !in->facts->entry[0] && strstr(text, "IR entry") && *text == '#') {
        const char *name = strchr(text, '@');

        snprintf(in->facts->entry, sizeof(in->facts->entry), "%.255s", name ? name + 1 : "");
    } else if (in->inside && blanks == 2 && *text && !strchr("#:}", *text)) {
        return open_node(in, line);
    } else if (in->inside) {
        return take_detail(in, text);
    }
    return GD_OK;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static int connect_link(struct reading *in, const struct link *link, struct gd_edge *edges)
{
    uint32_t count = 0;
    const char *text = link->operands;

    for (size_t len; text && *text && count < MAX_OPERANDS; text += len + (text[len] == ',')) {
        gd_node_id node;
        size_t size;

        text += strspn(text, " ");
        len = gd_ir_item(text);
        if (len == 0 && *text != ',') {
            break;
        }
        if (*text != '%') {
            continue; /* a constant or a graph */
        }
        size = strcspn(text, " ,([{:");
        node = find_variable(in, text, size < len ? size : len, link->scope);
        in->facts->unknown += node == GD_NO_NODE;
        edges[count++] = (struct gd_edge){.node = node};
    }
    return count ? gd_graph_connect(in->graph, link->node, edges, count, in->err) : GD_OK;
}

static int connect_all(struct reading *in)
{
    struct gd_edge *edges = malloc(MAX_OPERANDS * sizeof(*edges));
    int rc = edges ? GD_OK : gd_fail_nomem(in->err);

    for (size_t i = 0; rc == GD_OK && i < in->links; i++) {
        rc = connect_link(in, &in->link[i], edges);
    }
    free(edges);
    return rc;
}

static int read_lines(struct reading *in, const char *text, size_t size)
{
    struct gd_buf line = GD_BUF_INIT(MAX_LINE);
    int rc = GD_OK;

    for (size_t at = 0; rc == GD_OK && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t len = end ? (size_t)(end - text) - at : size - at;

        gd_buf_clear(&line);
        gd_buf_add(&line, text + at, len < MAX_LINE ? len : MAX_LINE - 1);
        rc = take_line(in, gd_buf_text(&line));
        at += len + 1;
    }
    gd_buf_deinit(&line);
    return rc != GD_OK ? rc : close_node(in);
}

int gd_ir_read(const char *text, size_t size, struct gd_graph *graph, uint32_t *next_order,
               struct gd_ir_facts *ret, struct gd_err *err)
{
    struct reading in = {.graph = graph, .order = next_order, .facts = ret, .err = err};
    uint32_t subgraph;
    int rc;

    *ret = (struct gd_ir_facts){.failed = GD_NO_NODE};
    gd_arena_init(&in.arena, (size_t)4 << 30);
    rc = gd_graph_subgraph(graph, "", false, &subgraph, err);
    rc = rc != GD_OK ? rc : read_lines(&in, text, size);
    rc = rc != GD_OK ? rc : connect_all(&in);
    if (rc == GD_OK && ret->nodes + ret->parameters == 0) {
        rc = gd_fail(err, GD_EPROTO, "it contains no graph nodes");
    }
    free(in.variable);
    free(in.link);
    gd_hash_index_deinit(&in.lookup);
    gd_arena_deinit(&in.arena);
    return rc;
}
