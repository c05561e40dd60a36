// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a training process says about its times, a line at a time: whatever it is, lists keep their
 * limits and texts end, and advice can be given.
 */
#include "engine/timing/advice.h"
#include "engine/timing/facts.h"
#include "fuzz.h"

#define STEPS 12

static bool text_ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static void check_facts(const struct gd_time_facts *facts)
{
    FUZZ_CHECK(text_ends(facts->framework, sizeof(facts->framework)));
    FUZZ_CHECK(text_ends(facts->loader.place, sizeof(facts->loader.place)));
    FUZZ_CHECK(facts->wait_count >= 0 && facts->wait_count <= GD_TIME_WAITS);
    FUZZ_CHECK(facts->bucket_count >= 0 && facts->bucket_count <= GD_TIME_BUCKETS);
    FUZZ_CHECK(facts->gradient_count >= 0 && facts->gradient_count <= GD_TIME_GRADIENTS);
    for (int i = 0; i < facts->wait_count; i++) {
        FUZZ_CHECK(facts->wait[i].calls > 0 && facts->wait[i].steps > 0);
        FUZZ_CHECK(text_ends(facts->wait[i].place, sizeof(facts->wait[i].place)));
    }
    for (int i = 1; i < facts->gradient_count; i++) {
        FUZZ_CHECK(facts->gradient[i].ready >= facts->gradient[i - 1].ready);
    }
}

static void check_advice(const struct gd_time_report *report)
{
    struct gd_advice advice[GD_MAX_ADVICE];
    int count = gd_time_advice(report, advice);

    FUZZ_CHECK(count >= 0 && count <= GD_MAX_ADVICE);
    for (int i = 0; i < count; i++) {
        FUZZ_CHECK(advice[i].text[0] && text_ends(advice[i].text, sizeof(advice[i].text)));
        FUZZ_CHECK(text_ends(advice[i].place, sizeof(advice[i].place)));
    }
}

/* Steps of a second, of which the input's first byte says how much was spent where. */
static void add_steps(struct gd_time_report *report, uint8_t first)
{
    for (int64_t i = 1; i <= STEPS; i++) {
        struct gd_time_step step = gd_time_unknown_step(i);
        for (int part = 0; part < GD_TIMES; part++) {
            step.part[part] = (double)((first + part * 37) % 100) / 100;
        }
        step.tail = step.communication = step.exposed = (double)(first % 10) / 20;
        gd_time_add_step(report, &step);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct gd_time_report *report = NULL;

    FUZZ_CHECK(gd_time_report_create(&report, NULL) == GD_OK);
    add_steps(report, size > 0 ? data[0] : 0);
    for (char *at = size > 0 ? text + 1 : text, *next; at; at = next) {
        next = strchr(at, '\n');
        if (next) {
            *next++ = '\0';
        }
        gd_time_read_facts(report, at);
        check_facts(&report->facts);
    }
    check_advice(report);
    gd_time_report_destroy(report);
    free(text);
    return 0;
}
