// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: hit, next-hit, previous-hit */
#include <math.h>
#include <string.h>

#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/breakpoints/hit.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/srcfile.h"
#include "repl/values/value.h"

static void print_param(struct command_call *call, const struct gd_hit *hit,
                        const struct gd_hit_param *param, int indent)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    const struct gd_condition_param *known =
        condition ? gd_condition_param(condition, param->name) : NULL;
    if (!hit->kind && hit->expression[0] != '\0') { /* statistics of an expression */
        out_printf(call->out, "%*s%s = %s\n", indent, "", param->name,
                   inspect_double(call, param->actual_value));
    } else if (known && known->statistic == GD_STAT_NONE) { /* not a test by itself */
        if (!known->hidden && !param->disabled) {
            out_printf(call->out, "%*s%s: set %s\n", indent, "", param->name,
                       inspect_double(call, param->set_value));
        }
    } else if (!param->disabled && !param->hit && isnan(param->actual_value)) {
        out_printf(call->out, "%*s%s: set %s, actual unknown\n", indent, "", param->name,
                   inspect_double(call, param->set_value));
    } else if (!param->disabled) {
        out_printf(call->out, "%*s%s: set %s, actual %s%s\n", indent, "", param->name,
                   inspect_double(call, param->set_value),
                   inspect_double(call, param->actual_value), param->hit ? "" : " (did not fire)");
    }
}

void hit_print_params(struct command_call *call, const struct gd_hit *hit, int indent)
{
    char why[256];
    if (hit->error) {
        gd_hit_error_text(hit->error, why, sizeof(why));
        out_printf(call->out, "%*scould not be checked: %s\n", indent, "", why);
        return;
    }
    if (hit->frozen) {
        out_printf(call->out, "%*sfrozen when first seen\n", indent, "");
    }
    for (int i = 0; i < hit->param_count; i++) {
        print_param(call, hit, &hit->param[i], indent);
    }
}

void hit_record(struct command_call *call, cJSON *object, const struct gd_hit *hit)
{
    repl_hit_record(object, call->session, hit);
    out_set(object, OUT_INT("number", hits_number(call->session, hit)));
}

/* "model.c:42 <tab> y = x * w;": the node's innermost frame in the user's own code. */
static void print_place(struct command_call *call, gd_node_id node, cJSON *object)
{
    const struct gd_frame *frame = gd_graph_place(call->session->graph, node);
    if (!frame) {
        return;
    }
    struct srcfile_part part;
    const char *code = frame->code;
    if (code[0] == '\0' && frame->line > 0 &&
        srcfile_read(call, frame->file, frame->line, 1, &part, NULL) == GD_OK && part.count > 0) {
        code = part.line[0];
    }
    out_printf(call->out, "%s:%u%s%s\n", out_safe(call, frame->file), frame->line,
               code[0] != '\0' ? "\t" : "", out_safe(call, code));
    out_set(object, OUT_TEXT("file", frame->file), OUT_INT("line", frame->line));
}

/* The present value, if the training is still stopped there. A missing value is not an error. */
static void print_value(struct command_call *call, const struct gd_hit *hit, cJSON *object)
{
    struct gd_session *session = call->session;
    if (hit->is_scalar || hit->step != session->stop.step || session->state != GD_STOPPED) {
        return;
    }
    struct value value = {.arg = {.ref = {.node = hit->node, .slot = hit->slot}}};
    value.label = hits_where(call, hit);
    if (value_fetch(call, &value, VALUE_STATS, NULL) == GD_OK && value.has_stats) {
        value_print_summary(call, &value);
        out_set(object, OUT_JSON("stats", value_stats_record(&value.stats)));
    }
    value_deinit(&value);
}

static void show_hit(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    struct gd_session *session = call->session;
    struct gd_node_info info;
    cJSON *record = out_record(call->out, "hit");
    hit_record(call, record, hit);
    out_printf(call->out, "Hit %llu of %llu, step %lld: %s %d, %s\n",
               (unsigned long long)hits_number(session, hit),
               (unsigned long long)(session->hits_dropped + session->hit_count),
               (long long)hit->step, hits_noun(hit), hit->watchpoint, hits_what(call, hit));
    out_printf(call->out, "  %s\n", out_safe(call, hits_where(call, hit)));
    hit_print_params(call, hit, 4);
    if (hit->node != GD_NO_NODE && gd_graph_node(session->graph, hit->node, &info)) {
        session->current = hit->node;
        print_place(call, hit->node, record);
        print_value(call, hit, record);
    } else if (!hit->is_scalar) {
        out_printf(call->out,
                   "The graph does not contain this node; it may have been optimised away.\n");
    }
    if (condition && !hit->error) {
        out_set(record, OUT_TEXT("look", condition->look),
                OUT_TEXT("advice", condition->advice ? condition->advice : ""));
        watch_advice(call, condition);
    }
}

/* A target that can go back goes to the step of the hit. */
static void go_to_step(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_run run = {.kind = GD_RUN_GOTO, .count = hit->step, .node = GD_NO_NODE};
    struct gd_target *target = call->session->target;
    if (target && (target->capabilities & GD_CAN_GOTO) != 0 && call->session->state == GD_STOPPED &&
        hit->step != call->session->stop.step) {
        gd_target_resume(target, &run, NULL); /* the hit is shown even if it fails */
    }
}

static int select_hit(struct command_call *call, const struct gd_hit *hit, struct gd_err *err)
{
    struct hit_selection *state = hit_selection(call->repl);
    if (!state) {
        return gd_fail_nomem(err);
    }
    state->session = call->session->number;
    state->number = hits_number(call->session, hit);
    go_to_step(call, hit);
    int rc = hits_find(call->session, state->number, &hit, err); /* the list may have grown */
    if (rc != GD_OK) {
        return rc;
    }
    state->stop = call->session->stop.sequence;
    show_hit(call, hit);
    return GD_OK;
}

static int select_by(struct command_call *call, int by, struct gd_err *err)
{
    const struct gd_hit *hit = NULL;
    int rc = hit_choose(call, by, &hit, err);
    return rc == GD_OK ? select_hit(call, hit, err) : rc;
}

static int run_hit(struct command_call *call, struct gd_err *err)
{
    const struct gd_hit *hit = NULL;
    int64_t number;
    if (call->argc == 0) {
        return select_by(call, call->command->variant, err);
    }
    const char *word = call->argv[0];
    for (int by = -1; by <= 1 && word[0] != '\0'; by += 2) {
        if (strncmp(word, by > 0 ? "next" : "previous", strlen(word)) == 0) {
            return select_by(call, by, err);
        }
    }
    int rc = arg_count(word, 1, INT64_MAX, &number, err);
    rc = rc == GD_OK ? hits_find(call->session, (uint64_t)number, &hit, err) : rc;
    return rc == GD_OK ? select_hit(call, hit, err) : rc;
}

const struct command cmd_hit = {
    .name = "hit",
    .group = "breakpoints",
    .usage = "hit [next | previous | N]",
    .summary = "Go to a hit: select its node and show advice",
    .help =
        "Without an argument, the hit selected before, or the first hit of this stop. Hits are\n"
        "ordered by step and execution; \"info hits\" shows their numbers. In a dump, also go\n"
        "to the step of the hit.",
    .examples = "hit\n"
                "hit next",
    .args = {ARG_HIT},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_hit,
};

const struct command cmd_next_hit = {
    .name = "next-hit",
    .aliases = "nh",
    .group = "breakpoints",
    .usage = "next-hit",
    .summary = "Go to the next hit",
    .help = "The same as \"hit next\".",
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .variant = 1, /* forward */
    .run = run_hit,
};

const struct command cmd_previous_hit = {
    .name = "previous-hit",
    .aliases = "ph",
    .group = "breakpoints",
    .usage = "previous-hit",
    .summary = "Go to the previous hit",
    .help = "The same as \"hit previous\".",
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .variant = -1, /* back */
    .run = run_hit,
};
