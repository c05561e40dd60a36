// SPDX-License-Identifier: GPL-3.0-or-later
/* The pickle reader, and the text of the values. The input is the program. */
#include "fuzz.h"

#include "dump/torch/pickle.h"

/* Containers may contain themselves: limit the number of values visited. */
static void visit_value(const struct gd_pickle_value *value, int *budget)
{
    const struct gd_pickle_value *dict = gd_pickle_dict(value);
    int64_t number;

    FUZZ_CHECK(gd_pickle_get_int(value, &number) == (value->kind == GD_PICKLE_INT));
    for (size_t i = 0; gd_pickle_item(value, i) && --*budget > 0; i++) {
        visit_value(gd_pickle_item(value, i), budget);
    }
    for (uint32_t i = 0; dict && i < dict->count && --*budget > 0; i++) {
        visit_value(dict->item[(size_t)i * 2], budget);
        visit_value(dict->item[(size_t)i * 2 + 1], budget);
    }
    if (value->kind == GD_PICKLE_OBJECT) {
        FUZZ_CHECK(value->object->args->kind == GD_PICKLE_TUPLE);
        FUZZ_CHECK(!value->object->list || value->object->list->kind == GD_PICKLE_LIST);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_buf text = GD_BUF_INIT(1 << 20);
    struct gd_err err = {.text = ""};
    struct gd_pickle *pickle;
    uint64_t end = 0;
    int budget = 500;

    if (gd_pickle_read_memory(data, size, "input", &pickle, &end, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0] && err.offset <= size);
        return 0;
    }
    FUZZ_CHECK(end > 0 && end <= size && gd_pickle_root(pickle));
    for (size_t i = 0; i < gd_pickle_global_count(pickle); i++) {
        FUZZ_CHECK(gd_pickle_global_at(pickle, i)->times > 0);
    }
    visit_value(gd_pickle_root(pickle), &budget);
    gd_pickle_print(gd_pickle_root(pickle), 200, &text);
    FUZZ_CHECK(text.len > 0);
    gd_buf_deinit(&text);
    gd_pickle_free(pickle);
    return 0;
}
