// SPDX-License-Identifier: MIT
#include "trace.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gradb.h"
#include "data.h"
#include "timing.h"

/* Time that a debugger named by GRADB_ADDRESS has to answer. */
#define WAIT_SECONDS 30.0

struct trace {
    gradb *gradb;
    struct graph *graph;
    struct trace_rate rate;
    struct timing timing;
    char reply[512]; /* to the last command */
};

static gradb_tensor make_tensor(const struct tensor *t, int64_t shape[TENSOR_MAX_RANK])
{
    for (int i = 0; i < t->rank; i++) {
        shape[i] = (int64_t)t->dim[i];
    }
    return (gradb_tensor){.dtype = t->is_ids ? GRADB_INT32 : GRADB_FLOAT32,
                          .rank = t->rank,
                          .shape = shape,
                          .data = t->is_ids ? (const void *)t->ids : t->f};
}

/* The compiler knows the source by some relative path; the debugger needs one that it can open. */
static const char *find_source_dir(void)
{
    const char *installed = data_installed_sources();
    return !installed || access(CHARLM_SOURCE_DIR, R_OK) == 0 ? CHARLM_SOURCE_DIR : installed;
}

static size_t make_frames(struct graph *graph, const struct source_pos *from, int count,
                          gradb_frame to[MAX_FRAMES])
{
    for (int i = 0; i < count; i++) {
        const char *slash = strrchr(from[i].file, '/');
        to[i] = (gradb_frame){.file = graph_printf(graph, "%s/%s", find_source_dir(),
                                                   slash ? slash + 1 : from[i].file),
                              .line = from[i].line,
                              .function = from[i].function};
    }
    return (size_t)count;
}

static void add_leaf(struct trace *trace, struct tensor *t)
{
    int64_t shape[TENSOR_MAX_RANK];
    gradb_tensor out = make_tensor(t, shape);
    gradb_frame frames[MAX_FRAMES];
    gradb_node_info info = {
        .name = t->name,
        .type = t->type,
        .kind = t->is_ids ? GRADB_PARAMETER : GRADB_AUTO,
        .outputs = &out,
        .output_count = 1,
        .frames = frames,
        .frame_count = make_frames(trace->graph, t->frames, t->frame_count, frames),
    };
    t->trace_node = gradb_add_node(trace->gradb, &info);
}

static void add_op(struct trace *trace, struct op *op)
{
    int64_t shape[OP_MAX_OUT][TENSOR_MAX_RANK];
    gradb_tensor out[OP_MAX_OUT];
    for (size_t i = 0; i < op->out_count; i++) {
        out[i] = make_tensor(op->out[i], shape[i]);
    }
    gradb_attr attr[OP_MAX_ATTR];
    for (size_t i = 0; i < op->attr_count; i++) {
        attr[i].name = op->attr[i].name;
        attr[i].value = graph_printf(trace->graph, "%g", op->attr[i].value);
    }
    gradb_input *in = calloc(op->in_count + 1, sizeof(*in));
    for (size_t i = 0; in && i < op->in_count; i++) {
        const struct tensor *t = op->in[i];
        in[i].node = t->producer ? t->producer->trace_node : t->trace_node;
        in[i].slot = t->slot;
    }
    gradb_frame frames[MAX_FRAMES];
    gradb_node_info info = {
        .name = op->name,
        .type = op->type,
        .phase = (gradb_phase)op->phase,
        .inputs = in,
        .input_count = in ? op->in_count : 0,
        .outputs = out,
        .output_count = op->out_count,
        .attrs = attr,
        .attr_count = op->attr_count,
        .frames = frames,
        .frame_count = make_frames(trace->graph, op->frames, op->frame_count, frames),
    };
    op->trace_node = gradb_add_node(trace->gradb, &info);
    free(in);
}

static void report_op(void *ctx, struct op *op)
{
    struct trace *trace = ctx;
    timing_ran(&trace->timing, op->trace_node);
    gradb_did(trace->gradb, op->trace_node);
    timing_resume(&trace->timing);
}

/* "set-lr [0=RATE]": the learning rate of the next step; see "Commands" in gradb.h. */
static bool set_rate(struct trace *trace, const char *args, char why[GRADB_WHY])
{
    char *end = NULL;
    if (args[0] != '\0') {
        double rate = strncmp(args, "0=", 2) == 0 ? strtod(args + 2, &end) : -1;
        if (!end || *end != '\0' || !(rate >= 0) || rate > 1e6) {
            snprintf(why, GRADB_WHY, "set-lr: %.60s is not 0=RATE: there is one group", args);
            return false;
        }
        trace->rate.set(trace->rate.ctx, rate);
    }
    snprintf(trace->reply, sizeof(trace->reply),
             "{\"optimizer\":\"AdamW\",\"groups\":[{\"group\":0,\"lr\":%.9g}]}",
             trace->rate.get(trace->rate.ctx));
    return true;
}

/* "timing on" or "timing off", which `set timing` sends: operators are measured from the next step
 * on. */
static bool set_timing(struct trace *trace, const char *args, char why[GRADB_WHY])
{
    if (strcmp(args, "on") != 0 && strcmp(args, "off") != 0) {
        snprintf(why, GRADB_WHY, "timing: %.60s is neither on nor off", args);
        return false;
    }
    trace->timing.wanted = strcmp(args, "on") == 0;
    snprintf(trace->reply, sizeof(trace->reply), "{\"operators\":%s}",
             trace->timing.wanted ? "true" : "false");
    return true;
}

static gradb_answer run_command(void *ctx, const char *name, const char *args, gradb_node node,
                                const char **reply, char why[GRADB_WHY])
{
    struct trace *trace = ctx;
    (void)node;
    *reply = trace->reply;
    if (strcmp(name, "set-lr") == 0) {
        return set_rate(trace, args + strspn(args, " "), why) ? GRADB_OK : GRADB_FAILED;
    }
    if (strcmp(name, "timing") == 0) {
        return set_timing(trace, args + strspn(args, " "), why) ? GRADB_OK : GRADB_FAILED;
    }
    if (strcmp(name, "commands") == 0) {
        snprintf(trace->reply, sizeof(trace->reply),
                 "{\"commands\":[{\"name\":\"set-lr\",\"usage\":\"[0=RATE]\",\"summary\":\"the "
                 "learning rate; "
                 "sets it (the command set lr)\"},{\"name\":\"timing\",\"usage\":\"on | off\","
                 "\"summary\":\"measure operators (the setting timing)\"}]}");
        return GRADB_OK;
    }
    snprintf(why, GRADB_WHY, "charlm has no command '%.60s'", name);
    return GRADB_UNSUPPORTED;
}

struct trace *trace_open(struct graph *graph, const struct trace_rate *rate)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    gradb_source source = {.ctx = trace, .command = run_command};
    gradb *handle = trace ? gradb_open(&(gradb_options){.framework = "charlm",
                                                        .framework_version = GRADB_VERSION,
                                                        .device = "cpu",
                                                        .source = &source})
                          : NULL;
    if (!handle) {
        free(trace);
        return NULL;
    }
    *trace = (struct trace){.gradb = handle, .graph = graph, .rate = *rate};
    for (size_t i = 0; i < graph->leaf_count; i++) {
        add_leaf(trace, graph->leaves[i]);
    }
    for (size_t i = 0; i < graph->op_count; i++) {
        add_op(trace, graph->ops[i]);
    }
    gradb_publish(handle);
    graph->did = report_op;
    graph->did_ctx = trace;
    gradb_wait(handle, WAIT_SECONDS);
    return trace;
}

void trace_close(struct trace *trace, const char *why)
{
    if (trace) {
        trace->graph->did = NULL;
        gradb_close(trace->gradb, why);
        timing_free(&trace->timing);
        free(trace);
    }
}

void trace_step_begin(struct trace *trace, int64_t step)
{
    if (trace) {
        gradb_step_begin(trace->gradb, step);
        timing_begin(&trace->timing);
    }
}

void trace_phase(struct trace *trace, enum phase phase)
{
    if (trace) {
        timing_phase(&trace->timing, phase);
        gradb_enter(trace->gradb, (gradb_phase)phase);
        timing_resume(&trace->timing);
    }
}

void trace_scalar(struct trace *trace, const char *name, double value)
{
    if (trace) {
        gradb_scalar(trace->gradb, name, value);
    }
}

void trace_step_end(struct trace *trace)
{
    if (trace) {
        timing_end(&trace->timing, trace->gradb);
        gradb_step_end(trace->gradb);
    }
}

void trace_happened(struct trace *trace, const char *kind, int64_t epoch, const char *path)
{
    if (trace) {
        gradb_happened(trace->gradb, kind, epoch, 0, path);
    }
}

bool trace_wants_stop(struct trace *trace)
{
    return trace && gradb_wants_stop(trace->gradb);
}

bool trace_wants_checkpoint(struct trace *trace)
{
    return trace && gradb_wants_checkpoint(trace->gradb);
}

void trace_checkpoint(struct trace *trace, const char *text, bool saved)
{
    char line[PATH_MAX + 64];
    char *path = saved ? realpath(text, NULL) : NULL;
    if (!trace) {
        free(path);
        return;
    }
    snprintf(line, sizeof(line), "%s%s", saved ? "" : "not saved: ", path ? path : text);
    gradb_event(trace->gradb, "checkpoint", line, 0);
    free(path);
}
