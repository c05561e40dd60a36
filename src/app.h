// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The program: runs what the command line asked for; connects debugger, server and front end.
 */
#ifndef GD_APP_H
#define GD_APP_H

#include <stdbool.h>
#include <stddef.h>

enum app_mode {
    APP_PROMPT,
    APP_RUN,
    APP_LISTEN,
    APP_OPEN,
    APP_DEMO,
    APP_SESSIONS,
    APP_ATTACH,
    APP_MCP,
    APP_DAP,
    APP_DIAGNOSE
};
enum app_serve { SERVE_USER, SERVE_MCP, SERVE_DAP };
enum app_when { APP_AUTO, APP_ALWAYS, APP_NEVER };

struct app_command { /* -x FILE or -ex COMMAND, in the order given */
    bool is_file;
    const char *text;
};

struct app_options {
    enum app_mode mode;
    enum app_serve serve;       /* instead of a prompt */
    bool allow_run;             /* what is served may change the training and write files */
    char *const *program;       /* of APP_RUN, or the words of APP_DIAGNOSE; NULL-terminated */
    char *const *opened;        /* of APP_OPEN: paths and options of the command "open" */
    const char *listen_address; /* NULL: the default */
    struct app_command *commands;
    size_t command_count;
    bool batch;
    bool quiet;
    bool no_rc;
    bool json;
    const char *session; /* of APP_ATTACH; NULL: the only one running */
    bool read_only, take;
    bool tui;
    enum app_when color;
};

/* Runs until gradb quits; returns the exit status. */
int app_run(const struct app_options *options);

#endif
