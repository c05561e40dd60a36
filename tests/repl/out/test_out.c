// SPDX-License-Identifier: GPL-3.0-or-later
/* Records, tables and safe text. */
#include <locale.h>
#include <math.h>

#include "repl/core/repl_impl.h"
#include "repl/net.h"
#include "repl/values/inspect.h"
#include "unit.h"

static struct net net;
static struct gd_arena arena;
static struct repl_out out;

static int setup_with(const struct repl_options *options)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    net_create(&net, options);
    fake_run(&net.fake, "", NULL);
    gd_arena_init(&arena, 0);
    out_begin(&out, net.fake.repl, &arena, "test");
    return 0;
}

static int setup_text(void **state)
{
    return setup_with(&(struct repl_options){.batch = true, .utf8 = true});
}

static int setup_color(void **state)
{
    return setup_with(&(struct repl_options){.batch = true, .color = true});
}

static int setup_json(void **state)
{
    return setup_with(&(struct repl_options){.batch = true, .json = true});
}

static int tear_down(void **state)
{
    gd_arena_deinit(&arena);
    net_destroy(&net);
    return 0;
}

static void written_is(const char *expected)
{
    assert_ok(out_end(&out, false, NULL));
    assert_string_equal(gd_buf_text(&net.fake.out), expected);
}

static const struct out_column columns[] = {
    {"name", "Name", false}, {"hits", "Hits", true}, {"note", "Note", false}};

static void add_rows(void)
{
    struct out_table *table = out_table_begin(&out, "things", columns, 3);
    out_put(table, OUT_TEXT("name", "a"), OUT_INT("hits", 1), OUT_TEXT("note", "first"));
    out_put(table, OUT_TEXT("name", "Übergröße"), OUT_INT("hits", 12345), OUT_TEXT("note", NULL));
    out_put(table, OUT_TEXT("name", "漢字"), OUT_REAL("hits", NAN), OUT_TEXT("note", "wide"));
    out_table_end(table);
}

static void tables_are_aligned_on_display_width(void **state)
{
    add_rows();
    written_is("Name        Hits  Note\n"
               "a              1  first\n"
               "Übergröße  12345\n"
               "漢字         nan  wide\n");
}

static void empty_tables_print_nothing(void **state)
{
    out_table_end(out_table_begin(&out, "things", columns, 3));
    written_is("");
}

static void tables_become_objects(void **state)
{
    add_rows();
    written_is("{\"v\":1,\"type\":\"things\",\"things\":["
               "{\"name\":\"a\",\"hits\":1,\"note\":\"first\"},"
               "{\"name\":\"Übergröße\",\"hits\":12345,\"note\":null},"
               "{\"name\":\"漢字\",\"hits\":\"nan\",\"note\":\"wide\"}],\"command\":\"test\"}\n");
}

static void tables_become_csv(void **state)
{
    static const struct out_column csv[] = {{"name", "Name"},
                                            {"shape", "Shape, type", false, ":shape"},
                                            {"mean", "Mean", true, ":repr"},
                                            {"note", "\"Note\""}};
    static const struct gd_shape vector = {.rank = 1, .dim = {8}}, unknown = {2, {3, -1}};
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    struct out_table *table = out_table_csv(&out, file, csv, 4);

    out_put(table, OUT_TEXT("name", "=1+2"), OUT_JSON("shape", inspect_shape_json(&vector)),
            OUT_REAL("mean", 100), OUT_TEXT("note", "a\nb"), OUT_TEXT("hidden", "no column"));
    out_put(table, OUT_TEXT("name", "é\t,"), OUT_JSON("shape", inspect_shape_json(&unknown)),
            OUT_REAL("mean", 0.1), OUT_TEXT("note", NULL));
    out_put(table, OUT_REAL("mean", NAN));
    out_put_text(table, OUT_TEXT("note", "say \"x\""));
    out_table_end(table);
    fclose(file);
    assert_string_equal(text, "Name,\"Shape, type\",Mean,\"\"\"Note\"\"\"\n"
                              "\"'=1+2\",\"(8,)\",100.0,\"a\nb\"\n"
                              "\"é\t,\",\"(3, ?)\",0.1,\n"
                              ",,nan,\"say \"\"x\"\"\"\n");
    free(text);
    out_end(&out, false, NULL);
}

static void say_fields(const char *template, const char *expected)
{
    struct gd_buf text = GD_BUF_INIT(4096);
    cJSON *object = cJSON_CreateObject(), *list = out_list(object, "list");

    out_set(object, OUT_TEXT("name", "a\tb"), OUT_TEXT("null", NULL), OUT_SOME("left_out", ""),
            OUT_INT("steps", 12345), OUT_INT("one", 1), OUT_INT("none", 0),
            OUT_REAL("loss", 1 / 3.), OUT_REAL("nan", NAN), OUT_INT("large", INT64_MAX),
            OUT_NUMERAL("lr", "0.00120000006"), OUT_BOOL("yes", true), OUT_BOOL("no", false),
            OUT_IF(false, OUT_INT("never", 1)));
    out_push_text(list, "x");
    out_push_int(list, 2);
    out_set(out_object(object, "peer"), OUT_INT("rank", 3));
    out_render(&out, object, template, OUT_FIELDS(OUT_INT("one", 7)), &text);
    assert_string_equal(gd_buf_text(&text), expected);
    gd_buf_deinit(&text);
    cJSON_Delete(object);
}

static void templates_name_fields(void **state)
{
    say_fields("{name}, {steps}, {loss}, {nan}", "a\\tb, 12345, 0.333333, nan");
    say_fields("{lr:.9} {yes} {no} {null}.", "0.00120000006 true false .");
    say_fields("{peer.rank} {list} {list:; } {large}", "3 x, 2 x; 2 9223372036854775807");
    say_fields("{one} {misspelt}", "7 ?");
    written_is("");
}

static void templates_have_forms(void **state)
{
    say_fields("{steps|node}, {peer.rank|day}, {yes}", "12,345 nodes, 3 days, true");
    say_fields("{steps:n} {steps:bytes} {loss:time}", "12,345 12.1 KiB 333 ms");
    say_fields("{loss:g2} {loss:f1} {steps:g2}", "0.33 0.3 1.2e+04");
    say_fields("|{one:3}|{one:-3}|{steps:n:8}|{name:2}|", "|  7|7  |  12,345|a\\tb|");
    written_is("");
}

static void templates_leave_out_sections(void **state)
{
    say_fields("a[, {steps}][, {none}][, {left_out}][, {null}]", "a, 12345");
    say_fields("a[, {steps}[ of {none}][ by {name}]]", "a, 12345 by a\\tb");
    say_fields("[{?yes}on][{!yes}off][{?none}many][{!none}none]", "onnone");
    say_fields("[{?yes}rank {none}][{?no}rank {one}][{?yes}, [{left_out}]]", "rank 0, ");
    say_fields("\\[rank {one}] [{?no}\\]]", "[rank 7] ");
    written_is("");
}

static void rows_have_fields(void)
{
    static const struct out_column of_fields[] = {{"name", "Name", false},
                                                  {"rank", "Rank", true, "{rank}[ of {size}]"},
                                                  {"mark", "", false, "[{?yes}*]"}};
    struct out_table *table = out_table_begin(&out, "things", of_fields, 3);
    out_put(table, OUT_TEXT("name", "a"), OUT_INT("rank", 0), OUT_INT("size", 2));
    out_put_text(table, OUT_BOOL("yes", true));
    out_put(table, OUT_TEXT("name", NULL), OUT_INT("rank", 1));
    out_table_end(table);
    out_table_of(&out, cJSON_GetObjectItem(out_record(&out, "x"), "absent"), 1, of_fields, 3);
}

static void rows_of_fields_are_aligned(void **state)
{
    rows_have_fields();
    written_is("Name    Rank\n"
               "a     0 of 2  *\n"
               "           1\n");
}

static void rows_of_fields_become_objects(void **state)
{
    rows_have_fields();
    written_is("{\"v\":1,\"type\":\"things\",\"things\":["
               "{\"name\":\"a\",\"rank\":0,\"size\":2},{\"name\":null,\"rank\":1}],"
               "\"command\":\"test\"}\n");
}

static void records_are_wrapped(void **state)
{
    out_printf(&out, "not in JSON %d\n", 1);
    cJSON_AddNumberToObject(out_record(&out, "thing"), "x", 2);
    cJSON_AddStringToObject(out_record(&out, "other"), "y", "z"); /* the first type stays */
    written_is("{\"v\":1,\"type\":\"thing\",\"x\":2,\"y\":\"z\",\"command\":\"test\"}\n");
}

static void a_failed_command_has_no_record(void **state)
{
    out_record(&out, "thing");
    assert_ok(out_end(&out, true, NULL));
    assert_string_equal(gd_buf_text(&net.fake.out), "");
}

static void control_characters_are_escaped(void **state)
{
    const char *safe = repl_safe(net.fake.repl, &arena,
                                 "a\033[31m\n\t\x7f\xff"
                                 "ü\xc2\x9b\xe2\x80\xae.");
    assert_string_equal(safe, "a\\x1b[31m\\n\\t\\x7f\\xffü\\x9b\\u202e.");
    out_end(&out, false, NULL);
}

static void color_only_when_wanted(void **state)
{
    assert_string_equal(out_sgr(&out, "31"), "\033[31m");
    net.fake.debugger->settings.color = 2;
    assert_string_equal(out_sgr(&out, "31"), "");
    out_end(&out, false, NULL);
}

static void no_color_by_itself(void **state)
{
    assert_string_equal(out_sgr(&out, "31"), "");
    net.fake.debugger->settings.color = 1;
    assert_string_equal(out_sgr(&out, "31"), "\033[31m");
    out_end(&out, false, NULL);
}

static void much_text_comes_in_whole_lines(void **state)
{
    for (int i = 0; i < 20000; i++) {
        out_printf(&out, "line %d\n", i);
    }
    assert_true(net.fake.out.len > 0); /* flushed meanwhile */
    assert_int_equal(net.fake.out.data[net.fake.out.len - 1], '\n');
    assert_ok(out_end(&out, false, NULL));
    assert_contains(gd_buf_text(&net.fake.out), "\nline 19999\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(tables_are_aligned_on_display_width, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(empty_tables_print_nothing, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(tables_become_objects, setup_json, tear_down),
    cmocka_unit_test_setup_teardown(tables_become_csv, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(templates_name_fields, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(templates_have_forms, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(templates_leave_out_sections, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(rows_of_fields_are_aligned, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(rows_of_fields_become_objects, setup_json, tear_down),
    cmocka_unit_test_setup_teardown(records_are_wrapped, setup_json, tear_down),
    cmocka_unit_test_setup_teardown(a_failed_command_has_no_record, setup_json, tear_down),
    cmocka_unit_test_setup_teardown(control_characters_are_escaped, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(color_only_when_wanted, setup_color, tear_down),
    cmocka_unit_test_setup_teardown(no_color_by_itself, setup_text, tear_down),
    cmocka_unit_test_setup_teardown(much_text_comes_in_whole_lines, setup_text, tear_down),
};

RUN_TESTS()
