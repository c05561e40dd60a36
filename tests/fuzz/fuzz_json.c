// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * JSON, and the indexes of sharded checkpoints. What is accepted can be written and read again,
 * with the same result.
 */
#include "fuzz_archive.h"

#include "dump/io/json.h"

/* cJSON writes neither NaN nor an infinity. */
static bool has_odd_number(const char *text, size_t size)
{
    return memmem(text, size, "N", 1) || memmem(text, size, "I", 1) || memmem(text, size, "e", 1) ||
           memmem(text, size, "E", 1);
}

static void check_again(const cJSON *tree)
{
    char *text = cJSON_PrintUnformatted(tree);
    cJSON *again;

    FUZZ_CHECK(text);
    FUZZ_CHECK(gd_json_parse(text, strlen(text), NULL, &again, NULL) == GD_OK);
    FUZZ_CHECK(cJSON_Compare(tree, again, true));
    cJSON_Delete(again);
    cJSON_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_json_options unique = {.unique = true, .max_depth = 8, .what = "FILE"};
    const char *text = (const char *)data;
    struct gd_err err = {.text = ""};
    cJSON *tree;

    if (gd_json_parse(text, size, NULL, &tree, &err) == GD_OK) {
        if (!has_odd_number(text, size)) {
            check_again(tree);
        }
        cJSON_Delete(tree);
    } else {
        FUZZ_CHECK(err.text[0] && err.offset <= size);
    }
    if (gd_json_parse(text, size, &unique, &tree, NULL) == GD_OK) {
        cJSON_Delete(tree);
    }
    fuzz_archive(data, size, "sharded", false);
    return 0;
}
