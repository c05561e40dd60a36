// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * CANN's dumps: the first byte says what the rest is: a container, whose tensors are read in their
 * own and in another layout; a table of statistics; an overflow record; names.
 */
#include "fuzz_disk.h"

#include <string.h>

#include "dump/cann/cann_file_name.h"
#include "dump/cann/cann_opdebug.h"
#include "dump/cann/cann_path.h"
#include "dump/cann/cann_source.h"
#include "dump/cann/cann_stats.h"
#include "dump/cann/cann_types.h"

#define MAX_TENSORS 16
#define MAX_BYTES   ((size_t)1 << 20)

/* What is read has the announced shape, and no more of the file than there is. */
static void read_source(struct gd_source *source)
{
    struct gd_source_info info;
    struct gd_tensor *tensor;

    if (gd_source_info(source, &info, NULL) != GD_OK) {
        return;
    }
    FUZZ_CHECK(gd_shape_count(&info.shape) >= 0 && info.note);
    if (gd_source_read(source, NULL, MAX_BYTES, &tensor, NULL) == GD_OK) {
        FUZZ_CHECK(tensor->dtype == info.dtype && gd_shape_equal(&tensor->shape, &info.shape));
        gd_tensor_unref(tensor);
    }
}

static void look_at(struct gd_disk *disk, const struct gd_cann_file *file,
                    const struct gd_cann_tensor *tensor, int32_t to)
{
    struct gd_source *source;

    FUZZ_CHECK(tensor->there <= tensor->size);
    if (gd_cann_source(disk, file, tensor, tensor->original_format, -1, &source, NULL) == GD_OK) {
        read_source(source);
        gd_source_unref(source);
    }
    if (gd_cann_source(disk, file, tensor, -1, to, &source, NULL) == GD_OK) {
        read_source(source);
        gd_source_unref(source);
    }
    if (gd_cann_source_stored(disk, file, tensor, &source, NULL) == GD_OK) {
        read_source(source);
        gd_source_unref(source);
    }
}

static void check_container(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = fuzz_disk(data, size);
    struct gd_cann_file *file;
    struct gd_err err = {0};

    if (gd_cann_read(disk, &file, &err) == GD_OK) {
        for (uint32_t i = 0; i < file->count && i < MAX_TENSORS; i++) {
            FUZZ_CHECK(gd_cann_find(file, file->tensor[i].io, file->tensor[i].index) ==
                       &file->tensor[i]);
            look_at(disk, file, &file->tensor[i], (int32_t)(i % 40));
        }
        gd_cann_free(file);
    } else {
        FUZZ_CHECK(err.text[0] != '\0');
    }
    gd_disk_unref(disk);
}

static int on_row(void *ctx, const struct gd_cann_stats_row *row)
{
    FUZZ_CHECK(row->index <= 65535 && (!row->has_shape || gd_shape_count(&row->shape) >= 0));
    return 0;
}

static void check_record(const uint8_t *data, size_t size)
{
    unsigned char bytes[GD_CANN_OPDEBUG_BYTES] = {0};
    struct gd_buf text = GD_BUF_INIT((size_t)1 << 20);
    struct gd_cann_opdebug got;

    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    if (gd_cann_opdebug_read(bytes, sizeof(bytes), &got)) {
        gd_cann_opdebug_text(&got, &text);
        gd_cann_opdebug_json(&got, &text);
        FUZZ_CHECK(!text.failed && text.len > 0);
    }
    gd_buf_deinit(&text);
}

static void check_name(const uint8_t *data, size_t size)
{
    char text[600], *part[8], *rest;
    struct gd_cann_path place;
    struct gd_cann_name got;
    int count = 0;

    size = size < sizeof(text) ? size : sizeof(text) - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int exceptions = 0; exceptions < 2; exceptions++) {
        if (gd_cann_name_parse(text, exceptions, &got) && got.type_len > 0) {
            FUZZ_CHECK(got.type == text && got.name > text &&
                       got.name + got.name_len <= text + strlen(text));
        }
    }
    for (char *at = strtok_r(text, "/", &rest); at && count < 8; at = strtok_r(NULL, "/", &rest)) {
        part[count++] = at;
    }
    gd_cann_path((const char *const *)part, count, count / 2, &place);
    FUZZ_CHECK(place.rank >= 0 && place.levels <= 8 && place.model && place.start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_disk *disk;

    if (size == 0) {
        return 0;
    }
    switch (data[0] % 4) {
    case 0: check_container(data + 1, size - 1); break;
    case 1:
        disk = fuzz_disk(data + 1, size - 1);
        gd_cann_stats_read(disk, on_row, NULL, NULL);
        gd_disk_unref(disk);
        break;
    case 2: check_record(data + 1, size - 1); break;
    default: check_name(data + 1, size - 1); break;
    }
    return 0;
}
