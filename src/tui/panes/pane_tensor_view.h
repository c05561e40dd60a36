// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The tensor pane: a value as a grid of two of its axes. Only the pages around the visible part are
 * fetched, as slices, and kept until the training moves on.
 *
 * Indices in this file are those of the view, that is, of the value after the slice given to the
 * command `tensor`.
 */
#ifndef GD_TUI_PANE_TENSOR_VIEW_H
#define GD_TUI_PANE_TENSOR_VIEW_H

#include "base/slice.h"
#include "tui/tui_impl.h"

#define TENSOR_PAGE_ROWS 64
#define TENSOR_PAGE_COLS 64
#define TENSOR_PAGE_FLAT 4096 /* for a value with one axis */
#define TENSOR_PAGES     64   /* kept at most */
#define TENSOR_BINS      16

enum tensor_which { TENSOR_CURRENT, TENSOR_PREVIOUS, TENSOR_DIFFERENCE, TENSOR_WHICH_COUNT };
enum tensor_look { TENSOR_NUMBERS, TENSOR_HEAT, TENSOR_HEAT_RANK, TENSOR_LOOK_COUNT };

enum tensor_state { TENSOR_NONE = 0, TENSOR_ASKED, TENSOR_HERE, TENSOR_FAILED };

/* The target's statistics of the whole value. */
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

/* What a search looks for. */
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
    TEST_INSIDE /* from value to high, both included */
};
struct tensor_condition {
    enum tensor_test test;
    bool magnitude; /* compares |x| */
    double value, high;
    char text[64]; /* as typed; "": search for non-finite elements */
};

/* A walk over the view in C order, one part at a time. */
struct tensor_search {
    bool running, back;
    bool waiting;              /* for a part */
    int64_t from;              /* element at which it began */
    int64_t at, count;         /* the current part: first element, number of elements */
    int64_t looked;            /* elements examined so far */
    struct gd_tensor *part[2]; /* by iter, as needed by the mode */
};

/* An element inside the fetched pages. */
struct tensor_cell {
    enum tensor_state state;
    enum gd_dtype dtype;
    const unsigned char *p;    /* the element, or the minuend of a difference */
    const unsigned char *less; /* the subtrahend; NULL: not a difference */
    const char *why;           /* for TENSOR_FAILED */
};

/* Actions of a command that arrived before the value. */
#define TENSOR_WISHES 8
struct tensor_wish {
    char action[8];
    char argument[64];
};

struct tensor_request;
struct tensor_pane {
    struct tui *tui;
    /* the request */
    char *name; /* NULL: follow the current node */
    uint32_t slot;
    struct gd_slice slice;
    enum tensor_which which;
    enum tensor_look look;
    /* what is shown */
    struct gd_session *session; /* only compared */
    gd_node_id node;
    uint64_t stop_sequence, generation;
    uint64_t serial; /* changes with the value: late answers with another serial are dropped */
    struct tensor_figures figures[2]; /* by iter */
    bool has_view;
    char why[240];        /* why there is no value */
    struct gd_slice base; /* the slice, with one item per axis */
    struct gd_shape shape;
    int axis_y, axis_x;      /* axis_y -1: a single axis, wrapped into rows */
    int64_t at[GD_MAX_RANK]; /* the cursor */
    /* the visible part */
    int64_t top, left; /* first row and column of the grid */
    int64_t per_row;   /* elements per row of a wrapped value */
    int rows, cols;    /* of the grid that fit on the screen */
    int cell;          /* columns per number; 0: unknown yet */
    int above;         /* rows of the pane above the elements */
    struct tensor_page page[TENSOR_PAGES];
    uint64_t clock;
    struct tensor_request *requests;
    int page_requests; /* not answered yet */
    struct tensor_condition condition;
    struct tensor_search search;
    struct tensor_wish wish[TENSOR_WISHES];
    int wishes;
    bool typing;
    char typed[64];
    char message[160]; /* result of the last search or jump */
};

/* pane_tensor_grid.c: the value */
void tensor_follow(struct tensor_pane *pane); /* follows the session, the node and the stop */
void tensor_want_figures(struct tensor_pane *pane);
bool tensor_can_ask(const struct tensor_pane *pane);
/* requests the page that contains the index */
void tensor_want(struct tensor_pane *pane, const int64_t *index);
struct tensor_cell tensor_cell_at(struct tensor_pane *pane, const int64_t *index);
int64_t tensor_count(const struct tensor_pane *pane);
void tensor_index_of(const struct tensor_pane *pane, int64_t flat, int64_t *index);
int64_t tensor_flat_of(const struct tensor_pane *pane, const int64_t *index);
/* The slice of the target's value that covers elements [lo, lo + n) of each axis of the view; n -1:
 * the single index lo, which removes the axis. */
void tensor_compose(const struct tensor_pane *pane, const int64_t *lo, const int64_t *n,
                    struct gd_slice *ret);
/* Fetches one part of the search. */
void tensor_ask_part(struct tensor_pane *pane, enum gd_iter iter, const struct gd_slice *slice);
void tensor_drop_pages(struct tensor_pane *pane);
void tensor_forget(struct tensor_pane *pane); /* answers still to come will be dropped */
/* The iter that the mode shows, or subtracts the previous one from; the statistics of it. */
enum gd_iter tensor_iter(const struct tensor_pane *pane);
const struct tensor_figures *tensor_shown(const struct tensor_pane *pane);
/* Whether the mode shows this iter. */
bool tensor_needs(const struct tensor_pane *pane, enum gd_iter iter);

/* pane_tensor_cell.c: an element */
void tensor_cell_text(const struct tensor_cell *cell, bool full, char *out, size_t size);
double tensor_cell_value(const struct tensor_cell *cell); /* the magnitude of a complex element */
bool tensor_cell_is_bad(const struct tensor_cell *cell);  /* NaN or Inf */
bool tensor_matches(const struct tensor_condition *condition, const struct tensor_cell *cell);

/* pane_tensor_search.c */
/* Handles the text typed after "/": jumps to an index or starts a search for a condition. */
void tensor_typed(struct tensor_pane *pane, const char *text);
/* The two separately; false: the text is neither, or pane->message says what is wrong with it. */
bool tensor_go(struct tensor_pane *pane, const char *text);
bool tensor_find(struct tensor_pane *pane, const char *text);
void tensor_search_start(struct tensor_pane *pane, bool back);
void tensor_search_stop(struct tensor_pane *pane, const char *why);
void tensor_search_part(struct tensor_pane *pane, enum gd_iter iter, struct gd_tensor *tensor,
                        const char *why);          /* a part has arrived */
void tensor_search_step(struct tensor_pane *pane); /* requests the next part */

/* pane_tensor_draw.c */
void tensor_draw_pane(struct tui *tui, const struct draw_rect *rect, bool focused);
int64_t tensor_grid_rows(const struct tensor_pane *pane);
/* The element at a position of the pane; false: none. */
bool tensor_place(const struct tensor_pane *pane, int row, int col, int64_t *index);

/* pane_tensor_action.c */
void tensor_apply_wishes(struct tensor_pane *pane);
/* Runs an action of the pane's keys: "to" INDEX, "find" CONDITION ("": repeat), "back", "heat"
 * range|rank|off, "axes" Y,X, "plane" next|back. GD_EINVAL, GD_ESTATE, GD_ELIMIT. */
int tui_tensor_act(struct tui *tui, const char *action, const char *argument, struct gd_err *err);

/* pane_tensor.c */
void tensor_set_axes(struct tensor_pane *pane, int y, int x);
void tensor_step_others(struct tensor_pane *pane, int by);
/* text: "NODE:SLOT[SLICE]"; NULL follows the current node. mode: "", "prev", "diff". */
int tui_tensor_open(struct tui *tui, const char *text, const char *mode, struct gd_err *err);

#endif
