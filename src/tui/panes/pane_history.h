// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The history pane: a list of series, each with a line of bars, and a chart of some of them.
 * pane_history.c has the list and the keys, pane_history_chart.c the chart.
 */
#ifndef GD_TUI_PANE_HISTORY_H
#define GD_TUI_PANE_HISTORY_H

#include "repl/chart/series.h"
#include "tui/list.h"

enum history_subject {
    HISTORY_NODE,    /* the current node's outputs, and the loss */
    HISTORY_SCALARS, /* all metrics */
    HISTORY_PLOT,    /* what the command plot named */
};

struct history_row {
    char *text; /* a headline; NULL: a series */
    bool hint;  /* the headline is a hint instead of a tensor's name */
    char name[24];
    struct series_key key;
    struct series series;
    bool kept; /* in the chart wherever the cursor is */
};

struct history_view { /* of the chart */
    bool alone;
    bool log;
    int smooth;       /* index of the weights */
    double weight;    /* of `plot --smooth`; 0: by `smooth` */
    int64_t from, to; /* from > to: all steps */
    bool has_cursor;
    int64_t cursor;
    /* of the last picture */
    int64_t first, last;
    int plot_cols;
};

struct history_pane {
    struct tui_list list;
    enum history_subject subject;
    struct series_key plot[CHART_MAX_CURVES]; /* of HISTORY_PLOT */
    size_t plot_count;
    struct history_row *row;
    size_t row_count, row_capacity;
    char *kept[CHART_MAX_CURVES]; /* labels of kept rows: they stay kept when rows are made again */
    size_t kept_count;
    struct history_view view;
    /* the source of the rows */
    const struct gd_session *session;
    const struct gd_history *history;
    gd_node_id node;
    enum history_subject of;
    uint64_t seen;
    gd_node_id recalled; /* node and session whose past was last requested from a dump */
    int recalled_of;     /* 0: none */
};

/* Draws into the rectangle the chart of the kept rows and of the one under the cursor. False: there
 * is none, or no room. */
bool history_draw_chart(struct tui *tui, struct history_pane *pane, const struct draw_rect *rect);
/* The rows of the rectangle that the chart takes; 0: none. */
int history_chart_rows(const struct history_pane *pane, const struct draw_rect *rect);
/* Carries out a request about the chart; false: it is not one. */
bool history_chart_request(struct history_pane *pane, enum tui_request request);

#endif
