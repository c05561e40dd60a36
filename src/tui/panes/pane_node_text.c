// SPDX-License-Identifier: GPL-3.0-or-later
/* The text of the node pane, wrapped to its width. */
#include "base/grow.h"
#include "tui/panes/pane_node_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "engine/format.h"
#include "engine/watch/watchpoint.h"
#include "repl/core/hits.h"
#include "repl/values/value.h"
#include "tui/text.h"

#define MAX_EDGES_SHOWN 200 /* of inputs, outputs and consumers each */
#define MAX_ATTR_COLS   200
#define MAX_WATCHES     16
#define FOLD_INDENT     6

/* ---- lines --------------------------------------------------------------------------------- */

static bool line_add(struct node_view *view, const struct node_line *line)
{
    struct node_line *grown =
        gd_grow(view->line, view->lines, &view->line_capacity, sizeof(*grown));

    if (!grown) {
        return false;
    }
    view->line = grown;
    view->line[view->lines++] = *line;
    return true;
}

static bool item_add(struct node_view *view, const struct node_item *item)
{
    struct node_item *grown =
        gd_grow(view->item, view->items, &view->item_capacity, sizeof(*grown));

    if (!grown) {
        return false;
    }
    view->item = grown;
    view->item[view->items++] = *item;
    return true;
}

/* Adds the text from `at` to the end of view->text as one item with as many rows as it needs. */
static void add_item(struct tui *tui, struct node_view *view, const struct node_item *item,
                     enum draw_style style, size_t at)
{
    const char *all = gd_buf_text(&view->text);
    size_t end = view->text.len;
    bool first = true;

    if (!item_add(view, item)) {
        return;
    }
    do {
        int cols = view->cols - (!first && view->cols > 20 ? FOLD_INDENT : 0);
        size_t cut;
        size_t next = tui_text_next(all + at, cols, tui->utf8, &cut);
        struct node_line line = {at, cut, view->items - 1, !first, style};
        if (!line_add(view, &line) || cut == 0) {
            return;
        }
        at += next;
        first = false;
    } while (at < end);
}

static void add_heading(struct tui *tui, struct node_view *view, const char *text)
{
    struct node_item item = {.kind = NODE_TEXT, .node = view->node};
    size_t at = view->text.len;

    gd_buf_puts(&view->text, text);
    add_item(tui, view, &item, DRAW_SCOPE, at);
}

static void add_more(struct tui *tui, struct node_view *view, uint32_t count)
{
    struct node_item item = {.kind = NODE_TEXT, .node = view->node};
    size_t at = view->text.len;

    if (count > MAX_EDGES_SHOWN) {
        gd_buf_printf(&view->text, "  and %u more: see `info node`", count - MAX_EDGES_SHOWN);
        add_item(tui, view, &item, DRAW_DIM, at);
    }
}

/* ---- what there is ------------------------------------------------------------------------- */

static void add_shape(struct gd_buf *out, const struct gd_output *output)
{
    char shape[128];
    gd_buf_printf(out, " %s %s", gd_dtype_name(output->dtype),
                  gd_shape_text(&output->shape, shape, sizeof(shape)));
}

static void add_edge(struct tui *tui, struct node_view *view, struct gd_session *session,
                     const struct gd_edge *edge, bool is_input)
{
    struct node_item item = {.kind = NODE_EDGE, .node = edge->node};
    struct gd_buf *out = &view->text;
    size_t at = out->len;
    struct gd_output output;

    if (edge->node == GD_NO_NODE || gd_graph_name(session->graph, edge->node)[0] == '\0') {
        return;
    }
    gd_buf_printf(out, "  %s", gd_graph_name(session->graph, edge->node));
    if (edge->control) {
        gd_buf_puts(out, " (order only)");
    } else if (is_input) {
        item.has_slot = true;
        item.slot = edge->slot;
        gd_buf_printf(out, ":%u", edge->slot);
        if (gd_graph_output(session->graph, edge->node, edge->slot, &output)) {
            add_shape(out, &output);
        }
    } else {
        gd_buf_printf(out, " (of :%u)", edge->slot);
    }
    add_item(tui, view, &item, DRAW_PLAIN, at);
}

static void add_edges(struct tui *tui, struct node_view *view, struct gd_session *session,
                      const char *title, const struct gd_edge *edges, uint32_t count, bool inputs)
{
    if (count > 0) {
        add_heading(tui, view, title);
    }
    for (uint32_t i = 0; i < count && i < MAX_EDGES_SHOWN; i++) {
        add_edge(tui, view, session, &edges[i], inputs);
    }
    add_more(tui, view, count);
}

/* Statistics (starting with type and shape) and histogram, or only type and shape. */
static void add_output(struct tui *tui, struct node_view *view, struct gd_session *session,
                       uint32_t number)
{
    const struct slot_stats *slot = number < TUI_MAX_SLOTS ? &view->stats.slot[number] : NULL;
    struct node_item item = {NODE_OUTPUT, view->node, number, true, 0};
    struct gd_buf *out = &view->text;
    size_t at = out->len;
    struct gd_output output;

    char name[16];

    gd_graph_slot_name(session->graph, view->node, number, name);
    gd_buf_printf(out, "  :%s", name);
    if (slot && slot->state == STATS_HERE && session->state != GD_RUNNING) {
        bool bars = slot->histogram == STATS_HERE;
        gd_buf_putc(out, ' ');
        gd_format_summary(slot->dtype, &slot->shape, &slot->stats, bars ? slot->bin : NULL,
                          bars ? TUI_BINS : 0, tui->utf8, out);
        if (bars && slot->sampled) {
            gd_buf_puts(out, " of a sample");
        }
        char age[VALUE_AGE];
        /* the value is from an earlier run of the node */
        if (value_age(session, slot->step, age)[0]) {
            gd_buf_printf(out, ", %s", age);
        }
    } else {
        if (gd_graph_output(session->graph, view->node, number, &output)) {
            add_shape(out, &output);
        }
        if (slot && slot->state == STATS_FAILED && session->state != GD_RUNNING) {
            gd_buf_printf(out, " (%s)", slot->why);
        }
    }
    add_item(tui, view, &item, DRAW_PLAIN, at);
}

static void add_outputs(struct tui *tui, struct node_view *view, struct gd_session *session,
                        const struct gd_node_info *info)
{
    if (info->output_count > 0 && session->state == GD_RUNNING) {
        add_heading(tui, view, "running: values appear at the next stop");
    }
    for (uint32_t i = 0; i < info->output_count && i < MAX_EDGES_SHOWN; i++) {
        add_output(tui, view, session, i);
    }
    add_more(tui, view, info->output_count);
}

static void add_watches(struct tui *tui, struct node_view *view, struct gd_session *session)
{
    int number[MAX_WATCHES];
    size_t count = gd_watch_of_node(session, view->node, number, MAX_WATCHES);

    if (count > 0) {
        add_heading(tui, view, "watchpoints");
    }
    for (size_t i = 0; i < count && i < MAX_WATCHES; i++) {
        struct node_item item = {.kind = NODE_WATCH, .node = view->node};
        const struct gd_watchpoint *watch = gd_watchpoint_at(tui->debugger, number[i]);
        size_t at = view->text.len;
        item.number = (uint64_t)number[i];
        gd_buf_printf(&view->text, "  %d  ", number[i]);
        if (watch) {
            gd_watchpoint_text(watch, &view->text);
        }
        add_item(tui, view, &item, DRAW_WATCHED, at);
    }
}

/* Searches the hits of this stop only when there is a new one. */
static void find_hits(struct tui *tui, struct node_view *view, struct gd_session *session)
{
    uint64_t all = session->hits_dropped + session->hit_count;

    if (view->hits.seen == all && view->hits.taken == session->hits_generation &&
        view->hits.sequence == session->stop.sequence && view->hits.node == view->node) {
        return;
    }
    view->hits.seen = all;
    view->hits.taken = session->hits_generation;
    view->hits.sequence = session->stop.sequence;
    view->hits.node = view->node;
    view->hits.count = 0;
    if (!tree_hits_of_node(&tui->tree.hits, view->node)) {
        return;
    }
    for (size_t i = session->hit_count; i-- > 0 && view->hits.count < 8;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->stop_sequence < session->stop.sequence) {
            break;
        }
        if (hit->node == view->node && hit->stop_sequence == session->stop.sequence) {
            view->hits.number[view->hits.count++] = hits_number(session, hit);
        }
    }
}

static void add_hit(struct tui *tui, struct node_view *view, const struct gd_hit *hit,
                    uint64_t number)
{
    struct node_item item = {NODE_HIT, view->node, hit->slot, true, number};
    struct gd_buf *out = &view->text;
    size_t at = out->len;

    const char *expression = hit->kind ? "" : hit->expression;
    gd_buf_printf(out, "  [%s] :%s",
                  expression[0] != '\0' ? expression : hits_abbr(tui->debugger, hit),
                  hit->slot_name);
    if (hit->error != 0) {
        gd_buf_puts(out, " could not be checked");
    }
    for (int i = 0; hit->error == 0 && i < hit->param_count; i++) {
        if (hit->param[i].hit) {
            gd_buf_printf(out, " %s %g, is %g", hit->param[i].name, hit->param[i].set_value,
                          hit->param[i].actual_value);
        }
    }
    gd_buf_printf(out, " (watchpoint %d)", hit->watchpoint);
    add_item(tui, view, &item, DRAW_HIT, at);
}

static void add_hits(struct tui *tui, struct node_view *view, struct gd_session *session)
{
    const struct gd_hit *hit;

    find_hits(tui, view, session);
    for (size_t i = view->hits.count; i-- > 0;) {
        if (hits_find(session, view->hits.number[i], &hit, NULL) == GD_OK) {
            add_hit(tui, view, hit, view->hits.number[i]);
        }
    }
}

static void add_frames(struct tui *tui, struct node_view *view, struct gd_session *session)
{
    struct node_item item = {.kind = NODE_TEXT, .node = view->node};
    uint32_t count = 0;
    const struct gd_frame *frames = gd_graph_stack(session->graph, view->node, &count);
    const struct gd_frame *place = gd_graph_place(session->graph, view->node);

    if (count > 0) {
        add_heading(tui, view, "source");
    }
    for (uint32_t i = 0; i < count && i < MAX_EDGES_SHOWN; i++) {
        const struct gd_frame *frame = &frames[i];
        const char *slash = strrchr(frame->file, '/');
        size_t at = view->text.len;
        if (!frame->is_title && gd_frame_is_library(frame) && frame != place) {
            continue; /* a framework's frame: `backtrace all` shows it */
        }
        if (frame->is_title || frame->file[0] == '\0') {
            gd_buf_printf(&view->text, "  %s", frame->code);
        } else {
            gd_buf_printf(&view->text, "  %s:%u %s", slash ? slash + 1 : frame->file, frame->line,
                          frame->function);
        }
        add_item(tui, view, &item, DRAW_PLAIN, at);
    }
}

static void add_head(struct tui *tui, struct node_view *view, const struct gd_node_info *info)
{
    struct node_item item = {.kind = NODE_TEXT, .node = view->node};
    struct gd_buf *out = &view->text;
    size_t at = out->len;

    gd_buf_puts(out, info->name);
    add_item(tui, view, &item, DRAW_BOLD, at);
    at = out->len;
    gd_buf_printf(out, "type %s, %s", info->type, gd_node_kind_name(info->kind));
    if (info->order != GD_NO_ORDER) {
        gd_buf_printf(out, ", number %u in order", info->order);
    }
    add_item(tui, view, &item, DRAW_PLAIN, at);
}

static void add_attributes(struct tui *tui, struct node_view *view,
                           const struct gd_session *session, const struct gd_node_info *info)
{
    struct node_item item = {.kind = NODE_TEXT, .node = view->node};
    struct gd_buf *out = &view->text;
    size_t at = out->len;

    for (uint32_t i = 0; i < info->attr_count; i++) {
        const char *value = info->attrs[i].value;
        size_t len = tui_text_fit(value, MAX_ATTR_COLS, tui->utf8);
        if (gd_session_shows_attr(session, view->node, &info->attrs[i])) {
            gd_buf_printf(out, "%s%s=%.*s%s", out->len > at ? " " : "", info->attrs[i].name,
                          (int)len, value, value[len] != '\0' ? "..." : "");
        }
    }
    if (out->len > at) {
        add_item(tui, view, &item, DRAW_PLAIN, at);
    }
}

/* Why a dump has no values of a node without outputs; outputs have their own explanation. */
static void add_why_not(struct tui *tui, struct node_view *view, const struct gd_session *session,
                        const struct gd_node_info *info)
{
    const struct gd_catalog *catalog = gd_catalog_of(session);
    const char *why = catalog ? gd_catalog_why_not(catalog, view->node) : NULL;
    struct node_item item = {.kind = NODE_TEXT, .node = view->node};
    size_t at = view->text.len;

    if (why && info->output_count == 0) {
        gd_buf_printf(&view->text, "nothing was dumped: %s", why);
        add_item(tui, view, &item, DRAW_DIM, at);
    }
}

/* The reason of the stop comes first: it must be visible in few rows. */
static void add_node(struct tui *tui, struct node_view *view, struct gd_session *session)
{
    struct gd_node_info info;
    const struct gd_edge *consumers = NULL;

    if (!gd_graph_node(session->graph, view->node, &info)) {
        return;
    }
    add_head(tui, view, &info);
    add_why_not(tui, view, session, &info);
    add_hits(tui, view, session);
    add_outputs(tui, view, session, &info);
    add_attributes(tui, view, session, &info);
    add_edges(tui, view, session, "inputs", info.inputs, info.input_count, true);
    uint32_t count = gd_graph_consumers(session->graph, view->node, &consumers);
    add_edges(tui, view, session, "consumers", consumers, count, false);
    add_watches(tui, view, session);
    add_frames(tui, view, session);
}

static void add_scope(struct tui *tui, struct node_view *view, struct gd_session *session)
{
    struct node_item item = {.kind = NODE_TEXT, .node = GD_NO_NODE};
    struct gd_scope_info info;
    size_t at = view->text.len;

    if (!gd_graph_scope(session->graph, view->scope, &info)) {
        return;
    }
    gd_buf_puts(&view->text, info.name);
    add_item(tui, view, &item, DRAW_BOLD, at);
    at = view->text.len;
    gd_buf_printf(&view->text, "scope: %u nodes, %u of them directly in it", info.total_count,
                  info.node_count);
    add_item(tui, view, &item, DRAW_PLAIN, at);
}

void node_text_build(struct tui *tui, struct node_view *view, int cols)
{
    struct gd_session *session = tui->tree.session;
    struct tui_tree_row row = {.node = GD_NO_NODE, .scope = GD_NO_SCOPE};
    bool any = session && tui_cursor_row(tui, &row);

    if (view->node != row.node || view->scope != row.scope || view->session != session) {
        view->list.cursor = view->list.top = 0;
        view->node = row.node;
        view->scope = row.scope;
        view->session = session;
    }
    gd_buf_clear(&view->text);
    view->lines = view->items = 0;
    view->cols = cols > 0 ? cols : 1;
    if (any && row.is_scope) {
        add_scope(tui, view, session);
    } else if (any) {
        add_node(tui, view, session);
    }
    view->list.count = view->lines;
    tui_list_settle(&view->list);
}
