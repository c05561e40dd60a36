// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/layers_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS 12

static int left_box(const struct gd_layers_edge *edge)
{
    return edge->back ? edge->to : edge->from;
}

static int right_box(const struct gd_layers_edge *edge)
{
    return edge->back ? edge->from : edge->to;
}

/* ---- cycles and layers --------------------------------------------------------------------- */

/* Turns round the edges that lead back to a box on the way from the first one. */
static void break_cycles(struct gd_layers *layers)
{
    enum { NEW, OPEN, DONE } state[GD_LAYERS_BOXES] = {NEW};
    int stack[GD_LAYERS_BOXES], next[GD_LAYERS_BOXES];

    for (int root = 0; root < layers->box_count; root++) {
        int depth = 0;
        if (state[root] != NEW) {
            continue;
        }
        stack[0] = root;
        next[0] = 0;
        state[root] = OPEN;
        while (depth >= 0) {
            int box = stack[depth];
            if (next[depth] == layers->edge_count) {
                state[box] = DONE;
                depth--;
                continue;
            }
            struct gd_layers_edge *edge = &layers->edge[next[depth]++];
            if (edge->from != box) {
                continue;
            }
            edge->back = state[edge->to] == OPEN;
            if (state[edge->to] == NEW) {
                state[edge->to] = OPEN;
                stack[++depth] = edge->to;
                next[depth] = 0;
            }
        }
    }
}

/* Each box after everything on its left; what has nothing there, just before the first that needs
 * it. */
static void choose_layers(struct gd_layers *layers)
{
    bool again = true;

    for (int i = 0; i < layers->box_count; i++) {
        layers->box[i].layer = 0;
    }
    while (again) {
        again = false;
        for (int i = 0; i < layers->edge_count; i++) {
            const struct gd_layers_edge *edge = &layers->edge[i];
            int least = layers->box[left_box(edge)].layer + 1;
            if (layers->box[right_box(edge)].layer < least) {
                layers->box[right_box(edge)].layer = least;
                again = true;
            }
        }
    }
    for (int i = 0; i < layers->box_count; i++) {
        int nearest = GD_LAYERS_BOXES;
        bool first = true;
        for (int k = 0; k < layers->edge_count; k++) {
            const struct gd_layers_edge *edge = &layers->edge[k];
            first = first && right_box(edge) != i;
            if (left_box(edge) == i && layers->box[right_box(edge)].layer < nearest) {
                nearest = layers->box[right_box(edge)].layer;
            }
        }
        if (first && nearest < GD_LAYERS_BOXES) {
            layers->box[i].layer = nearest - 1;
        }
    }
}

/* ---- nets, items, links -------------------------------------------------------------------- */

static int find_net(struct layer_work *work, const struct gd_layers_edge *edge)
{
    for (int i = 0; i < work->net_count && !edge->back; i++) {
        const struct layer_net *net = &work->net[i];
        if (!net->back && net->box == edge->from && net->port == edge->out) {
            return i;
        }
    }
    return -1;
}

/* An edge that runs back leaves and enters at places of its own, below the others. */
static void make_nets(struct layer_work *work)
{
    struct gd_layers *layers = work->layers;

    for (int i = 0; i < layers->box_count; i++) {
        work->left_rows[i] = layers->box[i].ins;
        work->right_rows[i] = layers->box[i].outs;
    }
    for (int i = 0; i < layers->edge_count; i++) {
        const struct gd_layers_edge *edge = &layers->edge[i];
        int net = find_net(work, edge);
        if (net < 0) {
            net = work->net_count++;
            work->net[net] = (struct layer_net){
                .box = left_box(edge),
                .port = edge->back ? work->right_rows[edge->to]++ : edge->out,
                .edge = i,
                .back = edge->back,
            };
        }
        work->net_of[i] = net;
        work->right_port[i] = edge->back ? work->left_rows[edge->from]++ : edge->in;
    }
    for (int i = 0; i < layers->box_count; i++) {
        struct gd_layers_box *box = &layers->box[i];
        int most =
            work->left_rows[i] > work->right_rows[i] ? work->left_rows[i] : work->right_rows[i];
        box->rows = (most > 0 ? most : 1) + 2 * box->frame;
    }
}

static int add_item(struct layer_work *work, int box, int net, int layer, int rows)
{
    if (work->item_count == MAX_ITEMS) {
        return -1;
    }
    work->item[work->item_count] =
        (struct layer_item){.box = box, .net = net, .layer = layer, .rows = rows};
    work->layer_count = layer >= work->layer_count ? layer + 1 : work->layer_count;
    return work->item_count++;
}

static bool add_link(struct layer_work *work, int net, int left, int left_port, int right,
                     int right_port)
{
    if (work->link_count == MAX_LINKS || right < 0) {
        return false;
    }
    work->link[work->link_count++] =
        (struct layer_link){net, work->item[left].layer, left, left_port, right, right_port};
    return true;
}

/* The net's parts from layer to layer. The items of boxes have the numbers of the boxes. */
static bool link_net(struct layer_work *work, int number)
{
    const struct gd_layers *layers = work->layers;
    const struct layer_net *net = &work->net[number];
    int last = 0, item = net->box, port = net->port;

    for (int i = 0; i < layers->edge_count; i++) {
        int layer = layers->box[right_box(&layers->edge[i])].layer;
        last = work->net_of[i] == number && layer > last ? layer : last;
    }
    for (int layer = layers->box[net->box].layer + 1; layer <= last; layer++) {
        for (int i = 0; i < layers->edge_count; i++) {
            int box = right_box(&layers->edge[i]);
            if (work->net_of[i] == number && layers->box[box].layer == layer &&
                !add_link(work, number, item, port, box, work->right_port[i])) {
                return false;
            }
        }
        if (layer < last) {
            int dummy = add_item(work, -1, number, layer, 1);
            if (!add_link(work, number, item, port, dummy, 0)) {
                return false;
            }
            item = dummy;
            port = 0;
        }
    }
    return true;
}

static int make_items(struct layer_work *work, struct gd_err *err)
{
    struct gd_layers *layers = work->layers;
    int at = 0;

    for (int i = 0; i < layers->box_count; i++) {
        add_item(work, i, -1, layers->box[i].layer, layers->box[i].rows);
    }
    for (int i = 0; i < work->net_count; i++) {
        if (!link_net(work, i)) {
            return gd_fail(err, GD_ELIMIT, "too many long edges for a picture");
        }
    }
    for (int layer = 0; layer < work->layer_count; layer++) {
        work->first[layer] = at;
        for (int i = 0; i < work->item_count; i++) {
            if (work->item[i].layer == layer) {
                work->item[i].place = at - work->first[layer];
                work->sorted[at++] = i;
            }
        }
    }
    work->first[work->layer_count] = at;
    return GD_OK;
}

/* ---- the order within a layer -------------------------------------------------------------- */

static double place_of(const struct layer_work *work, int item, int port)
{
    return work->item[item].place + (port + 1.0) / (work->item[item].rows + 2.0);
}

static int by_key(const void *a, const void *b, void *ctx)
{
    const struct layer_work *work = ctx;
    const struct layer_item *x = &work->item[*(const int *)a], *y = &work->item[*(const int *)b];

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->place - y->place;
}

/* Sorts a layer by the mean place of the neighbours on one side. */
static void order_layer(struct layer_work *work, int layer, bool by_left)
{
    int from = work->first[layer], to = work->first[layer + 1];

    for (int i = from; i < to; i++) {
        struct layer_item *item = &work->item[work->sorted[i]];
        double sum = 0;
        int count = 0;
        for (int k = 0; k < work->link_count; k++) {
            const struct layer_link *link = &work->link[k];
            if ((by_left ? link->right : link->left) == work->sorted[i]) {
                sum += by_left ? place_of(work, link->left, link->left_port)
                               : place_of(work, link->right, link->right_port);
                count++;
            }
        }
        item->key = count > 0 ? sum / count : item->place + 0.5;
    }
    qsort_r(&work->sorted[from], (size_t)(to - from), sizeof(int), by_key, work);
    for (int i = from; i < to; i++) {
        work->item[work->sorted[i]].place = i - from;
    }
}

static long count_crossings(const struct layer_work *work)
{
    long count = 0;

    for (int i = 0; i < work->link_count; i++) {
        const struct layer_link *a = &work->link[i];
        double left = place_of(work, a->left, a->left_port);
        double right = place_of(work, a->right, a->right_port);
        for (int k = i + 1; k < work->link_count; k++) {
            const struct layer_link *b = &work->link[k];
            if (a->gap == b->gap && a->net != b->net) {
                count += (left - place_of(work, b->left, b->left_port)) *
                             (right - place_of(work, b->right, b->right_port)) <
                         0;
            }
        }
    }
    return count;
}

static void order_items(struct layer_work *work)
{
    int best[MAX_ITEMS];
    long least = count_crossings(work);

    memcpy(best, work->sorted, sizeof(best));
    for (int sweep = 0; sweep < SWEEPS && least > 0; sweep++) {
        bool right = sweep % 2 == 0;
        for (int i = 1; i < work->layer_count; i++) {
            order_layer(work, right ? i : work->layer_count - 1 - i, right);
        }
        long crossings = count_crossings(work);
        if (crossings < least) {
            least = crossings;
            memcpy(best, work->sorted, sizeof(best));
        }
    }
    memcpy(work->sorted, best, sizeof(best));
    for (int layer = 0; layer < work->layer_count; layer++) {
        for (int i = work->first[layer]; i < work->first[layer + 1]; i++) {
            work->item[work->sorted[i]].place = i - work->first[layer];
        }
    }
}

/* ---- rows ---------------------------------------------------------------------------------- */

static int frame_of(const struct layer_work *work, int item)
{
    int box = work->item[item].box;
    return box >= 0 ? work->layers->box[box].frame : 0;
}

int layers_left_row(const struct layer_work *work, const struct layer_link *link)
{
    return work->item[link->left].row + frame_of(work, link->left) + link->left_port;
}

int layers_right_row(const struct layer_work *work, const struct layer_link *link)
{
    return work->item[link->right].row + frame_of(work, link->right) + link->right_port;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The row at which most of the item's lines on one side are straight: the median. */
static double wanted_row(const struct layer_work *work, int number, bool by_left)
{
    int rows[GD_LAYERS_EDGES], count = 0;

    for (int i = 0; i < work->link_count && count < GD_LAYERS_EDGES; i++) {
        const struct layer_link *link = &work->link[i];
        if ((by_left ? link->right : link->left) == number) {
            int off = by_left ? layers_left_row(work, link) - layers_right_row(work, link)
                              : layers_right_row(work, link) - layers_left_row(work, link);
            rows[count++] = work->item[number].row + off;
        }
    }
    if (count == 0) {
        return work->item[number].row;
    }
    qsort(rows, (size_t)count, sizeof(int), by_number);
    return count % 2 == 1 ? rows[count / 2] : (rows[count / 2] + rows[count / 2 - 1]) / 2.0;
}

/* Boxes of several rows would look like one without a blank row between them. */
static int gap_after(const struct layer_work *work, int upper, int lower)
{
    return work->item[upper].rows > 1 && work->item[lower].rows > 1 ? 1 : 0;
}

/* Moves the items of a layer as near to their wanted rows as their order allows: the means of runs
 * that would overlap. */
static void settle_layer(struct layer_work *work, int layer, bool by_left)
{
    struct {
        double sum;
        int count;
    } run[MAX_ITEMS];
    int from = work->first[layer], to = work->first[layer + 1];
    int runs = 0, offset = 0, at = from;

    for (int i = from; i < to; i++) {
        double wanted = wanted_row(work, work->sorted[i], by_left) - offset;
        run[runs].sum = wanted;
        run[runs++].count = 1;
        while (runs > 1 &&
               run[runs - 2].sum / run[runs - 2].count >= run[runs - 1].sum / run[runs - 1].count) {
            run[runs - 2].sum += run[runs - 1].sum;
            run[runs - 2].count += run[runs - 1].count;
            runs--;
        }
        offset += work->item[work->sorted[i]].rows +
                  (i + 1 < to ? gap_after(work, work->sorted[i], work->sorted[i + 1]) : 0);
    }
    offset = 0;
    for (int k = 0; k < runs; k++) {
        int row = (int)floor(run[k].sum / run[k].count + 0.5);
        for (int n = 0; n < run[k].count; n++, at++) {
            work->item[work->sorted[at]].row = row + offset;
            offset += work->item[work->sorted[at]].rows +
                      (at + 1 < to ? gap_after(work, work->sorted[at], work->sorted[at + 1]) : 0);
        }
    }
}

static void choose_rows(struct layer_work *work)
{
    int least = 0;

    for (int layer = 0; layer < work->layer_count; layer++) {
        settle_layer(work, layer, true); /* packed: nothing has a row yet */
    }
    for (int sweep = 0; sweep < 5; sweep++) {
        bool right = sweep % 2 == 0;
        for (int i = 1; i < work->layer_count; i++) {
            settle_layer(work, right ? i : work->layer_count - 1 - i, right);
        }
    }
    for (int i = 0; i < work->item_count; i++) {
        least = i == 0 || work->item[i].row < least ? work->item[i].row : least;
    }
    for (int i = 0; i < work->item_count; i++) {
        work->item[i].row -= least;
        if (work->item[i].box >= 0) {
            work->layers->box[work->item[i].box].row = work->item[i].row;
        }
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

int gd_layers_place(struct gd_layers *layers, struct gd_err *err)
{
    struct layer_work *work = calloc(1, sizeof(*work));

    if (!work) {
        return gd_fail_nomem(err);
    }
    work->layers = layers;
    layers->rows = layers->cols = 0;
    layers->cell = NULL;
    break_cycles(layers);
    choose_layers(layers);
    make_nets(work);
    int rc = make_items(work, err);
    if (rc == GD_OK) {
        order_items(work);
        choose_rows(work);
        rc = layers_route(work, err);
    }
    free(work);
    return rc;
}

const struct gd_layers_cell *gd_layers_at(const struct gd_layers *layers, int row, int col)
{
    bool inside = row >= 0 && col >= 0 && row < layers->rows && col < layers->cols;
    return inside ? &layers->cell[(size_t)row * (size_t)layers->cols + (size_t)col] : NULL;
}

void gd_layers_deinit(struct gd_layers *layers)
{
    free(layers->cell);
    layers->cell = NULL;
}
