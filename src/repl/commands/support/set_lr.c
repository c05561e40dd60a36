// SPDX-License-Identifier: GPL-3.0-or-later
/* `set lr`: the training process's command "set-lr", see python/gradb/rates.py and gradb.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/ranks.h"
#include "repl/commands/support/support.h"
#include "repl/core/everyone.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/numbers.h"

#define COMMAND "set-lr"

struct assignment {        /* lr[OPTIMIZER:GROUP] = EXPR */
    const char *optimizer; /* "": the main one */
    int64_t group;         /* -1: all */
    const char *expression;
};

/* "lr", blanks, and what may follow in an assignment. */
bool set_lr_is_meant(const char *line)
{
    return strncmp(line, "lr", 2) == 0 && (line[2] == '\0' || strchr(" \t[=", line[2]) ||
                                           (strchr("*/+-", line[2]) && line[3] == '='));
}

static int take_target(struct command_call *call, const char **at, struct assignment *ret,
                       struct gd_err *err)
{
    const char *end = strchr(*at, ']');
    if (!end) {
        return gd_fail(err, GD_EINVAL, "set lr: '[' without ']'");
    }
    const char *colon = memchr(*at, ':', (size_t)(end - *at));
    bool digits = *at < end && strspn(*at, "0123456789") == (size_t)(end - *at);
    const char *group = colon ? colon + 1 : digits ? *at : end;
    const char *name_end = colon ? colon : digits ? *at : end;
    if (group < end) {
        const char *text = gd_arena_strndup(call->arena, group, (size_t)(end - group));
        int rc = text ? arg_count(text, 0, INT32_MAX, &ret->group, err) : gd_fail_nomem(err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    ret->optimizer = gd_arena_strndup(call->arena, *at, (size_t)(name_end - *at));
    *at = end + 1;
    return ret->optimizer ? GD_OK : gd_fail_nomem(err);
}

static int parse_assignment(struct command_call *call, struct assignment *ret, struct gd_err *err)
{
    const char *at = call->line + 2;
    int rc = GD_OK;

    *ret = (struct assignment){.optimizer = "", .group = -1};
    at += strspn(at, " \t");
    if (*at == '[') {
        at++;
        rc = take_target(call, &at, ret, err);
        if (rc != GD_OK) {
            return rc;
        }
        at += strspn(at, " \t");
    }
    char op = *at != '\0' && strchr("*/+-", *at) && at[1] == '=' ? *at++ : '\0';
    at += *at == '=';
    at += strspn(at, " \t");
    if (*at == '\0') {
        return gd_fail(err, GD_EUSAGE,
                       "set lr: specify a number or an expression, as in "
                       "set lr = lr / 2");
    }
    ret->expression = op == '\0' ? at : inspect_printf(call, "lr %c (%s)", op, at);
    return GD_OK;
}

/* ---- what the training process says ---------------------------------------------------------- */

struct rates { /* of one process */
    int session, rank;
    cJSON *before;
    cJSON *after; /* NULL: not changed */
};

struct answers {
    struct rates *of; /* the selected process first */
    size_t count, cap;
    int ranks;
};

static void deinit_answers(struct answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        cJSON_Delete(answers->of[i].before);
        cJSON_Delete(answers->of[i].after);
    }
    free(answers->of);
}

static const cJSON *groups_of(const cJSON *reply)
{
    return cJSON_GetObjectItem(reply, "groups");
}

static void take_rates(void *ctx, struct gd_session *session, const cJSON *reply)
{
    struct answers *answers = ctx;

    if (gd_grow_list(&answers->of, answers->count, &answers->cap, sizeof(*answers->of))) {
        answers->of[answers->count++] = (struct rates){.session = session->number,
                                                       .rank = session->peer.rank,
                                                       .before = cJSON_Duplicate(reply, true)};
    }
}

/* The present rates of all processes. */
static int ask_rates(struct command_call *call, struct answers *answers, const char *optimizer,
                     struct gd_err *err)
{
    int refused;
    int rc = job_command(call, COMMAND, optimizer, take_rates, answers, &refused, err);
    if (rc != GD_OK) {
        return rc;
    }
    return answers->count > 0 && cJSON_GetArraySize(groups_of(answers->of[0].before)) > 0
               ? GD_OK
               : gd_fail(err, GD_EPROTO, "the training process does not tell its learning rates");
}

/* "0=0.05 1=0.01": the new rates of the groups that change. */
static int new_rates(struct command_call *call, const struct assignment *assignment,
                     const struct answers *answers, struct gd_buf *args, struct gd_err *err)
{
    const cJSON *item;
    bool any = false;

    cJSON_ArrayForEach(item, groups_of(answers->of[0].before))
    {
        const cJSON *rate = cJSON_GetObjectItem(item, "lr");
        int64_t group = (int64_t)out_number_of(item, "group");
        double value = 0;
        if (assignment->group >= 0 && group != assignment->group) {
            continue;
        }
        const char *fixed = out_text_of(item, "fixed");
        if (fixed[0] != '\0') {
            return gd_fail(err, GD_EUNSUPPORTED, "set lr: %.300s", out_safe(call, fixed));
        }
        struct number_name own = {.name = "lr", .value = rate ? rate->valuedouble : NAN};
        int rc = numbers_evaluate(call, assignment->expression, &own, &value, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (!isfinite(value) || value < 0) {
            return gd_fail(err, GD_EINVAL, "set lr: %.100s gives %s: a learning rate is 0 or more",
                           assignment->expression, inspect_double(call, value));
        }
        gd_buf_printf(args, " %lld=%.17g", (long long)group, value);
        any = true;
    }
    return any ? GD_OK
               : gd_fail(
                     err, GD_ENOTFOUND, "set lr: %.60s has no group %lld: its groups are 0 to %d",
                     out_text_of(answers->of[0].before, "optimizer"), (long long)assignment->group,
                     cJSON_GetArraySize(groups_of(answers->of[0].before)) - 1);
}

static double rate_at(const cJSON *reply, int index)
{
    return out_number_of(cJSON_GetArrayItem(groups_of(reply), index), "lr");
}

/* For the log of events: "lr of SGD: 0.1 -> 0.05", with the groups' numbers where there are
 * several.
 */
static void log_change(const struct rates *rates, struct gd_session *session)
{
    struct gd_buf text = GD_BUF_INIT(4096);
    int count = cJSON_GetArraySize(groups_of(rates->after));
    const char *between = "";

    gd_buf_printf(&text, "lr of %.60s: ", out_text_of(rates->after, "optimizer"));
    for (int i = 0; i < count; i++) {
        double old = rate_at(rates->before, i), now = rate_at(rates->after, i);
        if (old != now || count == 1) {
            gd_buf_puts(&text, between);
            if (count > 1) {
                gd_buf_printf(&text, "[%d] ", i);
            }
            gd_buf_printf(&text, "%.6g -> %.6g", old, now);
            between = ", ";
        }
    }
    gd_session_changed(session, gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static void take_change(void *ctx, struct gd_session *session, const cJSON *reply)
{
    struct answers *answers = ctx;

    answers->ranks++;
    for (size_t i = 0; i < answers->count; i++) {
        struct rates *rates = &answers->of[i];
        if (rates->session == session->number && !rates->after) {
            rates->after = cJSON_Duplicate(reply, true);
            log_change(rates, session);
        }
    }
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* The groups of the selected process, and those of other ranks that had another rate or have one
 * now. */
static void show_groups(struct command_call *call, const struct assignment *assignment,
                        const struct answers *answers, const struct rates *of, cJSON *list)
{
    const struct rates *selected = &answers->of[0];
    int count = cJSON_GetArraySize(groups_of(of->after));

    for (int i = 0; i < count; i++) {
        int64_t group =
            (int64_t)out_number_of(cJSON_GetArrayItem(groups_of(of->after), i), "group");
        double old = rate_at(of->before, i), new = rate_at(of->after, i);
        bool other = old != rate_at(selected->before, i) || new != rate_at(selected->after, i);
        if ((assignment->group < 0 || group == assignment->group) && (of == selected || other)) {
            cJSON *row = out_push(list);
            out_set(row, OUT_IF(of != selected, OUT_INT("rank", of->rank)), OUT_INT("group", group),
                    OUT_REAL("old", old), OUT_REAL("new", new));
            out_say(
                call->out, row,
                "lr of {optimizer}[{?several}, group {group}][ (rank {rank})]: {old} -> {new}\n",
                OUT_TEXT("optimizer", out_text_of(of->after, "optimizer")),
                OUT_BOOL("several", count > 1));
        }
    }
}

static void show_change(struct command_call *call, const struct assignment *assignment,
                        const struct answers *answers, int refused)
{
    cJSON *record = out_record(call->out, "lr");
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    const cJSON *after = answers->of[0].after;

    out_set(record, OUT_TEXT("optimizer", out_text_of(after, "optimizer")),
            OUT_INT("step", gd_session_step(call->session)));
    cJSON *list = out_list(record, "groups");
    for (size_t i = 0; i < answers->count; i++) {
        show_groups(call, assignment, answers, &answers->of[i], list);
    }
    cJSON *schedulers = out_list(record, "schedulers");
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(after, "schedulers"))
    {
        cJSON *one = out_push(schedulers);
        out_set(one, OUT_TEXT("name", out_text_of(item, "name")),
                OUT_TEXT("place", out_text_of(item, "place")),
                OUT_BOOL("follows", cJSON_IsTrue(cJSON_GetObjectItem(item, "follows"))));
        out_say(call->out, one,
                "The scheduler {name}[ (made at {place})] can change it again[{?follows}, from "
                "the new rate].\n");
    }
    if (ranks) {
        out_set(record, OUT_INT("ranks", answers->ranks), OUT_INT("refused", refused));
        out_say(call->out, record, "{ranks|rank} changed[; {refused|rank} did not].\n");
    }
}

/* Ranks that run cannot be asked. */
static int change_together(struct command_call *call, struct gd_err *err)
{
    int rc = job_at_step_end(call, inspect_printf(call, "set %s", call->line), err);

    if (rc == GD_OK) {
        out_printf(call->out, "All ranks change at the end of the step.\n");
    }
    return rc;
}

int set_lr(struct command_call *call, struct gd_err *err)
{
    struct assignment assignment;
    struct answers answers = {.ranks = 0};
    struct gd_buf args = GD_BUF_INIT(1 << 16);
    int refused = 0;
    int rc = repl_check_needs(call, "set lr", CMD_NEEDS_STOP | CMD_NEEDS_LIVE, err);

    rc = rc != GD_OK ? rc
                     : repl_need_commands(call, "set lr", "cannot change its learning rate", err);
    rc = rc != GD_OK ? rc : parse_assignment(call, &assignment, err);
    if (rc == GD_OK && !job_is_stopped(call->session)) {
        return change_together(call, err);
    }
    rc = rc != GD_OK ? rc : ask_rates(call, &answers, assignment.optimizer, err);
    if (rc == GD_OK) {
        gd_buf_puts(&args, assignment.optimizer);
        rc = new_rates(call, &assignment, &answers, &args, err);
    }
    rc = rc != GD_OK
             ? rc
             : job_command(call, COMMAND, gd_buf_text(&args), take_change, &answers, &refused, err);
    if (rc == GD_OK && answers.of[0].after) {
        show_change(call, &assignment, &answers, refused);
    }
    deinit_answers(&answers);
    gd_buf_deinit(&args);
    return rc;
}
