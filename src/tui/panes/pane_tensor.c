// SPDX-License-Identifier: GPL-3.0-or-later
/* The tensor pane: title, keys, and the command that opens it. */
#include "tui/panes/pane_tensor_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/text.h"

static struct tensor_pane *state_of(struct tui *tui)
{
    return tui_state(tui, TUI_TENSOR);
}

static void init_state(struct tui *tui, void *state)
{
    struct tensor_pane *pane = state;

    pane->tui = tui;
    pane->node = GD_NO_NODE;
    pane->axis_x = -1;
}

static void release_state(struct tui *tui, void *state)
{
    struct tensor_pane *pane = state;

    (void)tui;
    tensor_drop_pages(pane);
    tensor_forget(pane);
    free(pane->name);
}

static void tensor_update(struct tui *tui)
{
    struct tensor_pane *pane = state_of(tui);

    tensor_follow(pane);
    tensor_want_figures(pane);
    tensor_apply_wishes(pane);
    tensor_search_step(pane);
}

static void tensor_title(struct tui *tui, char *out, size_t size)
{
    const struct tensor_pane *pane = state_of(tui);
    const char *name =
        pane->session && pane->session == tui->debugger->current && pane->node != GD_NO_NODE
            ? gd_graph_name(pane->session->graph, pane->node)
            : "";
    struct gd_buf slice = GD_BUF_INIT(1024);
    size_t len = strlen(name);
    size_t room = 50;

    gd_slice_text(&pane->slice, &slice);
    if (name[0] == '\0') {
        snprintf(out, size, "tensor");
    } else {
        char slot[16];
        gd_graph_slot_name(pane->session->graph, pane->node, pane->slot, slot);
        snprintf(out, size, "tensor %s%s:%s%.24s", len > room ? "..." : "",
                 name + (len > room ? len - room : 0), slot, gd_buf_text(&slice));
    }
    gd_buf_deinit(&slice);
}

/* ---- keys ---- */

/* Moves along an axis, or along all elements of a wrapped value, up to its end. */
static void move_along(int64_t *at, int64_t by, int64_t count)
{
    int64_t to = *at + by < count ? *at + by : count - 1;
    *at = to > 0 ? to : 0;
}

static void move_cursor(struct tensor_pane *pane, int64_t rows, int64_t cols)
{
    int64_t count = tensor_count(pane);
    int64_t by = rows * pane->per_row + cols;

    if (pane->axis_y >= 0) {
        move_along(&pane->at[pane->axis_y], rows, pane->shape.dim[pane->axis_y]);
        move_along(&pane->at[pane->axis_x], cols, pane->shape.dim[pane->axis_x]);
        return;
    }
    if (rows != 0 && (pane->at[0] + by < 0 || pane->at[0] + by >= count)) {
        int64_t row = pane->at[0] / pane->per_row;
        bool below = row < tensor_grid_rows(pane) - 1;
        by = rows < 0 ? -row * pane->per_row : below ? count : 0;
    }
    move_along(&pane->at[0], by, count);
}

static void move_to(struct tensor_pane *pane, enum tui_request request)
{
    bool rows = request == TUI_TOP || request == TUI_BOTTOM;
    bool start = request == TUI_TOP || request == TUI_ROW_START;
    int axis = rows ? pane->axis_y : pane->axis_x;

    if (pane->axis_y >= 0) {
        pane->at[axis] = start ? 0 : pane->shape.dim[axis] - 1;
        return;
    }
    int64_t row = rows ? 0 : pane->at[0] - pane->at[0] % pane->per_row;
    int64_t count = tensor_count(pane);
    pane->at[0] = row;
    if (!start) {
        move_along(&pane->at[0], rows ? count : pane->per_row - 1, count);
    }
}

/* Advances the hidden indices like a number with one digit per axis. */
void tensor_step_others(struct tensor_pane *pane, int by)
{
    for (int i = pane->shape.rank - 1; i >= 0; i--) {
        if (i == pane->axis_y || i == pane->axis_x) {
            continue;
        }
        int64_t at = pane->at[i] + by;
        if (at >= 0 && at < pane->shape.dim[i]) {
            pane->at[i] = at;
            return;
        }
        pane->at[i] = by > 0 ? 0 : pane->shape.dim[i] - 1;
    }
}

void tensor_set_axes(struct tensor_pane *pane, int y, int x)
{
    pane->axis_y = y;
    pane->axis_x = x;
    pane->cell = 0;
    tensor_drop_pages(pane); /* pages depend on the two axes */
}

/* Uses the next hidden axis for the rows or the columns. */
static void next_axis(struct tensor_pane *pane, bool rows)
{
    int axis = rows ? pane->axis_y : pane->axis_x;
    int other = rows ? pane->axis_x : pane->axis_y;
    int rank = pane->shape.rank;

    if (rank == 2) { /* swap the two */
        tensor_set_axes(pane, pane->axis_x, pane->axis_y);
    } else if (rank > 2) {
        do {
            axis = (axis + 1) % rank;
        } while (axis == other);
        tensor_set_axes(pane, rows ? axis : other, rows ? other : axis);
    }
}

static bool add_label(struct tensor_pane *pane, bool plane, struct gd_buf *out)
{
    struct gd_buf name = GD_BUF_INIT(8192);
    struct gd_slice slice = pane->slice;
    int64_t n[GD_MAX_RANK];

    if (pane->node == GD_NO_NODE || pane->session != pane->tui->debugger->current) {
        return false;
    }
    if (plane && pane->has_view && pane->shape.rank > 2) {
        int64_t lo[GD_MAX_RANK];
        for (int i = 0; i < pane->shape.rank; i++) {
            bool shown = i == pane->axis_y || i == pane->axis_x;
            lo[i] = shown ? 0 : pane->at[i];
            n[i] = shown ? pane->shape.dim[i] : -1;
        }
        tensor_compose(pane, lo, n, &slice);
    }
    char slot[16];
    gd_graph_slot_name(pane->session->graph, pane->node, pane->slot, slot);
    gd_buf_printf(&name, "%s:%s", gd_graph_name(pane->session->graph, pane->node), slot);
    gd_slice_text(&slice, &name);
    tui_add_name(out, gd_buf_text(&name));
    gd_buf_deinit(&name);
    return true;
}

static void forget_value(struct tensor_pane *pane)
{
    memset(pane->figures, 0, sizeof(pane->figures));
    pane->has_view = false;
    pane->why[0] = '\0';
    pane->cell = 0;
    tensor_drop_pages(pane);
}

/* In single-key mode through the command, which asks the training process to keep previous
 * values. */
static void choose_which(struct tensor_pane *pane, enum tensor_which which)
{
    static const char *const modes[] = {"", " prev", " diff"};
    struct gd_buf line = GD_BUF_INIT(16384);

    if (!pane->tui->single_key) {
        pane->which = which;
        forget_value(pane);
        return;
    }
    gd_buf_puts(&line, "tensor ");
    if (pane->tui->executing || !add_label(pane, false, &line)) {
        gd_buf_deinit(&line);
        return;
    }
    gd_buf_puts(&line, modes[which]);
    tui_run_line(pane->tui, gd_buf_text(&line));
    gd_buf_deinit(&line);
}

static void next_mode(struct tensor_pane *pane)
{
    if (pane->look != TENSOR_NUMBERS) {
        pane->look = TENSOR_NUMBERS;
    } else if (pane->which == TENSOR_DIFFERENCE) {
        pane->look = TENSOR_HEAT;
        choose_which(pane, TENSOR_CURRENT);
    } else {
        choose_which(pane, (enum tensor_which)(pane->which + 1));
    }
}

static void go_back(struct tensor_pane *pane)
{
    if (pane->search.running) {
        tensor_search_stop(pane, "stopped");
    } else if (pane->message[0] != '\0' || pane->condition.text[0] != '\0') {
        pane->message[0] = '\0';
        memset(&pane->condition, 0, sizeof(pane->condition));
    } else {
        tui_run_line(pane->tui, "layout graph");
    }
}

static void move_request(struct tensor_pane *pane, enum tui_request request)
{
    int64_t page = pane->rows > 1 ? pane->rows - 1 : 1;

    switch (request) {
    case TUI_UP: move_cursor(pane, -1, 0); break;
    case TUI_DOWN: move_cursor(pane, 1, 0); break;
    case TUI_LEFT: move_cursor(pane, 0, -1); break;
    case TUI_RIGHT: move_cursor(pane, 0, 1); break;
    case TUI_PAGE_UP: move_cursor(pane, -page, 0); break;
    case TUI_PAGE_DOWN: move_cursor(pane, page, 0); break;
    case TUI_HALF_UP: move_cursor(pane, -(page + 1) / 2, 0); break;
    case TUI_HALF_DOWN: move_cursor(pane, (page + 1) / 2, 0); break;
    case TUI_TOP:
    case TUI_BOTTOM:
    case TUI_ROW_START:
    case TUI_ROW_END: move_to(pane, request); break;
    case TUI_INDEX_BACK: tensor_step_others(pane, -1); break;
    case TUI_INDEX_NEXT: tensor_step_others(pane, 1); break;
    case TUI_AXIS_ROWS: next_axis(pane, true); break;
    case TUI_AXIS_COLS: next_axis(pane, false); break;
    case TUI_NEXT_MATCH: tensor_search_start(pane, false); break;
    case TUI_PREVIOUS_MATCH: tensor_search_start(pane, true); break;
    default: break;
    }
}

static void tensor_request(struct tui *tui, enum tui_request request)
{
    struct tensor_pane *pane = state_of(tui);

    tensor_follow(pane);
    if (request == TUI_BACK) {
        go_back(pane);
    } else if (request == TUI_MODE) {
        next_mode(pane);
    } else if (request == TUI_LOOK) {
        pane->look = (enum tensor_look)((pane->look + 1) % TENSOR_LOOK_COUNT);
    } else if (request == TUI_SEARCH) {
        pane->typing = true;
        pane->typed[0] = '\0';
    } else if (tensor_count(pane) > 0 && pane->per_row > 0) {
        pane->message[0] = '\0';
        move_request(pane, request);
    }
}

static bool tensor_key(struct tui *tui, int key)
{
    struct tensor_pane *pane = state_of(tui);

    if (!pane->typing) {
        return false;
    }
    if (key == '\r' || key == '\n') {
        pane->typing = false;
        tensor_follow(pane);
        tensor_typed(pane, pane->typed);
    } else if (key == 0x1b) {
        pane->typing = false;
    } else {
        tui_text_key(pane->typed, sizeof(pane->typed), key);
    }
    return true;
}

/* n always searches elements here. */
static enum tui_search tensor_search(struct tui *tui)
{
    return state_of(tui)->typing ? TUI_TYPING : TUI_SEARCHED;
}

static bool tensor_word(struct tui *tui, char which, struct gd_buf *out)
{
    struct tensor_pane *pane = state_of(tui);

    tensor_follow(pane);
    if (which == 't') {
        return add_label(pane, true, out);
    }
    return tui_node_word(tui, pane->session, pane->node, which, out);
}

/* A click opens nothing here. */
static bool tensor_click(struct tui *tui, int row, int col)
{
    struct tensor_pane *pane = state_of(tui);
    int64_t index[GD_MAX_RANK];

    tensor_follow(pane);
    if (pane->has_view && tensor_count(pane) > 0 && pane->per_row > 0) {
        memcpy(index, pane->at, sizeof(index));
        if (tensor_place(pane, row, col, index)) {
            memcpy(pane->at, index, sizeof(index));
        }
    }
    return false;
}

/* ---- the command ---- */

/* Reads "0" or "in0"; *end == text: neither. */
static uint32_t read_slot(const struct gd_graph *graph, gd_node_id node, const char *text,
                          const char **end)
{
    size_t input = strncmp(text, "in", 2) == 0 ? 2 : 0;
    size_t len = input + strspn(text + input, "0123456789");
    uint32_t slot = 0;
    char name[16];

    *end = len > input && len < sizeof(name) ? text + len : text;
    snprintf(name, sizeof(name), "%.*s", (int)(*end - text), text);
    if (input == 0) {
        slot = (uint32_t)strtoul(name, NULL, 10);
    } else if (!gd_graph_slot_find(graph, node, name, &slot)) {
        *end = text;
    }
    return slot;
}

/* "NODE:SLOT[SLICE]": splits at the first colon that leaves a known node before it and only slot
 * and slice after it. */
static int take_target(struct tensor_pane *pane, const struct gd_session *session, const char *text,
                       struct gd_err *err)
{
    for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
        size_t len = (size_t)(colon - text);
        gd_node_id node = gd_graph_lookup(session->graph, text, len);
        struct gd_slice slice = {.count = 0};
        size_t used = 0;
        const char *end = text;
        if (node == GD_NO_NODE) {
            continue;
        }
        uint32_t slot = read_slot(session->graph, node, colon + 1, &end);
        if (end == colon + 1 || (*end != '\0' && *end != '[')) {
            continue;
        }
        if (*end == '[' && gd_slice_parse(end, strlen(end), &used, &slice, err) != GD_OK) {
            return err->code;
        }
        char *name = strndup(text, len);
        if (!name) {
            return gd_fail(err, GD_ENOMEM, "out of memory for a name");
        }
        free(pane->name);
        pane->name = name;
        pane->slot = slot;
        pane->slice = slice;
        return GD_OK;
    }
    return gd_fail(err, GD_ENOTFOUND, "%.200s: no such value; write NODE:SLOT[SLICE]", text);
}

int tui_tensor_open(struct tui *tui, const char *text, const char *mode, struct gd_err *err)
{
    struct tensor_pane *pane = state_of(tui);
    struct gd_session *session = tui->debugger->current;

    if (!session) {
        return gd_fail(err, GD_ESTATE,
                       "no training process is connected, so there is no value to show");
    }
    int rc = text ? take_target(pane, session, text, err) : GD_OK;
    if (rc != GD_OK) {
        return rc;
    }
    if (!text) {
        free(pane->name);
        pane->name = NULL;
        pane->slot = 0;
        gd_slice_clear(&pane->slice);
    }
    pane->which = strcmp(mode, "prev") == 0   ? TENSOR_PREVIOUS
                  : strcmp(mode, "diff") == 0 ? TENSOR_DIFFERENCE
                                              : TENSOR_CURRENT;
    pane->message[0] = '\0';
    pane->wishes = 0;
    forget_value(pane);
    tui_set_layout(tui, LAYOUT_TENSOR);
    tui_show(tui, TUI_TENSOR);
    return GD_OK;
}

const struct tui_pane_ops tui_tensor_pane = {
    .state_size = sizeof(struct tensor_pane),
    .init = init_state,
    .release = release_state,
    .update = tensor_update,
    .draw = tensor_draw_pane,
    .title = tensor_title,
    .request = tensor_request,
    .search = tensor_search,
    .key = tensor_key,
    .word = tensor_word,
    .click = tensor_click,
};
