// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "engine/graph/layers.h"
#include "engine/utf8.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"

#define NAME_COLS  24     /* most columns of a name */
#define MOST_PORTS 16     /* slots of a node that are drawn */
#define MOST_HITS  100000 /* of a stop that are examined */
#define MARK_SIZE  48

struct port { /* a slot of a node, where its edges begin */
    uint32_t slot;
    char text[16 + MARK_SIZE]; /* ":1 [TO]"; "": not shown */
    char hits[MARK_SIZE];
};
struct making {
    struct gd_session *session;
    const struct picture_view *view;
    struct gd_nearby_wish wish;
    bool utf8;
    struct picture *picture;
    struct gd_layers *layers;
    struct port port[GD_NEARBY_BOXES][MOST_PORTS];
    int ports[GD_NEARBY_BOXES];
    bool more_ports[GD_NEARBY_BOXES]; /* the last port stands for several slots */
    char name[GD_NEARBY_BOXES][192];
    char hits[GD_NEARBY_BOXES][MARK_SIZE];
    uint32_t below[GD_NEARBY_BOXES]; /* hits in a folded scope */
};

/* ---- the view ------------------------------------------------------------------------------ */

struct picture_view *picture_view(struct repl *repl, const struct gd_session *session)
{
    struct picture_view *view = &repl->picture;

    if (session && view->session != session->number) {
        *view = (struct picture_view){.session = session->number,
                                      .node = GD_NO_NODE,
                                      .current = GD_NO_NODE,
                                      .depth = view->depth > 0 ? view->depth : 1,
                                      .changes = view->changes + 1};
    }
    if (session && (!view->given || view->current != session->current)) {
        bool other = view->node != session->current || view->given;
        if (session->current != GD_NO_NODE && other) {
            view->node = session->current;
            view->given = false;
            view->changes++;
        }
    }
    return view;
}

void picture_center(struct picture_view *view, const struct gd_session *session, gd_node_id node,
                    gd_scope_id scope)
{
    view->given = true;
    view->node = node;
    view->scope = scope;
    view->current = session->current;
    view->changes++;
}

void picture_choose(struct picture_view *view, gd_scope_id scope, bool open)
{
    int at = 0;

    while (at < view->choices && view->choice[at].scope != scope) {
        at++;
    }
    if (at == PICTURE_CHOICES || at < view->choices) { /* replaces it, or the oldest */
        at = at == PICTURE_CHOICES ? 0 : at;
        view->choices--;
        memmove(&view->choice[at], &view->choice[at + 1],
                (size_t)(view->choices - at) * sizeof(view->choice[0]));
    }
    view->choice[view->choices].scope = scope;
    view->choice[view->choices++].open = open;
    view->changes++;
}

static int choice_of(const void *ctx, gd_scope_id scope)
{
    const struct picture_view *view = ctx;

    for (int i = 0; i < view->choices; i++) {
        if (view->choice[i].scope == scope) {
            return view->choice[i].open ? 1 : -1;
        }
    }
    return 0;
}

/* ---- hits ---------------------------------------------------------------------------------- */

/* Appends an abbreviation once. */
static void add_mark(char *marks, const char *word, bool unclear)
{
    char text[24];
    size_t used = strlen(marks);

    snprintf(text, sizeof(text), "%.16s%s", word, unclear ? "?" : "");
    size_t len = strlen(text);
    for (const char *at = strstr(marks, text); at; at = strstr(at + len, text)) {
        if ((at == marks || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0')) {
            return;
        }
    }
    if (used + len + 2 < MARK_SIZE) {
        snprintf(marks + used, MARK_SIZE - used, "%s%s", used > 0 ? " " : "", text);
    }
}

static void add_hit(struct making *making, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(making->session->debugger, hit);
    const struct picture *picture = making->picture;
    const char *word = condition ? condition->abbr : "expr";
    int box = gd_nearby_find(making->session->graph, &making->wish, &picture->nearby, hit->node);

    if (box < 0) {
        return;
    }
    if (picture->nearby.box[box].kind == GD_NEARBY_SCOPE) {
        making->below[box]++;
        return;
    }
    for (int i = 0; i < making->ports[box]; i++) {
        struct port *port = &making->port[box][i];
        if (port->slot == hit->slot && (making->ports[box] > 1 || making->view->tensors)) {
            add_mark(port->hits, word, hit->error != 0);
            return;
        }
    }
    add_mark(making->hits[box], word, hit->error != 0);
}

static void take_hits(struct making *making)
{
    const struct gd_session *session = making->session;
    size_t first = hits_first_of_stop(session);

    first = session->hit_count - first > MOST_HITS ? session->hit_count - MOST_HITS : first;
    for (size_t i = first; i < session->hit_count; i++) {
        if (session->hits[i].node != GD_NO_NODE && !session->hits[i].is_scalar) {
            add_hit(making, &session->hits[i]);
        }
    }
}

/* ---- places of edges ----------------------------------------------------------------------- */

static int find_port(struct making *making, int box, uint32_t slot)
{
    for (int i = 0; i < making->ports[box]; i++) {
        if (making->port[box][i].slot == slot) {
            return i;
        }
    }
    if (making->ports[box] == MOST_PORTS) {
        making->more_ports[box] = true;
        return MOST_PORTS - 1;
    }
    making->port[box][making->ports[box]].slot = slot;
    return making->ports[box]++;
}

static int by_slot(const void *a, const void *b)
{
    const struct port *x = a, *y = b;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void make_ports(struct making *making)
{
    const struct gd_nearby *nearby = &making->picture->nearby;
    struct gd_node_info info;

    for (int i = 0; i < nearby->edge_count; i++) {
        find_port(making, nearby->edge[i].from, nearby->edge[i].slot);
    }
    if (making->view->tensors &&
        gd_graph_node(making->session->graph, nearby->box[0].node, &info)) {
        for (uint32_t slot = 0; slot < info.output_count && slot <= MOST_PORTS; slot++) {
            find_port(making, 0, slot);
        }
    }
    for (int i = 0; i < nearby->box_count; i++) {
        qsort(making->port[i], (size_t)making->ports[i], sizeof(struct port), by_slot);
    }
}

static void make_edges(struct making *making)
{
    const struct gd_nearby *nearby = &making->picture->nearby;
    struct gd_layers *layers = making->layers;

    layers->box_count = nearby->box_count;
    for (int i = 0; i < nearby->box_count; i++) {
        layers->box[i].outs = making->ports[i];
        layers->box[i].frame = nearby->box[i].kind == GD_NEARBY_SCOPE ? 1 : 0;
    }
    for (int i = 0; i < nearby->edge_count; i++) {
        const struct gd_nearby_edge *edge = &nearby->edge[i];
        layers->edge[layers->edge_count++] = (struct gd_layers_edge){
            .from = edge->from,
            .out = find_port(making, edge->from, edge->slot),
            .to = edge->to,
            .in = layers->box[edge->to].ins++,
        };
    }
}

/* ---- words --------------------------------------------------------------------------------- */

static const char *full_name(const struct making *making, int index)
{
    const struct gd_nearby_box *box = &making->picture->nearby.box[index];
    struct gd_scope_info scope;

    if (box->kind == GD_NEARBY_NODE) {
        return gd_graph_name(making->session->graph, box->node);
    }
    return box->kind == GD_NEARBY_SCOPE &&
                   gd_graph_scope(making->session->graph, box->scope, &scope)
               ? scope.name
               : "";
}

/* The name without the scopes that it shares with the centre. */
static const char *short_name(const struct making *making, int index)
{
    const char *name = full_name(making, index), *center = full_name(making, 0);
    size_t shared = 0;

    for (size_t i = 0; name[i] != '\0' && name[i] == center[i]; i++) {
        shared = name[i] == '/' ? i + 1 : shared;
    }
    if (index == 0) {
        const char *slash = strrchr(name, '/');
        return slash && slash[1] != '\0' ? slash + 1 : name;
    }
    return name + shared;
}

/* The next character as it is drawn; returns its columns, 0: it takes none. */
static int take_glyph(const char **text, bool utf8, uint32_t *ret)
{
    size_t len = gd_utf8_decode(*text, ret);
    int width = len > 1 ? wcwidth((wchar_t)*ret) : 1;

    *text += len > 0 ? len : 1;
    if (len == 0 || gd_utf8_is_unsafe(*ret) || width < 0 || (!utf8 && *ret > 0x7e)) {
        *ret = '?';
        return 1;
    }
    return width;
}

static int width_of(const char *text, bool utf8)
{
    uint32_t code;
    int width = 0;

    while (*text != '\0') {
        width += take_glyph(&text, utf8, &code);
    }
    return width;
}

/* A long name keeps its end, which tells it from the others. */
static void fit_name(const char *name, bool utf8, char *out, size_t size)
{
    const char *more = utf8 ? "\u2026" : "~";
    uint32_t code;

    if (width_of(name, utf8) <= NAME_COLS && strlen(name) < size) {
        snprintf(out, size, "%s", name);
        return;
    }
    while (*name != '\0' && (width_of(name, utf8) >= NAME_COLS || strlen(name) + 4 >= size)) {
        take_glyph(&name, utf8, &code);
    }
    snprintf(out, size, "%s%s", more, name);
}

static void make_words(struct making *making, int index)
{
    const struct gd_nearby_box *box = &making->picture->nearby.box[index];
    struct gd_scope_info scope;
    char fitted[128];

    if (box->kind == GD_NEARBY_MORE) {
        snprintf(making->name[index], sizeof(making->name[0]), "+%u more", box->more);
        return;
    }
    fit_name(short_name(making, index), making->utf8, fitted, sizeof(fitted));
    if (box->kind == GD_NEARBY_SCOPE) {
        uint32_t count =
            gd_graph_scope(making->session->graph, box->scope, &scope) ? scope.total_count : 0;
        snprintf(making->name[index], sizeof(making->name[0]), "%s %s (%u)",
                 making->utf8 ? "\u25b8" : "+", fitted, count);
        if (making->below[index] > 0) {
            snprintf(making->hits[index], MARK_SIZE, "!%u", making->below[index]);
        }
        return;
    }
    snprintf(making->name[index], sizeof(making->name[0]), "%s", fitted);
    for (int i = 0; i < making->ports[index]; i++) {
        struct port *port = &making->port[index][i];
        char slot[16];
        if (making->ports[index] > 1 || making->view->tensors) {
            if (making->more_ports[index] && i == MOST_PORTS - 1) {
                snprintf(slot, sizeof(slot), "...");
            } else {
                gd_graph_slot_name(making->session->graph, box->node, port->slot, slot);
            }
            snprintf(port->text, sizeof(port->text), port->hits[0] != '\0' ? ":%s [%s]" : ":%s",
                     slot, port->hits);
        }
    }
}

/* The name with its hits, and the slots in a column of their own. */
static int words_width(const struct making *making, int index)
{
    int width = width_of(making->name[index], making->utf8), slots = 0;

    width += making->hits[index][0] != '\0' ? 3 + (int)strlen(making->hits[index]) : 0;
    for (int i = 0; i < making->ports[index]; i++) {
        int slot = (int)strlen(making->port[index][i].text);
        slots = slot > slots ? slot : slots;
    }
    return width + (slots > 0 ? slots + 1 : 0);
}

/* ---- drawing ------------------------------------------------------------------------------- */

static int put_code(struct picture *picture, int row, int col, enum picture_style style,
                    uint32_t code)
{
    if (row >= 0 && row < picture->rows && col >= 0 && col < picture->cols) {
        picture->cell[(size_t)row * (size_t)picture->cols + (size_t)col] =
            (struct picture_cell){code, (uint8_t)style};
    }
    return 1;
}

static int put_text(struct making *making, int row, int col, enum picture_style style,
                    const char *text)
{
    int from = col;
    uint32_t code;

    while (*text != '\0') {
        int width = take_glyph(&text, making->utf8, &code);
        if (width > 0) {
            put_code(making->picture, row, col, style, code);
        }
        if (width > 1) {
            put_code(making->picture, row, col + 1, style, 0);
        }
        col += width;
    }
    return col - from;
}

static uint32_t line_code(const struct gd_layers_cell *cell, bool utf8)
{
    static const uint32_t codes[16] = {' ',    0x2502, 0x2500, 0x2514, 0x2502, 0x2502,
                                       0x250c, 0x251c, 0x2500, 0x2518, 0x2500, 0x2534,
                                       0x2510, 0x2524, 0x252c, 0x253c};
    int lines = cell->lines & 15;

    if (cell->arrow != 0) {
        return !utf8 ? (uint32_t)cell->arrow : cell->arrow == '>' ? 0x25b8 : 0x25c2;
    }
    lines = cell->crossing ? GD_LAYERS_N | GD_LAYERS_S : lines;
    if (utf8 || lines == 0) {
        return codes[lines];
    }
    bool across = (lines & (GD_LAYERS_E | GD_LAYERS_W)) != 0;
    bool down = (lines & (GD_LAYERS_N | GD_LAYERS_S)) != 0;
    return across && down ? '+' : across ? '-' : '|';
}

static void draw_lines(struct making *making)
{
    struct picture *picture = making->picture;

    for (int row = 0; row < picture->rows; row++) {
        for (int col = 0; col < picture->cols; col++) {
            const struct gd_layers_cell *cell = gd_layers_at(making->layers, row, col);
            put_code(picture, row, col, cell->back ? PICTURE_BACK : PICTURE_LINE,
                     line_code(cell, making->utf8));
        }
    }
}

static void draw_frame(struct making *making, const struct picture_box *box)
{
    bool utf8 = making->utf8;
    int right = box->col + box->width - 1, bottom = box->row + box->rows - 1;

    for (int col = box->col; col <= right; col++) {
        put_code(making->picture, box->row, col, PICTURE_SCOPE, utf8 ? 0x2500 : '-');
        put_code(making->picture, bottom, col, PICTURE_SCOPE, utf8 ? 0x2500 : '-');
    }
    put_code(making->picture, box->row, box->col, PICTURE_SCOPE, utf8 ? 0x250c : '+');
    put_code(making->picture, box->row, right, PICTURE_SCOPE, utf8 ? 0x2510 : '+');
    put_code(making->picture, bottom, box->col, PICTURE_SCOPE, utf8 ? 0x2514 : '+');
    put_code(making->picture, bottom, right, PICTURE_SCOPE, utf8 ? 0x2518 : '+');
}

static void draw_words(struct making *making, int index, int row)
{
    const struct picture_box *box = &making->picture->box[index];
    const struct gd_nearby_box *of = &making->picture->nearby.box[index];
    bool center = of->kind == GD_NEARBY_NODE && of->node == making->wish.node;
    enum picture_style style = of->kind == GD_NEARBY_SCOPE  ? PICTURE_SCOPE
                               : of->kind == GD_NEARBY_MORE ? PICTURE_DIM
                               : center                     ? PICTURE_CENTER
                                                            : PICTURE_TEXT;
    int col = box->col + 1;

    col += put_text(making, row, col, style, making->name[index]);
    if (making->hits[index][0] != '\0') {
        col += put_text(making, row, col, PICTURE_HIT, " [");
        col += put_text(making, row, col, PICTURE_HIT, making->hits[index]);
        col += put_text(making, row, col, PICTURE_HIT, "]");
    }
    for (int i = 0; i < making->ports[index]; i++) {
        const struct port *port = &making->port[index][i];
        put_text(making, row + i, col + 1, port->hits[0] != '\0' ? PICTURE_HIT : PICTURE_DIM,
                 port->text);
    }
}

/* A box of several rows has sides; that of a scope is closed. */
static void draw_box(struct making *making, int index)
{
    const struct gd_layers_box *at = &making->layers->box[index];
    struct picture_box *box = &making->picture->box[index];

    *box = (struct picture_box){at->row, at->col, at->rows, at->width};
    for (int row = at->row + at->frame; row < at->row + at->rows - at->frame; row++) {
        for (int col = at->col; col < at->col + at->width; col++) {
            bool side = at->rows > 1 && (col == at->col || col == at->col + at->width - 1);
            put_code(making->picture, row, col, at->frame ? PICTURE_SCOPE : PICTURE_LINE,
                     !side          ? ' '
                     : making->utf8 ? 0x2502
                                    : '|');
        }
    }
    if (at->frame) {
        draw_frame(making, box);
    }
    draw_words(making, index, at->row + at->frame);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int draw_picture(struct making *making, struct gd_err *err)
{
    struct picture *picture = making->picture;

    make_ports(making);
    take_hits(making);
    for (int i = 0; i < picture->nearby.box_count; i++) {
        make_words(making, i);
        making->layers->box[i].width = words_width(making, i) + 2;
    }
    make_edges(making);
    int rc = gd_layers_place(making->layers, err);
    if (rc != GD_OK) {
        return rc;
    }
    picture->rows = making->layers->rows;
    picture->cols = making->layers->cols;
    picture->cell = calloc((size_t)picture->rows * (size_t)picture->cols, sizeof(*picture->cell));
    if (!picture->cell) {
        return gd_fail_nomem(err);
    }
    draw_lines(making);
    for (int i = 0; i < picture->nearby.box_count; i++) {
        draw_box(making, i);
    }
    return GD_OK;
}

int picture_make(struct gd_session *session, const struct picture_view *view, bool utf8,
                 struct picture **ret, struct gd_err *err)
{
    struct making *making = calloc(1, sizeof(*making));
    struct picture *picture = calloc(1, sizeof(*picture));
    struct gd_layers *layers = calloc(1, sizeof(*layers));
    int rc = GD_ENOMEM;

    if (making && picture && layers) {
        *making = (struct making){.session = session,
                                  .view = view,
                                  .utf8 = utf8,
                                  .picture = picture,
                                  .layers = layers,
                                  .wish = {.node = view->node,
                                           .scope = view->scope,
                                           .depth = view->tensors ? 1 : view->depth,
                                           .whole = view->tensors,
                                           .choice = choice_of,
                                           .ctx = view}};
        rc = gd_nearby_collect(session->graph, &making->wish, &picture->nearby, err);
        rc = rc == GD_OK ? draw_picture(making, err) : rc;
        gd_layers_deinit(layers);
    } else {
        gd_fail_nomem(err);
    }
    free(layers);
    free(making);
    if (rc != GD_OK) {
        picture_free(picture);
        return rc;
    }
    *ret = picture;
    return GD_OK;
}

void picture_free(struct picture *picture)
{
    if (picture) {
        free(picture->cell);
        free(picture);
    }
}

/* ---- moving -------------------------------------------------------------------------------- */

/* How far a box is from another one, columns first. */
static int distance_between(const struct picture_box *a, const struct picture_box *b)
{
    int rows = abs((2 * a->row + a->rows) - (2 * b->row + b->rows));
    return rows + 1000 * abs(a->col - b->col);
}

static int move_along(const struct picture *picture, int box, int by)
{
    const struct picture_box *from = &picture->box[box];
    int best = box;

    for (int i = 0; i < picture->nearby.edge_count; i++) {
        const struct gd_nearby_edge *edge = &picture->nearby.edge[i];
        int other = edge->from == box ? edge->to : edge->to == box ? edge->from : box;
        const struct picture_box *to = &picture->box[other];
        bool there = by < 0 ? to->col < from->col : to->col > from->col;
        if (there && (best == box ||
                      distance_between(from, to) < distance_between(from, &picture->box[best]))) {
            best = other;
        }
    }
    return best;
}

int picture_move(const struct picture *picture, int box, int by_row, int by_col)
{
    const struct picture_box *from = &picture->box[box];
    int best = box;

    if (by_col != 0) {
        return move_along(picture, box, by_col);
    }
    for (int i = 0; i < picture->nearby.box_count; i++) {
        const struct picture_box *to = &picture->box[i];
        bool there = by_row < 0 ? to->row < from->row : to->row > from->row;
        if (there && to->col == from->col &&
            (best == box || abs(to->row - from->row) < abs(picture->box[best].row - from->row))) {
            best = i;
        }
    }
    return best;
}
