// SPDX-License-Identifier: GPL-3.0-or-later
/* The state of `dump`, and which nodes it dumps. */
#include <stdlib.h>

#include "engine/graph/selector.h"
#include "repl/commands/files/dump_live.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

void dump_live_clear(struct live_dump *d)
{
    for (size_t i = 0; i < d->ranks; i++) {
        gd_ms_writer_close(d->rank[i].writer);
    }
    free(d->rank);
    d->rank = NULL;
    d->ranks = 0;
    free(d->used);
    d->used = NULL;
    d->steps_written = 0;
    free(d->plan.dir);
    free(d->plan.selector);
    free(d->plan.net);
    d->plan = (struct dump_plan){.dir = NULL};
    gd_steps_clear(&d->steps);
    d->armed = false;
    d->cut = 0;
}

static void free_state(void *data)
{
    struct live_dump *d = data;

    dump_live_clear(d);
    gd_dump_config_free(d->config);
    free(d);
}

struct live_dump *dump_live_find(struct repl *repl)
{
    return repl_slot(repl, REPL_SLOT_DUMP);
}

struct live_dump *dump_live_make(struct repl *repl, struct gd_err *err)
{
    struct live_dump *d = repl_make_slot(repl, REPL_SLOT_DUMP, sizeof(*d), free_state);

    if (!d) {
        gd_fail_nomem(err);
        return NULL;
    }
    repl->dump = &dump_live_ops;
    return d;
}

static bool is_kernel(struct live_dump *d, const struct gd_node_info *info)
{
    bool any = false;

    for (size_t i = 0; i < d->config->kernels; i++) {
        if (gd_kernel_choice_has(d->config->kernel[i], info->name, info->type)) {
            any = true;
            if (d->used) {
                d->used[i] = true;
            }
        }
    }
    return any;
}

/* Warns once, after the first step, about names that chose nothing: most likely a mistake. */
void dump_live_warn_of_unused(struct command_call *call, struct live_dump *d)
{
    size_t count = 0, first = 0;

    if (!d->used) {
        return;
    }
    for (size_t i = d->config->kernels; i > 0; i--) {
        first = d->used[i - 1] ? first : i - 1;
        count += !d->used[i - 1];
    }
    free(d->used);
    d->used = NULL;
    if (count > 0) {
        repl_printf(call->repl, true, "warning: %s of kernels %s nothing; the first: \"%.100s\"\n",
                    inspect_plural(call, count, "entry"), count == 1 ? "chooses" : "choose",
                    out_safe(call, gd_kernel_choice_text(d->config->kernel[first])));
    }
}

/* In execution order if it is known. */
int dump_live_choose(struct gd_session *session, struct live_dump *d, gd_node_id **ret,
                     size_t *count, struct gd_err *err)
{
    struct gd_graph *graph = session->graph;
    struct gd_selector *selector = NULL;
    const char *text = d->plan.selector ? d->plan.selector : "all";
    struct gd_node_info info;
    size_t kept = 0;
    int rc = gd_selector_parse(text, &selector, err);

    rc = rc != GD_OK ? rc : gd_selector_resolve(selector, graph, ret, count, err);
    gd_selector_destroy(selector);
    if (rc == GD_OK && d->config && d->config->chosen && !d->plan.selector) {
        if (d->steps_written == 0 && !d->used) {
            d->used = calloc(d->config->kernels + 1, sizeof(*d->used));
        }
        for (size_t i = 0; i < *count; i++) {
            if (gd_graph_node(graph, (*ret)[i], &info) && is_kernel(d, &info)) {
                (*ret)[kept++] = (*ret)[i];
            }
        }
        *count = kept;
    }
    if (rc == GD_OK && *count == 0) {
        free(*ret);
        *ret = NULL;
        rc = gd_fail(err, GD_ENOTFOUND, "no node that can be dumped is selected");
    }
    return rc;
}
