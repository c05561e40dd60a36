// SPDX-License-Identifier: GPL-3.0-or-later
/* A report of times for each test, and its steps. */
#ifndef GD_TESTS_REPORT_FIXTURE_H
#define GD_TESTS_REPORT_FIXTURE_H

#include "../../unit.h"
#include "engine/timing/report.h"

static struct gd_time_report *make_report(void)
{
    struct gd_time_report *report;
    assert_int_equal(gd_time_report_create(&report, NULL), GD_OK);
    return report;
}

static int tear_down(void **state)
{
    gd_time_report_destroy(*state);
    return 0;
}

static void add_step(struct gd_time_report *report, int64_t step, double total, double data)
{
    struct gd_time_step added = gd_time_unknown_step(step);
    added.part[GD_TIME_TOTAL] = total;
    added.part[GD_TIME_DATA] = data;
    gd_time_add_step(report, &added);
}

#endif
