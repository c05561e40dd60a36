// SPDX-License-Identifier: MIT
/*
 * Lines at which the program stops. The debugger's set waits here until the program can take it,
 * at a stop or at a boundary of a step (agent_source_lines); the program finds the lines and
 * watches for them itself.
 */
#include "agent/line/agent_line.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_event.h"
#include "agent/agent_stop.h"
#include "agent/agent_turn.h"
#include "agent/agent_words.h"

#define MAX_FRAMES 256 /* of a stack or a list of places */
#define MAX_IDS    1024

static void drop_message(struct agent *a)
{
    if (a->lines.message) {
        gradb__v1__to_trainer__free_unpacked(a->lines.message, NULL);
        a->lines.message = NULL;
    }
}

bool agent_line_set(struct agent *a, agent_to *message)
{
    if (!a->source.lines) {
        return false;
    }
    drop_message(a);
    a->lines.message = message;
    a->lines.clear = false;
    if (a->stopped) {
        pthread_cond_broadcast(&a->go);
    }
    return true;
}

void agent_line_clear(struct agent *a)
{
    drop_message(a);
    a->lines.clear = a->lines.known;
}

void agent_line_free(struct agent *a)
{
    drop_message(a);
}

bool agent_line_is_new(const struct agent *a)
{
    return a->lines.message || a->lines.clear;
}

/* ---- frames -------------------------------------------------------------------------------- */

struct frames {
    Gradb__V1__Frame *frame;
    Gradb__V1__Frame **list;
    size_t count;
};

static bool fill_frames(const gradb_frame *from, size_t count, struct frames *ret)
{
    count = count < MAX_FRAMES ? count : MAX_FRAMES;
    *ret = (struct frames){.frame = calloc(count + 1, sizeof(*ret->frame)),
                           .list = calloc(count + 1, sizeof(Gradb__V1__Frame *)),
                           .count = count};
    for (size_t i = 0; ret->frame && ret->list && i < count; i++) {
        gradb__v1__frame__init(&ret->frame[i]);
        ret->frame[i].file = (char *)(from[i].file ? from[i].file : "");
        ret->frame[i].line = from[i].line > 0 ? (uint32_t)from[i].line : 0;
        ret->frame[i].function = (char *)(from[i].function ? from[i].function : "");
        ret->frame[i].library = from[i].library;
        ret->list[i] = &ret->frame[i];
    }
    return ret->frame && ret->list;
}

static void free_frames(struct frames *frames)
{
    free(frames->frame);
    free(frames->list);
}

bool agent_line_fill(const struct agent *a, Gradb__V1__LineStop *m)
{
    const struct agent_line_stop *stop = a->lines.stop;
    struct frames frames = {NULL, NULL, 0};
    size_t ids = stop && stop->id_count < MAX_IDS ? stop->id_count : MAX_IDS;

    gradb__v1__line_stop__init(m);
    m->ids = stop ? calloc(ids + 1, sizeof(*m->ids)) : NULL;
    if (!m->ids || !fill_frames(stop->frames, stop->frame_count, &frames)) {
        free(m->ids);
        free_frames(&frames);
        return false;
    }
    for (size_t i = 0; i < ids; i++) {
        m->ids[i] = stop->ids[i];
    }
    m->n_ids = ids;
    m->frames = frames.list; /* the frames themselves begin where list[0] points */
    m->n_frames = frames.count;
    if (frames.count == 0) {
        free_frames(&frames);
        m->frames = NULL;
    }
    return true;
}

void agent_line_unfill(Gradb__V1__LineStop *m)
{
    free(m->ids);
    if (m->n_frames > 0) {
        free(m->frames[0]);
        free(m->frames);
    }
}

/* ---- from the program ---------------------------------------------------------------------- */

void gradb_line_found(gradb *g, unsigned id, const gradb_frame *places, size_t count,
                      const char *why)
{
    struct agent *a = agent_of(g);
    struct frames frames = {NULL, NULL, 0};
    char text[GRADB_WHY] = "";

    if (!a || !PEEK(a->connected) || !agent_usable(a)) {
        return;
    }
    strncat(text, why ? why : "", sizeof(text) - 1);
    if (fill_frames(places, places ? count : 0, &frames)) {
        Gradb__V1__LinePlaces m = GRADB__V1__LINE_PLACES__INIT;
        m.id = id;
        m.places = frames.list;
        m.n_places = frames.count;
        m.why = text;
        agent_words_queue(a, &m.base);
        agent_wake(a);
    }
    free_frames(&frames);
}

void gradb_line_reached(gradb *g, const unsigned *ids, size_t id_count, const gradb_frame *frames,
                        size_t frame_count)
{
    struct agent *a = agent_of(g);
    struct agent_line_stop stop = {ids, id_count, frames, frame_count};

    if (!a || !PEEK(a->connected) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    if (a->link == LINK_UP && !agent_line_is_new(a)) {
        bool between = agent_event_is_between(a);
        a->lines.stop = &stop;
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_LINE, between ? 0 : PEEK(a->last_node),
                          between, "", 0);
        a->lines.stop = NULL;
    }
    agent_turn_end(a);
}
