// SPDX-License-Identifier: GPL-3.0-or-later
/* Settings that training processes carry out by a command of their own: `set timing`, `set
 * memory-metrics`, and `set evaluate-code`, for the agent refuses by itself, too. */
#include <stdlib.h>
#include <string.h>

#include "repl/core/await.h"
#include "repl/core/repl_impl.h"
#include "repl/values/evaluate.h"

#define PATIENCE 5.0 /* seconds for the answer */

struct passed {
    const char *setting;
    const char *name; /* of the command; its argument is on or off */
    bool (*wanted)(const struct gd_debugger *debugger);
    const char *lacks; /* of a program without commands: what it cannot do; NULL: Python only, and
                        * always sent, for the debugger before may have left it on */
};

static bool wants_timing(const struct gd_debugger *debugger)
{
    return debugger->settings.timing;
}

static bool wants_memory(const struct gd_debugger *debugger)
{
    return debugger->settings.memory_metrics;
}

static bool wants_refusal(const struct gd_debugger *debugger)
{
    return evaluate_is_off(debugger);
}

static const struct passed passed[] = {
    {"timing", "timing", wants_timing,
     "has no command that measures operators; what a C program reports by gradb_timing is shown"},
    {"memory-metrics", "memory-metrics", wants_memory,
     "has no command that reports the metrics of memory"},
    {"evaluate-code", "evaluate-refuse", wants_refusal, NULL},
};
#define PASSED (sizeof(passed) / sizeof(passed[0]))

const char *repl_setting_of_command(const char *name)
{
    for (size_t i = 0; i < PASSED; i++) {
        if (strcmp(passed[i].name, name) == 0) {
            return passed[i].setting;
        }
    }
    return NULL;
}

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
static void ask_process(struct repl *repl, struct gd_session *session, const struct passed *what,
                        bool wanted)
{
    int number = session->number;
    struct asked *asked = calloc(1, sizeof(*asked));
    struct gd_err err;

    if (!asked) {
        return;
    }
    int rc = gd_target_command(session->target, what->name, wanted ? "on" : "off", GD_NO_NODE,
                               on_reply, asked, &err);
    if (rc != GD_OK) {
        snprintf(asked->why, sizeof(asked->why), "%.299s", err.text);
    } else if (repl_await(repl, asked, PATIENCE) != GD_OK) {
        return; /* its callback frees it */
    }
    if (asked->why[0] && wanted) {
        struct gd_arena arena;
        gd_arena_init(&arena, 1 << 16);
        repl_printf(repl, true, "warning: set %s: training process %d: %s\n", what->setting, number,
                    repl_safe(repl, &arena, asked->why));
        gd_arena_deinit(&arena);
    }
    free(asked);
}

/* Whether the process has to learn it. */
static bool needs_setting(const struct gd_session *session, size_t number, bool wanted)
{
    if (!passed[number].lacks) {
        return evaluate_is_python(session) && (!(session->settings_known >> number & 1) ||
                                               (session->settings_sent >> number & 1) != wanted);
    }
    return (session->settings_sent >> number & 1) != wanted;
}

static void tell_process(struct repl *repl, struct gd_session *session, size_t number, bool wanted)
{
    const struct passed *what = &passed[number];

    session->settings_known |= (uint8_t)(1u << number);
    session->settings_sent = (uint8_t)(wanted ? session->settings_sent | 1u << number
                                              : session->settings_sent & ~(1u << number));
    if (session->target->capabilities & GD_CAN_COMMAND) {
        ask_process(repl, session, what, wanted);
    } else if (wanted) {
        repl_printf(repl, true, "warning: set %s: training process %d %s\n", what->setting,
                    session->number, what->lacks);
    }
}

void repl_send_settings(struct repl *repl)
{
    struct gd_debugger *debugger = repl->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        for (size_t k = 0; k < PASSED && i < debugger->session_count; k++) {
            struct gd_session *session = debugger->sessions[i]; /* a wait may remove sessions */
            bool wanted = passed[k].wanted(debugger);

            if (session->state == GD_STOPPED && session->target && gd_session_is_live(session) &&
                !gd_session_is_record(session) && needs_setting(session, k, wanted)) {
                tell_process(repl, session, k, wanted);
            }
        }
    }
}
