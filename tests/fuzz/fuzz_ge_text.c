// SPDX-License-Identifier: GPL-3.0-or-later
/* The text of a compiled graph: as fields, and as a graph whose strings and counts must be
 * valid. */
#include "fuzz_disk.h"

#include <fcntl.h>
#include <string.h>

#include "dump/cann/ge_graph.h"
#include "dump/cann/text_proto.h"

static void read_fields(struct gd_disk *disk)
{
    struct gd_text_field field;
    struct gd_text *text;
    struct gd_err err = {0};
    int depth = 0;

    FUZZ_CHECK(gd_text_open(disk, &text, NULL) == GD_OK);
    while (gd_text_next(text, &field, &err) == GD_OK) {
        if (field.kind == GD_TEXT_END && field.depth == 0 && depth == 0) {
            gd_text_close(text);
            return;
        }
        FUZZ_CHECK(field.value[field.len] == '\0' && field.depth <= GD_TEXT_DEPTH);
        depth += field.kind == GD_TEXT_BEGIN ? 1 : field.kind == GD_TEXT_END ? -1 : 0;
        FUZZ_CHECK(depth >= 0);
    }
    FUZZ_CHECK(err.text[0] != '\0');
    gd_text_close(text);
}

static void check_op(const struct gd_ge_op *op)
{
    FUZZ_CHECK(op->name && op->type);
    for (uint32_t i = 0; i < op->input_count; i++) {
        size_t len;
        int64_t slot;

        if (gd_ge_input(op->input[i], &len, &slot)) {
            FUZZ_CHECK(len < strlen(op->input[i]) && slot >= -1);
        }
    }
    for (uint32_t i = 0; i < op->attr_count; i++) {
        FUZZ_CHECK(op->attr[i].name && op->attr[i].value);
    }
    for (uint32_t i = 0; i < op->out_count; i++) {
        FUZZ_CHECK(op->out[i].shape.rank >= 0 && op->out[i].shape.rank <= GD_MAX_RANK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = fuzz_disk(data, size);
    struct gd_ge_model *model;
    char name[64];

    read_fields(disk);
    if (gd_ge_read_name(disk, name, sizeof(name), NULL) == GD_OK) {
        FUZZ_CHECK(strlen(name) < sizeof(name));
    }
    if (gd_ge_read(disk, &model, NULL) == GD_OK) {
        FUZZ_CHECK(model->graph_count > 0);
        for (uint32_t g = 0; g < model->graph_count; g++) {
            for (uint32_t i = 0; i < model->graph[g].op_count; i++) {
                check_op(&model->graph[g].op[i]);
            }
        }
        gd_ge_free(model);
    }
    gd_disk_unref(disk);
    return 0;
}
