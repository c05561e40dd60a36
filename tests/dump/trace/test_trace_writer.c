// SPDX-License-Identifier: GPL-3.0-or-later
/* A training goes on while its timeline is written. */
#include <stdio.h>
#include <stdlib.h>

#include "../../unit.h"
#include "dump/trace/trace_writer.h"

#define BEFORE 100000 /* steps: several times go_on is called */

static void add_step(struct gd_timeline *timeline, int64_t step)
{
    gd_timeline_add(
        timeline, &(struct gd_timeline_span){.start = step * 1000, .duration = 500, .step = step});
}

/* Adds so many that the older half is dropped, at each call. */
static bool train_on(void *ctx, uint64_t done)
{
    struct gd_timeline *timeline = ctx;

    (void)done;
    for (size_t i = 0; i < GD_TIMELINE_LIVE; i++) {
        add_step(timeline, BEFORE + (int64_t)i);
    }
    gd_timeline_lane(timeline, "a lane that was not there");
    return true;
}

static void what_was_there_is_written(void **state)
{
    static struct gd_session session;
    struct gd_session *const sessions[] = {&session};
    struct trace_written written;
    FILE *file = tmpfile();
    char line[1000];
    int64_t next = 0;

    session.timeline = gd_timeline_create();
    assert_ok(gd_graph_create((size_t)1 << 20, &session.graph, NULL));
    assert_true(file && session.timeline);
    for (int64_t step = 0; step < BEFORE; step++) {
        add_step(session.timeline, step);
    }
    assert_ok(trace_write(file, false, sessions, 1, train_on, session.timeline, &written, NULL));
    assert_int_equal(written.steps, BEFORE);
    assert_int_equal(written.dropped, 0);
    assert_true(session.timeline->dropped > 0);
    rewind(file);
    while (fgets(line, sizeof(line), file)) {
        const char *name = strstr(line, "\"ProfilerStep#");
        if (name) {
            assert_int_equal(strtoll(strchr(name, '#') + 1, NULL, 10), next++);
        }
    }
    assert_int_equal(next, BEFORE);
    fclose(file);
    gd_graph_destroy(session.graph);
    gd_timeline_destroy(session.timeline);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_there_is_written)};

RUN_TESTS()
