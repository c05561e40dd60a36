// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Settings as plain values. Their names, ranges, units and texts are the table of
 * repl/core/settings_table.c; this struct is only where the values live, so that the layers below
 * the command language can read them.
 */
#ifndef GD_ENGINE_SETTINGS_H
#define GD_ENGINE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/log/log_level.h"

enum gd_on_loss { GD_ON_LOSS_CONTINUE = 0, GD_ON_LOSS_HOLD = 1 };

enum gd_evaluate {
    GD_EVALUATE_AUTO = 0, /* a process that can, else gradb */
    GD_EVALUATE_LOCAL,    /* gradb, from statistics */
    GD_EVALUATE_REMOTE,   /* the process; what it cannot is refused */
};
enum gd_watch_when {
    GD_WHEN_AUTO = 0, /* exact for what looks for NaN and Inf, else the end of the step */
    GD_WHEN_EXACT,    /* before the next node runs */
    GD_WHEN_STEP_END,
};

enum gd_recommend {
    GD_RECOMMEND_OFF = 0,
    GD_RECOMMEND_ASK, /* whether the recommended watchpoints are to be set */
    GD_RECOMMEND_ON,  /* they are set without a question */
};

enum gd_rank_locking {
    GD_LOCKING_OFF,  /* every run command moves all ranks of a job */
    GD_LOCKING_STEP, /* next moves the selected one alone, all others move all */
    GD_LOCKING_ON,   /* the selected one alone is moved */
};

struct gd_settings {
    struct gd_log_levels log_levels; /* of MindSpore, in programs that `run` starts */
    /* limits, bytes unless said otherwise */
    uint64_t max_message;      /* one gRPC message; default 64 MiB */
    uint64_t max_graph;        /* one graph as sent; default 2 GiB */
    uint64_t max_graph_memory; /* all graphs of a session in memory; default 8 GiB */
    uint64_t max_tensor;       /* one tensor; default 16 GiB */
    uint64_t max_cache;        /* cached tensors of a session; default 2 GiB */
    uint64_t max_sessions;     /* count; default 256 */
    uint64_t max_connections;  /* count; default 512 */
    uint64_t max_hits;         /* hits kept per session; default 100000 */
    uint64_t max_log_lines;    /* lines of trainer output kept; default 10000 */
    /* MindSpore 1.x */
    bool ms_version_check_strict; /* as the old server: refuse other versions than 2.0 */
    bool stop_on_hit;             /* a watchpoint that fires ends the run; default on */
    int evaluate;                 /* enum gd_evaluate: who evaluates watchpoints; default auto */
    int watch_when;               /* enum gd_watch_when: when, unless a watchpoint says so */
    int rank_locking;             /* enum gd_rank_locking; default step */
    int recommend;                /* enum gd_recommend: at the first stop; default ask */
    uint64_t history_bytes; /* of the ring of statistics of a session; 0 none; default 64 MiB */
    uint64_t dump_bytes;    /* that `dump` writes at most, of all steps; 0 no limit */
    bool timing;            /* operators are measured; default off */
    bool memory_metrics;    /* memory_rss and others are reported; default off */
    bool logging;           /* output is copied to logging_file */
    bool logging_overwrite;
    bool logging_redirect; /* it goes there only */
    char logging_file[256];
    char dump_config[256];       /* the data_dump.json that `dump` goes by; "" none */
    char history_file[256];      /* its path; "" in the user's state directory */
    bool ms_shared_allow_remote; /* accept MindSpore clients (which cannot show a token) from other
                                    hosts; default off */
    /* wire */
    char token[128];         /* what gradb.v1 clients must show; "" = loopback needs none */
    bool shared_memory;      /* take tensors through shared memory on the same host; default on */
    enum gd_on_loss on_loss; /* what a gradb.v1 trainer does when we vanish; default continue */
    double keepalive;        /* seconds between our HTTP/2 PINGs; 0 off; default 20 */
    double rank_patience;    /* seconds that other ranks have to stop when one does; default 1 */
    double start_timeout;    /* seconds that `run` waits for the trainer to connect; default 60 */
    /* printing */
    int print_precision;     /* default 8 */
    int64_t print_threshold; /* default 1000 */
    int print_edge_items;    /* default 3 */
    int print_width;         /* default 75 */
    bool print_suppress;     /* default off */
    int on_hangup;           /* the terminal went: 0 hold, 1 continue, 2 detach */
    int on_error;            /* a command of a batch failed: 0 detach, 1 kill, 2 continue */
    bool confirm;            /* default on; batch acts as off */
    bool pagination;         /* default on; only with a terminal */
    int color;               /* 0 auto, 1 always, 2 never */
    int colors;              /* of the panes at most: 0 auto, 1 8, 2 16, 3 256 */
    int theme;               /* enum draw_theme: 0 dark, 1 light, 2 safe */
    int charset;             /* 0 auto, 1 utf8, 2 ascii */
    char keep_previous[256]; /* selector: nodes whose previous value the trainer keeps; "" none */
    bool mouse;              /* the panes take clicks and the wheel; default off */
    bool altscreen;          /* the panes use the terminal's second screen; default on */
    int history_size;        /* lines; default 1000 */
    int list_lines;          /* lines shown by `list`; default 10 */
};

void gd_settings_init(struct gd_settings *settings); /* the defaults above */

#endif
