// SPDX-License-Identifier: GPL-3.0-or-later
/* Lines of source at which the training process stops. */
#include <stdlib.h>

#include "proto/v1/v1_impl.h"

#define MAX_FRAMES 256

int v1_line_breaks(struct gd_target *base, const struct gd_line_wish *wishes, size_t count,
                   struct gd_err *err)
{
    Gradb__V1__LineBreaks m = GRADB__V1__LINE_BREAKS__INIT;
    Gradb__V1__LineBreak *line = calloc(count + 1, sizeof(*line));
    Gradb__V1__LineBreak **lines = calloc(count + 1, sizeof(Gradb__V1__LineBreak *));
    int rc = line && lines ? GD_OK : gd_fail_nomem(err);

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        gradb__v1__line_break__init(&line[i]);
        line[i].id = (uint32_t)wishes[i].number;
        line[i].file = (char *)wishes[i].file;
        line[i].line = wishes[i].line;
        line[i].function = (char *)wishes[i].function;
        lines[i] = &line[i];
    }
    m.lines = lines;
    m.n_lines = count;
    rc = rc != GD_OK ? rc : v1_target_send((struct v1_target *)base, &m.base, err);
    free(lines);
    free(line);
    return rc;
}

/* The strings stay those of the message. Returns how many were taken. */
static size_t take_frames(Gradb__V1__Frame *const *from, size_t count, struct gd_frame *to)
{
    count = count < MAX_FRAMES ? count : MAX_FRAMES;
    for (size_t i = 0; i < count; i++) {
        to[i] = (struct gd_frame){.file = from[i]->file,
                                  .function = from[i]->function,
                                  .code = "",
                                  .line = from[i]->line,
                                  .library = from[i]->library};
    }
    return count;
}

void v1_line_places(struct v1_target *t, const Gradb__V1__LinePlaces *m)
{
    struct gd_frame place[MAX_FRAMES];
    size_t count = take_frames(m->places, m->n_places, place);

    if (m->id <= INT32_MAX) {
        gd_session_on_line_place(t->base.session, (int)m->id, place, count, m->why);
    }
}

void v1_line_stopped(struct v1_target *t, const Gradb__V1__LineStop *m)
{
    struct gd_frame frame[MAX_FRAMES];
    size_t count = take_frames(m->frames, m->n_frames, frame);

    gd_session_on_line(t->base.session, m->ids, m->n_ids, frame, count);
}
