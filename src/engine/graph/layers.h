// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Draws a small directed graph in layers from left to right, as Sugiyama does: edges that close a
 * cycle are turned round, each box goes into the layer after its producers, long edges get a
 * dummy in each layer that they pass, barycentres reduce the crossings, and the edges run
 * between the layers in tracks that never overlap. The result is a canvas of lines; the one that
 * shows it draws the boxes over it. One edge can be told from another everywhere: lines of two
 * producers cross, but never join. The same graph gives the same picture.
 */
#ifndef GD_ENGINE_LAYERS_H
#define GD_ENGINE_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define GD_LAYERS_BOXES 128
#define GD_LAYERS_EDGES 512

struct gd_layers_box {
    /* given: places for lines on the left and on the right; at least one row is drawn */
    int ins, outs;
    int frame; /* rows above and below the places: 0 or 1 */
    int width; /* columns */
    /* the result; place i is in the row row + frame + i */
    int layer, row, col, rows;
};

struct gd_layers_edge {
    int from, out; /* box, and its place on the right */
    int to, in;    /* box, and its place on the left; an edge to the same box is not allowed */
    bool back;     /* the result: it closes a cycle, and runs from right to left */
};

enum { GD_LAYERS_N = 1, GD_LAYERS_E = 2, GD_LAYERS_S = 4, GD_LAYERS_W = 8 };
struct gd_layers_cell {
    uint8_t lines;  /* GD_LAYERS_...: the directions in which lines leave the cell; 0: empty */
    bool crossing;  /* of two edges, which do not join */
    bool back;      /* part of an edge that runs from right to left */
    char arrow;     /* '>' or '<': an edge ends here; 0: none does */
    int16_t source; /* the edge's number in `edge`, the first one of its producer */
};

struct gd_layers {
    struct gd_layers_box box[GD_LAYERS_BOXES];
    int box_count;
    struct gd_layers_edge edge[GD_LAYERS_EDGES];
    int edge_count;
    /* the result */
    int rows, cols;
    struct gd_layers_cell *cell; /* rows * cols; malloc'd */
};

/* GD_ELIMIT: the picture would be too large. GD_ENOMEM. */
int gd_layers_place(struct gd_layers *layers, struct gd_err *err);
const struct gd_layers_cell *gd_layers_at(const struct gd_layers *layers, int row, int col);
void gd_layers_deinit(struct gd_layers *layers);

#endif
