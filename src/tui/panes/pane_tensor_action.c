// SPDX-License-Identifier: GPL-3.0-or-later
/* The tensor pane's actions as commands, for scripts. Actions that arrive before the value wait for
 * it. */
#include "tui/panes/pane_tensor_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_heat(struct tensor_pane *pane, const char *word, struct gd_err *err)
{
    static const char *const words[TENSOR_LOOK_COUNT] = {"off", "range", "rank"};

    for (int look = 0; look < TENSOR_LOOK_COUNT; look++) {
        if (strcmp(word, words[look]) == 0) {
            pane->look = (enum tensor_look)look;
            return GD_OK;
        }
    }
    return gd_fail(err, GD_EINVAL, "-heat takes range, rank or off, not \"%.30s\"", word);
}

/* "0,2": the axis of the rows, and that of the columns. */
static int set_axes(struct tensor_pane *pane, const char *text, struct gd_err *err)
{
    int rank = pane->shape.rank;
    char *end;
    long y = strtol(text, &end, 10);
    bool comma = end != text && *end == ',';
    const char *second = comma ? end + 1 : end;
    long x = strtol(second, &end, 10);

    if (!comma || end == second || *end != '\0') {
        return gd_fail(err, GD_EINVAL, "-axes takes two axes, such as 0,1; not \"%.30s\"", text);
    }
    y += y < 0 ? rank : 0;
    x += x < 0 ? rank : 0;
    if (rank < 2) {
        return gd_fail(err, GD_EINVAL, "-axes: the value has fewer than two axes");
    }
    if (y < 0 || y >= rank || x < 0 || x >= rank || x == y) {
        return gd_fail(err, GD_EINVAL, "-axes takes two different axes from 0 to %d, not \"%.30s\"",
                       rank - 1, text);
    }
    tensor_set_axes(pane, (int)y, (int)x);
    return GD_OK;
}

static int set_plane(struct tensor_pane *pane, const char *word, struct gd_err *err)
{
    bool next = strcmp(word, "next") == 0;

    if (!next && strcmp(word, "back") != 0) {
        return gd_fail(err, GD_EINVAL, "-plane takes next or back, not \"%.30s\"", word);
    }
    tensor_step_others(pane, next ? 1 : -1);
    return GD_OK;
}

static int apply_action(struct tensor_pane *pane, const char *action, const char *argument,
                        struct gd_err *err)
{
    if (strcmp(action, "axes") == 0) {
        return set_axes(pane, argument, err);
    }
    if (strcmp(action, "plane") == 0) {
        return set_plane(pane, argument, err);
    }
    if (strcmp(action, "back") == 0 || argument[0] == '\0') {
        tensor_search_start(pane, strcmp(action, "back") == 0);
        return GD_OK;
    }
    bool to = strcmp(action, "to") == 0;
    if (to ? tensor_go(pane, argument) : tensor_find(pane, argument)) {
        return GD_OK;
    }
    return gd_fail(err, GD_EINVAL, "%s",
                   pane->message[0] != '\0' ? pane->message
                   : to                     ? "-to takes an index, such as 3,17"
                        : "-find takes a condition: >1e3, abs>2, 1..2, nan, inf, nonfinite, zero");
}

/* Runs the waiting actions in order once the value is there. */
void tensor_apply_wishes(struct tensor_pane *pane)
{
    struct gd_err err = {.code = GD_OK};

    if (!pane->has_view || pane->wishes == 0 || !tensor_can_ask(pane)) {
        return;
    }
    int count = pane->wishes;
    pane->wishes = 0;
    for (int i = 0; i < count; i++) {
        pane->message[0] = '\0';
        if (apply_action(pane, pane->wish[i].action, pane->wish[i].argument, &err) != GD_OK) {
            snprintf(pane->message, sizeof(pane->message), "%.159s", err.text);
        }
    }
}

int tui_tensor_act(struct tui *tui, const char *action, const char *argument, struct gd_err *err)
{
    struct tensor_pane *pane = tui_state(tui, TUI_TENSOR);
    size_t room = sizeof(pane->wish[0].argument);

    if (strcmp(action, "heat") == 0) {
        return set_heat(pane, argument, err);
    }
    if (strlen(argument) >= room) {
        return gd_fail(err, GD_ELIMIT, "-%s: more than %zu characters", action, room - 1);
    }
    tensor_follow(pane);
    if (pane->has_view && pane->wishes == 0 && !pane->search.running &&
        (strcmp(action, "find") != 0 && strcmp(action, "back") != 0)) {
        pane->message[0] = '\0';
        return apply_action(pane, action, argument, err);
    }
    if (pane->node == GD_NO_NODE) {
        return gd_fail(err, GD_ESTATE, "the grid shows no value; tensor NODE opens one");
    }
    if (pane->wishes == TENSOR_WISHES) {
        return gd_fail(err, GD_ELIMIT,
                       "the value has not arrived yet, and %d actions are waiting for it already",
                       TENSOR_WISHES);
    }
    struct tensor_wish *wish = &pane->wish[pane->wishes++];
    snprintf(wish->action, sizeof(wish->action), "%s", action);
    snprintf(wish->argument, sizeof(wish->argument), "%s", argument);
    return GD_OK;
}
