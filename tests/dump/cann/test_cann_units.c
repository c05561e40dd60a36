// SPDX-License-Identifier: GPL-3.0-or-later
/* Names and places of CANN's dump files, which steps are dumped, MD5: by tables. */
#include <md5.h>

#include "../../unit.h"
#include "dump/cann/cann_file_name.h"
#include "dump/cann/cann_path.h"
#include "dump/cann/cann_types.h"
#include "dump/cann/step_grammar.h"

struct name_case {
    const char *text;
    bool exceptions;
    int kind; /* -1: none */
    const char *type, *name;
    int64_t task, stream, context, thread;
    uint64_t time;
};

static const struct name_case names[] = {
    {"Conv2D.conv1.5.1.1700000000000001", false, GD_CANN_OPERATOR, "Conv2D", "conv1", 5, 1, -1, -1,
     1700000000000001},
    {"Conv2D.conv1.5.1700000000000001", false, GD_CANN_OPERATOR, "Conv2D", "conv1", 5, -1, -1, -1,
     1700000000000001},
    {"Parameter.conv1.weight.5.1.1700000000000001", false, GD_CANN_OPERATOR, "Parameter",
     "conv1.weight", 5, 1, -1, -1, 1700000000000001},
    {"Op..0.0.1700000000000001", false, GD_CANN_OPERATOR, "Op", "", 0, 0, -1, -1, 1700000000000001},
    {"Add.layer.0.12.3.1700000000000001", false, GD_CANN_OPERATOR, "Add", "layer.0", 12, 3, -1, -1,
     1700000000000001},
    {"Add.a.7.2.1700000000000001.4.21.2.0", false, GD_CANN_OPERATOR, "Add", "a", 7, 2, 21, 2,
     1700000000000001},
    /* If a time follows, the preceding digits are part of the name. */
    {"Add.a.1.2.3.4.5.6.1700000000000001", false, GD_CANN_OPERATOR, "Add", "a.1.2.3.4", 5, 6, -1,
     -1, 1700000000000001},
    {"Add.a.65535.65535.99999999999999999999999", false, GD_CANN_OPERATOR, "Add", "a", 65535, 65535,
     -1, -1, UINT64_MAX},
    {"Opdebug.Node_OpDebug.57.3.1700000000000001", false, GD_CANN_OVERFLOW, "Opdebug",
     "Node_OpDebug", 57, 3, -1, -1, 1700000000000001},
    {"exception_info.5.1.1706152473105513", false, GD_CANN_EXCEPTION, "", "exception_info", 1, 5,
     -1, -1, 1706152473105513},
    {"te_add.v2.5.1.0.3.1706152473105513", true, GD_CANN_EXCEPTION, "", "te_add.v2", 1, 5, -1, -1,
     1706152473105513},
    {"mine.custom.1706152473105513", true, GD_CANN_EXCEPTION, "", "mine", -1, -1, -1, -1,
     1706152473105513},
    {"Add.a.7.2.17000000x0000001", false, -1, "", "", 0, 0, 0, 0, 0},
    {"Add.7", false, -1, "", "", 0, 0, 0, 0, 0},
    {".a.7.2.1700000000000001", false, -1, "", "", 0, 0, 0, 0, 0},
    {"1700000000000001", false, -1, "", "", 0, 0, 0, 0, 0},
    {"", false, -1, "", "", 0, 0, 0, 0, 0},
    {"...", true, -1, "", "", 0, 0, 0, 0, 0},
};

static void test_names(void **state)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct name_case *c = &names[i];
        struct gd_cann_name got;

        if (gd_cann_name_parse(c->text, c->exceptions, &got) != (c->kind >= 0)) {
            fail_msg("%s: %s", c->text, c->kind >= 0 ? "refused" : "taken");
        }
        if (c->kind < 0) {
            continue;
        }
        if ((int)got.kind != c->kind || strlen(c->type) != got.type_len ||
            memcmp(c->type, got.type, got.type_len) != 0 || strlen(c->name) != got.name_len ||
            memcmp(c->name, got.name, got.name_len) != 0) {
            fail_msg("%s: kind %d, type %.*s, name %.*s", c->text, got.kind, (int)got.type_len,
                     got.type, (int)got.name_len, got.name);
        }
        assert_int_equal(got.task, c->task);
        assert_int_equal(got.stream, c->stream);
        assert_int_equal(got.context, c->context);
        assert_int_equal(got.thread, c->thread);
        assert_int_equal(got.time, c->time);
    }
}

static void test_places(void **state)
{
    static const struct {
        const char *part[8];
        int inside, rank, levels;
        int64_t step; /* -1: unknown */
        const char *model;
    } places[] = {
        {{"3", "0", "net", "rank_7"}, 4, 7, 4, 3, "net"},
        {{"3", "0", "net", "rank_7"}, 0, 7, 4, 3, "net"},
        {{"3", "0", "net_graph_0", "device_2"}, 4, 2, 4, 3, "net_graph_0"},
        {{"3", "0", "net_graph_0", "2"}, 4, 2, 4, 3, "net_graph_0"},
        {{"3", "0", "net_0", "dump_5"}, 4, 5, 4, 3, "net_0"},
        {{"4", "11", "ge_1", "6", "20230101010101"}, 5, 6, 5, 4, "ge_1"},
        {{"4", "1234567890", "6", "20230101010101"}, 4, 6, 4, 4, "1234567890"},
        {{"25", "6", "20230101010101"}, 3, 6, 3, -1, "25"},
        {{"6", "20230101010101"}, 2, 6, 2, -1, ""},
        {{"6", "20230101010101", "9"}, 3, 6, 3, 9, ""},
        {{"6", "20230101010101", "9"}, 2, 6, 2, -1, ""}, /* 9 is where it was opened */
        {{"0", "20230101010101", "rank3", "step8"}, 4, 3, 4, 8, ""},
        {{"1", "2", "model", "0", "20230101010101", "worldsize8_global_rank5"},
         6,
         5,
         6,
         1,
         "model"},
        {{"2", "data-dump", "extra-info"}, 3, 2, 3, -1, ""},
        {{"8", "debug_files", "rank_1"}, 3, 1, 3, 8, ""},
        {{"step_8", "20230101010101", "rank_1"}, 3, 1, 3, 8, ""},
        {{"5", "somewhere"}, 2, 0, 2, 5, "somewhere"},
        {{"somewhere"}, 1, 0, 1, -1, "somewhere"},
        {{NULL}, 0, 0, 0, -1, ""},
    };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct gd_cann_path got;
        int count = 0;

        while (count < 8 && places[i].part[count]) {
            count++;
        }
        gd_cann_path(places[i].part, count, places[i].inside, &got);
        if (got.rank != places[i].rank || got.levels != places[i].levels ||
            (got.has_step ? got.step : -1) != places[i].step ||
            strcmp(got.model, places[i].model) != 0) {
            fail_msg("place %zu: rank %d, levels %d, step %lld, model %s", i, got.rank, got.levels,
                     got.has_step ? (long long)got.step : -1LL, got.model);
        }
    }
}

static void test_types(void **state)
{
    for (int i = 0; i < 43; i++) {
        assert_int_equal(gd_cann_type_from_name(gd_cann_type_name(i)), i);
    }
    assert_null(gd_cann_type_name(43));
    assert_null(gd_cann_type_name(-1));
    assert_int_equal(gd_cann_type_from_name("DT_BF16"), 27);
    assert_int_equal(gd_cann_type_of_runtime(27), 27);
    assert_int_equal(gd_cann_type_of_runtime(9), 8); /* int64 */
    assert_int_equal(gd_cann_type_of_runtime(33), 0);
    assert_int_equal(gd_cann_format_from_name("FORMAT_FRACTAL_NZ"), GD_CANN_FRACTAL_NZ);
    assert_int_equal(gd_cann_format_from_name("c1hwncoc0"), GD_CANN_C1HWNCOC0);
    assert_int_equal(gd_cann_format_from_name("C1HWC0"), 49);
    assert_int_equal(gd_cann_format_from_name("NCHWX"), -1);
}

static void test_steps(void **state)
{
    static const struct gd_step_rules cann = {.max_groups = 3, .strictly_greater = true},
                                      mindspore = {.all_allowed = true, .blanks = true};
    static const struct {
        const struct gd_step_rules *rules;
        const char *text, *back; /* NULL: refused at byte `at` */
        size_t at;
    } cases[] = {
        {&cann, "0|3-5|10", "0|3-5|10", 0},
        {&cann, "007", "7", 0},
        {&mindspore, "all", "all", 0},
        {&mindspore, " 0 | 3 - 3 ", "0|3", 0},
        {&mindspore, "1|2|3|4|5|6|7|8|9", "1|2|3|4|5|6|7|8|9", 0},
        {&cann, "all", NULL, 0},
        {&cann, "", NULL, 0},
        {&cann, "1|", NULL, 2},
        {&cann, "1||2", NULL, 2},
        {&cann, "3-3", NULL, 0},
        {&mindspore, "4|9-8", NULL, 2},
        {&cann, "1-2-3", NULL, 3},
        {&cann, "1 ", NULL, 1},
        {&cann, "-1", NULL, 0},
        {&cann, "99999999999999999999", NULL, 0},
        {&cann, "9223372036854775807", "9223372036854775807", 0},
    };
    struct gd_steps steps;
    struct gd_err err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_buf text = GD_BUF_INIT(256);
        int rc = gd_steps_parse(cases[i].text, cases[i].rules, &steps, &err);

        assert_int_equal(rc, cases[i].back ? GD_OK : GD_EINVAL);
        if (rc != GD_OK) {
            if (err.offset != cases[i].at) {
                fail_msg("\"%s\": %s", cases[i].text, err.text);
            }
            continue;
        }
        gd_steps_text(&steps, &text);
        assert_string_equal(gd_buf_text(&text), cases[i].back);
        gd_buf_deinit(&text);
        gd_steps_clear(&steps);
    }
    assert_int_equal(gd_steps_parse("1|2|3|4", &cann, &steps, &err), GD_ELIMIT);
    assert_ok(gd_steps_parse("0|3-5", &cann, &steps, &err));
    assert_true(gd_steps_have(&steps, 0) && gd_steps_have(&steps, 4));
    assert_false(gd_steps_have(&steps, 1) || gd_steps_have(&steps, 6));
    gd_steps_clear(&steps);
}

/* The digests of RFC 1321. */
static void test_md5(void **state)
{
    static const char *const cases[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[MD5_DIGEST_STRING_LENGTH];

        MD5Data((const uint8_t *)cases[i][0], strlen(cases[i][0]), text);
        assert_string_equal(text, cases[i][1]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names), cmocka_unit_test(test_places), cmocka_unit_test(test_types),
    cmocka_unit_test(test_steps), cmocka_unit_test(test_md5),
};

RUN_TESTS()
