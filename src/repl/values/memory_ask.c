// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a report of memory comes from: the target, the training process, or the graph. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/memory/memory_graph.h"
#include "repl/values/inspect.h"
#include "repl/values/memory.h"
#include "repl/values/stacks.h"

#define REPORT_COMMAND "memory-report" /* of the training process */

static int ask_process(struct command_call *call, struct gd_memory *ret, struct gd_err *err)
{
    const char *text = NULL;
    const char *args = call->session->stop.at_step_end ? "end" : "";
    int rc = repl_command(call, REPORT_COMMAND, args, GD_NO_NODE, &text, err);
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *reply = cJSON_Parse(text);
    rc = memory_read(reply, ret, err);
    cJSON_Delete(reply);
    return rc;
}

/* Bytes of a line "VmRSS:   1234 kB"; -1: there is none. */
static int64_t kib_line(const char *path, const char *key)
{
    char line[256];
    int64_t kib = -1;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        size_t len = strlen(key);
        if (strncmp(line, key, len) == 0 && sscanf(line + len, "%" SCNd64, &kib) == 1) {
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return kib >= 0 && kib < INT64_MAX / 1024 ? kib * 1024 : -1;
}

static bool is_here(const struct gd_peer *peer)
{
    char host[sizeof(peer->host)] = "";
    return gethostname(host, sizeof(host) - 1) == 0 && strcmp(host, peer->host) == 0;
}

/* The process of a training on this host that cannot tell itself. */
static void read_process(const struct gd_session *session, struct gd_memory *ret)
{
    char path[64];
    if (!gd_session_is_live(session) || session->peer.pid <= 0) {
        return;
    }
    if (!is_here(&session->peer)) {
        gd_memory_add_note(ret, "the process, which runs on another host");
        return;
    }
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", session->peer.pid);
    ret->rss = kib_line(path, "VmRSS:");
    ret->rss_peak = kib_line(path, "VmHWM:");
    ret->machine = kib_line("/proc/meminfo", "MemTotal:");
    ret->machine_free = kib_line("/proc/meminfo", "MemAvailable:");
}

int memory_guess(struct command_call *call, struct gd_memory *report, struct gd_err *err)
{
    struct gd_graph_counts counts;
    gd_graph_counts(call->session->graph, &counts);
    if (counts.nodes == 0) {
        return gd_fail(err, GD_ENODATA, "the memory is unknown: %s",
                       gd_session_is_live(call->session)
                           ? "the training process has sent no graph"
                           : "what is open has no graph, and is not a memory snapshot");
    }
    if (call->session->times && gd_session_is_record(call->session)) {
        return gd_fail(err, GD_ENODATA,
                       "the memory is unknown: a trace of times does not say who holds memory");
    }
    report->step = call->session->stop.step;
    read_process(call->session, report);
    return gd_memory_of_graph(report, call->session->graph) == GD_OK ? GD_OK : gd_fail_nomem(err);
}

/* ---- source lines ---------------------------------------------------------------------------- */

static const char *line_of(struct command_call *call, const char *name)
{
    struct gd_graph *graph = call->session->graph;
    gd_node_id node = gd_graph_lookup(graph, name, strlen(name));
    if (node == GD_NO_NODE) {
        return "";
    }
    const struct gd_frame *place = gd_graph_place(graph, stack_node(call, node, false));
    if (!place || place->file[0] == '\0') {
        return "";
    }
    const char *slash = strrchr(place->file, '/');
    return inspect_printf(call, "%s:%u", slash ? slash + 1 : place->file, place->line);
}

void memory_place(struct command_call *call, struct gd_memory *report)
{
    for (size_t i = 0; i < report->node_count; i++) {
        struct gd_memory_row *row = &report->nodes[i];
        if (row->where[0] == '\0') {
            row->where = gd_memory_text(report, line_of(call, row->name));
        }
    }
    for (size_t i = 0; i < report->growth_count; i++) {
        struct gd_memory_growth *growth = &report->growth[i];
        if (growth->where[0] == '\0') {
            growth->where = gd_memory_text(report, line_of(call, growth->name));
        }
    }
    for (size_t i = 0; i < report->module_count; i++) {
        struct gd_memory_row *row = &report->modules[i];
        size_t len = strlen(row->name);
        for (size_t k = 0; k < report->node_count && row->where[0] == '\0'; k++) {
            const struct gd_memory_row *node = &report->nodes[k];
            if (node->where[0] != '\0' && node->kind == row->kind &&
                strncmp(node->name, row->name, len) == 0 && node->name[len] == '/') {
                row->where = node->where;
            }
        }
    }
}

int memory_ask(struct command_call *call, struct gd_memory *ret, struct gd_err *err)
{
    const struct gd_session *session = call->session;
    struct gd_target *target = session->target;
    gd_memory_init(ret);
    if (target && target->ops->memory) {
        int rc = target->ops->memory(target, ret, err);
        gd_memory_sort(ret);
        if (rc != GD_ENODATA) {
            return rc;
        }
    }
    if (target && gd_session_is_live(session) && target->capabilities & GD_CAN_COMMAND) {
        int rc = ask_process(call, ret, err);
        if (rc == GD_OK) {
            memory_place(call, ret);
        }
        if (rc != GD_EUNSUPPORTED) {
            return rc;
        }
    }
    return memory_guess(call, ret, err);
}
