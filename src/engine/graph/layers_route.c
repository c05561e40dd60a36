// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The edges between two neighbouring layers: each net gets a track, a column in which it runs up
 * and down. In a row where one net begins on the left and another ends on the right, the track
 * of the first must be left of the second's. Where such rules contradict each other, a net
 * changes its track in a row that nothing else uses.
 */
#include "engine/graph/layers_impl.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CELLS (1 << 22)
#define MAX_SEGS  (2 * GD_LAYERS_EDGES)

struct seg { /* a net in this gap, or the first or second part of one that changes its track */
    int net, in_row;
    int out_row; /* of a first part; -1: where the links lead */
    int after;   /* the first part of this second part; -1: none */
    int top, bottom, track;
    bool straight;
};
struct channel {
    struct layer_work *work;
    int gap;
    struct seg seg[MAX_SEGS];
    int count, tracks;
};

/* Whether the part ends on the right in this row. */
static bool ends_in(const struct channel *channel, const struct seg *seg, int row)
{
    const struct layer_work *work = channel->work;

    if (seg->out_row >= 0) {
        return seg->out_row == row;
    }
    for (int i = 0; i < work->link_count; i++) {
        const struct layer_link *link = &work->link[i];
        if (link->gap == channel->gap && link->net == seg->net &&
            layers_right_row(work, link) == row) {
            return true;
        }
    }
    return false;
}

static void measure_seg(const struct channel *channel, struct seg *seg)
{
    const struct layer_work *work = channel->work;

    seg->top = seg->bottom = seg->in_row;
    seg->straight = seg->after < 0 && seg->out_row < 0;
    for (int i = 0; i < work->link_count || (i == 0 && seg->out_row >= 0); i++) {
        const struct layer_link *link = &work->link[i];
        bool mine = seg->out_row >= 0 || (link->gap == channel->gap && link->net == seg->net);
        int row = seg->out_row >= 0 ? seg->out_row : mine ? layers_right_row(work, link) : 0;
        if (mine) {
            seg->top = row < seg->top ? row : seg->top;
            seg->bottom = row > seg->bottom ? row : seg->bottom;
        }
        if (seg->out_row >= 0) {
            break;
        }
    }
    seg->straight = seg->straight && seg->top == seg->bottom;
}

static void collect_segs(struct channel *channel)
{
    const struct layer_work *work = channel->work;

    channel->count = channel->tracks = 0;
    for (int i = 0; i < work->link_count; i++) {
        const struct layer_link *link = &work->link[i];
        bool known = link->gap != channel->gap;
        for (int k = 0; k < channel->count && !known; k++) {
            known = channel->seg[k].net == link->net;
        }
        if (!known) {
            struct seg *seg = &channel->seg[channel->count++];
            *seg = (struct seg){.net = link->net,
                                .in_row = layers_left_row(work, link),
                                .out_row = -1,
                                .after = -1,
                                .track = -1};
            measure_seg(channel, seg);
        }
    }
}

/* Whether `other` must have a track left of that of `seg`. */
static bool goes_before(const struct channel *channel, int other, int seg)
{
    const struct seg *a = &channel->seg[other], *b = &channel->seg[seg];

    if (b->after == other) {
        return true;
    }
    return other != seg && a->after != seg && !a->straight && a->after < 0 &&
           ends_in(channel, b, a->in_row);
}

static bool may_take(const struct channel *channel, int seg)
{
    for (int i = 0; i < channel->count; i++) {
        if (channel->seg[i].track < 0 && !channel->seg[i].straight &&
            goes_before(channel, i, seg)) {
            return false;
        }
    }
    return true;
}

static bool row_is_free(const struct channel *channel, int row)
{
    for (int i = 0; i < channel->count; i++) {
        if (channel->seg[i].in_row == row || ends_in(channel, &channel->seg[i], row)) {
            return false;
        }
    }
    return row >= 0;
}

/* The first net that waits for itself: it changes its track in the nearest free row. */
static void split_seg(struct channel *channel)
{
    int at = 0, away = 0;

    while (channel->seg[at].track >= 0 || channel->seg[at].straight ||
           channel->seg[at].out_row >= 0 || channel->seg[at].after >= 0) {
        at++; /* there is one: parts of split nets never wait for each other */
    }
    struct seg *seg = &channel->seg[at];
    while (!row_is_free(channel, seg->in_row + away) && !row_is_free(channel, seg->in_row - away)) {
        away++;
    }
    int row = row_is_free(channel, seg->in_row + away) ? seg->in_row + away : seg->in_row - away;
    struct seg *second = &channel->seg[channel->count++];
    *second = *seg;
    second->in_row = row;
    second->after = at;
    seg->out_row = row;
    measure_seg(channel, seg);
    measure_seg(channel, second);
}

/* Fills one track from top to bottom with parts that may be in it. false: none may. */
static bool fill_track(struct channel *channel)
{
    bool may[MAX_SEGS], any = false;
    int bottom = -1;

    for (int i = 0; i < channel->count; i++) {
        may[i] = channel->seg[i].track < 0 && !channel->seg[i].straight && may_take(channel, i);
    }
    for (;;) {
        int next = -1;
        for (int i = 0; i < channel->count; i++) {
            if (may[i] && channel->seg[i].top > bottom &&
                (next < 0 || channel->seg[i].top < channel->seg[next].top)) {
                next = i;
            }
        }
        if (next < 0) {
            break;
        }
        channel->seg[next].track = channel->tracks;
        bottom = channel->seg[next].bottom;
        may[next] = false;
        any = true;
    }
    channel->tracks += any ? 1 : 0;
    return any;
}

static void choose_tracks(struct channel *channel)
{
    collect_segs(channel);
    for (;;) {
        int left = 0;
        for (int i = 0; i < channel->count; i++) {
            left += channel->seg[i].track < 0 && !channel->seg[i].straight;
        }
        if (left == 0) {
            return;
        }
        if (!fill_track(channel)) {
            split_seg(channel);
        }
    }
}

/* ---- drawing ------------------------------------------------------------------------------- */

static void add_lines(struct layer_work *work, int net, int row, int col, int lines)
{
    struct gd_layers *layers = work->layers;
    struct gd_layers_cell *cell = &layers->cell[(size_t)row * (size_t)layers->cols + (size_t)col];
    const struct layer_net *of = &work->net[net];

    cell->crossing = cell->crossing || (cell->lines != 0 && cell->source != of->edge);
    cell->lines |= (uint8_t)lines;
    cell->back = of->back && !cell->crossing;
    cell->source = (int16_t)of->edge;
}

/* From the column `from` to `to`; open: beyond that end the line continues, or touches a box. */
static void draw_across(struct layer_work *work, int net, int row, int from, int to, bool left_open,
                        bool right_open)
{
    for (int col = from; col <= to; col++) {
        int lines = (col > from || left_open ? GD_LAYERS_W : 0) |
                    (col < to || right_open ? GD_LAYERS_E : 0);
        add_lines(work, net, row, col, lines);
    }
}

static void draw_down(struct layer_work *work, int net, int col, int top, int bottom)
{
    for (int row = top; row <= bottom; row++) {
        add_lines(work, net, row, col,
                  (row > top ? GD_LAYERS_N : 0) | (row < bottom ? GD_LAYERS_S : 0));
    }
}

static void put_arrow(struct layer_work *work, int row, int col, char arrow)
{
    work->layers->cell[(size_t)row * (size_t)work->layers->cols + (size_t)col].arrow = arrow;
}

/* What runs from the box, or through the layer, to the column before the gap. */
static void draw_start(struct layer_work *work, const struct layer_link *link, int start)
{
    const struct layer_item *item = &work->item[link->left];
    int row = layers_left_row(work, link), from = start;

    for (int i = 0; item->box < 0 && i < work->layers->box_count; i++) {
        const struct gd_layers_box *box = &work->layers->box[i];
        from = box->layer == item->layer ? box->col : from;
    }
    if (item->box >= 0) {
        const struct gd_layers_box *box = &work->layers->box[item->box];
        from = box->col + box->width;
    }
    draw_across(work, link->net, row, from, start, true, true);
    if (item->box >= 0 && work->net[link->net].back) {
        put_arrow(work, row, from, '<');
    }
}

static void draw_seg(struct channel *channel, const struct seg *seg, int start, int end)
{
    struct layer_work *work = channel->work;
    int col = start + 1 + seg->track;

    if (seg->straight) {
        draw_across(work, seg->net, seg->in_row, start, end, true, true);
        return;
    }
    int from = seg->after < 0 ? start : start + 1 + channel->seg[seg->after].track;
    draw_across(work, seg->net, seg->in_row, from, col, seg->after < 0, false);
    draw_down(work, seg->net, col, seg->top, seg->bottom);
    for (int i = 0; i < work->link_count && seg->out_row < 0; i++) {
        const struct layer_link *link = &work->link[i];
        if (link->gap == channel->gap && link->net == seg->net) {
            draw_across(work, seg->net, layers_right_row(work, link), col, end, false, true);
        }
    }
}

static void draw_gap(struct channel *channel, int start, int end)
{
    struct layer_work *work = channel->work;

    for (int i = 0; i < channel->count; i++) {
        draw_seg(channel, &channel->seg[i], start, end);
    }
    for (int i = 0; i < work->link_count; i++) {
        const struct layer_link *link = &work->link[i];
        if (link->gap != channel->gap) {
            continue;
        }
        draw_start(work, link, start);
        if (work->item[link->right].box >= 0 && !work->net[link->net].back) {
            put_arrow(work, layers_right_row(work, link), end, '>');
        }
    }
}

/* Gives each layer its column; start[g] and end[g]: of the gap. Returns the columns in use. */
static int choose_columns(struct layer_work *work, const struct channel *channel, int *start,
                          int *end)
{
    struct gd_layers *layers = work->layers;
    int col = 0;

    for (int layer = 0; layer < work->layer_count; layer++) {
        int width = 0;
        for (int i = 0; i < layers->box_count; i++) {
            struct gd_layers_box *box = &layers->box[i];
            if (box->layer == layer) {
                box->col = col;
                width = box->width > width ? box->width : width;
            }
        }
        col += width;
        if (layer + 1 < work->layer_count) {
            start[layer] = col;
            end[layer] = col + channel[layer].tracks + 1;
            col = end[layer] + 1;
        }
    }
    return col;
}

static int count_rows(const struct layer_work *work, const struct channel *channel)
{
    int rows = 0;

    for (int i = 0; i < work->item_count; i++) {
        int end = work->item[i].row + work->item[i].rows;
        rows = end > rows ? end : rows;
    }
    for (int gap = 0; gap + 1 < work->layer_count; gap++) {
        for (int i = 0; i < channel[gap].count; i++) {
            int bottom = channel[gap].seg[i].bottom;
            rows = bottom >= rows ? bottom + 1 : rows;
        }
    }
    return rows;
}

int layers_route(struct layer_work *work, struct gd_err *err)
{
    struct gd_layers *layers = work->layers;
    int start[GD_LAYERS_BOXES], end[GD_LAYERS_BOXES];
    struct channel *channel = calloc((size_t)work->layer_count + 1, sizeof(*channel));

    if (!channel) {
        return gd_fail_nomem(err);
    }
    for (int gap = 0; gap + 1 < work->layer_count; gap++) {
        channel[gap].work = work;
        channel[gap].gap = gap;
        choose_tracks(&channel[gap]);
    }
    layers->cols = choose_columns(work, channel, start, end);
    layers->rows = count_rows(work, channel);
    size_t cells = (size_t)layers->rows * (size_t)layers->cols;
    int rc = cells > MAX_CELLS ? gd_fail(err, GD_ELIMIT, "the picture is too large") : GD_OK;
    if (rc == GD_OK && cells > 0) {
        layers->cell = calloc(cells, sizeof(*layers->cell));
        rc = layers->cell ? GD_OK : gd_fail_nomem(err);
    }
    for (int gap = 0; rc == GD_OK && gap + 1 < work->layer_count; gap++) {
        draw_gap(&channel[gap], start[gap], end[gap]);
    }
    free(channel);
    return rc;
}
