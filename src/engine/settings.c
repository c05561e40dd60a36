// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/settings.h"

#include <stdio.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

void gd_settings_init(struct gd_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    settings->max_message = 64 * MIB;
    settings->max_graph = 2 * GIB;
    settings->max_graph_memory = 8 * GIB;
    settings->max_tensor = 16 * GIB;
    settings->max_cache = 2 * GIB;
    settings->max_sessions = 256;
    settings->max_connections = 512;
    settings->max_hits = 100000;
    settings->max_log_lines = 10000;
    settings->shared_memory = true;
    settings->on_loss = GD_ON_LOSS_CONTINUE;
    settings->stop_on_hit = true;
    settings->rank_locking = GD_LOCKING_STEP;
    settings->recommend = GD_RECOMMEND_ASK;
    settings->altscreen = true;
    settings->history_bytes = 64 * MIB;
    settings->keepalive = 20;
    settings->rank_patience = 1;
    settings->start_timeout = 60;
    settings->print_precision = 8;
    settings->print_threshold = 1000;
    settings->print_edge_items = 3;
    settings->print_width = 75;
    settings->confirm = true;
    settings->pagination = true;
    settings->history_size = 1000;
    settings->list_lines = 10;
    snprintf(settings->logging_file, sizeof(settings->logging_file), "gradb.txt");
}
