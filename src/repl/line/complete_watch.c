// SPDX-License-Identifier: GPL-3.0-or-later
/* Completes the words of watch commands: parameters, statistics, selectors. */
#include "engine/watch/watchpoint.h"
#include "repl/line/complete.h"

#include <stdlib.h>
#include <string.h>

/* The words of a watch command before the cursor: the condition, the last `on` and the last
 * `if`. */
struct watch_words {
    char first[64]; /* the condition, or the number after `edit` */
    bool on, guard; /* the cursor is after this word */
    bool selects;   /* edit: after add or remove */
};

static struct watch_words scan_words(const struct completion *c, size_t first)
{
    struct watch_words words = {.first = ""};
    int index = 0;

    for (size_t at = first; at < c->start; index++) {
        size_t end = at + strcspn(c->line + at, " \t");
        size_t len = end - at;
        const char *p = c->line + at;
        if (p[0] == '-' && index == 0) {
            index--; /* -exact, -step */
        } else if (index == 0) {
            snprintf(words.first, sizeof(words.first), "%.*s", (int)(len < 63 ? len : 63), p);
        } else if (len == 2 && memcmp(p, "on", 2) == 0 && !words.guard) {
            words.on = true;
        } else if (len == 2 && memcmp(p, "if", 2) == 0) {
            words.guard = true;
        } else if (index == 1 && ((len == 3 && memcmp(p, "add", 3) == 0) ||
                                  (len == 6 && memcmp(p, "remove", 6) == 0))) {
            words.selects = true;
        }
        at = end + strspn(c->line + end, " \t");
    }
    return words;
}

static void add_scalars(struct completion *c)
{
    const struct gd_session *session = c->repl->debugger->current;
    for (int i = 0; session && i < session->scalar_count; i++) {
        complete_if(c, session->scalar[i].name);
    }
}

void complete_figures(struct completion *c, unsigned needs)
{
    for (int i = GD_STAT_NONE + 1; i < GD_STAT_TOTAL; i++) {
        if ((gd_statistic_needs((enum gd_statistic)i) & needs) == 0) {
            complete_if(c, gd_statistic_name((enum gd_statistic)i));
        }
    }
    add_scalars(c);
    complete_if(c, "step");
}

static void add_param_names(struct completion *c, const struct gd_condition *condition)
{
    for (int i = 0; condition && i < condition->param_count; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s=", condition->param[i].name);
        if (!condition->param[i].hidden) {
            complete_if(c, text);
        }
    }
}

/* After a condition: its parameters, `on` and `if`; after those, a selector or a statistic. */
void complete_watch(struct completion *c, size_t first)
{
    const struct gd_condition *condition = NULL;
    struct watch_words words = scan_words(c, first);

    if (words.guard) {
        complete_figures(c, GD_NEED_RANGE);
    } else if (words.on) {
        complete_list(c, "except if");
        if (gd_condition_find(words.first, &condition, NULL) == GD_OK &&
            condition->target == GD_COND_SCALAR) {
            add_scalars(c);
        } else {
            complete_selectors(c);
        }
    } else if (words.first[0] == '\0') {
        complete_conditions(c);
        complete_figures(c, GD_NEED_RANGE);
    } else {
        complete_list(c, "on if");
        if (gd_condition_find(words.first, &condition, NULL) == GD_OK) {
            add_param_names(c, condition);
        } else {
            complete_figures(c, GD_NEED_RANGE);
        }
    }
}

void complete_watch_edit(struct completion *c, size_t first)
{
    struct watch_words words = scan_words(c, first);
    const struct gd_watchpoint *watch =
        gd_watchpoint_at(c->repl->debugger, (int)strtol(words.first, NULL, 10));

    if (words.guard) {
        complete_figures(c, GD_NEED_RANGE);
    } else if (words.on || words.selects) {
        complete_selectors(c);
    } else {
        complete_list(c, "add remove on if");
        if (watch && watch->condition) {
            add_param_names(c, watch->condition);
        } else if (watch) {
            complete_figures(c, GD_NEED_RANGE);
        }
    }
}
