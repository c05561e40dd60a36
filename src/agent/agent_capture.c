// SPDX-License-Identifier: MIT
/*
 * Copies values that will be gone when somebody looks at them, right after their node has run. The
 * steps in which copies are due are known in advance, so all other steps run as if nobody had
 * asked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_capture.h"
#include "agent/agent_core.h"
#include "agent/agent_mark.h"
#include "agent/agent_source.h"
#include "agent/agent_tensor.h"

#define TEXT 160

/* Half of the available memory: copies must not end the training. */
static uint64_t spare_memory(void)
{
    char line[128];
    uint64_t kib = UINT64_MAX >> 10;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof(line), f) &&
           sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) != 1) {
    }
    if (f) {
        fclose(f);
    }
    return (kib << 10) / 2;
}

static bool is_due(const struct agent_capturing *c, int64_t step)
{
    return c->last > 0 ? step >= c->first && step <= c->last : c->all || c->count > 0;
}

static void set_limit(struct agent_capturing *c)
{
    c->limit = UINT64_MAX;
    if (c->last > 0) { /* steps are copied one after another, and earlier copies are freed */
        uint64_t spare = spare_memory();
        c->limit = c->most && c->most < spare ? c->most : spare;
    }
}

void agent_capture_set(struct agent *a, const Gradb__V1__Capture *m)
{
    struct agent_capturing *c = &a->capturing;
    c->all = m->all;
    c->count = m->n_nodes;
    c->first = m->first_step;
    c->last = m->last_step;
    c->most = m->max_bytes;
    c->active = is_due(c, PEEK(a->step));
    set_limit(c);
}

void agent_capture_clear(struct agent *a)
{
    a->capturing = (struct agent_capturing){.held = a->capturing.held, .bytes = a->capturing.bytes};
}

/* The training is running, so nobody reads them. */
static void drop_copies(struct agent *a)
{
    for (uint32_t id = 1; id < a->node_count; id++) {
        struct agent_node *node = &a->nodes[id];
        node->flags &= (uint16_t)~NODE_LEFT_OUT;
        for (uint32_t i = 0; !(node->flags & NODE_CAPTURE_WATCH) && i < node->slot_count; i++) {
            agent_copy_free(node->slots[i].captured);
            node->slots[i].captured = NULL;
        }
    }
    a->capturing.held = false;
    a->capturing.bytes = 0;
}

void agent_capture_step(struct agent *a, int64_t step)
{
    struct agent_capturing *c = &a->capturing;
    bool due = is_due(c, step);
    if (c->held && (!due || c->last > 0)) {
        drop_copies(a);
    }
    if (due) {
        set_limit(c);
    }
    if (due != c->active) {
        c->active = due;
        agent_mark_nodes(a, 1);
    }
    agent_arm(a);
}

/* Whether a copy of this size exceeds the limit; copies for watch plans never do. */
static bool is_too_much(struct agent *a, const struct agent_node *node,
                        const struct agent_copy *copy, uint64_t bytes)
{
    struct agent_capturing *c = &a->capturing;
    uint64_t more = copy && copy->capacity > bytes ? 0 : bytes - (copy ? copy->capacity : 0);
    if (!agent_captures(a, node)) {
        return false;
    }
    c->held = true;
    bool ours = !(node->flags & (NODE_CAPTURE_WATCH | NODE_KEEP | NODE_KEEP_WATCH));
    if (ours && (c->bytes > c->limit || more > c->limit - c->bytes)) {
        return true;
    }
    c->bytes += more;
    return false;
}

/* The table may move while the source is asked. */
static bool capture_slots(struct agent *a, gradb_node id)
{
    bool ok = true;
    for (uint32_t i = 0; i < a->nodes[id].slot_count; i++) {
        struct agent_value value;
        char text[TEXT];
        size_t bytes = 0;
        if (agent_find(a, id, i, GRADB__V1__ITERATION__CURRENT, &value, text) != -1) {
            continue;
        }
        struct agent_copy **copy = &a->nodes[id].slots[i].captured;
        if (value.tensor.data == (*copy ? (*copy)->data : NULL)) {
            continue; /* the captured value is the current one */
        }
        if (gd_shape_bytes(&value.tensor.shape, value.tensor.dtype, &bytes, NULL) != GD_OK ||
            is_too_much(a, &a->nodes[id], *copy, bytes)) {
            a->nodes[id].flags |= NODE_LEFT_OUT;
            continue;
        }
        value.step = PEEK(a->step); /* it has just run */
        ok = agent_copy_take(copy, &value) && ok;
    }
    agent_source_release(a);
    return ok;
}

/* The copies of earlier runs would hide that the value is gone. */
static void drop_earlier(struct agent_node *node)
{
    for (uint32_t i = 0; i < node->slot_count; i++) {
        agent_copy_free(node->slots[i].captured);
        node->slots[i].captured = NULL;
    }
}

void agent_capture_node(struct agent *a, gradb_node id, struct agent_told told)
{
    const struct agent_node *node = agent_node_at(a, id);
    if (!node) {
        return;
    }
    bool watched = node->flags & NODE_CAPTURE_WATCH;
    bool wanted = watched && agent_watch_early(a, id, told);
    node = &a->nodes[id];
    /* Previous values are kept by the source, if it can. */
    bool kept = !a->source.keep && node->flags & (NODE_KEEP | NODE_KEEP_WATCH);
    if (!wanted && !kept && !agent_captures(a, node)) {
        if (watched) {
            drop_earlier(&a->nodes[id]);
        }
    } else if (!capture_slots(a, id)) {
        agent_set_error(a, "out of memory for a copy of %.100s", a->nodes[id].name);
    }
}
