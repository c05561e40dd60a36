// SPDX-License-Identifier: GPL-3.0-or-later
/* Answers in pieces: whatever is in a record, its pieces are small, whole and valid. */
#include "../unit.h"
#include "drive/page.h"
#include "engine/utf8.h"
#include "repl/out/out.h"

/* The first piece of a record; the rest is dropped. */
static struct page first_page(cJSON *record, const char *words, size_t budget)
{
    struct pages *pages = NULL;
    struct page page;
    struct gd_buf text = GD_BUF_INIT(1 << 20);

    gd_buf_puts(&text, words);
    assert_ok(pages_create(&pages, NULL));
    page_first(pages, &text, record, false, budget, &page);
    pages_destroy(pages);
    gd_buf_deinit(&text);
    return page;
}

static cJSON *repeat_text(const char *part, int count)
{
    struct gd_buf text = GD_BUF_INIT(1 << 20);

    for (int i = 0; i < count; i++) {
        gd_buf_puts(&text, part);
    }
    cJSON *string = cJSON_CreateString(gd_buf_text(&text));
    gd_buf_deinit(&text);
    return string;
}

/* What is around the list takes more than half of the room: the list is shown, not dropped. */
static void test_the_list_stays(void **state)
{
    cJSON *record = cJSON_CreateObject(), *part;

    out_set(record, OUT_TEXT("type", "nodes"), OUT_TEXT("command", "info nodes"));
    part = out_list(out_object(record, "part"), "nodes");
    for (int i = 0; i < 100; i++) {
        cJSON_AddItemToArray(part, repeat_text("conv", 10));
    }
    cJSON_AddItemToObject(record, "first", repeat_text("a", 300));
    cJSON_AddItemToObject(record, "second", repeat_text("b", 300));
    struct page page = first_page(record, "", 1000);
    const cJSON *list = cJSON_GetObjectItem(cJSON_GetObjectItem(page.record, "part"), "nodes");
    assert_true(cJSON_GetArraySize(list) > 0);
    assert_string_not_equal(page.cursor, "");
    page_free(&page);
}

static void test_long_text_is_cut_between_characters(void **state)
{
    cJSON *record = cJSON_CreateObject();

    out_set(record, OUT_TEXT("type", "text"));
    cJSON_AddItemToObject(record, "text", repeat_text("\u00e9", 1000));
    struct page page = first_page(record, "", 1000);
    const char *text = out_text_of(page.record, "text");
    assert_true(strlen(text) > 390 && strlen(text) <= 400);
    assert_true(gd_utf8_is_safe_text(text, strlen(text)));
    assert_string_equal(text + strlen(text) - 3, "...");
    page_free(&page);
}

/* Such bytes come from the output of a training, and have no beginning of a character. */
static void test_bytes_that_are_no_text(void **state)
{
    cJSON *record = cJSON_CreateObject();

    out_set(record, OUT_TEXT("type", "text"));
    cJSON_AddItemToObject(record, "text", repeat_text("\x80", 3000));
    cJSON *words = repeat_text("\x80", 3000);
    struct page page = first_page(record, words->valuestring, 1000);
    assert_true(strlen(out_text_of(page.record, "text")) <= 400);
    assert_true(page.text.len > 900 && page.text.len <= 1000);
    assert_string_not_equal(page.cursor, "");
    page_free(&page);
    cJSON_Delete(words);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_list_stays),
    cmocka_unit_test(test_long_text_is_cut_between_characters),
    cmocka_unit_test(test_bytes_that_are_no_text),
};
RUN_TESTS()
