// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/panes/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define PART      20000 /* nodes counted per call */
#define MAX_LINES 200000
#define MAX_BYTES ((size_t)256 << 20)
#define MAX_CODE  400

static uint32_t hash_line(const char *file, uint32_t line)
{
    uint32_t value = 2166136261U ^ line * 2654435761U;

    for (; *file != '\0'; file++) {
        value = (value ^ (unsigned char)*file) * 16777619U;
    }
    return value;
}

/* The entry of the line, or the free one where it belongs. */
static uint32_t *slot_of(const struct tui_lines *lines, const char *file, uint32_t line)
{
    uint32_t at = hash_line(file, line) & (lines->slots - 1);

    while (lines->slot[at] != 0) {
        const struct tui_line *other = &lines->line[lines->slot[at] - 1];
        if (other->line == line && strcmp(other->file, file) == 0) {
            break;
        }
        at = (at + 1) & (lines->slots - 1);
    }
    return &lines->slot[at];
}

static void fill_slots(struct tui_lines *lines)
{
    for (uint32_t i = 0; i < lines->count; i++) {
        *slot_of(lines, lines->line[i].file, lines->line[i].line) = i + 1;
    }
}

static bool make_slots(struct tui_lines *lines, uint32_t slots)
{
    uint32_t *fresh = calloc(slots, sizeof(*fresh));

    if (!fresh) {
        return false;
    }
    free(lines->slot);
    lines->slot = fresh;
    lines->slots = slots;
    fill_slots(lines);
    return true;
}

static bool reserve_slots(struct tui_lines *lines)
{
    struct tui_line *more = gd_grow(lines->line, lines->count, &lines->capacity, sizeof(*more));

    if (!more) {
        return false;
    }
    lines->line = more;
    return 2 * (lines->count + 1) <= lines->slots ||
           make_slots(lines, lines->slots > 0 ? lines->slots * 2 : 512);
}

static void count_frame(struct tui_lines *lines, const struct gd_frame *frame)
{
    if (lines->count >= MAX_LINES || !reserve_slots(lines)) {
        return;
    }
    uint32_t *slot = slot_of(lines, frame->file, frame->line);
    if (*slot == 0) {
        struct tui_line *line = &lines->line[lines->count];
        line->file = gd_arena_strdup(&lines->arena, frame->file);
        line->code = gd_arena_strndup(&lines->arena, frame->code, strnlen(frame->code, MAX_CODE));
        line->line = frame->line;
        line->nodes = 0;
        if (!line->file || !line->code) {
            return;
        }
        *slot = ++lines->count;
    }
    lines->line[*slot - 1].nodes++;
}

static bool has_place(const struct gd_frame *frame)
{
    return !frame->is_title && frame->file[0] != '\0' && frame->line > 0;
}

/* Counts each line of the node's stack once. */
static void count_node(struct tui_lines *lines, struct gd_graph *graph, gd_node_id node)
{
    uint32_t count = 0;
    const struct gd_frame *frame = gd_graph_stack(graph, node, &count);

    for (uint32_t i = 0; i < count; i++) {
        bool seen = !has_place(&frame[i]);
        for (uint32_t k = 0; k < i && !seen; k++) {
            seen = has_place(&frame[k]) && frame[k].line == frame[i].line &&
                   strcmp(frame[k].file, frame[i].file) == 0;
        }
        if (!seen) {
            count_frame(lines, &frame[i]);
        }
    }
}

static int by_place(const void *a, const void *b)
{
    const struct tui_line *x = a;
    const struct tui_line *y = b;
    int order = strcmp(x->file, y->file);

    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

void tui_lines_init(struct tui_lines *lines)
{
    *lines = (struct tui_lines){.done = true};
    gd_arena_init(&lines->arena, MAX_BYTES);
}

void tui_lines_free(struct tui_lines *lines)
{
    free(lines->line);
    free(lines->slot);
    gd_arena_deinit(&lines->arena);
}

static void begin_lines(struct tui_lines *lines, const struct gd_session *session)
{
    tui_lines_free(lines);
    tui_lines_init(lines);
    lines->session = session;
    lines->generation = session ? session->graph_generation : 0;
    lines->done = !session || !session->graph;
}

bool tui_lines_follow(struct tui_lines *lines, struct gd_session *session)
{
    if (session != lines->session || (session && session->graph_generation != lines->generation)) {
        begin_lines(lines, session);
    }
    if (lines->done) {
        return false;
    }
    gd_node_id limit = gd_graph_node_limit(session->graph);
    gd_node_id end = limit > lines->next && limit - lines->next > PART ? lines->next + PART : limit;
    for (; lines->next < end; lines->next++) {
        count_node(lines, session->graph, lines->next);
    }
    if (lines->next < limit) {
        return true;
    }
    lines->done = true;
    if (lines->count > 0) {
        qsort(lines->line, lines->count, sizeof(*lines->line), by_place);
        memset(lines->slot, 0, lines->slots * sizeof(*lines->slot));
        fill_slots(lines);
    }
    return false;
}

const struct tui_line *tui_lines_find(const struct tui_lines *lines, const char *file,
                                      uint32_t line)
{
    uint32_t index = lines->slots > 0 ? *slot_of(lines, file, line) : 0;
    return index > 0 ? &lines->line[index - 1] : NULL;
}
