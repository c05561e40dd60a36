// SPDX-License-Identifier: GPL-3.0-or-later
/* The nodes of a rank: those of its compiled graphs, with edges and attributes, then dumped
 * operators that no graph has. They are added in execution order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/cann/cann_load.h"
#include "dump/cann/cann_types.h"
#include "dump/mindspore/ms_graph_file.h"

#define MAX_NAME  4096
#define MAX_SLOTS 65535

struct nodes {
    struct cann_load *load;
    struct gd_graph *graph;
    uint32_t order;
    struct gd_output *output; /* of the node being added */
    size_t output_cap;
    struct gd_edge *edge;
    size_t edge_cap;
};

/* Operators that never have a file: executed on the host, or not operations at all. */
static const char *const host_types[] = {
    "Data",        "RefData",   "Const",         "Constant",  "Variable",
    "NetOutput",   "If",        "StatelessIf",   "While",     "StatelessWhile",
    "For",         "Case",      "StatelessCase", "StackPush", "StackPop",
    "PhonyConcat", "PhonySplit"};

/* ---- one node -------------------------------------------------------------------------------- */

static int room_for(struct nodes *nodes, uint32_t count)
{
    struct gd_output *grown = gd_grow_to(nodes->output, count, &nodes->output_cap, sizeof(*grown));

    nodes->output = grown ? grown : nodes->output;
    return grown ? GD_OK : gd_fail_nomem(nodes->load->err);
}

/* Output descriptions from the graph; those of values from the files. */
static void describe_slots(struct nodes *nodes, const struct gd_ge_op *ge, const struct cann_op *op,
                           uint32_t outputs, uint32_t inputs)
{
    for (uint32_t i = 0; i < outputs + inputs; i++) {
        nodes->output[i] = (struct gd_output){.dtype = GD_DT_NONE};
        if (ge && i < outputs && i < ge->out_count) {
            nodes->output[i].dtype = gd_stored_dtype(gd_cann_stored(ge->out[i].data_type));
            nodes->output[i].shape = ge->out[i].shape;
        }
    }
    for (uint32_t k = 0; op && k < nodes->load->file[op->first_file].value_count; k++) {
        const struct cann_value *value = &nodes->load->file[op->first_file].value[k];
        uint32_t slot = value->io == GD_CANN_OUTPUT ? value->index : outputs + value->index;

        if (slot < outputs + inputs) {
            nodes->output[slot].dtype = value->dtype;
            if (value->shape) {
                nodes->output[slot].shape = *value->shape;
            }
        }
    }
}

/* The graph says more than the file name; `op` is NULL if it was not dumped. */
static int add_node(struct nodes *nodes, const struct gd_ge_op *ge, const struct cann_op *op,
                    gd_node_id *ret, uint32_t *ret_outputs)
{
    uint32_t inputs = op ? op->inputs : 0;
    uint32_t outputs = ge && ge->out_count < MAX_SLOTS ? ge->out_count : 0;
    const char *name = ge ? ge->name : op->real;
    struct gd_node_desc desc = {.order = nodes->order};
    char numbered[MAX_NAME];
    int rc;

    outputs = op && op->outputs > outputs ? op->outputs : outputs;
    rc = room_for(nodes, outputs + inputs + 1);
    if (rc != GD_OK) {
        return rc;
    }
    describe_slots(nodes, ge, op, outputs, inputs);
    desc.type = ge ? ge->type : op->type;
    name = name[0] != '\0' ? name : desc.type[0] != '\0' ? desc.type : "operator";
    if (op && op->occurrence > 0) {
        snprintf(numbered, sizeof(numbered), "%.4000s#%u", name, op->occurrence + 1);
        name = numbered;
    }
    desc.name = name;
    desc.outputs = nodes->output;
    desc.output_count = outputs + inputs;
    desc.input_slots = inputs;
    if (ge) {
        desc.attrs = ge->attr;
        desc.attr_count = ge->attr_count;
    }
    rc = gd_graph_add(nodes->graph, &desc, ret, nodes->load->err);
    nodes->order += rc == GD_OK;
    *ret_outputs = outputs;
    return rc;
}

/* ---- compiled graphs ------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct cann_known *x = *(const struct cann_known *const *)a;
    const struct cann_known *y = *(const struct cann_known *const *)b;

    return x->op->id != y->op->id ? (x->op->id > y->op->id ? 1 : -1)
                                  : (x->at > y->at) - (x->at < y->at);
}

/* Adds a node per execution within a step. */
static int add_known(struct nodes *nodes, struct cann_known *known)
{
    struct cann_load *load = nodes->load;
    uint32_t at = known->first;
    int rc = add_node(nodes, known->op, at == CANN_NO_OP ? NULL : &load->op[at], &known->node,
                      &known->outputs);

    if (rc == GD_EINVAL) { /* duplicate in its graph: files belong to the first */
        known->node = GD_NO_NODE;
        return GD_OK;
    }
    for (; rc == GD_OK && at < load->op_count && load->op[at].known == known; at++) {
        struct cann_op *op = &load->op[at];

        if (op->occurrence == 0) {
            op->node = known->node;
            op->node_outputs = known->outputs;
        } else {
            rc = add_node(nodes, known->op, op, &op->node, &op->node_outputs);
        }
    }
    return rc;
}

static int connect_node(struct nodes *nodes, const struct cann_model *model,
                        const struct cann_known *known)
{
    const struct gd_ge_op *op = known->op;
    uint32_t count = 0;
    struct gd_edge *grown =
        gd_grow_to(nodes->edge, op->input_count, &nodes->edge_cap, sizeof(*grown));

    if (!grown) {
        return gd_fail_nomem(nodes->load->err);
    }
    nodes->edge = grown;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct cann_known *from;
        size_t len;
        int64_t slot;

        if (!gd_ge_input(op->input[i], &len, &slot)) {
            continue; /* an operator without inputs has one empty input */
        }
        from = cann_graph_named(model, known->graph, op->input[i], len);
        nodes->edge[count] =
            (struct gd_edge){.node = from ? from->node : GD_NO_NODE, .control = slot < 0};
        if (from && slot >= 0 && slot < from->outputs) {
            nodes->edge[count].slot = (uint16_t)slot;
        } else if (slot >= 0) {
            nodes->edge[count].node = GD_NO_NODE;
        }
        count++;
    }
    return gd_graph_connect(nodes->graph, known->node, nodes->edge, count, nodes->load->err);
}

/* The outputs that represent a merged operator's. */
static int merged_outputs(struct nodes *nodes, const struct gd_ge_op *op, const char *name,
                          uint32_t *count)
{
    int rc = GD_OK;

    *count = 0;
    for (uint32_t k = 0; k < op->out_count && rc == GD_OK; k++) {
        const struct gd_ge_tensor *out = &op->out[k];

        if (!out->origin_name || strcmp(out->origin_name, name) != 0) {
            continue;
        }
        rc = room_for(nodes, out->origin_index + 2);
        for (; rc == GD_OK && *count <= out->origin_index; ++*count) {
            nodes->output[*count] = (struct gd_output){.dtype = GD_DT_NONE};
        }
        if (rc == GD_OK) {
            nodes->output[out->origin_index] = (struct gd_output){
                .dtype = gd_stored_dtype(gd_cann_stored(out->data_type)), .shape = out->shape};
        }
    }
    return rc;
}

/* Operators that the compiler merged into another: that one's values may be theirs. */
static int add_merged(struct nodes *nodes, const struct cann_model *model,
                      const struct cann_known *known)
{
    const struct gd_ge_op *op = known->op;
    char why[600];
    int rc = GD_OK;

    for (uint32_t i = 0; i < op->original_count && rc == GD_OK; i++) {
        const char *name = op->original[i];
        struct gd_node_desc desc = {.name = name, .type = "Merged", .order = GD_NO_ORDER};
        gd_node_id node;

        if (name[0] == '\0' || cann_graph_named(model, known->graph, name, strlen(name)) ||
            gd_graph_lookup(nodes->graph, name, strlen(name)) != GD_NO_NODE) {
            continue;
        }
        rc = merged_outputs(nodes, op, name, &desc.output_count);
        if (rc != GD_OK) {
            return rc;
        }
        desc.outputs = nodes->output;
        rc = gd_graph_add(nodes->graph, &desc, &node, nodes->load->err);
        snprintf(why, sizeof(why), "merged into %.500s by the compiler", op->name);
        rc = rc != GD_OK ? rc
                         : gd_catalog_not_dumped(nodes->load->catalog, node, why, nodes->load->err);
    }
    return rc;
}

static int why_not(struct nodes *nodes, const struct cann_known *known)
{
    const char *why = "no file of it: it was not selected, or did not run";
    char text[200];

    if (known->op->no_task) {
        why = "the device has no task for it (_no_task)";
    }
    for (size_t i = 0; i < sizeof(host_types) / sizeof(host_types[0]); i++) {
        if (strcmp(known->op->type, host_types[i]) == 0) {
            snprintf(text, sizeof(text), "the device does not run %s", host_types[i]);
            why = text;
        }
    }
    return gd_catalog_not_dumped(nodes->load->catalog, known->node, why, nodes->load->err);
}

static int finish_known(struct nodes *nodes, const struct cann_model *model,
                        const struct cann_known *known)
{
    int rc;

    if (known->node == GD_NO_NODE) {
        return GD_OK;
    }
    rc = connect_node(nodes, model, known);
    rc = rc != GD_OK ? rc : add_merged(nodes, model, known);
    return rc != GD_OK || known->first != CANN_NO_OP ? rc : why_not(nodes, known);
}

static int add_graph(struct nodes *nodes, struct cann_model *model, uint32_t graph,
                     const struct cann_known **sorted)
{
    const struct gd_ge_graph *ge = &model->ge->graph[graph];
    struct cann_known *first = model->known;
    int rc = gd_graph_subgraph(nodes->graph, ge->name[0] ? ge->name : "graph", false, NULL,
                               nodes->load->err);

    while (first < model->known + model->known_count && first->graph != graph) {
        first++;
    }
    for (uint32_t i = 0; i < ge->op_count; i++) {
        sorted[i] = &first[i];
    }
    qsort(sorted, ge->op_count, sizeof(*sorted), by_id);
    for (uint32_t i = 0; i < ge->op_count && rc == GD_OK; i++) {
        rc = add_known(nodes, &model->known[sorted[i] - model->known]);
    }
    for (uint32_t i = 0; i < ge->op_count && rc == GD_OK; i++) {
        rc = finish_known(nodes, model, &first[i]);
    }
    return rc;
}

static int add_model(struct nodes *nodes, struct cann_model *model)
{
    const struct cann_known **sorted = calloc(model->known_count + 1, sizeof(*sorted));
    int rc = sorted ? GD_OK : gd_fail_nomem(nodes->load->err);

    for (uint32_t g = 0; rc == GD_OK && g < model->ge->graph_count; g++) {
        rc = add_graph(nodes, model, g, sorted);
    }
    free(sorted);
    return rc;
}

/* ---- MindSpore's own graphs ------------------------------------------------------------------ */

/* Gives a node of the graph the slots that were dumped. */
static int take_node(struct nodes *nodes, struct cann_op *op, gd_node_id node)
{
    const struct cann_file *file = &nodes->load->file[op->first_file];
    struct gd_node_info info;
    int rc = gd_graph_set_slots(nodes->graph, node, op->outputs, op->inputs, nodes->load->err);

    if (rc == GD_EINVAL) { /* taken by another operator: add a separate node */
        return GD_OK;
    }
    if (rc != GD_OK || !gd_graph_node(nodes->graph, node, &info)) {
        return rc;
    }
    op->node = node;
    op->node_outputs = info.output_count - info.input_slots;
    for (uint32_t i = 0; i < file->value_count; i++) {
        const struct cann_value *value = &file->value[i];
        struct gd_output output = {.dtype = value->dtype};

        if (value->shape) {
            output.shape = *value->shape;
            gd_graph_set_output(nodes->graph, node,
                                value->io == GD_CANN_OUTPUT ? value->index
                                                            : op->node_outputs + value->index,
                                &output);
        }
    }
    return GD_OK;
}

static int add_mindspore(struct nodes *nodes, uint32_t model)
{
    struct cann_load *load = nodes->load;
    const struct cann_model *of = &load->model[model];
    struct ms_nodes found;
    int rc;

    if (of->rank_dir == GD_NO_ENTRY ||
        gd_listing_child(load->listing, of->rank_dir, "graphs") == GD_NO_ENTRY) {
        return GD_OK;
    }
    rc = ms_graph_take(load->listing, of->rank_dir, of->graph_id, load->catalog, load->dump, &found,
                       &nodes->order, load->err);
    if (rc != GD_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < load->op_count && rc == GD_OK; i++) {
        struct cann_op *op = &load->op[i];
        gd_node_id node = op->model == model && op->occurrence == 0
                              ? ms_nodes_find(&found, op->type, op->name)
                              : GD_NO_NODE;

        rc = node == GD_NO_NODE ? GD_OK : take_node(nodes, op, node);
    }
    ms_nodes_end(&found);
    return rc;
}

/* ---- operators that no graph knows ----------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct cann_op *x = *(const struct cann_op *const *)a;
    const struct cann_op *y = *(const struct cann_op *const *)b;

    return x->time != y->time ? (x->time > y->time ? 1 : -1) : (x > y) - (x < y);
}

static int add_others(struct nodes *nodes)
{
    struct cann_load *load = nodes->load;
    struct cann_op **sorted = calloc(load->op_count + 1, sizeof(*sorted));
    uint32_t count = 0, model = UINT32_MAX;
    int rc = sorted ? GD_OK : gd_fail_nomem(load->err);

    for (uint32_t i = 0; rc == GD_OK && i < load->op_count; i++) {
        if (load->op[i].node == GD_NO_NODE) {
            sorted[count++] = &load->op[i];
        }
    }
    if (count > 0) {
        qsort(sorted, count, sizeof(*sorted), by_time);
    }
    for (uint32_t i = 0; rc == GD_OK && i < count; i++) {
        struct cann_op *op = sorted[i];

        if (op->model != model) {
            const struct cann_model *of = &load->model[op->model];

            model = op->model;
            rc = gd_graph_subgraph(nodes->graph, of->name[0] ? of->name : "operators", false, NULL,
                                   load->err);
        }
        rc = rc != GD_OK ? rc : add_node(nodes, NULL, op, &op->node, &op->node_outputs);
        if (rc ==
            GD_EINVAL) { /* collides with the name of another's repetition: leave its files out */
            op->node = GD_NO_NODE;
            rc = GD_OK;
        }
    }
    free(sorted);
    return rc;
}

int cann_add_nodes(struct cann_load *load)
{
    struct nodes nodes = {.load = load, .graph = gd_catalog_graph(load->catalog)};
    int rc = GD_OK;

    for (uint32_t i = 0; i < load->op_count; i++) {
        struct cann_op *op = &load->op[i];

        op->known = cann_graph_known(load, op->model, op->name);
        if (op->known && op->occurrence == 0) {
            op->known->first = i;
        }
    }
    for (uint32_t i = 0; i < load->model_count && rc == GD_OK; i++) {
        rc = load->model[i].ge ? add_model(&nodes, &load->model[i]) : add_mindspore(&nodes, i);
    }
    rc = rc != GD_OK ? rc : add_others(&nodes);
    free(nodes.output);
    free(nodes.edge);
    return rc;
}
