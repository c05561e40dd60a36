// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/hits_told.h"

#include <stdlib.h>
#include <string.h>

#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"

#define UNCLEAR_KINDS  (sizeof(((struct repl_told *)0)->unclear) / sizeof(struct repl_unclear))
#define TOLD_IN_A_STEP 20 /* lines of hits printed per step; the rest is counted */
#define TOLD_AT_ONCE   40 /* lines per FLOOD_SECONDS on a terminal, for any number of steps */
#define FLOOD_SECONDS  0.1

static bool is_silent(struct repl *repl, int number)
{
    const struct repl_lines *body = repl_commands_of(repl, number);
    return body && body->count > 0 && strcmp(body->line[0], "silent") == 0;
}

static char *safe_copy(struct repl *repl, const char *text)
{
    struct gd_buf safe = GD_BUF_INIT(1 << 20);
    out_add_safe(&safe, text, repl_is_utf8(repl));
    return gd_buf_take(&safe);
}

/* Too many lines for a reader and a terminal: from now on they are only counted. */
static bool is_flooded(struct repl *repl)
{
    struct repl_flood *flood = &repl->flood;
    double now = repl_now(repl);
    if (!repl->options.interactive) {
        return false;
    }
    if (now - flood->since >= FLOOD_SECONDS || now < flood->since) {
        flood->since = now;
        flood->lines = 0;
    }
    return flood->lines >= TOLD_AT_ONCE;
}

static void tell_left_out(struct repl *repl)
{
    size_t left_out = repl->flood.left_out + repl->told.left_out;
    if (left_out > 0) {
        repl_printf(repl, false, "  ... %zu more (info hits)\n", left_out);
    }
    repl->flood.left_out = 0;
    repl->told.left_out = 0;
}

/* Prints a line below the watchpoint's own. When the step has had enough lines, only if `must`. */
static void print_line(struct repl *repl, const char *line, bool must)
{
    struct repl_told *told = &repl->told;
    if ((told->lines >= TOLD_IN_A_STEP || is_flooded(repl)) && !must) {
        told->left_out++;
        return;
    }
    if (told->head) {
        repl_printf(repl, false, "%s\n", told->head);
        free(told->head);
        told->head = NULL;
    }
    repl_printf(repl, false, "%s\n", line);
    told->lines++;
    repl->flood.lines++;
}

static char *head_of(struct repl *repl, const struct gd_hit *hit, const char *prefix)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    gd_buf_printf(&text, "%s%s %d: ", prefix,
                  hit->traced             ? "Trace"
                  : hit->event[0] != '\0' ? "Catchpoint"
                                          : "Watchpoint",
                  hit->watchpoint);
    hits_add_what(repl->debugger, hit, &text);
    gd_buf_printf(&text, ", step %lld", (long long)hit->step);
    char *head = safe_copy(repl, gd_buf_text(&text));
    gd_buf_deinit(&text);
    return head;
}

static void forget_unclear(struct repl_unclear *unclear)
{
    free(unclear->head);
    free(unclear->first);
    *unclear = (struct repl_unclear){.count = 0};
}

/* One line for all that could not be checked for the same reasons. Always printed. */
static void tell_one_unclear(struct repl *repl, struct repl_unclear *unclear)
{
    char why[256], line[400];
    gd_hit_error_text(unclear->error, why, sizeof(why));
    snprintf(line, sizeof(line), "  %zu could not be checked: %s (info hits %d)", unclear->count,
             why, unclear->watchpoint);
    if (unclear->first) {
        print_line(repl, unclear->count > 1 ? line : unclear->first, true);
    }
    forget_unclear(unclear);
}

/* Grouped by watchpoint. */
static void tell_unclear(struct repl *repl)
{
    struct repl_told *told = &repl->told;
    struct repl_unclear *unclear = told->unclear;
    for (size_t i = 0; i < UNCLEAR_KINDS; i++) {
        int watchpoint = unclear[i].watchpoint;
        if (unclear[i].count == 0) {
            continue;
        }
        free(told->head);
        told->head = unclear[i].head;
        unclear[i].head = NULL;
        for (size_t k = i; k < UNCLEAR_KINDS; k++) {
            if (unclear[k].count > 0 && unclear[k].watchpoint == watchpoint) {
                tell_one_unclear(repl, &unclear[k]);
            }
        }
    }
}

/* False: there is no room for another combination of reasons. */
static bool count_unclear(struct repl *repl, const struct gd_hit *hit, const char *prefix,
                          const char *line)
{
    for (size_t i = 0; i < UNCLEAR_KINDS; i++) {
        struct repl_unclear *unclear = &repl->told.unclear[i];
        if (unclear->count == 0) {
            *unclear = (struct repl_unclear){.watchpoint = hit->watchpoint,
                                             .error = hit->error,
                                             .head = head_of(repl, hit, prefix),
                                             .first = strdup(line)};
        }
        if (unclear->watchpoint == hit->watchpoint && unclear->error == hit->error) {
            unclear->count++;
            return true;
        }
    }
    return false;
}

void repl_hits_forget(struct repl *repl)
{
    for (size_t i = 0; i < UNCLEAR_KINDS; i++) {
        forget_unclear(&repl->told.unclear[i]);
    }
    free(repl->told.head);
    repl->told = (struct repl_told){.session = 0};
}

void repl_hits_over(struct repl *repl)
{
    tell_unclear(repl);
    tell_left_out(repl);
    repl_hits_forget(repl);
}

/* The next step's hits begin. In a flood, what was left out is reported with what follows. */
static void step_over(struct repl *repl)
{
    tell_unclear(repl);
    if (is_flooded(repl)) {
        repl->flood.left_out += repl->told.left_out;
    } else {
        repl->flood.lines += repl->flood.left_out + repl->told.left_out > 0 ? 1 : 0;
        tell_left_out(repl);
    }
    repl_hits_forget(repl);
}

/* Hits that could not be checked are reported at the end of the step. */
static bool put_off(struct repl *repl, const struct gd_session *session, const struct gd_hit *hit,
                    const char *prefix)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    gd_buf_puts(&text, "  ");
    repl_hit_text(session, hit, &text);
    char *line = safe_copy(repl, gd_buf_text(&text));
    bool done = line && count_unclear(repl, hit, prefix, line);
    free(line);
    gd_buf_deinit(&text);
    return done;
}

void repl_hit_event(struct repl *repl, const struct gd_session *session, const struct gd_hit *hit,
                    const char *prefix)
{
    struct repl_told *told = &repl->told;
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    if (is_silent(repl, hit->watchpoint)) {
        return;
    }
    if (told->session != session->number || told->step != hit->step) {
        step_over(repl);
        told->session = session->number;
        told->step = hit->step;
    }
    if (hit->error && put_off(repl, session, hit, prefix)) {
        return;
    }
    if (told->watchpoint != hit->watchpoint) {
        free(told->head);
        told->watchpoint = hit->watchpoint;
        told->head = head_of(repl, hit, prefix);
    }
    if (hit->is_scalar && told->head) { /* one per step: on the same line */
        gd_buf_printf(&text, "%s: ", told->head);
        free(told->head);
        told->head = NULL;
    } else {
        gd_buf_puts(&text, "  ");
    }
    repl_hit_text(session, hit, &text);
    char *line = safe_copy(repl, gd_buf_text(&text));
    /* the first hit that may stop the run */
    bool stops = told->head && !hit->traced && !hit->error;
    if (line) {
        print_line(repl, line, stops);
    }
    free(line);
    gd_buf_deinit(&text);
}
