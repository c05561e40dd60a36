// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The tensor pane: a value as a grid of two of its axes. Only the pages around what is on the
 * screen are fetched, as slices, and kept until the training moves.
 *
 * Indices here are those of the view: the value after the slice that the command `tensor` named.
 */
#ifndef GD_TUI_PANE_TENSOR_VIEW_H
#define GD_TUI_PANE_TENSOR_VIEW_H

#include "base/slice.h"
#include "tui/tui_impl.h"

#define TENSOR_PAGE_ROWS 64
#define TENSOR_PAGE_COLS 64
#define TENSOR_PAGE_FLAT 4096 /* of a value with one axis */
#define TENSOR_PAGES     64   /* kept */
#define TENSOR_BINS      16

enum tensor_which { TENSOR_CURRENT, TENSOR_PREVIOUS, TENSOR_DIFFERENCE, TENSOR_WHICH_COUNT };
enum tensor_look { TENSOR_NUMBERS, TENSOR_HEAT, TENSOR_HEAT_RANK, TENSOR_LOOK_COUNT };

enum tensor_state { TENSOR_NONE = 0, TENSOR_ASKED, TENSOR_HERE, TENSOR_FAILED };

/* What the target says of the whole value. */
struct tensor_figures {
    enum tensor_state state;
    enum gd_dtype dtype;
    struct gd_shape shape;
    bool has_stats;
    struct gd_stats stats;
    int64_t step; /* -1 unknown */
    char why[200];
};

struct tensor_page {
    enum tensor_state state;
    enum gd_iter iter;
    int64_t at[GD_MAX_RANK]; /* its first element */
    struct gd_tensor *tensor;
    uint64_t used;
    char why[200];
};

/* Which elements are looked for. */
enum tensor_test {
    TEST_NONFINITE,
    TEST_NAN,
    TEST_INF,
    TEST_LESS,
    TEST_LESS_EQUAL,
    TEST_GREATER,
    TEST_GREATER_EQUAL,
    TEST_EQUAL,
    TEST_NOT_EQUAL,
    TEST_INSIDE /* value to high, both ends inside */
};
struct tensor_condition {
    enum tensor_test test;
    bool magnitude; /* of |x| */
    double value, high;
    char text[64]; /* as it was typed; "" nothing was: non-finite ones */
};

/* A walk over the view in C order, part by part. */
struct tensor_search {
    bool running, back;
    bool waiting;              /* for a part */
    int64_t from;              /* the element it began at */
    int64_t at, count;         /* the part: first element, elements */
    int64_t looked;            /* elements looked at so far */
    struct gd_tensor *part[2]; /* by iter, as far as the mode wants them */
};

/* An element as it lies in the pages. */
struct tensor_cell {
    enum tensor_state state;
    enum gd_dtype dtype;
    const unsigned char *p;    /* what is shown, or from which is subtracted */
    const unsigned char *less; /* difference: what is subtracted; else NULL */
    const char *why;           /* TENSOR_FAILED */
};

/* What a command said before the value was there. */
#define TENSOR_WISHES 8
struct tensor_wish {
    char action[8];
    char argument[64];
};

struct tensor_request;
struct tensor_pane {
    struct tui *tui;
    /* what was asked for */
    char *name; /* NULL: the current node */
    uint32_t slot;
    struct gd_slice slice;
    enum tensor_which which;
    enum tensor_look look;
    /* what is shown */
    struct gd_session *session; /* only compared */
    gd_node_id node;
    uint64_t stop_sequence, generation;
    uint64_t serial;                  /* counts what values are of: late answers are dropped */
    struct tensor_figures figures[2]; /* by iter */
    bool has_view;
    char why[240];        /* why there is none */
    struct gd_slice base; /* the slice with one item for each axis */
    int item_of[GD_MAX_RANK];
    struct gd_shape shape;
    int axis_y, axis_x;      /* axis_y -1: one axis, wrapped */
    int64_t at[GD_MAX_RANK]; /* the cursor */
    /* on the screen */
    int64_t top, left; /* first row and column of the grid */
    int64_t per_row;   /* of a wrapped value */
    int rows, cols;    /* of the grid that fit */
    int cell;          /* columns of a number; 0: not known yet */
    int above;         /* rows of the pane above the grid's elements */
    struct tensor_page page[TENSOR_PAGES];
    uint64_t clock;
    struct tensor_request *requests;
    int page_requests; /* on the way */
    struct tensor_condition condition;
    struct tensor_search search;
    struct tensor_wish wish[TENSOR_WISHES];
    int wishes;
    bool typing;
    char typed[64];
    char message[160]; /* of the last search or jump */
};

/* pane_tensor_grid.c: the value */
void tensor_follow(struct tensor_pane *pane); /* the session, the node, the stop */
void tensor_want_figures(struct tensor_pane *pane);
bool tensor_can_ask(const struct tensor_pane *pane);
void tensor_want(struct tensor_pane *pane, const int64_t *index); /* the page that it lies in */
struct tensor_cell tensor_cell_at(struct tensor_pane *pane, const int64_t *index);
int64_t tensor_count(const struct tensor_pane *pane);
void tensor_index_of(const struct tensor_pane *pane, int64_t flat, int64_t *index);
int64_t tensor_flat_of(const struct tensor_pane *pane, const int64_t *index);
/* The slice of the target's value that is elements [lo, lo + n) of each axis of the view; n -1: the
 * one index lo, and no axis. */
void tensor_compose(const struct tensor_pane *pane, const int64_t *lo, const int64_t *n,
                    struct gd_slice *ret);
/* Fetches one part for the search. */
void tensor_ask_part(struct tensor_pane *pane, enum gd_iter iter, const struct gd_slice *slice);
void tensor_drop_pages(struct tensor_pane *pane);
void tensor_forget(struct tensor_pane *pane); /* answers on their way find nobody */
/* The iters that the mode shows: one or both. */
bool tensor_needs(const struct tensor_pane *pane, enum gd_iter iter);

/* pane_tensor_cell.c: an element */
void tensor_cell_text(const struct tensor_cell *cell, bool full, char *out, size_t size);
double tensor_cell_value(const struct tensor_cell *cell); /* of a complex one the magnitude */
bool tensor_cell_is_bad(const struct tensor_cell *cell);  /* NaN, Inf */
bool tensor_matches(const struct tensor_condition *condition, const struct tensor_cell *cell);

/* pane_tensor_search.c */
/* What was typed behind "/": an index goes there, a condition begins a search. */
void tensor_typed(struct tensor_pane *pane, const char *text);
/* The two by themselves; false: the text is none, or pane->message says what is wrong with it. */
bool tensor_go(struct tensor_pane *pane, const char *text);
bool tensor_find(struct tensor_pane *pane, const char *text);
void tensor_search_start(struct tensor_pane *pane, bool back);
void tensor_search_stop(struct tensor_pane *pane, const char *why);
void tensor_search_part(struct tensor_pane *pane, enum gd_iter iter, struct gd_tensor *tensor,
                        const char *why);          /* a part has come */
void tensor_search_step(struct tensor_pane *pane); /* asks for what it lacks */

/* pane_tensor_draw.c */
void tensor_draw_pane(struct tui *tui, const struct draw_rect *rect, bool focused);
int64_t tensor_grid_rows(const struct tensor_pane *pane);
/* The element at a place of the pane; false: there is none. */
bool tensor_place(const struct tensor_pane *pane, int row, int col, int64_t *index);

/* pane_tensor_action.c */
void tensor_apply_wishes(struct tensor_pane *pane);
/* What a key of the pane does: "to" INDEX, "find" CONDITION ("" again), "back", "heat"
 * range|rank|off, "axes" Y,X, "plane" next|back. GD_EINVAL, GD_ESTATE, GD_ELIMIT. */
int tui_tensor_act(struct tui *tui, const char *action, const char *argument, struct gd_err *err);

/* pane_tensor.c */
void tensor_set_axes(struct tensor_pane *pane, int y, int x);
void tensor_step_others(struct tensor_pane *pane, int by);
/* text: "NODE:SLOT[SLICE]"; NULL follows the current node. mode: "", "prev", "diff". */
int tui_tensor_open(struct tui *tui, const char *text, const char *mode, struct gd_err *err);

#endif
