// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/msprobe/api_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "dump/io/file_name.h"

#define MAX_CALLS (UINT32_C(1) << 24)
#define MAX_PLAIN 1024 /* slots whose numbers are taken literally */
#define ASK_EVERY 1024
#define MAX_ATTRS 48 /* per call, not counting those of its slots */

struct api_label {
    const char *text;
    uint32_t number; /* among the call's slots that are not plain numbers */
    struct api_label *next;
};

struct api_item {
    struct api_value of;
    const struct api_label *named; /* NULL: the slot is `plain` */
    uint32_t plain;
    struct api_item *next;
};

const char *api_keep(struct api_load *load, const char *text)
{
    return gd_arena_strdup(&load->arena, text);
}

struct api_call *api_call_find(struct api_load *load, const char *name)
{
    uint32_t number = gd_hash_index_find(&load->lookup, name, load->call, sizeof(*load->call));

    return number == UINT32_MAX ? NULL : &load->call[number];
}

static enum gd_node_kind kind_of(const char *name)
{
    if (strstr(name, "backward") || strstr(name, "parameters_grad") || strstr(name, "_grad.")) {
        return GD_NODE_GRADIENT;
    }
    return strstr(name, "forward") ? GD_NODE_ACTIVATION : GD_NODE_AUTO;
}

void api_step(struct api_load *load, int64_t step)
{
    if (load->step != step) {
        load->step = step;
        load->last = 0;
    }
}

static void number_calls(struct api_load *load)
{
    uint32_t order = 0;

    for (uint32_t at = load->first; at; at = load->call[at - 1].next) {
        /* parameters exist before the step */
        bool runs = load->call[at - 1].kind != GD_NODE_WEIGHT;
        load->call[at - 1].order = runs ? order++ : GD_NO_ORDER;
    }
}

int api_call_get(struct api_load *load, const char *name, struct api_call **ret, struct gd_err *err)
{
    struct api_call *call = api_call_find(load, name);
    int rc;

    if (call) {
        load->last = (uint32_t)(call - load->call) + 1;
        *ret = call;
        return GD_OK;
    }
    if (!name[0] || strlen(name) > API_MAX_NAME || load->count >= MAX_CALLS) {
        return gd_fail(err, GD_ELIMIT, "the call's name has %zu bytes, not 1 to %d", strlen(name),
                       API_MAX_NAME);
    }
    if (!gd_grow_list(&load->call, load->count, &load->cap, sizeof(*load->call))) {
        return gd_fail_nomem(err);
    }
    call = &load->call[load->count];
    *call = (struct api_call){.name = api_keep(load, name), .kind = kind_of(name)};
    if (!call->name) {
        return gd_fail_nomem(err);
    }
    rc = gd_hash_index_add_name(&load->lookup, name, (uint32_t)load->count, err);
    if (rc == GD_OK) {
        /* One that occurs in only one step is ordered where it ran, not after all others. */
        uint32_t *before = load->last ? &load->call[load->last - 1].next : &load->first;

        load->last = (uint32_t)++load->count;
        call->next = *before;
        *before = load->last;
    }
    *ret = call;
    return rc;
}

int api_attr_add(struct api_load *load, struct api_call *call, const char *name, const char *value,
                 struct gd_err *err)
{
    struct api_attr **at = &call->attrs, *attr;
    size_t count = 0;

    for (; *at; at = &(*at)->next) {
        if (strcmp((*at)->name, name) == 0 || ++count == MAX_ATTRS) {
            return GD_OK;
        }
    }
    attr = gd_arena_alloc(&load->arena, sizeof(*attr));
    if (attr) {
        *attr = (struct api_attr){.name = api_keep(load, name), .value = api_keep(load, value)};
    }
    if (!attr || !attr->name || !attr->value) {
        return gd_fail_nomem(err);
    }
    *at = attr;
    return GD_OK;
}

int api_event_add(struct api_load *load, struct api_call *call, int64_t step, const char *kind,
                  const char *text, struct gd_err *err)
{
    struct api_event *event = call->events;

    for (; event; event = event->next) {
        if (event->step == step && strcmp(event->kind, kind) == 0) {
            return GD_OK;
        }
    }
    event = gd_arena_alloc(&load->arena, sizeof(*event));
    if (event) {
        *event = (struct api_event){
            .kind = kind, .text = api_keep(load, text), .step = step, .next = call->events};
    }
    if (!event || !event->text) {
        return gd_fail_nomem(err);
    }
    call->events = event;
    return GD_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const struct api_label *label_of(struct api_load *load, struct api_call *call, int io,
                                        const char *text)
{
    struct api_label *label = call->labels[io];

    for (; label; label = label->next) {
        if (strcmp(label->text, text) == 0) {
            return label;
        }
    }
    label = gd_arena_alloc(&load->arena, sizeof(*label));
    if (label) {
        *label = (struct api_label){.text = api_keep(load, text),
                                    .number = call->label_count[io]++,
                                    .next = call->labels[io]};
        call->labels[io] = label;
    }
    return label && label->text ? label : NULL;
}

static const void *keep_copy(struct api_load *load, const void *data, size_t size, bool *ok)
{
    void *copy = data ? gd_arena_alloc(&load->arena, size) : NULL;

    if (copy) {
        memcpy(copy, data, size);
    }
    *ok = *ok && (copy || !data);
    return copy;
}

static struct api_item *same_place(const struct api_call *call, const struct api_value *value)
{
    for (struct api_item *item = call->values; item && item->of.step == value->step;
         item = item->next) {
        if (item->of.is_input == value->is_input && strcmp(item->of.label, value->label) == 0) {
            return item;
        }
    }
    return NULL;
}

static void fill_gaps(struct api_value *value, const struct api_value *more)
{
    if (value->source) {
        gd_source_unref(more->source);
    } else {
        value->source = more->source;
    }
    value->dtype = value->dtype == GD_DT_NONE ? more->dtype : value->dtype;
    value->shape = value->shape ? value->shape : more->shape;
    value->stats = value->stats ? value->stats : more->stats;
    value->digest = value->digest ? value->digest : more->digest;
    value->note = value->note ? value->note : more->note;
    value->needs_grad = value->needs_grad ? value->needs_grad : more->needs_grad;
}

static int give_slot(struct api_load *load, struct api_call *call, struct api_item *item,
                     struct gd_err *err)
{
    uint64_t plain = 0;
    int io = item->of.is_input;

    if (!item->of.label[0] || (gd_json_unsigned(item->of.label, &plain) && plain < MAX_PLAIN)) {
        item->plain = (uint32_t)plain;
        call->plain[io] = item->plain + 1 > call->plain[io] ? item->plain + 1 : call->plain[io];
        return GD_OK;
    }
    if (call->label_count[io] >= API_MAX_SLOTS) {
        return gd_fail(err, GD_ELIMIT, "%.200s has more than %d tensors", call->name,
                       API_MAX_SLOTS);
    }
    item->named = label_of(load, call, io, item->of.label);
    return item->named ? GD_OK : gd_fail_nomem(err);
}

static int keep_value(struct api_load *load, struct api_call *call, const struct api_value *value,
                      struct gd_err *err)
{
    struct api_item *item = gd_arena_alloc(&load->arena, sizeof(*item)), *same;
    bool ok = item != NULL;
    int rc;

    if (!ok) {
        return gd_fail_nomem(err);
    }
    *item = (struct api_item){.of = *value, .next = call->values};
    item->of.label = keep_copy(load, value->label, strlen(value->label) + 1, &ok);
    item->of.shape = keep_copy(load, value->shape, sizeof(*value->shape), &ok);
    item->of.stats = keep_copy(load, value->stats, sizeof(*value->stats), &ok);
    item->of.digest = value->digest ? api_keep(load, value->digest) : NULL;
    item->of.note = value->note ? api_keep(load, value->note) : NULL;
    if (!ok) {
        return gd_fail_nomem(err);
    }
    same = same_place(call, value);
    if (same) {
        fill_gaps(&same->of, &item->of);
        return GD_OK;
    }
    rc = give_slot(load, call, item, err);
    if (rc == GD_OK) {
        call->values = item;
    }
    return rc;
}

int api_value_add(struct api_load *load, struct api_call *call, const struct api_value *value,
                  struct gd_err *err)
{
    int rc;

    if (++load->done % ASK_EVERY == 0 && load->go_on && !load->go_on(load->ctx, load->done)) {
        gd_source_unref(value->source);
        return gd_fail(err, GD_EINTR, "interrupted after %llu tensors",
                       (unsigned long long)load->done);
    }
    rc = keep_value(load, call, value, err);
    if (rc != GD_OK) {
        gd_source_unref(value->source);
    }
    return rc;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Parses "File PATH, line N, in FUNCTION, \n CODE" from the right, since PATH may contain
 * commas. */
static bool parse_frame(struct api_load *load, const char *text, struct gd_frame *ret)
{
    const char *line = NULL, *in, *code, *function_end;
    const char *file = strncmp(text, "File ", 5) == 0 ? text + 5 : text;
    uint64_t number = 0;

    for (const char *at = strstr(file, ", line "); at; at = strstr(at + 1, ", line ")) {
        line = at[7] >= '0' && at[7] <= '9' ? at : line;
        if (line && strstr(line, ", in ")) {
            break;
        }
    }
    in = line ? strstr(line, ", in ") : NULL;
    if (!in) {
        *ret = (struct gd_frame){.file = "", .function = "", .code = api_keep(load, text)};
        return ret->code != NULL;
    }
    for (const char *at = line + 7; *at >= '0' && *at <= '9' && number < 100000000; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
    }
    code = strchr(in, '\n');
    function_end = code ? code : in + strlen(in);
    while (function_end > in + 5 && strchr(", ", function_end[-1])) {
        function_end--;
    }
    while (code && (*code == '\n' || *code == ' ')) {
        code++;
    }
    *ret = (struct gd_frame){
        .file = gd_arena_strndup(&load->arena, file, (size_t)(line - file)),
        .line = (uint32_t)number,
        .function = gd_arena_strndup(&load->arena, in + 5, (size_t)(function_end - in - 5)),
        .code = api_keep(load, code ? code : "")};
    return ret->file && ret->function && ret->code;
}

static const char *keep_string(struct api_load *load, const cJSON *item)
{
    const char *text = cJSON_GetStringValue(item);

    return api_keep(load, text ? text : "");
}

static bool frame_of_array(struct api_load *load, const cJSON *array, struct gd_frame *ret)
{
    const cJSON *file = array->child, *line = file ? file->next : NULL;
    const cJSON *function = line ? line->next : NULL, *code = function ? function->next : NULL;
    const char *text = cJSON_GetStringValue(line);
    uint64_t number = 0;

    if (text && gd_json_unsigned(text, &number) && number > UINT32_MAX) {
        number = 0;
    } else if (cJSON_IsNumber(line) && line->valuedouble > 0 && line->valuedouble < 1e9) {
        number = (uint64_t)line->valuedouble;
    }
    *ret = (struct gd_frame){.file = keep_string(load, file),
                             .line = (uint32_t)number,
                             .function = keep_string(load, function),
                             .code = keep_string(load, code)};
    return ret->file && ret->function && ret->code;
}

int api_frames(struct api_load *load, struct api_call *call, const cJSON *array, struct gd_err *err)
{
    struct gd_frame *frames;
    uint32_t size = 0, used = 0;
    const cJSON *item;

    if (!call || call->frames || !cJSON_IsArray(array)) {
        return GD_OK;
    }
    cJSON_ArrayForEach(item, array)
    {
        size += size < API_MAX_SLOTS;
    }
    frames = gd_arena_alloc(&load->arena, (size + 1) * sizeof(*frames));
    if (!frames) {
        return gd_fail_nomem(err);
    }
    for (item = array->child; item && used < size; item = item->next) {
        bool ok = true;

        if (cJSON_IsString(item) && item->valuestring[0]) {
            ok = parse_frame(load, item->valuestring, &frames[used++]);
        } else if (cJSON_IsArray(item)) {
            ok = frame_of_array(load, item, &frames[used++]);
        }
        if (!ok) {
            return gd_fail_nomem(err);
        }
    }
    call->frames = frames;
    call->frame_count = used;
    return GD_OK;
}

/* ---- names of nodes -------------------------------------------------------------------------- */

/* How much of "Module.PATH.Class.forward.N" is "Module." and PATH; 0: not a module. */
static size_t module_path(const char *name)
{
    size_t dots[4] = {0}, count = 0, prefix;
    const char *number;

    prefix = strncmp(name, "Module.", 7) == 0 ? 7 : strncmp(name, "Cell.", 5) == 0 ? 5 : 0;
    for (size_t i = strlen(name); prefix && i-- > prefix && count < 3;) {
        if (name[i] == '.') {
            dots[count++] = i;
        }
    }
    if (count == 2) {
        dots[count++] = prefix - 1; /* only the class */
    }
    number = name + dots[0] + 1;
    return count == 3 && *number && !number[strspn(number, "0123456789")] ? dots[2] : 0;
}

/* Modules become scopes: "Module.layers.0.Linear.forward.0" is layers/0/Linear.forward.0, and a
 * call inside it is layers/0/NAME. */
static void name_node(struct api_load *load, const struct api_call *call, struct gd_buf *out)
{
    const char *of = call->name, *leaf = call->name;
    size_t path = module_path(of), prefix = strncmp(of, "Cell.", 5) == 0 ? 5 : 7;

    if (call->leaf) {
        leaf = of + strlen(of) - call->leaf;
        of = call->parent;
        path = strlen(of);
        prefix = 0;
    } else if (path) {
        leaf = of + path + 1;
    } else if (call->parent) {
        of = call->parent;
        path = module_path(of);
        prefix = strncmp(of, "Cell.", 5) == 0 ? 5 : 7;
        if (!path && !api_call_find(load, of)) {
            path = strlen(of); /* "optimizer", or a scope */
            prefix = 0;
        }
    }
    gd_buf_clear(out);
    for (size_t i = prefix; i < path; i++) {
        gd_buf_putc(out, of[i] == '.' ? '/' : of[i]);
    }
    gd_buf_puts(out, path > prefix ? "/" : "");
    gd_buf_puts(out, leaf);
}

/* The type: "relu" of Torch.relu.0.forward, "Linear" of a module, "relu" of
 * Torch_relu_0_forward. */
static void type_of(const char *name, char *out, size_t size)
{
    size_t path = module_path(name), end, begin = strcspn(name, "._");

    if (gd_ends_with(name, ".debug")) { /* VARIABLE.N.debug */
        snprintf(out, size, "debug");
        return;
    }
    if (path) {
        begin = path + 1;
        end = begin + strcspn(name + begin, ".");
    } else {
        begin += name[begin] != '\0';
        end = strlen(name);
        for (int part = 0; part < 2; part++) { /* strip number and direction */
            size_t at = end;

            while (at > begin && name[at - 1] != '.' && name[at - 1] != '_') {
                at--;
            }
            end = at > begin ? at - 1 : end;
        }
    }
    snprintf(out, size, "%.*s", end > begin ? (int)(end - begin) : (int)strlen(name),
             end > begin ? name + begin : name);
}

/* ---- into the catalog ------------------------------------------------------------------------ */

static uint32_t slot_of(const struct api_call *call, const struct api_item *item)
{
    int io = item->of.is_input;
    uint32_t base = io ? call->plain[0] + call->label_count[0] : 0;

    return base + (item->named ? call->plain[io] + item->named->number : item->plain);
}

/* Records the slots that are not plain arguments as attributes of the node. */
static uint32_t describe_slots(struct api_load *load, const struct api_call *call,
                               struct gd_attr *ret, uint32_t max)
{
    uint32_t count = 0;

    for (int io = 0; io < 2; io++) {
        for (const struct api_label *label = call->labels[io]; label && count < max;
             label = label->next) {
            char name[32];

            snprintf(name, sizeof(name), "slot %s%u", io ? "in" : "",
                     call->plain[io] + label->number);
            ret[count] = (struct gd_attr){.name = api_keep(load, name), .value = label->text};
            count += ret[count].name != NULL;
        }
    }
    return count;
}

static int add_node(struct api_load *load, const struct api_call *call, uint32_t order,
                    struct gd_buf *name, gd_node_id *ret, struct gd_err *err)
{
    struct gd_graph *graph = gd_catalog_graph(load->catalog);
    struct gd_attr attr[64 + MAX_ATTRS];
    char type[256];
    struct gd_node_desc desc = {.wire_name = call->name,
                                .type = call->type ? call->type : type,
                                .kind = call->kind,
                                .frames = call->frames,
                                .frame_count = call->frame_count,
                                .attrs = attr,
                                .order = order};
    uint32_t outputs = call->plain[0] + call->label_count[0];
    uint32_t inputs = call->plain[1] + call->label_count[1];
    int rc;

    type_of(call->name, type, sizeof(type));
    desc.attr_count = describe_slots(load, call, attr, 64);
    for (const struct api_attr *more = call->attrs; more; more = more->next) {
        attr[desc.attr_count++] = (struct gd_attr){.name = more->name, .value = more->value};
    }
    name_node(load, call, name);
    if (gd_graph_lookup(graph, gd_buf_text(name), name->len) != GD_NO_NODE) {
        gd_buf_clear(name); /* duplicate: use the file's name to tell them apart */
        gd_buf_puts(name, call->name);
    }
    desc.name = gd_buf_text(name);
    rc = name->failed ? gd_fail_nomem(err) : gd_graph_add(graph, &desc, ret, err);
    return rc != GD_OK ? rc : gd_graph_set_slots(graph, *ret, outputs, inputs, err);
}

static int add_values(struct api_load *load, struct api_call *call, gd_node_id node,
                      struct gd_err *err)
{
    int rc = GD_OK;

    for (struct api_item *item = call->values; rc == GD_OK && item; item = item->next) {
        struct gd_catalog_value value = {.node = node,
                                         .slot = slot_of(call, item),
                                         .step = item->of.step,
                                         .source = item->of.source,
                                         .stats = item->of.stats,
                                         .dtype = item->of.dtype,
                                         .shape = item->of.shape,
                                         .digest = item->of.digest,
                                         .note = item->of.note,
                                         .needs_grad = item->of.needs_grad};
        struct gd_output output = {.dtype = item->of.dtype};

        if (item->of.shape) {
            output.shape = *item->of.shape;
            gd_graph_set_output(gd_catalog_graph(load->catalog), node, value.slot, &output);
        }
        rc = gd_catalog_add(load->catalog, &value, err);
    }
    for (const struct api_event *event = call->events; rc == GD_OK && event; event = event->next) {
        rc = gd_catalog_add_event(load->catalog, event->step, node, event->kind, event->text, err);
    }
    return rc;
}

int api_load_finish(struct api_load *load, struct gd_err *err)
{
    struct gd_buf name = GD_BUF_INIT(3 * API_MAX_NAME);
    uint32_t subgraph;
    int rc = GD_OK;

    if (load->count) {
        rc = gd_graph_subgraph(gd_catalog_graph(load->catalog), "", false, &subgraph, err);
    }
    number_calls(load);
    for (size_t i = 0; rc == GD_OK && i < load->count; i++) {
        gd_node_id node = GD_NO_NODE;

        rc = add_node(load, &load->call[i], load->call[i].order, &name, &node, err);
        rc = rc != GD_OK ? rc : add_values(load, &load->call[i], node, err);
    }
    gd_buf_deinit(&name);
    return rc;
}

void api_load_clear(struct api_load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        for (struct api_item *item = load->call[i].values; item; item = item->next) {
            gd_source_unref(item->of.source);
        }
    }
    free(load->call);
    gd_hash_index_deinit(&load->lookup);
    gd_arena_deinit(&load->arena);
    *load = (struct api_load){.dump = NULL};
}
