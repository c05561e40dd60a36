// SPDX-License-Identifier: GPL-3.0-or-later
/* info history on recorded values. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "../../unit.h"
#include "engine/history/history.h"
#include "engine/watch/watch_report.h"
#include "repl/net.h"
#include "scratch.h"

static char folder[SCRATCH_PATH];

static int make_folder(void **state)
{
    return scratch_folder(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/file", folder);
    unlink(path);
    return rmdir(folder);
}

static int set_up(void **state, bool json)
{
    net_setup(state, &(struct repl_options){.batch = true, .json = json, .utf8 = !json});
    struct gd_settings *settings = &((struct net *)*state)->fake.debugger->settings;
    snprintf(settings->history_file, sizeof(settings->history_file), "%s/file", folder);
    settings->history_bytes = 64 << 10;
    return 0;
}

static int setup_text(void **state)
{
    return set_up(state, false);
}

static int setup_json(void **state)
{
    return set_up(state, true);
}

/* The value of a node at a step: min -x, max x, and so many NaN. */
static void record_value(struct net *net, const char *name, int64_t step, double x, uint64_t nan)
{
    const struct gd_shape shape = {.rank = 1, .dim = {4}};
    struct gd_stats stats = {.count = 4,
                             .nan = nan,
                             .zero = 1,
                             .positive = 2,
                             .negative = 1 - (nan > 0),
                             .min = -x,
                             .max = x,
                             .mean = x / 4,
                             .abs_mean = x / 2,
                             .sum_sq = 4 * x * x};
    struct gd_watch_value value = {.dtype = GD_FLOAT32, .shape = &shape, .stats = &stats};

    assert_int_equal(gd_graph_find(net->fake.graph, name, &value.node, NULL), GD_OK);
    gd_session_history_add(net->fake.session, &value, step);
}

static void nothing_recorded_is_told(void **state)
{
    struct net *net = *state;

    net_expect_rc(net, "info history", GD_ENODATA,
                  "error: the history is empty: it records what a watchpoint or `trace` covers\n");
    net->fake.debugger->settings.history_bytes = 0;
    net_expect_rc(net, "info history net/big", GD_ENODATA,
                  "error: no history is recorded: set a size with `set history-bytes`\n");
}

static void a_tensor_by_step(void **state)
{
    struct net *net = *state;

    for (int64_t step = 1; step <= 9; step++) {
        record_value(net, "net/fc1.weight", step, (double)step, 0);
    }
    net_expect(net, "info history fc1.weight max norm -n 2",
               "net/fc1.weight:0: 9 steps recorded, the last 2\n"
               "Step  max  norm\n"
               "   8    8    16\n"
               "   9    9    18\n"
               "max   ▁▂▃▄▅▆▇██  1 to 9\n"
               "norm  ▁▂▃▄▅▆▇██  2 to 18\n");
    net_expect_part(net, "info history fc1.weight",
                    "Step  abs_mean  max  min  nonfinite  zero_percentage\n"
                    "   1       0.5    1   -1          0               25\n");
    net_expect_part(net, "info history", "fc1.weight:0\n");
    net_expect_part(net, "info history", "1 tensor of 15, steps 1 to 9; room for 244 steps each");
    net_expect_part(net, "info history fc1.weight 'abs_mean(cur-prev)'", "  -\n");
}

static void the_first_step_with_nan(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1, 0);
    record_value(net, "net/fc1.weight", 2, 2, 0);
    record_value(net, "net/fc1.weight", 3, 3, 1);
    net_expect(net, "info history fc1.weight max nan",
               "net/fc1.weight:0: 3 steps recorded\n"
               "Step  max  nan\n"
               "   1    1    0\n"
               "   2    2    0\n"
               "   3  nan    1\n"
               "max  ▁█×  1 to 2\n"
               "nan  ▁▁█  0 to 1\n"
               "Not finite since step 3 (1 step of 3).\n");
    record_value(net, "net/fc1.weight", 4, 1, 0);
    net_expect_part(net, "info history fc1.weight max",
                    "Not finite first at step 3 (1 step of 4).");
}

static void numbers_of_the_training(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1, 0);
    gd_session_on_scalar(net->fake.session, "loss/train", 2.5, 1);
    gd_session_on_scalar(net->fake.session, "loss/train", INFINITY, 2);
    net_expect(net, "info history loss/train",
               "loss/train: 2 steps recorded\n"
               "Step  value\n"
               "   1    2.5\n"
               "   2    inf\n"
               "value  ▄×  2.5\n"
               "Not finite since step 2 (1 step of 2).\n");
}

static void wrong_questions_are_told(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1, 0);
    net_expect_part(net, "info history nothing", "error: ");
    net_expect_part(net, "info history net/big", "error: net/big:0 is not in the history");
    net_expect_part(net, "info history fc1.weight[0]", "slices and $N");
    net_expect_part(net, "info history fc1.weight luck",
                    "\"luck\" is not a statistic of the history");
    net_expect_part(net, "info history fc1.weight -n 0", "error: ");
    net_expect_part(net, "info history -q", "error: ");
    net_expect_rc(net, "open", GD_EUSAGE,
                  "error: open: specify a file or directory (usage: open PATH... [--format NAME] "
                  "[--key NAME] [--dtype NAME] [--partial])\n");
    net_expect_rc(net, "open x", GD_EUNSUPPORTED, "error: this gradb cannot open files\n");
}

static void history_as_json(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1.1, 0);
    record_value(net, "net/fc1.weight", 2, 3, 2);
    net_expect_part(net, "info history fc1.weight max",
                    "\"kept\":2,\"seen\":2,\"first_nonfinite_step\":2,\"history\":[{\"step\":1,"
                    "\"max\":1.1");
    net_expect_part(net, "info history fc1.weight max", "{\"step\":2,\"max\":\"nan\"}]");
    net_expect_part(net, "info history fc1.weight update_ratio", "\"update_ratio\":null");
    net_expect_part(net, "info history",
                    "\"tensors\":1,\"histograms\":0,\"capacity\":15,\"left_out\":0");
}

#define TEXT(name) cmocka_unit_test_setup_teardown(name, setup_text, net_teardown)
#define JSON(name) cmocka_unit_test_setup_teardown(name, setup_json, net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEXT(nothing_recorded_is_told), TEXT(a_tensor_by_step),
        TEXT(the_first_step_with_nan),  TEXT(numbers_of_the_training),
        TEXT(wrong_questions_are_told), JSON(history_as_json),
    };

    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
