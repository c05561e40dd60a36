// SPDX-License-Identifier: GPL-3.0-or-later
/* print, x, whatis, stats, tensors, find, save, display on values in memory. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../unit.h"
#include "engine/progress.h"
#include "repl/net.h"
#include "scratch.h"

/* ---- print --------------------------------------------------------------------------------- */

static void print_shows_summary_and_values(void **state)
{
    net_expect(*state, "print net/fc1/MatMul-op1",
               "$1 = net/fc1/MatMul-op1:0\n"
               "float32 (2, 3) n=6 24 B min=1 max=6 mean=3.5 std=1.708 |#  #  #  #  #  #|\n"
               "[[1. 2. 3.]\n"
               " [4. 5. 6.]]\n");
}

static void print_never_hides_nan_and_inf(void **state)
{
    net_expect_part(*state, "print net/fc1.weight", "NaN!1 +Inf!1");
    net_expect_part(*state, "print net/fc1.weight -s", "NaN!1 +Inf!1");
    net_expect_part(*state, "print net/fc1.weight", "[[ 1.  -2.5  nan]\n [ inf  0.   4. ]]\n");
}

static void print_without_argument_takes_the_current_node(void **state)
{
    net_expect_part(*state, "print", "$1 = net/fc1/MatMul-op1:0\n");
    net_expect_part(*state, "print .[0]", "$2 = net/fc1/MatMul-op1:0[0]\n");
}

static void print_of_a_slice_fetches_the_slice_alone(void **state)
{
    struct net *net = *state;
    net_expect_part(net, "print net/big[1:3, -2:]", "[[58. 59.]\n [88. 89.]]\n");
    assert_int_equal(net->fake.fetches, 1);
    assert_int_equal(net->fake.slice.count, 2);
    net_expect_part(net, "print net/big [0, 0]", "$2 = net/big:0[0, 0]\nfloat32 ()\n0.0\n");
}

static void print_abbreviates_unless_all_are_asked_for(void **state)
{
    struct net *net = *state;
    net_expect_part(net, "print net/big", " ...\n");
    fake_run(&net->fake, "print -a net/big", NULL);
    assert_null(strstr(gd_buf_text(&net->fake.out), "..."));
    assert_non_null(strstr(gd_buf_text(&net->fake.out), "1.499e+03"));
}

static void print_formats(void **state)
{
    net_expect_part(*state, "print/x net/fc1/MatMul-op1[0, :2]", "0x3f800000 0x40000000");
    net_expect_part(*state, "print/e net/fc1/MatMul-op1[0, :2]", "e+00");
    net_expect_rc(*state, "print/q net/big", GD_EUSAGE,
                  "error: unknown format 'q': f (fixed), e (scientific), x (hexadecimal), d "
                  "(integer) or a (all values) (usage: print[/f|e|x|d|a] [-a] [-s] "
                  "[NODE[:SLOT][SLICE]|SELECTOR|EXPR|$N ...] "
                  "[prev|diff])\n");
}

static void print_of_scalars_and_empty_tensors(void **state)
{
    net_expect(*state, "print loss/Mean-op9", "$1 = loss/Mean-op9:0\nfloat64 ()\n2.25\n");
    net_expect(*state, "print loss/Mean-op9 -s", "loss/Mean-op9:0\nfloat64 () 2.25\n");
    net_expect_part(*state, "print net/empty", "float32 (0, 4)");
    net_expect_part(*state, "print net/empty", "\n[]\n");
}

/* A node with several outputs: a line each, and the reason where one has no value. */
static void print_shows_every_slot(void **state)
{
    struct net *net = *state;
    static const struct gd_shape pair = {.rank = 1, .dim = {2}};
    const float values[] = {1, 2};
    const struct gd_output outputs[] = {{GD_FLOAT32, pair}, {GD_FLOAT32, pair}};
    struct gd_node_desc desc = {.name = "net/Split-op5",
                                .type = "Split",
                                .outputs = outputs,
                                .output_count = 2,
                                .order = GD_NO_ORDER};
    gd_node_id split;
    assert_int_equal(gd_graph_add(net->fake.graph, &desc, &split, NULL), GD_OK);
    fake_graph_done(&net->fake);
    fake_set(&net->fake, split, 1, GD_CURRENT, GD_FLOAT32, &pair, values);
    net_expect(net, "print Split-op5",
               "net/Split-op5:0\n"
               "  no value: net/Split-op5 has not been computed in this step\n"
               "net/Split-op5:1\n"
               "  float32 (2,) n=2 8 B min=1 max=2 mean=1.5 std=0.5\n");
    net_expect_part(net, "print Split-op5:1", "$1 = net/Split-op5:1\n");
    net_expect(net, "whatis Split-op5",
               ":0 type = float32 (2,), 2 elements, 8 B\n"
               ":1 type = float32 (2,), 2 elements, 8 B\n");
    net_expect_part(net, "print Split-op5:2", "error: ");
    net_expect_part(net, "whatis Split-op5:2", "error: net/Split-op5 has no output 2\n");
}

/* A tensor of 4 GB is not fetched for a look: statistics come from where it lives. */
static void print_of_a_huge_tensor_fetches_nothing(void **state)
{
    struct net *net = *state;
    static const struct gd_shape huge = {.rank = 2, .dim = {100000, 10000}};
    static const struct gd_shape small = {.rank = 1, .dim = {4}};
    const float values[] = {1, 2, 3, 4};
    gd_node_id node =
        fake_node(&net->fake, "net/huge", "Parameter", GD_FLOAT32, &huge, NULL, 0, NULL);
    fake_graph_done(&net->fake);
    fake_set(&net->fake, node, 0, GD_CURRENT, GD_FLOAT32, &small, values);
    net_expect_part(net, "print net/huge", "(too many values to show:");
    assert_int_equal(net->fake.fetches, 0);
    assert_int_equal(net->fake.stats, 1);
    net_expect_part(net, "print net/huge[:2]", "[1. 2.]\n");
    net_expect_part(net, "print -a net/huge", "[1. 2. 3. 4.]\n");
}

/* What a trainer declares need not be possible, and need not be what it sends. */
static void absurd_shapes_are_survived(void **state)
{
    struct net *net = *state;
    static const struct gd_shape absurd = {.rank = 3, .dim = {INT64_MAX, INT64_MAX, 2}};
    static const struct gd_shape open = {.rank = 2, .dim = {-1, 3}};
    static const struct gd_shape small = {.rank = 1, .dim = {4}};
    const float values[] = {1, 2, 3, 4};
    gd_node_id node =
        fake_node(&net->fake, "net/absurd", "Parameter", GD_FLOAT32, &absurd, NULL, 0, NULL);
    static const struct gd_shape hollow = {.rank = 3, .dim = {0, INT64_MAX, INT64_MAX}};
    fake_node(&net->fake, "net/hollow", "Parameter", GD_FLOAT32, &hollow, NULL, 0, NULL);
    gd_node_id unknown =
        fake_node(&net->fake, "net/open", "Parameter", GD_FLOAT32, &open, NULL, 0, NULL);
    fake_graph_done(&net->fake);
    fake_set(&net->fake, node, 0, GD_CURRENT, GD_FLOAT32, &small, values);
    fake_set(&net->fake, unknown, 0, GD_CURRENT, GD_FLOAT32, &small, values);
    net_expect(net, "whatis net/absurd",
               "type = float32 (9223372036854775807, 9223372036854775807, 2)\n");
    net_expect(net, "whatis net/open", "type = float32 (?, 3)\n");
    net_expect_part(net, "whatis net/open[0]", "error: ");
    net_expect_part(net, "print net/absurd", "[1. 2. 3. 4.]\n");
    net_expect_part(net, "print net/open", "[1. 2. 3. 4.]\n");
    fake_run(&net->fake, "x/2 net/absurd[1]", NULL);
    fake_run(&net->fake, "whatis net/hollow[:, 1:2]", NULL);
    fake_run(&net->fake, "x/2 net/hollow", NULL);
    fake_run(&net->fake, "x/2 net/open[1]", NULL);
    fake_run(&net->fake, "tensors", NULL);
    fake_run(&net->fake, "info params", NULL);
    net_expect_part(net, "info node net/open", "output :0   float32 (?, 3)\n");
}

/* The shape that the graph declares is not that of the value: indices stay inside what was sent. */
static void examine_trusts_the_value_not_the_graph(void **state)
{
    struct net *net = *state;
    static const struct gd_shape declared = {.rank = 1, .dim = {1000}};
    static const struct gd_shape sent = {.rank = 1, .dim = {4}};
    const float values[] = {1, 2, 3, 4};
    gd_node_id node =
        fake_node(&net->fake, "net/liar", "Parameter", GD_FLOAT32, &declared, NULL, 0, NULL);
    fake_graph_done(&net->fake);
    fake_set(&net->fake, node, 0, GD_CURRENT, GD_FLOAT32, &sent, values);
    net_expect(net, "x/16 net/liar", "net/liar:0\n[0]:  1.0  2.0  3.0  4.0\n");
    net_expect(net, "x/16 net/liar[2]", "net/liar:0\n[2]:  3.0  4.0\n");
    fake_run(&net->fake, "print -a net/liar", NULL);
    fake_run(&net->fake, "x/16 net/liar", NULL); /* now from the cache */
    fake_run(&net->fake, "find > 0 net/liar", NULL);
    net_expect_part(net, "print net/liar", "[1. 2. 3. 4.]\n");
}

static void print_several(void **state)
{
    net_expect_part(*state, "print loss/Mean-op9 net/big[0, 1]",
                    "2.25\n$2 = net/big:0[0, 1]\nfloat32 ()\n1.0\n");
}

static void print_history(void **state)
{
    struct net *net = *state;
    fake_run(&net->fake, "print net/fc1/MatMul-op1", NULL);
    fake_run(&net->fake, "print loss/Mean-op9", NULL);
    int fetches = net->fake.fetches;
    net_expect_part(net, "print $1[1]", "$1[1]\nfloat32 (3,)");
    net_expect_part(net, "print $", "$2\nfloat64 ()\n2.25\n");
    net_expect_part(net, "print $$", "$1\nfloat32 (2, 3)");
    assert_int_equal(net->fake.fetches, fetches);
    net_expect_rc(net, "print $7", GD_ENOTFOUND,
                  "error: there is no value $7: the history has 2\n");
    net_expect_rc(net, "print $1 prev", GD_EINVAL,
                  "error: $1 is a history value: it has no previous one\n");
}

/* Old values give way when together they are larger than the cache may be. */
static void history_has_a_budget(void **state)
{
    struct net *net = *state;
    net->fake.debugger->settings.max_cache = 2 * NET_BIG_ROWS * NET_BIG_COLS * 4;
    fake_run(&net->fake, "print net/big", NULL);
    fake_run(&net->fake, "print net/big[1]", NULL);
    fake_run(&net->fake, "print net/big", NULL);
    net_expect_part(net, "print $2[0]", "30.0\n");
    net_expect_part(net, "print $3[0, 1]", "1.0\n");
    net_expect_part(net, "print $1", "error: there is no value $1");
}

static void print_previous_and_difference(void **state)
{
    net_expect_part(*state, "print net/fc1/MatMul-op1 prev",
                    "$1 = net/fc1/MatMul-op1:0, previous value (step 2)\n");
    net_expect(*state, "print net/fc1/MatMul-op1 diff",
               "$2 = net/fc1/MatMul-op1:0, change from step 2 to step 3\n"
               "float32 (2, 3) n=6 24 B min=0 max=0.5 mean=0.08333 std=0.1863 zeros=83.3% "
               "|#              :|\n"
               "changed: 1 of 6 elements, mean |d|=0.0833333 (0.0244 of mean |previous|), max "
               "|d|=0.5\n"
               "[[0.  0.  0. ]\n"
               " [0.  0.  0.5]]\n");
}

/* A previous value that nobody kept is kept from now on, and a step later it is there. */
static void print_previous_turns_keeping_on(void **state)
{
    struct net *net = *state;
    static const struct gd_shape matrix = {.rank = 2, .dim = {2, 3}};
    const float old[6] = {9};
    net_expect_rc(net, "print net/fc1.weight prev", GD_ENODATA,
                  "error: the previous value of net/fc1.weight was not kept; it is kept from now "
                  "on: `step`, then ask again\n");
    assert_int_equal(net->fake.kept, 1);
    assert_string_equal(net->fake.debugger->settings.keep_previous, "net/fc1.weight");
    fake_run(&net->fake, "print net/fc1.weight prev", NULL);
    assert_string_equal(net->fake.debugger->settings.keep_previous, "net/fc1.weight");
    fake_run(&net->fake, "print net/big[0] diff", NULL);
    assert_int_equal(net->fake.kept, 2);
    fake_set(&net->fake, net->weight, 0, GD_PREVIOUS, GD_FLOAT32, &matrix, old);
    fake_run(&net->fake, "step", NULL);
    net_expect_part(net, "print net/fc1.weight[0, 0] prev", "previous value (step 3)");
}

static void print_says_why_there_is_no_value(void **state)
{
    net_expect_rc(*state, "print net/fc1.bias", GD_ENODATA,
                  "error: net/fc1.bias has not been computed in this step\n");
    net_expect_rc(*state, "print net/big[50]", GD_EINVAL,
                  "error: index 50 is out of bounds for axis 0 with size 50\n");
    net_expect_part(*state, "print net/nothing", "error: there is no node 'net/nothing'");
    net_expect_part(*state, "print net/big -q", "error: print: unknown option -q");
}

static void print_of_a_lost_session_reads_the_cache(void **state)
{
    struct net *net = *state;
    fake_run(&net->fake, "print loss/Mean-op9", NULL);
    fake_run(&net->fake, "print net/big -s", NULL);
    fake_lose(&net->fake, "the cable was cut");
    net_expect_part(net, "print loss/Mean-op9", "2.25\n");
    net_expect_part(net, "print net/big", "(no values: net/big:0 is not among the values that");
    net_expect_rc(net, "print net/fc1.weight", GD_ENODATA,
                  "error: net/fc1.weight:0 is not among the values that this lost session kept\n");
    net_expect_part(net, "info target", "lost: the cable was cut");
}

static void print_escapes_names(void **state)
{
    struct net *net = *state;
    char line[64];
    snprintf(line, sizeof(line), "print %s", gd_graph_name(net->fake.graph, net->odd));
    net_expect_part(net, line, "$1 = net/o\\x1b[31mdd:0\n");
}

static void print_can_be_interrupted(void **state)
{
    struct net *net = *state;
    net->fake.never_answer = true;
    int rc = 0;
    fake_run(&net->fake, "print net/big", &rc);
    assert_int_equal(rc, GD_EINTR);
    net->fake.never_answer = false;
    net_expect_part(net, "print loss/Mean-op9", "2.25\n");
}

/* 24 MiB of zeros whose last element is 1: work that is done in pieces. */
static void set_large(struct net *net)
{
    static const struct gd_shape shape = {.rank = 2, .dim = {6, 1 << 20}};
    size_t count = (size_t)6 << 20;
    float *data = calloc(count, sizeof(*data));
    assert_non_null(data);
    data[count - 1] = 1;
    fake_set(&net->fake, net->weight, 0, GD_CURRENT, GD_FLOAT32, &shape, data);
    free(data);
    net->fake.tick = 1;
}

static void long_work_can_be_interrupted(void **state)
{
    static const struct {
        const char *line;
        int pumps; /* one is that of the answer, then one a piece */
        const char *said;
    } work[] = {
        {"stats net/fc1.weight", 2, "interrupted after 0.4 of 24.0 MiB"},
        {"stats net/fc1.weight", 3, "interrupted after 1.1 of 24.0 MiB"}, /* kept meanwhile */
        {"print net/fc1.weight", 2, "interrupted after 0.8 of 24.0 MiB"},
        {"print net/fc1.weight", 65, "interrupted after 4.0 of 24.0 MiB"}, /* the histogram */
        {"find nonzero net/fc1.weight", 71, "interrupted after 1.0 of 24.0 MiB"},
    };
    struct net *net = *state;
    struct gd_progress_info info;
    int rc = 0;

    net->fake.target->capabilities &= ~(unsigned)GD_CAN_STATS;
    for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
        set_large(net);
        net->fake.patience = work[i].pumps;
        const char *said = fake_run(&net->fake, work[i].line, &rc);
        assert_int_equal(rc, GD_EINTR);
        assert_non_null(strstr(said, work[i].said));
        assert_false(gd_progress_current(net->fake.debugger, &info));
    }
    net_expect_part(net, "find nonzero net/fc1.weight", "  [5, 1048575]  1");
    net_expect_part(net, "stats net/fc1.weight", "6,291,456");
    net_expect_part(net, "find max net/fc1.weight", "1 of 6,291,456 elements");
}

static void an_interrupted_save_leaves_no_file(void **state)
{
    struct net *net = *state;
    char dir[SCRATCH_PATH], path[128], line[160];
    int rc = 0;

    assert_non_null(scratch_folder(dir));
    snprintf(path, sizeof(path), "%s/w.npy", dir);
    snprintf(line, sizeof(line), "save net/fc1.weight %s", path);
    set_large(net);
    for (int pumps = 1; rc != GD_OK || pumps == 1; pumps++) { /* wherever it is */
        net->fake.patience = pumps;
        fake_run(&net->fake, line, &rc);
        assert_true(rc == GD_OK || rc == GD_EINTR);
        assert_int_equal(access(path, F_OK), rc == GD_OK ? 0 : -1);
        assert_true(pumps < 1000);
    }
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* nothing else is in it */
}

static mode_t mode_of(const char *path)
{
    struct stat about;
    assert_int_equal(lstat(path, &about), 0);
    return about.st_mode;
}

static void what_is_saved_takes_only_its_own_name(void **state)
{
    char dir[SCRATCH_PATH], path[128], part[144], link[128], line[200];
    struct net *net = *state;
    mode_t before = umask(027);
    int rc = 0;

    assert_non_null(scratch_folder(dir));
    snprintf(path, sizeof(path), "%s/w.npy", dir);
    snprintf(part, sizeof(part), "%s.part", path);
    snprintf(link, sizeof(link), "%s/link", dir);
    assert_int_equal(mkdir(part, 0700), 0); /* the user's, and in the way of that name */
    snprintf(line, sizeof(line), "save -f net/fc1.weight %s", path);
    fake_run(&net->fake, line, &rc);
    assert_int_equal(rc, GD_OK);
    assert_int_equal(mode_of(path) & 07777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    fake_run(&net->fake, line, &rc);
    assert_int_equal(rc, GD_OK);
    assert_int_equal(mode_of(path) & 07777, 0604);
    assert_int_equal(symlink("w.npy", link), 0); /* what a name stands for is written */
    snprintf(line, sizeof(line), "save -f watchpoints %s", link);
    fake_run(&net->fake, line, &rc);
    assert_int_equal(rc, GD_OK);
    assert_true(S_ISLNK(mode_of(link)));
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    assert_string_equal(line, "# Made by gradb; read it with \"source\".\n");
    fclose(file);
    snprintf(line, sizeof(line), "save net/fc1.weight %s", part);
    net_expect_part(*state, line, "error: cannot write ");
    assert_int_equal(unlink(link) + unlink(path) + rmdir(part), 0);
    assert_int_equal(rmdir(dir), 0);
    umask(before);
}

static void print_json(void **state)
{
    cJSON *record = net_record(*state, "print net/fc1.weight");
    assert_string_equal(cJSON_GetObjectItem(record, "type")->valuestring, "tensor");
    assert_string_equal(cJSON_GetObjectItem(record, "dtype")->valuestring, "float32");
    assert_int_equal(cJSON_GetObjectItem(record, "step")->valueint, 3);
    char *values = cJSON_PrintUnformatted(cJSON_GetObjectItem(record, "values"));
    assert_string_equal(values, "[[1,-2.5,\"nan\"],[\"inf\",0,4]]");
    free(values);
    char *shape = cJSON_PrintUnformatted(cJSON_GetObjectItem(record, "shape"));
    assert_string_equal(shape, "[2,3]");
    free(shape);
    const cJSON *stats = cJSON_GetObjectItem(record, "stats");
    assert_int_equal(cJSON_GetObjectItem(stats, "nan")->valueint, 1);
    assert_int_equal(cJSON_GetObjectItem(stats, "pos_inf")->valueint, 1);
    assert_true(cJSON_GetObjectItem(stats, "min")->valuedouble == -2.5);
    cJSON_Delete(record);
}

static void print_json_is_bounded(void **state)
{
    cJSON *record = net_record(*state, "print net/big");
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(record, "values")));
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(record, "truncated")));
    cJSON_Delete(record);
    record = net_record(*state, "print net/big -a");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(record, "values")), NET_BIG_ROWS);
    cJSON_Delete(record);
    record = net_record(*state, "print net/empty");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(record, "values")), 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetObjectItem(record, "stats"), "min")));
    cJSON_Delete(record);
    record = net_record(*state, "print net/fc1.bias");
    assert_string_equal(cJSON_GetObjectItem(record, "type")->valuestring, "error");
    assert_string_equal(cJSON_GetObjectItem(record, "code")->valuestring, "no_data");
    cJSON_Delete(record);
}

/* ---- x ------------------------------------------------------------------------------------- */

static void examine_goes_on_across_rows(void **state)
{
    struct net *net = *state;
    net_expect(net, "x/4 net/big[0, 28]", "net/big:0\n[0, 28]:   28.0  29.0  30.0  31.0\n");
    net_expect(net, "", "[1, 2]:    32.0  33.0  34.0  35.0\n");
    net_expect_rc(net, "x/8 net/big[49, 29]", GD_OK, "net/big:0\n[49, 29]:  1499.0\n");
    net_expect_rc(net, "", GD_ENODATA, "error: net/big:0 has no more elements\n");
    net_expect(net, "x/2x net/big[:, 1]", "net/big:0[:, 1]\n[0]:   0x3f800000  0x41f80000\n");
}

static void examine_fetches_a_small_box(void **state)
{
    struct net *net = *state;
    fake_run(&net->fake, "x/4 net/big[7, 3]", NULL);
    assert_int_equal(net->fake.slice.count, 2);
    assert_int_equal(net->fake.slice.item[0].kind, GD_SLICE_INDEX);
    assert_int_equal(net->fake.slice.item[0].start, 7);
    assert_int_equal(net->fake.slice.item[1].kind, GD_SLICE_RANGE);
    assert_int_equal(net->fake.slice.item[1].start, 3);
    assert_int_equal(net->fake.slice.item[1].stop, 7);
}

static void examine_refuses(void **state)
{
    net_expect_part(*state, "x/4q net/big", "error: x/4q: expected a count and one of f, e, x, d");
    net_expect_part(*state, "x/0 net/big", "error: 0 is out of range");
    net_expect_part(*state, "x", "error: x: specify a tensor");
    net_expect_part(*state, "x net/big[60, 1]", "error: index 60 is out of bounds for axis 0");
    net_expect_part(*state, "x net/empty", "error: net/empty:0 has no more elements");
}

/* ---- whatis, stats, tensors ---------------------------------------------------------------- */

static void whatis_fetches_nothing(void **state)
{
    struct net *net = *state;
    net_expect(net, "whatis net/big[::2, 0]", "type = float32 (25,), 25 elements, 100 B\n");
    net_expect(net, "ptype net/fc1.bias", "type = float32 (3,), 3 elements, 12 B\n");
    assert_int_equal(net->fake.fetches + net->fake.stats, 0);
}

static void stats_are_computed_where_the_tensor_lives(void **state)
{
    struct net *net = *state;
    net_expect(net, "stats net/fc1.weight",
               "net/fc1.weight:0\n"
               "  type         float32 (2, 3)\n"
               "  elements     6 (24 B)\n"
               "  NaN          1 (16.7 %)\n"
               "  +Inf         1 (16.7 %)\n"
               "  -Inf         0\n"
               "  zeros        1 (16.7 %)\n"
               "  positive     2 (33.3 %)\n"
               "  negative     1 (16.7 %)\n"
               "  denormal     0\n"
               "  min          -2.5\n"
               "  max          4\n"
               "  mean         0.625\n"
               "  mean |x|     1.875\n"
               "  deviation    2.328492\n"
               "  L2 norm      4.82182538\n");
    assert_int_equal(net->fake.fetches, 0);
    assert_int_equal(net->fake.stats, 1);
}

static void tensors_lists_and_says_what_is_missing(void **state)
{
    net_expect(*state, "tensors net/fc1.weight, net/big",
               "Kind       Type     Shape     Size     Tensor\n"
               "weight     float32  (2, 3)    24 B     net/fc1.weight:0\n"
               "parameter  float32  (50, 30)  5.9 KiB  net/big:0\n");
    net_expect_part(*state, "lt net/fc1.bias -s",
                    "1 tensor has no value: net/fc1.bias has not been computed in this step\n");
    net_expect_part(*state, "tensors gradients", "No tensors.\n");
    net_expect_part(*state, "tensors net/nothing", "error: ");
}

/* ---- find, save ---------------------------------------------------------------------------- */

static void find_lists_indices(void **state)
{
    net_expect(*state, "find nonfinite net/fc1.weight",
               "  [0, 2]  nan\n  [1, 0]  inf\n2 of 6 elements in net/fc1.weight:0\n");
    net_expect(*state, "find max net/fc1.weight",
               "  [1, 2]  4.0\n1 of 6 elements in net/fc1.weight:0\n");
    net_expect(*state, "find abs > 2 in net/fc1.weight[0]",
               "  [1]  -2.5\n1 of 3 elements in net/fc1.weight:0[0]\n");
    net_expect_part(*state, "find >= 100 net/big", "  ... 1,380 more (-a shows all)\n");
    net_expect(*state, "find nan net/empty", "0 of 0 elements in net/empty:0\n");
    net_expect_part(*state, "find max net/empty", "error: the tensor has no finite element");
    net_expect_part(*state, "find > net/big", "error: expected a number after >");
    net_expect_part(*state, "find blue net/big", "error: find: specify nonfinite");
}

static void save_writes_npy(void **state)
{
    struct net *net = *state;
    char path[SCRATCH_PATH];
    int descriptor = scratch_file(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    char line[128];
    snprintf(line, sizeof(line), "save net/big[1, :3] %s", path);
    net_expect_part(net, line, " exists: replace it with save -f");
    struct stat there;
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(there.st_size, 0);
    snprintf(line, sizeof(line), "save -f net/big[1, :3] %s", path);
    fake_run(&net->fake, line, NULL);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char data[256];
    size_t len = fread(data, 1, sizeof(data), file);
    fclose(file);
    unlink(path);
    const float expected[] = {30, 31, 32};
    assert_int_equal(len, 128 + sizeof(expected));
    assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
    assert_non_null(strstr(data + 10, "'shape': (3,)"));
    assert_memory_equal(data + 128, expected, sizeof(expected));
    net_expect_part(net, "save net/big /nowhere/at/all.npy",
                    "error: cannot write to /nowhere/at/all.npy: No such file or directory");
}

static void what_is_saved_has_a_name(void **state)
{
    struct net *net = *state;
    char dir[SCRATCH_PATH], before[PATH_MAX];
    static const char *const cases[][2] = {{"save net/big", "big.npy"},
                                           {"save net/big[1, :3]", "big_0_1_3.npy"},
                                           {"save net/fc1.weight", "fc1.weight.npy"},
                                           {"save weights", "weights.npz"},
                                           {"save watchpoints", "watchpoints.gdb"}};

    assert_non_null(getcwd(before, sizeof(before)));
    assert_non_null(scratch_folder(dir));
    assert_int_equal(chdir(dir), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        net_expect_part(net, cases[i][0], cases[i][1]);
        net_expect_part(net, cases[i][0], " exists: replace it with save -f");
        assert_int_equal(unlink(cases[i][1]), 0);
    }
    assert_int_equal(chdir(before), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* ---- display ------------------------------------------------------------------------------- */

static void display_shows_at_every_stop(void **state)
{
    struct net *net = *state;
    net_expect(net, "display loss/Mean-op9", "1: loss/Mean-op9:0\nfloat64 ()\n2.25\n");
    net_expect_part(net, "display/x net/fc1/MatMul-op1[0]", "0x3f800000");
    gd_session_on_scalar(net->fake.session, "lr", 0.125, 3);
    net_expect(net, "display lr", "3: lr = 0.125\n");
    net_expect_part(net, "step", "1: loss/Mean-op9:0\nfloat64 ()\n2.25\n2: ");
    fake_run(&net->fake, "undisplay 1 3", NULL);
    fake_run(&net->fake, "step", NULL);
    assert_null(strstr(gd_buf_text(&net->fake.out), "loss/Mean-op9"));
    net_expect(net, "info display",
               "Num  Format  Value    Expression\n  2  /x      current  net/fc1/MatMul-op1[0]\n");
    net_expect_rc(net, "undisplay 9", GD_ENOTFOUND,
                  "error: there is no display 9; `info display` lists them\n");
}

/* One that has no value says so in its place; the others are shown. */
static void display_survives_missing_values(void **state)
{
    struct net *net = *state;
    fake_run(&net->fake, "display net/fc1.bias", NULL);
    fake_run(&net->fake, "display loss/Mean-op9", NULL);
    net_expect_part(net, "step", "1: net/fc1.bias: net/fc1.bias has not been computed");
    net_expect_part(net, "step", "2: loss/Mean-op9:0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_TEXT(print_shows_summary_and_values),
        NET_TEXT(print_never_hides_nan_and_inf),
        NET_TEXT(print_without_argument_takes_the_current_node),
        NET_TEXT(print_of_a_slice_fetches_the_slice_alone),
        NET_TEXT(print_abbreviates_unless_all_are_asked_for),
        NET_TEXT(print_formats),
        NET_TEXT(print_of_scalars_and_empty_tensors),
        NET_TEXT(print_shows_every_slot),
        NET_TEXT(print_of_a_huge_tensor_fetches_nothing),
        NET_TEXT(absurd_shapes_are_survived),
        NET_TEXT(examine_trusts_the_value_not_the_graph),
        NET_TEXT(print_several),
        NET_TEXT(print_history),
        NET_TEXT(history_has_a_budget),
        NET_TEXT(print_previous_and_difference),
        NET_TEXT(print_previous_turns_keeping_on),
        NET_TEXT(print_says_why_there_is_no_value),
        NET_TEXT(print_of_a_lost_session_reads_the_cache),
        NET_TEXT(print_escapes_names),
        NET_TEXT(print_can_be_interrupted),
        NET_TEXT(long_work_can_be_interrupted),
        NET_TEXT(an_interrupted_save_leaves_no_file),
        NET_TEXT(what_is_saved_takes_only_its_own_name),
        NET_JSON(print_json),
        NET_JSON(print_json_is_bounded),
        NET_TEXT(examine_goes_on_across_rows),
        NET_TEXT(examine_fetches_a_small_box),
        NET_TEXT(examine_refuses),
        NET_TEXT(whatis_fetches_nothing),
        NET_TEXT(stats_are_computed_where_the_tensor_lives),
        NET_TEXT(tensors_lists_and_says_what_is_missing),
        NET_TEXT(find_lists_indices),
        NET_TEXT(save_writes_npy),
        NET_TEXT(what_is_saved_has_a_name),
        NET_TEXT(display_shows_at_every_stop),
        NET_TEXT(display_survives_missing_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
