// SPDX-License-Identifier: GPL-3.0-or-later
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include "../unit.h"
#include "proto/populate.h"

#define MIB   ((size_t)1 << 20)
#define PAGE  ((size_t)4096)
#define BYTES (GD_POPULATE_AHEAD + 32 * MIB) /* more than the helper may go ahead */

static unsigned char *map_pages(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(data, MAP_FAILED);
    return data;
}

/* How many of the pages are there. */
static size_t count_resident(unsigned char *data, size_t bytes)
{
    size_t pages = bytes / PAGE, count = 0;
    unsigned char *there = malloc(pages);

    assert_non_null(there);
    assert_int_equal(mincore(data, bytes, there), 0);
    for (size_t i = 0; i < pages; i++) {
        count += there[i] & 1;
    }
    free(there);
    return count * PAGE;
}

/* Whether the system can do it at all; where it cannot, the helper may do nothing. */
static bool can_populate(void)
{
    unsigned char *data = map_pages(PAGE);
    bool can = madvise(data, PAGE, 23) == 0;

    munmap(data, PAGE);
    return can;
}

static bool wait_for_page(unsigned char *page)
{
    struct timespec start, now;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        unsigned char there = 0;
        assert_int_equal(mincore(page, PAGE, &there), 0);
        if (there & 1) {
            return true;
        }
        sched_yield(); /* only the system knows, and it tells nobody */
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 60);
    return false;
}

static void supplies_pages_ahead_of_the_bytes(void **state)
{
    if (!can_populate()) {
        skip();
    }
    unsigned char *data = map_pages(BYTES);
    struct gd_populate *populate = gd_populate_start(data, BYTES);
    assert_non_null(populate);
    assert_true(wait_for_page(data + GD_POPULATE_AHEAD - PAGE));
    gd_populate_arrived(populate, BYTES / 2);
    assert_true(wait_for_page(data + BYTES - PAGE));
    for (size_t i = 0; i < BYTES; i += PAGE) {
        assert_int_equal(data[i], 0); /* nothing was written */
    }
    gd_populate_stop(populate);
    munmap(data, BYTES);
}

static void goes_no_further_than_it_may(void **state)
{
    /* The same size again behind it, which is not the helper's. */
    unsigned char *data = map_pages(2 * BYTES);
    struct gd_populate *populate = gd_populate_start(data, BYTES);
    if (can_populate()) {
        assert_true(wait_for_page(data + GD_POPULATE_AHEAD - PAGE));
    }
    gd_populate_stop(populate);
    assert_true(count_resident(data, 2 * BYTES) <= GD_POPULATE_AHEAD);
    populate = gd_populate_start(data, BYTES - 100);
    gd_populate_arrived(populate, BYTES - GD_POPULATE_AHEAD);
    if (can_populate()) {
        assert_true(wait_for_page(data + BYTES - 2 * PAGE));
    }
    gd_populate_arrived(populate, BYTES - 100); /* all is there: nothing is left to do */
    gd_populate_stop(populate);
    assert_int_equal(count_resident(data + BYTES, BYTES), 0);
    munmap(data, 2 * BYTES);
}

static void does_not_change_what_is_there(void **state)
{
    unsigned char *data = map_pages(BYTES);
    struct gd_populate *populate = gd_populate_start(data, BYTES);

    for (size_t at = 0; at < BYTES; at += MIB) { /* both at work on the same pages */
        memset(data + at, (int)(at / MIB), MIB);
        gd_populate_arrived(populate, at + MIB);
    }
    gd_populate_stop(populate);
    for (size_t at = 0; at < BYTES; at++) {
        if (data[at] != (unsigned char)(at / MIB)) {
            fail_msg("byte %zu changed", at);
        }
    }
    munmap(data, BYTES);
}

static void stops_in_the_middle(void **state)
{
    for (int i = 0; i < 20; i++) {
        unsigned char *data = map_pages(BYTES);
        struct gd_populate *populate = gd_populate_start(data, BYTES);
        if (i % 2) {
            gd_populate_arrived(populate, (size_t)i * MIB);
        }
        gd_populate_stop(populate);
        munmap(data, BYTES);
        unsigned char *other = map_pages(BYTES); /* most likely at the same address */
        assert_int_equal(count_resident(other, BYTES), 0);
        munmap(other, BYTES);
    }
}

static void leaves_little_alone(void **state)
{
    unsigned char *data = map_pages(GD_POPULATE_MIN);
    assert_null(gd_populate_start(NULL, 0));
    assert_null(gd_populate_start(data, GD_POPULATE_MIN - 1));
    assert_int_equal(count_resident(data, GD_POPULATE_MIN), 0);
    gd_populate_arrived(NULL, 5);
    gd_populate_stop(NULL);
    munmap(data, GD_POPULATE_MIN);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(supplies_pages_ahead_of_the_bytes),
    cmocka_unit_test(goes_no_further_than_it_may),
    cmocka_unit_test(does_not_change_what_is_there),
    cmocka_unit_test(stops_in_the_middle),
    cmocka_unit_test(leaves_little_alone),
};

RUN_TESTS()
