// SPDX-License-Identifier: GPL-3.0-or-later
/* What a dump says about a value or a node that it does not have in full. */
#include "repl/values/dump_notes.h"
#include "dump/dump_target.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

/* An operator whose own output was not dumped, but appears as an input of another. */
static const char *note_given(struct command_call *call, const struct gd_catalog *catalog,
                              const struct gd_tensor_ref *ref, int64_t step)
{
    const struct gd_catalog_value *value =
        gd_catalog_find_given(catalog, call->session->graph, ref->node, ref->slot, step);

    if (!value) {
        return NULL;
    }
    return inspect_printf(call, "not dumped: it is the value that %s:%s received",
                          gd_graph_name(call->session->graph, value->node),
                          inspect_slot(call, value->node, value->slot));
}

const char *dump_note(struct command_call *call, const struct gd_tensor_ref *ref, int64_t step)
{
    const struct gd_catalog *catalog = call->session ? gd_catalog_of(call->session) : NULL;
    const struct gd_catalog_value *value =
        catalog ? gd_catalog_find(catalog, ref->node, ref->slot, step) : NULL;

    if (catalog && !value) {
        return note_given(call, catalog, ref, step);
    }
    if (!value || !value->digest) {
        return value ? value->note : NULL;
    }
    return inspect_printf(call, "%s%s%s", value->note ? value->note : "", value->note ? "; " : "",
                          value->digest);
}

/* Appends the first digest of the node in the dump, which may be all there is. */
static const char *add_digest(struct command_call *call, gd_node_id node, uint32_t slots,
                              const char *note)
{
    const struct gd_catalog *catalog = gd_catalog_of(call->session);

    for (uint32_t slot = 0; slot < slots; slot++) {
        const struct gd_catalog_value *value =
            gd_catalog_find(catalog, node, slot, call->session->stop.step);

        if (value && value->digest) {
            char name[16];

            gd_graph_slot_name(call->session->graph, node, slot, name);
            return inspect_printf(call, "%s%sdigest of :%s %s", note ? note : "", note ? "; " : "",
                                  name, value->digest);
        }
    }
    return note;
}

const char *dump_note_of_node(struct command_call *call, gd_node_id node)
{
    const struct gd_catalog *catalog = call->session ? gd_catalog_of(call->session) : NULL;
    const char *why = catalog ? gd_catalog_why_not(catalog, node) : NULL, *note = NULL;
    struct gd_node_info info;

    if (!catalog || !gd_graph_node(call->session->graph, node, &info)) {
        return NULL;
    }
    if (why) {
        return inspect_printf(call, "nothing was dumped: %s", why);
    }
    for (uint32_t slot = 0; !note && slot < info.output_count; slot++) {
        const struct gd_catalog_value *value =
            gd_catalog_find(catalog, node, slot, call->session->stop.step);

        note = value ? value->note : NULL;
    }
    return add_digest(call, node, info.output_count, note);
}
