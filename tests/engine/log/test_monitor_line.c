// SPDX-License-Identifier: GPL-3.0-or-later
/* The lines of LossMonitor and TimeMonitor, and steps counted through epochs. */
#include <math.h>

#include "../../unit.h"
#include "engine/log/log_level.h"
#include "engine/log/monitor_line.h"

static void test_lines(void **unused)
{
    struct gd_monitor_line line;

    (void)unused;
    assert_true(gd_monitor_parse("epoch: 1 step: 12, loss is 2.5", &line));
    assert_true(line.epoch == 1 && line.step == 12 && line.loss == 2.5);
    assert_true(gd_monitor_parse("epoch: 3 step 4, loss is nan", &line));
    assert_true(line.step == 4 && isnan(line.loss));
    assert_true(gd_monitor_parse("Train epoch time: 300.5 ms, per step time: 100.25 ms", &line));
    assert_true(line.step == -1 && line.step_ms == 100.25 && line.epoch_ms == 300.5);
    assert_true(
        gd_monitor_parse("Epoch time: 30.0 ms, per step time: 10.0 ms, avg loss: 2.1", &line));
    assert_false(gd_monitor_parse("epoch: 1 step: 0, loss is 2", &line));
    assert_false(gd_monitor_parse("epoch: 1 step: 1, loss is big", &line));
    assert_false(gd_monitor_parse("epoch: 1 step: 1, loss is 2.5x", &line));
    assert_false(gd_monitor_parse("epoch: x step: 1, loss is 2", &line));
    assert_false(gd_monitor_parse("epoch time: nan ms, per step time: 1 ms", &line));
    assert_false(gd_monitor_parse("", &line));
}

static int64_t step_of(struct gd_monitor *monitor, const char *text)
{
    struct gd_monitor_line line;

    assert_true(gd_monitor_parse(text, &line));
    return gd_monitor_step(monitor, &line);
}

static void test_steps(void **unused)
{
    struct gd_monitor monitor = {.epoch = 0};

    (void)unused;
    assert_int_equal(step_of(&monitor, "epoch: 1 step: 100, loss is 1"), 100);
    /* the epoch has more steps than were printed */
    assert_int_equal(step_of(&monitor, "epoch time: 1250 ms, per step time: 10 ms"), 100);
    assert_int_equal(step_of(&monitor, "epoch: 2 step: 100, loss is 1"), 225);
    assert_int_equal(step_of(&monitor, "epoch: 3 step: 1, loss is 1"), 251);
    assert_int_equal(step_of(&monitor, "epoch: 1 step: 1, loss is 1"), 376); /* another run */
}

static void test_levels(void **unused)
{
    struct gd_log_levels levels = {.all = GD_LOG_UNSET};
    struct gd_buf all = GD_BUF_INIT(100), modules = GD_BUF_INIT(1000);
    struct gd_err err;

    (void)unused;
    assert_int_equal(gd_log_levels_parse("info PARSER:debug", &levels, &err), GD_OK);
    assert_int_equal(gd_log_levels_parse("DEBUG 2", &levels, &err), GD_OK);
    assert_int_equal(gd_log_levels_parse("VM:1 NOTHING:2", &levels, &err), GD_EINVAL);
    gd_log_levels_variables(&levels, &all, &modules);
    assert_string_equal(gd_buf_text(&all), "1");
    assert_string_equal(gd_buf_text(&modules), "{DEBUG:2,PARSER:0}");
    gd_buf_deinit(&all);
    gd_buf_deinit(&modules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
