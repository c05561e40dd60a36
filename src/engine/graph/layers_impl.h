// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by layers.c, which decides where boxes go, and layers_route.c, which draws the edges. */
#ifndef GD_ENGINE_LAYERS_IMPL_H
#define GD_ENGINE_LAYERS_IMPL_H

#include "engine/graph/layers.h"

#define MAX_ITEMS 4096
#define MAX_LINKS 6144

struct layer_net { /* the edges of one place of one box, from its left end to the right */
    int box, port; /* port: a row of the box, counted from its first place */
    int edge;      /* the first of them */
    bool back;
};
struct layer_item {              /* part of a layer: a box, or a dummy of a net */
    int box, net;                /* -1: not that */
    int layer, rows, row, place; /* place: in its layer's order */
    double key;
};
struct layer_link {                         /* part of a net between two neighbouring layers */
    int net, gap;                           /* gap g is between the layers g and g + 1 */
    int left, left_port, right, right_port; /* items, and rows in them */
};
struct layer_work {
    struct gd_layers *layers;
    struct layer_net net[GD_LAYERS_EDGES];
    int net_of[GD_LAYERS_EDGES]; /* an edge's */
    int net_count;
    int left_rows[GD_LAYERS_BOXES], right_rows[GD_LAYERS_BOXES]; /* places in use on each side */
    int right_port[GD_LAYERS_EDGES]; /* row of the edge's right end in its box */
    struct layer_item item[MAX_ITEMS];
    int item_count;
    struct layer_link link[MAX_LINKS];
    int link_count;
    int layer_count;
    int first[GD_LAYERS_BOXES + 1]; /* of each layer, in `sorted` */
    int sorted[MAX_ITEMS];          /* items by layer and place */
};

/* The row of the left or right end of a link. */
int layers_left_row(const struct layer_work *work, const struct layer_link *link);
int layers_right_row(const struct layer_work *work, const struct layer_link *link);
/* Gives columns to the layers and draws the edges. */
int layers_route(struct layer_work *work, struct gd_err *err);

#endif
