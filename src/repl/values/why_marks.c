// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` and `tensor-graph` share: what fired on a value, and its statistics in a line. */
#include <string.h>

#include "engine/format.h"
#include "repl/core/command.h"
#include "repl/core/hits.h"
#include "repl/values/inspect.h"
#include "repl/values/why.h"

#define MOST_HITS 16

/* The distinct abbreviations of what fired there at this stop, the latest first. */
static int list_hits(struct command_call *call, gd_node_id node, uint32_t slot,
                     const char *ret[MOST_HITS])
{
    const struct gd_session *session = call->session;
    size_t first = hits_first_of_stop(session);
    int count = 0;
    for (size_t i = session->hit_count; i-- > first && count < MOST_HITS;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->node != node || hit->slot != slot || hit->is_scalar || hit->error) {
            continue;
        }
        const struct gd_condition *condition = hits_condition(call->debugger, hit);
        const char *abbr =
            condition ? condition->abbr : inspect_printf(call, "#%d", hit->watchpoint);
        bool known = false;
        for (int k = 0; k < count; k++) {
            known = known || strcmp(ret[k], abbr) == 0;
        }
        if (!known) {
            ret[count++] = abbr;
        }
    }
    return count;
}

const char *why_hits(struct command_call *call, gd_node_id node, uint32_t slot)
{
    const char *abbr[MOST_HITS], *text = "";
    int count = list_hits(call, node, slot, abbr);
    for (int i = 0; i < count; i++) {
        text = inspect_printf(call, "%s%s%s", text, i > 0 ? " " : " [", abbr[i]);
    }
    return count > 0 ? inspect_printf(call, "%s]", text) : "";
}

void why_add_hits(struct command_call *call, cJSON *object, gd_node_id node, uint32_t slot)
{
    const char *abbr[MOST_HITS];
    int count = list_hits(call, node, slot, abbr);
    cJSON *list = out_list(object, "hits");
    for (int i = 0; i < count; i++) {
        out_push_text(list, abbr[i]);
    }
}

const char *why_figures(struct command_call *call, enum gd_dtype dtype,
                        const struct gd_shape *shape, const struct gd_stats *stats)
{
    struct gd_buf buf = GD_BUF_INIT(4096);
    if (!stats) {
        return inspect_printf(call, "%s %s", gd_dtype_name(dtype), inspect_shape(call, shape));
    }
    gd_format_summary(dtype, shape, stats, NULL, 0, out_utf8(call->out), &buf);
    return inspect_take(call, &buf);
}
