// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The reader of saved scans. The first byte says whether the checksums of records are repaired
 * first, so that the code after the check is reached.
 */
#include "fuzz.h"

#include <endian.h>
#include <zlib.h>

#include "dump/scan/scan_file.h"

#define START 8
#define HEAD  12

static uint32_t read_le32(const uint8_t *p)
{
    uint32_t value;

    memcpy(&value, p, 4);
    return le32toh(value);
}

static void repair_sums(uint8_t *bytes, size_t size)
{
    size_t at = START;

    while (size >= at + HEAD) {
        size_t len = read_le32(bytes + at + 4);

        if (len > size - at - HEAD) {
            len = size - at - HEAD; /* the last one takes the rest */
            uint32_t rest = htole32((uint32_t)len);
            memcpy(bytes + at + 4, &rest, 4);
        }
        uLong sum = crc32(0, bytes + at, 8);
        uint32_t mended = htole32((uint32_t)crc32(sum, bytes + at + HEAD, (uInt)len));
        memcpy(bytes + at + 8, &mended, 4);
        at += HEAD + len;
    }
}

static void check_unit(const struct gd_scan_file *file, uint32_t number, uint64_t *seen)
{
    const struct gd_scan_unit *unit = gd_scan_file_unit(file, number);
    uint32_t last = gd_scan_file_find(file, unit->member, unit->step);
    const struct gd_scan_stats *figures;

    FUZZ_CHECK(last != UINT32_MAX && last >= number);
    for (uint32_t i = 0; i < unit->items && i < 100; i++) {
        if (gd_scan_file_result(file, number, i, &figures)) {
            ++*seen;
            FUZZ_CHECK(!figures || figures->error || figures->stats.nan <= figures->stats.count);
            FUZZ_CHECK(!figures ||
                       (figures->shape.rank >= 0 && figures->shape.rank <= GD_MAX_RANK &&
                        gd_shape_count(&figures->shape) >= 0));
        }
    }
    FUZZ_CHECK(!gd_scan_file_result(file, number, unit->items, &figures));
}

/* What was read and is written again reads the same. */
static void check_again(const struct gd_scan_file *file)
{
    struct gd_buf out = GD_BUF_INIT(1 << 24);
    struct gd_scan_file *again;

    gd_scan_put_start(&out, gd_scan_file_head(file));
    for (uint32_t number = 0; number < gd_scan_file_units(file); number++) {
        const struct gd_scan_unit *unit = gd_scan_file_unit(file, number);

        gd_scan_put_unit(&out, number, unit);
        for (uint32_t i = 0; i < unit->items && i < 100; i++) {
            struct gd_scan_result result = {.index = i};

            if (gd_scan_file_result(file, number, i, &result.figures)) {
                gd_scan_put_results(&out, number, &result, 1);
            }
        }
    }
    gd_scan_put_end(&out);
    FUZZ_CHECK(!out.failed && gd_scan_file_read(out.data, out.len, &again, NULL) == GD_OK);
    FUZZ_CHECK(gd_scan_file_is_complete(again) && gd_scan_file_good(again) == out.len);
    FUZZ_CHECK(gd_scan_file_units(again) == gd_scan_file_units(file));
    FUZZ_CHECK(gd_scan_head_equal(gd_scan_file_head(again), gd_scan_file_head(file)));
    gd_scan_file_free(again);
    gd_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_scan_file *file = NULL;
    struct gd_err err = {.text = ""};
    uint64_t seen = 0;

    if (size < 1) {
        return 0;
    }
    uint8_t *bytes = malloc(size);
    FUZZ_CHECK(bytes);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1) {
        repair_sums(bytes, size - 1);
    }
    if (gd_scan_file_read(bytes, size - 1, &file, &err) == GD_OK) {
        for (uint32_t i = 0; i < gd_scan_file_units(file); i++) {
            check_unit(file, i, &seen);
        }
        FUZZ_CHECK(gd_scan_file_good(file) <= size - 1);
        check_again(file);
        gd_scan_file_free(file);
    } else {
        FUZZ_CHECK(!file && err.text[0]);
    }
    free(bytes);
    return 0;
}
