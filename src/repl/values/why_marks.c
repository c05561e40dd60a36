// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` and `tensor-graph` share: what fired on a value, and its statistics in a line. */
#include <string.h>

#include "engine/format.h"
#include "repl/core/command.h"
#include "repl/core/hits.h"
#include "repl/values/inspect.h"
#include "repl/values/why.h"

static const char *hit_abbr(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    return condition ? condition->abbr : inspect_printf(call, "#%d", hit->watchpoint);
}

/* The index-th distinct abbreviation of what fired there at this stop; NULL: no more. */
static const char *nth_hit(struct command_call *call, gd_node_id node, uint32_t slot, int index)
{
    const struct gd_session *session = call->session;
    const char *seen[16];
    int count = 0;
    for (size_t i = session->hit_count; i-- > 0;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->stop_sequence != session->stop.sequence) {
            break;
        }
        if (hit->node != node || hit->slot != slot || hit->is_scalar || hit->error) {
            continue;
        }
        const char *abbr = hit_abbr(call, hit);
        bool known = false;
        for (int k = 0; k < count; k++) {
            known = known || strcmp(seen[k], abbr) == 0;
        }
        if (!known && count == index) {
            return abbr;
        }
        if (!known && count < 16) {
            seen[count++] = abbr;
        }
    }
    return NULL;
}

const char *why_hits(struct command_call *call, gd_node_id node, uint32_t slot)
{
    const char *text = "";
    const char *abbr;
    for (int i = 0; i < 16 && (abbr = nth_hit(call, node, slot, i)); i++) {
        text = inspect_printf(call, "%s%s%s", text, i > 0 ? " " : " [", abbr);
    }
    return text[0] ? inspect_printf(call, "%s]", text) : "";
}

void why_add_hits(struct command_call *call, cJSON *object, gd_node_id node, uint32_t slot)
{
    cJSON *list = out_list(object, "hits");
    const char *abbr;
    for (int i = 0; i < 16 && (abbr = nth_hit(call, node, slot, i)); i++) {
        out_push_text(list, abbr);
    }
}

const char *why_figures(struct command_call *call, enum gd_dtype dtype,
                        const struct gd_shape *shape, const struct gd_stats *stats)
{
    struct gd_buf buf = GD_BUF_INIT(4096);
    const char *text;
    if (!stats) {
        return inspect_printf(call, "%s %s", gd_dtype_name(dtype), inspect_shape(call, shape));
    }
    gd_format_summary(dtype, shape, stats, NULL, 0, out_utf8(call->out), &buf);
    text = inspect_printf(call, "%s", gd_buf_text(&buf));
    gd_buf_deinit(&buf);
    return text;
}
