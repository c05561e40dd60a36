// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The hits of the session in order of execution; with several ranks those of the whole job, each
 * row with its rank. Several hits of a node at a step have a heading with its name. Checks
 * that failed for the same reason share a row. A picture costs what is new and what is visible,
 * however many hits there are.
 */
#include "base/grow.h"
#include "repl/commands/breakpoints/hit.h"
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/hits.h"
#include "tui/panes/detail.h"
#include "tui/panes/job_hits.h"
#include "tui/text.h"

#define WIDE_COLS  60 /* from here on, rows name the statistic that was compared */
#define LEAST_NAME 10 /* least columns of a name beside the values */
#define MAX_GROUPS 64 /* per step: reasons for failed checks */

struct row {
    size_t place; /* index in hits.place of its hit, or the first of a group */
    size_t count; /* > 1: failed checks in this group */
    bool unclear; /* a failed check instead of a hit */
    bool heading; /* the name of the node of the rows below, which are `below` */
    bool below;
};

struct hits_pane {
    struct tui_list list;
    struct job_hits hits;
    int only;    /* shows this watchpoint's hits; 0: all */
    bool single; /* one row per failed check */
    struct row *row;
    size_t row_count, capacity;
    size_t rows_of; /* value of hits.count when the rows were made */
    size_t unclear; /* failed checks among them */
    int session;
    uint64_t stop_sequence, selected; /* that the cursor was moved to */
};

static struct hits_pane *hits_state(struct tui *tui)
{
    return tui_state(tui, TUI_HITS);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool append_row(struct hits_pane *pane, const struct row *row)
{
    struct row *rows = gd_grow(pane->row, pane->row_count, &pane->capacity, sizeof(*rows));

    if (!rows) {
        return false;
    }
    pane->row = rows;
    pane->row[pane->row_count++] = *row;
    return true;
}

/* Both are hits of one node at one step of one rank. */
static bool same_node(const struct hits_pane *pane, const struct gd_session *session, size_t a,
                      size_t b)
{
    const struct gd_hit *x = job_hits_at(&pane->hits, session, a);
    const struct gd_hit *y = job_hits_at(&pane->hits, session, b);

    return x && y && x->error == 0 && y->error == 0 && !x->is_scalar && !y->is_scalar &&
           x->step == y->step && pane->hits.place[a].rank == pane->hits.place[b].rank &&
           strcmp(x->node_name, y->node_name) == 0;
}

/* The row of a hit, below a heading if the hit before it or after it is of the same node. */
static bool add_row(struct hits_pane *pane, const struct gd_session *session, size_t place,
                    bool unclear)
{
    struct row row = {.place = place, .count = 1, .unclear = unclear};
    bool first = place == 0 || !same_node(pane, session, place - 1, place);

    row.below =
        !first || (place + 1 < pane->hits.count && same_node(pane, session, place, place + 1));
    if (row.below && first) {
        struct row heading = {.place = place, .count = 1, .heading = true};
        if (!append_row(pane, &heading)) {
            return false;
        }
    }
    pane->unclear += unclear ? 1 : 0;
    return append_row(pane, &row);
}

struct groups { /* rows of one step that represent several failed checks */
    size_t row[MAX_GROUPS];
    size_t count;
};

/* The row that already represents such checks; beyond MAX_GROUPS reasons each check has its own
 * row. */
static struct row *group_of(const struct hits_pane *pane, const struct gd_session *session,
                            const struct groups *groups, size_t place)
{
    const struct gd_hit *hit = job_hits_at(&pane->hits, session, place);

    for (size_t i = 0; i < groups->count; i++) {
        struct row *row = &pane->row[groups->row[i]];
        const struct gd_hit *other = job_hits_at(&pane->hits, session, row->place);
        if (other && other->error == hit->error && other->watchpoint == hit->watchpoint &&
            pane->hits.place[row->place].rank == pane->hits.place[place].rank) {
            return row;
        }
    }
    return NULL;
}

/* Adds rows for the places from `from` on, which must begin a step. */
static void add_rows(struct hits_pane *pane, const struct gd_session *session, size_t from)
{
    struct groups groups = {.count = 0};

    for (size_t i = from; i < pane->hits.count; i++) {
        const struct gd_hit *hit = job_hits_at(&pane->hits, session, i);
        if (i > from && pane->hits.place[i].step != pane->hits.place[i - 1].step) {
            groups.count = 0;
        }
        bool unclear = hit && hit->error != 0;
        bool grouped = unclear && !pane->single;
        struct row *group = grouped ? group_of(pane, session, &groups, i) : NULL;
        if (group) {
            group->count++;
            pane->unclear++;
            continue;
        }
        if (!add_row(pane, session, i, unclear)) {
            break;
        }
        if (grouped && groups.count < MAX_GROUPS) {
            groups.row[groups.count++] = pane->row_count - 1;
        }
    }
    pane->rows_of = pane->hits.count;
}

/* Rebuilds the rows from the step of this place on. */
static void rows_from(struct hits_pane *pane, const struct gd_session *session, size_t from)
{
    from = from < pane->rows_of ? from : pane->rows_of;
    while (from > 0 && from < pane->hits.count &&
           pane->hits.place[from - 1].step == pane->hits.place[from].step) {
        from--;
    }
    while (pane->row_count > 0 && pane->row[pane->row_count - 1].place >= from) {
        const struct row *last = &pane->row[--pane->row_count];
        pane->unclear -= last->unclear ? last->count : 0;
    }
    add_rows(pane, session, from);
}

static void rows_anew(struct tui *tui)
{
    struct hits_pane *pane = hits_state(tui);

    pane->rows_of = 0;
    pane->row_count = pane->unclear = 0;
    if (tui->debugger->current && job_hits_are_of(&pane->hits, tui->debugger->current)) {
        add_rows(pane, tui->debugger->current, 0);
    }
    pane->list.count = pane->row_count;
    tui_list_settle(&pane->list);
}

/* ---- following the session ----------------------------------------------------------------- */

/* The hit of a row; NULL: it belongs to another rank. */
static const struct gd_hit *hit_of(const struct hits_pane *pane, const struct gd_session *session,
                                   size_t row)
{
    size_t place = pane->row[row].place;

    return job_hits_session(&pane->hits, session, place) == session
               ? job_hits_at(&pane->hits, session, place)
               : NULL;
}

static void go_to_number(struct hits_pane *pane, const struct gd_session *session, uint64_t number)
{
    const struct gd_hit *hit =
        number > session->hits_dropped && number <= session->hits_dropped + session->hit_count
            ? &session->hits[number - session->hits_dropped - 1]
            : NULL;

    for (size_t i = 0; hit && i < pane->row_count; i++) {
        const struct gd_hit *other = pane->row[i].heading ? NULL : hit_of(pane, session, i);
        if (other == hit || (other && pane->row[i].count > 1 && other->step == hit->step &&
                             other->watchpoint == hit->watchpoint && other->error == hit->error)) {
            pane->list.cursor = i;
            return;
        }
    }
}

/* Moves the cursor to the most important hit of the stop. */
static void go_to_stop(struct hits_pane *pane, const struct gd_session *session)
{
    int best = 0;

    if (session->hit_count == 0 ||
        session->hits[session->hit_count - 1].stop_sequence != session->stop.sequence) {
        return;
    }
    for (size_t i = 0; i < pane->row_count; i++) {
        const struct gd_hit *hit = hit_of(pane, session, i);
        int weight = hit && !pane->row[i].heading ? hits_weight(session, hit) : 0;
        if (weight > best) {
            best = weight;
            pane->list.cursor = i;
        }
    }
}

static void follow_session(struct tui *tui, const struct gd_session *session)
{
    struct hits_pane *pane = hits_state(tui);
    uint64_t selected = hits_selected(tui->repl, session);
    bool stopped = session->state != GD_RUNNING;

    if (stopped && session->stop.sequence != pane->stop_sequence) {
        pane->stop_sequence = session->stop.sequence;
        go_to_stop(pane, session);
    }
    if (selected != pane->selected) {
        pane->selected = selected;
        if (selected != 0) {
            go_to_number(pane, session, selected);
        }
    }
}

static void update_hits(struct tui *tui)
{
    struct hits_pane *pane = hits_state(tui);
    const struct gd_session *session = tui->debugger->current;
    size_t from = 0;

    if (!session) {
        pane->row_count = pane->list.count = pane->unclear = 0;
        pane->session = 0;
        return;
    }
    if (session->number != pane->session) {
        pane->session = session->number;
        pane->stop_sequence = pane->selected = 0;
    }
    bool at_end = pane->list.count > 0 && pane->list.cursor + 1 == pane->list.count;
    bool same = job_hits_are_of(&pane->hits, session);
    bool changed = job_hits_update(&pane->hits, session, pane->only, &from);
    if (!same) { /* the hits of another session or job */
        pane->list.cursor = pane->list.top = 0;
    }
    if (changed) {
        rows_from(pane, session, from);
        if (at_end && session->state == GD_RUNNING) {
            pane->list.cursor = pane->row_count > 0 ? pane->row_count - 1 : 0;
        }
    }
    pane->list.count = pane->row_count;
    follow_session(tui, session);
    tui_list_settle(&pane->list);
}

static const struct gd_hit *hit_of_row(struct tui *tui, size_t index)
{
    const struct hits_pane *pane = hits_state(tui);

    return index < pane->row_count
               ? job_hits_at(&pane->hits, tui->debugger->current, pane->row[index].place)
               : NULL;
}

static const struct gd_session *session_of_row(struct tui *tui, size_t index)
{
    const struct hits_pane *pane = hits_state(tui);

    return index < pane->row_count
               ? job_hits_session(&pane->hits, tui->debugger->current, pane->row[index].place)
               : NULL;
}

/* ---- words --------------------------------------------------------------------------------- */

/* "max 2e+05 > 1000"; without `named` "2e+05 > 1000". */
static void add_test(const struct gd_condition *condition, const struct gd_hit_param *param,
                     bool named, struct gd_buf *out)
{
    static const char *const signs[] = {">", ">=", "<", "<=", "==", "!="};
    const struct gd_condition_param *known =
        condition ? gd_condition_param(condition, param->name) : NULL;
    size_t len = strlen(param->name);

    if (!known || known->statistic == GD_STAT_NONE) {
        gd_buf_printf(out, "%s=%.6g", param->name, param->actual_value);
        return;
    }
    if (named) { /* without the comparison at the end of the test's name */
        gd_buf_printf(out, "%.*s ", (int)(len > 3 ? len - 3 : len), param->name);
    }
    gd_buf_printf(out, "%.4g %s %.6g", param->actual_value, signs[known->op], param->set_value);
}

/* Without `named` the text is short; the detail area has the full one. */
static void add_values(struct tui *tui, const struct gd_hit *hit, bool named, struct gd_buf *out)
{
    const struct gd_condition *condition = hits_condition(tui->debugger, hit);
    bool expression = !hit->kind && hit->expression[0] != '\0';
    size_t before = out->len;

    if (hit->error != 0) {
        char why[256];
        gd_hit_error_text(hit->error, why, sizeof(why));
        gd_buf_puts(out, "not checked");
        if (named) {
            gd_buf_printf(out, ": %s", why);
        }
        return;
    }
    for (int i = 0; i < hit->param_count; i++) {
        if (expression || hit->param[i].hit) {
            gd_buf_puts(out, out->len > before ? ", " : "");
            add_test(condition, &hit->param[i], named, out);
        }
    }
}

/* ---- drawing ------------------------------------------------------------------------------- */

static int count_digits(int64_t value)
{
    return snprintf(NULL, 0, "%lld", (long long)value);
}

/* Draws tensor and values; when space is short, the end of the name and the start of the values
 * stay. */
static void draw_found(struct tui *tui, size_t index, int row, int col, int cols,
                       enum draw_style style)
{
    const struct row *of = &hits_state(tui)->row[index];
    const struct gd_hit *hit = hit_of_row(tui, index);
    size_t count = of->count;
    struct gd_buf where = GD_BUF_INIT(1024), found = GD_BUF_INIT(4096);
    char room[1024];

    add_values(tui, hit, cols >= WIDE_COLS || count > 1, &found);
    if (count > 1) {
        gd_buf_printf(&where, "%zu tensors", count);
    } else if (of->below) {
        gd_buf_printf(&where, ":%s", hit->slot_name);
    } else {
        hits_add_where(session_of_row(tui, index), hit, &where);
    }
    const char *text = gd_buf_text(&found), *name = gd_buf_text(&where);
    int text_cols = tui_text_width(text, strlen(text), tui->utf8);
    int name_cols = tui_text_width(name, strlen(name), tui->utf8);
    int left = cols - 2 - text_cols; /* columns left for the name */
    if (name_cols > left) {
        int least = name_cols < LEAST_NAME ? name_cols : LEAST_NAME;
        name_cols = left > least ? left : least < cols ? least : cols;
    }
    if (name_cols > 0) {
        name = tui_text_fit_name(name, name_cols, tui->utf8, room, sizeof(room));
        int used = draw_text(tui->draw, row, col, name_cols, style, name);
        draw_text(tui->draw, row, col + used + 2, cols - used - 2,
                  style == DRAW_PLAIN && hit->error == 0 ? DRAW_HIT : style, text);
    }
    gd_buf_deinit(&where);
    gd_buf_deinit(&found);
}

/* One line names the columns, which are too narrow for titles. */
static void draw_heading(struct tui *tui, const struct draw_rect *rect)
{
    bool ranks = hits_state(tui)->hits.ranks != NULL;

    draw_text(tui->draw, rect->row, rect->col, rect->cols, DRAW_DIM,
              ranks ? "step, rank, watchpoint, tensor, value" : "step, watchpoint, tensor, value");
}

/* The node of the rows below, its micro-batch, and the step. */
static void draw_node_heading(struct tui *tui, size_t index, int row, int col, int cols,
                              bool selected)
{
    enum draw_style style = selected ? DRAW_REVERSE : DRAW_SCOPE;
    const struct gd_hit *hit = hit_of_row(tui, index);
    char room[1024], step[80], batch[32];

    gd_session_micro_batch_text(session_of_row(tui, index), hit->node, batch, sizeof(batch));
    snprintf(step, sizeof(step), "%s%s step %lld", batch[0] != '\0' ? " " : "", batch,
             (long long)hit->step);
    int name_cols = cols - (int)strlen(step);
    int used =
        draw_text(tui->draw, row, col, name_cols, style,
                  tui_text_fit_name(hit->node_name, name_cols, tui->utf8, room, sizeof(room)));
    draw_text(tui->draw, row, col + used, cols - used, selected ? style : DRAW_DIM, step);
}

static void draw_row(struct tui *tui, size_t index, int row, int col, int cols, bool selected)
{
    const struct hits_pane *pane = hits_state(tui);
    const struct gd_session *session = session_of_row(tui, index);
    const struct gd_hit *hit = hit_of_row(tui, index);
    char head[128], watch[48], rank[24] = "";

    if (!hit) {
        return;
    }
    if (pane->row[index].heading) {
        draw_node_heading(tui, index, row, col, cols, selected);
        return;
    }
    bool newest = hit->stop_sequence == session->stop.sequence;
    bool chosen = session == tui->debugger->current && pane->selected != 0 &&
                  hits_number(session, hit) == pane->selected;
    enum draw_style style = selected ? DRAW_REVERSE : hit->error != 0 ? DRAW_DIM : DRAW_PLAIN;
    snprintf(watch, sizeof(watch), "%d %s", hit->watchpoint, hits_abbr(tui->debugger, hit));
    if (pane->hits.ranks) {
        snprintf(rank, sizeof(rank), "r%-*d ", count_digits(pane->hits.rank_count - 1),
                 session->peer.rank);
    }
    int64_t last = pane->hits.place[pane->hits.count - 1].step;
    int used = snprintf(head, sizeof(head), "%c%*lld %s%-*s ",
                        chosen   ? '>'
                        : newest ? '*'
                                 : ' ',
                        count_digits(last), (long long)hit->step, rank,
                        count_digits(tui->debugger->next_breakpoint - 1) + 4, watch);
    draw_text(tui->draw, row, col, cols, newest && style == DRAW_PLAIN ? DRAW_BOLD : style, head);
    if (cols > used) {
        draw_found(tui, index, row, col + used, cols - used, style);
    }
}

static void row_text(struct tui *tui, size_t index, struct gd_buf *out)
{
    const struct gd_hit *hit = hit_of_row(tui, index);

    if (hit) {
        const struct hits_pane *pane = hits_state(tui);
        if (pane->hits.ranks) {
            gd_buf_printf(out, "rank %d ", session_of_row(tui, index)->peer.rank);
        }
        gd_buf_printf(out, "%d %s ", hit->watchpoint, hits_abbr(tui->debugger, hit));
        hits_add_where(session_of_row(tui, index), hit, out);
        gd_buf_putc(out, ' ');
        add_values(tui, hit, true, out);
    }
}

static const struct tui_list_ops list_ops = {draw_row, row_text};

/* Everything about the hit under the cursor. */
static void add_detail(struct tui *tui, const struct gd_session *session, const struct gd_hit *hit,
                       size_t count, struct gd_buf *out)
{
    const struct hits_pane *pane = hits_state(tui);
    const struct gd_condition *condition = hits_condition(tui->debugger, hit);
    char rank[32] = "";

    if (count > 1) {
        char why[256];
        gd_hit_error_text(hit->error, why, sizeof(why));
        gd_buf_printf(out, "%zu tensors could not be checked: %s (m lists them)\n", count, why);
    } else {
        repl_hit_text(session, hit, out);
        gd_buf_putc(out, '\n');
    }
    if (pane->hits.ranks) {
        snprintf(rank, sizeof(rank), " of rank %d", session->peer.rank);
    }
    gd_buf_printf(out, "hit %llu%s%s: %s\n", (unsigned long long)hits_number(session, hit), rank,
                  hit->traced ? ", traced" : "", condition ? condition->id : hit->expression);
    if (hit->node == GD_NO_NODE && !hit->is_scalar) {
        gd_buf_puts(out, "The graph has no such node: the compiler may have optimised it away.\n");
    }
}

static void draw_none(struct tui *tui, const struct draw_rect *rect)
{
    const struct hits_pane *pane = hits_state(tui);
    char text[160] = "No watchpoint has fired.";
    struct gd_watch_tally tally;

    gd_watch_tally(tui->debugger, &tally);
    if (tally.unclear > 0) {
        snprintf(text, sizeof(text), "No watchpoint has fired; %llu checks failed.",
                 (unsigned long long)tally.unclear);
    }
    if (pane->only != 0) {
        snprintf(text, sizeof(text), "Watchpoint %d has not fired. q shows all.", pane->only);
    }
    tui_draw_folded(tui, rect, 0, DRAW_DIM, text);
}

static void draw_hits(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct hits_pane *pane = hits_state(tui);

    if (pane->list.count == 0) {
        draw_none(tui, rect);
        return;
    }
    struct draw_rect foot =
        tui_list_and_detail(tui, &pane->list, &list_ops, rect, draw_heading, focused);
    const struct gd_hit *hit = hit_of_row(tui, pane->list.cursor);
    if (hit && foot.rows > 0) {
        struct gd_buf text = GD_BUF_INIT(8192);
        add_detail(tui, session_of_row(tui, pane->list.cursor), hit,
                   pane->row[pane->list.cursor].count, &text);
        tui_detail_draw(tui, &foot, gd_buf_text(&text));
        gd_buf_deinit(&text);
    }
}

static void make_title(struct tui *tui, char *out, size_t size)
{
    const struct hits_pane *pane = hits_state(tui);
    const struct gd_session *session = tui->debugger->current;
    char of[64] = "", place[64] = "", unclear[48] = "", older[32] = "";
    size_t hits = 0, at = 0;

    if (pane->only != 0) {
        snprintf(of, sizeof(of), " of watchpoint %d", pane->only);
    } else if (pane->hits.ranks) {
        snprintf(of, sizeof(of), " of %d ranks", pane->hits.rank_count);
    }
    for (size_t i = 0; i < pane->row_count; i++) {
        bool counts = !pane->row[i].unclear && !pane->row[i].heading;
        hits += counts ? 1 : 0;
        at = i == pane->list.cursor && counts ? hits : at;
    }
    if (at > 0) {
        snprintf(place, sizeof(place), " %zu/%zu", at, hits);
    } else if (pane->row_count > 0) {
        snprintf(place, sizeof(place), " %zu", hits);
    }
    if (pane->unclear > 0) {
        snprintf(unclear, sizeof(unclear), ", %zu not checked", pane->unclear);
    }
    if (session && session->hits_dropped > 0) {
        snprintf(older, sizeof(older), ", older ones dropped");
    }
    snprintf(out, size, "hits%s%s%s%s", of, place, unclear, older);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void open_hit(struct tui *tui)
{
    size_t row = hits_state(tui)->list.cursor;
    const struct gd_session *session = session_of_row(tui, row);
    const struct gd_hit *hit = hit_of_row(tui, row);
    char line[48];

    if (!hit || tui->executing) {
        return;
    }
    if (session != tui->debugger->current) {
        snprintf(line, sizeof(line), "rank %d", session->peer.rank);
        tui_run_line(tui, line);
    }
    snprintf(line, sizeof(line), "hit %llu", (unsigned long long)hits_number(session, hit));
    tui_run_line(tui, line);
}

void tui_hits_show(struct tui *tui, int watchpoint)
{
    struct hits_pane *pane = hits_state(tui);

    pane->only = watchpoint;
    pane->list.cursor = pane->list.top = 0;
    tui_changed(tui);
}

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct hits_pane *pane = hits_state(tui);

    switch (request) {
    case TUI_OPEN: open_hit(tui); break;
    case TUI_MARK:
    case TUI_MODE:
        pane->single = !pane->single;
        rows_anew(tui);
        break;
    case TUI_BACK:
        if (pane->only != 0) { /* opened from the watchpoint's row */
            tui_hits_show(tui, 0);
            tui_focus(tui, TUI_WATCH);
        }
        break;
    default: tui_list_request(tui, &pane->list, &list_ops, request); break;
    }
}

static bool hit_word(struct tui *tui, char which, struct gd_buf *out)
{
    const struct gd_hit *hit = hit_of_row(tui, hits_state(tui)->list.cursor);
    struct gd_buf name = GD_BUF_INIT(1024);

    if (!hit) {
        return false;
    }
    switch (which) {
    case 'h': /* each rank numbers its hits */
        if (session_of_row(tui, hits_state(tui)->list.cursor) != tui->debugger->current) {
            return false;
        }
        gd_buf_printf(out, "%llu", (unsigned long long)hits_number(tui->debugger->current, hit));
        return true;
    case 'w': gd_buf_printf(out, "%d", hit->watchpoint); return true;
    case 'n':
    case 't':
        if (hit->is_scalar || hit->node == GD_NO_NODE) {
            return false;
        }
        gd_buf_puts(&name, hit->node_name);
        if (which == 't') {
            gd_buf_printf(&name, ":%s", hit->slot_name);
        }
        tui_add_name(out, gd_buf_text(&name));
        gd_buf_deinit(&name);
        return true;
    default: return false;
    }
}

/* ---- the pane ------------------------------------------------------------------------------ */

static void release_state(struct tui *tui, void *of)
{
    struct hits_pane *pane = of;

    (void)tui;
    job_hits_free(&pane->hits);
    free(pane->row);
}

const struct tui_pane_ops tui_hits_pane = {
    .state_size = sizeof(struct hits_pane),
    .release = release_state,
    .update = update_hits,
    .draw = draw_hits,
    .title = make_title,
    .rows = &list_ops,
    .request = handle_request,
    .word = hit_word,
};
