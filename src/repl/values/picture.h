// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A picture of what is around a node, as a grid of characters: boxes in layers from left to right,
 * lines between them, hits of this stop. `picture` prints it, and the pane of that name shows it.
 */
#ifndef GD_REPL_PICTURE_H
#define GD_REPL_PICTURE_H

#include "engine/graph/nearby.h"
#include "engine/session.h"

struct repl;

#define PICTURE_CHOICES   64
#define PICTURE_MAX_DEPTH 10

/* What to show; kept between commands, so that the pane and the command show the same. */
struct picture_view {
    int session;     /* its number; 0: nothing was chosen yet */
    bool given;      /* a centre was named; otherwise it is the current node */
    gd_node_id node; /* the centre; GD_NO_NODE: a scope's contents */
    gd_scope_id scope;
    gd_node_id current; /* the current node when the centre was named: another one takes over */
    int depth;
    bool tensors; /* the relations of its tensors instead: slots, their hits, what uses them */
    struct {
        gd_scope_id scope;
        bool open;
    } choice[PICTURE_CHOICES]; /* scopes that the user opened or folded; the latest last */
    int choices;
    uint64_t changes; /* grows with each change of the view */
};
/* The view of the session; another session's is reset. */
struct picture_view *picture_view(struct repl *repl, const struct gd_session *session);
void picture_choose(struct picture_view *view, gd_scope_id scope, bool open);
/* Shows what is around this node, or in this scope. */
void picture_center(struct picture_view *view, const struct gd_session *session, gd_node_id node,
                    gd_scope_id scope);

enum picture_style {
    PICTURE_TEXT,
    PICTURE_LINE,
    PICTURE_BACK, /* a line from right to left */
    PICTURE_SCOPE,
    PICTURE_CENTER, /* the node that it is about */
    PICTURE_HIT,
    PICTURE_DIM,
};
struct picture_cell {
    uint32_t code; /* the character; 0: the right half of a wide one */
    uint8_t style;
};
struct picture_box {
    int row, col, rows, width;
};
struct picture {
    int rows, cols;
    struct picture_cell *cell;
    struct gd_nearby nearby;
    struct picture_box box[GD_NEARBY_BOXES]; /* of nearby.box */
};

/* GD_ENOTFOUND: there is nothing to show; GD_ELIMIT, GD_ENOMEM. */
int picture_make(struct gd_session *session, const struct picture_view *view, bool utf8,
                 struct picture **ret, struct gd_err *err);
void picture_free(struct picture *picture);
/* The box that the keys reach from `box`: along an edge (by_col -1, 1), or the one above or below
 * it in its layer (by_row). The same box: there is none. */
int picture_move(const struct picture *picture, int box, int by_row, int by_col);

#endif
