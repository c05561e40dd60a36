// SPDX-License-Identifier: GPL-3.0-or-later
/* `set timing`: asks the training processes to measure operators, or no longer. */
#include <stdlib.h>

#include "repl/core/await.h"
#include "repl/core/repl_impl.h"

#define COMMAND  "timing"
#define PATIENCE 5.0 /* seconds for the answer */

struct asked {
    struct await await;
    char why[300]; /* that it cannot; "": it can */
};

static void on_reply(void *ctx, const char *text, const struct gd_err *err)
{
    struct asked *asked = ctx;

    (void)text;
    if (await_take(asked) && err) {
        snprintf(asked->why, sizeof(asked->why), "%.299s", err->text);
    }
}

/* Asks one process and waits. */
static void ask_process(struct repl *repl, struct gd_session *session, bool wanted)
{
    int number = session->number;
    struct asked *asked = calloc(1, sizeof(*asked));
    struct gd_err err;

    if (!asked) {
        return;
    }
    int rc = gd_target_command(session->target, COMMAND, wanted ? "on" : "off", GD_NO_NODE,
                               on_reply, asked, &err);
    if (rc != GD_OK) {
        snprintf(asked->why, sizeof(asked->why), "%.299s", err.text);
    } else if (repl_await(repl, asked, PATIENCE) != GD_OK) {
        return; /* its callback frees it */
    }
    if (asked->why[0] && wanted) {
        struct gd_arena arena;
        gd_arena_init(&arena, 1 << 16);
        repl_printf(repl, true, "warning: set timing: training process %d: %s\n", number,
                    repl_safe(repl, &arena, asked->why));
        gd_arena_deinit(&arena);
    }
    free(asked);
}

static void tell_process(struct repl *repl, struct gd_session *session, bool wanted)
{
    session->timing_sent = wanted;
    if (session->target->capabilities & GD_CAN_COMMAND) {
        ask_process(repl, session, wanted);
    } else if (wanted) {
        repl_printf(repl, true,
                    "warning: set timing: training process %d has no command that measures "
                    "operators; what a C program reports by gradb_timing is shown\n",
                    session->number);
    }
}

void repl_send_timing(struct repl *repl)
{
    struct gd_debugger *debugger = repl->debugger;
    bool wanted = debugger->settings.timing;

    for (size_t i = 0; i < debugger->session_count; i++) { /* a wait may remove sessions */
        struct gd_session *session = debugger->sessions[i];
        if (session->state == GD_STOPPED && session->target && gd_session_is_live(session) &&
            session->timing_sent != wanted) {
            tell_process(repl, session, wanted);
        }
    }
}
