// SPDX-License-Identifier: GPL-3.0-or-later
/* Stored types, strided sources, loaded bytes, files that are reopened. */
#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../scratch.h"
#include "../../unit.h"
#include "dump/io/listing.h"
#include "dump/io/source.h"

/* ---- stored types ---------------------------------------------------------------------------- */

static float widen_byte(enum gd_stored stored, unsigned char byte)
{
    float value;

    gd_stored_widen(stored, false, &byte, 0, 1, &value);
    return value;
}

static void test_hifloat8(void **state)
{
    static const struct {
        unsigned char byte;
        double value;
    } known[] = {{0x00, 0},       {0x01, 0x1p-22},   {0x07, 0x1p-16},  {0x08, 1},
                 {0x0c, 1.5},     {0x88, -1},        {0x10, 2},        {0x18, 0.5},
                 {0x20, 4},       {0x30, 0.25},      {0x40, 16},       {0x60, 256},
                 {0x6e, 0x1p15},  {0x7f, 0x1.8p-15}, {0x6f, INFINITY}, {0xef, -INFINITY},
                 {0x87, -0x1p-16}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_true((double)widen_byte(GD_STORED_HIFLOAT8, known[i].byte) == known[i].value);
    }
    assert_true(isnan(widen_byte(GD_STORED_HIFLOAT8, 0x80)));
}

static void test_less_than_a_byte(void **state)
{
    const unsigned char bytes[] = {0x8f, 0xb1};
    unsigned char u[16];
    signed char s[8];
    float f[2];

    gd_stored_widen(GD_STORED_INT4, false, bytes, 0, 4, s);
    assert_true(s[0] == -1 && s[1] == -8 && s[2] == 1 && s[3] == -5);
    gd_stored_widen(GD_STORED_UINT4, false, bytes, 1, 2, u);
    assert_true(u[0] == 8 && u[1] == 1);
    gd_stored_widen(GD_STORED_INT2, false, bytes, 4, 4, s);
    assert_true(s[0] == 1 && s[1] == 0 && s[2] == -1 && s[3] == -2);
    gd_stored_widen(GD_STORED_UINT1, false, bytes, 0, 16, u);
    assert_memory_equal(u, "\1\0\0\0\1\1\1\1\1\0\1\1\0\0\0\1", 16);
    gd_stored_widen(GD_STORED_FLOAT4_E2M1, false, bytes, 0, 2, f);
    assert_true((double)f[0] == -6 && (double)f[1] == 0 && signbit(f[1]));
    gd_stored_widen(GD_STORED_FLOAT4_E1M2, false, bytes, 2, 2, f);
    assert_true((double)f[0] == 0.25 && (double)f[1] == -0.75);
    assert_true((double)widen_byte(GD_STORED_FLOAT6_E2M3, 0x3f) == -7.5);
    assert_true((double)widen_byte(GD_STORED_FLOAT6_E2M3, 0x01) == 0.125);
    assert_true((double)widen_byte(GD_STORED_FLOAT6_E3M2, 0x1f) == 28);
    assert_true((double)widen_byte(GD_STORED_FLOAT6_E3M2, 0x21) == -0.0625);
}

static void test_names(void **state)
{
    for (int i = GD_STORED_BOOL; i < GD_STORED_OPAQUE; i++) {
        assert_int_equal(gd_stored_from_name(gd_stored_name((enum gd_stored)i)), i);
        assert_true(gd_stored_bits((enum gd_stored)i) > 0);
        assert_true(gd_dtype_size(gd_stored_dtype((enum gd_stored)i)) > 0);
    }
    assert_int_equal(gd_stored_from_name("torch.BFloat16"), GD_STORED_BFLOAT16);
    assert_int_equal(gd_stored_from_name("BF16"), GD_STORED_BFLOAT16);
    assert_int_equal(gd_stored_from_name("DT_FLOAT"), GD_STORED_FLOAT32);
    assert_int_equal(gd_stored_from_name("Int64"), GD_STORED_INT64);
    assert_int_equal(gd_stored_from_name("u8"), GD_STORED_UINT64);
    assert_int_equal(gd_stored_from_name("opaque"), GD_STORED_NONE);
    assert_int_equal(gd_stored_from_name(""), GD_STORED_NONE);
    assert_int_equal(gd_stored_of_dtype(GD_BFLOAT16), GD_STORED_BFLOAT16);
}

/* ---- sources --------------------------------------------------------------------------------- */

#define ELEMENTS 5000

/* The bytes of 0, 1, 2, ... */
static struct gd_bytes *make_numbers(void)
{
    static int32_t numbers[ELEMENTS];
    struct gd_bytes *bytes;

    for (int32_t i = 0; i < ELEMENTS; i++) {
        numbers[i] = i;
    }
    assert_ok(gd_bytes_of_memory(numbers, sizeof(numbers), NULL, NULL, &bytes, NULL));
    return bytes;
}

static void check_layout(const struct gd_source_desc *desc)
{
    const struct gd_shape *shape = &desc->shape;
    struct gd_source *source;
    struct gd_tensor *whole;
    struct gd_stats stats, want;
    int32_t out[7];

    assert_ok(gd_source_create(desc, &source, NULL));
    assert_ok(gd_source_read(source, NULL, 0, &whole, NULL));
    for (int64_t i = 0; i < gd_tensor_count(whole); i++) {
        int64_t at = desc->offset, rest = i;

        for (int k = shape->rank - 1; k >= 0; k--) {
            at += rest % shape->dim[k] * desc->stride[k];
            rest /= shape->dim[k];
        }
        assert_int_equal(((const int32_t *)(const void *)whole->data)[i], at);
    }
    for (int64_t i = 0; i + 7 <= gd_tensor_count(whole); i += 5) {
        assert_ok(gd_source_read_run(source, i, 7, out, NULL));
        assert_memory_equal(out, whole->data + i * 4, sizeof(out));
    }
    assert_ok(gd_source_stats(source, NULL, NULL, &stats, NULL));
    assert_ok(gd_stats_compute(whole, NULL, NULL, &want, NULL));
    assert_true(stats.min == want.min && stats.max == want.max && stats.count == want.count);
    gd_tensor_unref(whole);
    gd_source_unref(source);
}

static void test_layouts(void **state)
{
    struct gd_bytes *bytes = make_numbers();
    struct gd_source_desc desc = {.bytes = bytes, .stored = GD_STORED_INT32, .has_stride = true};

    desc.shape = (struct gd_shape){3, {4, 5, 6}};
    memcpy(desc.stride, (int64_t[]){1, 4, 20}, 3 * sizeof(int64_t)); /* Fortran's */
    check_layout(&desc);
    memcpy(desc.stride, (int64_t[]){-30, 6, -1}, 3 * sizeof(int64_t));
    desc.offset = 95;
    check_layout(&desc);
    memcpy(desc.stride, (int64_t[]){0, 900, 3}, 3 * sizeof(int64_t)); /* repeated; far apart */
    desc.offset = 7;
    check_layout(&desc);
    desc.shape = (struct gd_shape){2, {50, 60}};
    memcpy(desc.stride, (int64_t[]){3, 70}, 2 * sizeof(int64_t));
    check_layout(&desc);
    desc.shape = (struct gd_shape){0, {0}};
    desc.offset = ELEMENTS - 1;
    check_layout(&desc);
    gd_bytes_unref(bytes);
}

/* Steps that are never taken may have any value. */
static void test_absurd_steps(void **state)
{
    struct gd_bytes *bytes = make_numbers();
    struct gd_source_desc desc = {.bytes = bytes,
                                  .stored = GD_STORED_INT32,
                                  .has_stride = true,
                                  .shape = {3, {1, 4, 1}},
                                  .stride = {INT64_MIN, -1, INT64_MAX},
                                  .offset = 3};
    static const char text[] = "[::-1,1:,0]";
    struct gd_source *source;
    struct gd_tensor *tensor;
    struct gd_stats stats;
    struct gd_slice slice;

    assert_ok(gd_slice_parse(text, sizeof(text) - 1, NULL, &slice, NULL));
    assert_ok(gd_source_create(&desc, &source, NULL));
    assert_ok(gd_source_stats(source, NULL, NULL, &stats, NULL));
    assert_true(stats.min == 0 && stats.max == 3 && stats.count == 4);
    assert_ok(gd_source_read(source, &slice, 0, &tensor, NULL));
    assert_int_equal(gd_tensor_count(tensor), 3);
    assert_memory_equal(tensor->data, ((int32_t[]){2, 1, 0}), 12);
    gd_tensor_unref(tensor);
    gd_source_unref(source);
    desc.shape = (struct gd_shape){3, {5, 0, 5}};
    memcpy(desc.stride, (int64_t[]){INT64_MAX, 1, INT64_MIN}, 3 * sizeof(int64_t));
    desc.offset = INT64_MAX;
    assert_ok(gd_source_create(&desc, &source, NULL));
    assert_ok(gd_source_stats(source, NULL, NULL, &stats, NULL));
    assert_true(stats.count == 0);
    assert_ok(gd_slice_parse("[4,:,4]", 7, NULL, &slice, NULL));
    assert_ok(gd_source_read(source, &slice, 0, &tensor, NULL));
    assert_int_equal(gd_tensor_count(tensor), 0);
    gd_tensor_unref(tensor);
    gd_source_unref(source);
    gd_bytes_unref(bytes);
}

static void test_reach(void **state)
{
    struct gd_bytes *bytes = make_numbers();
    struct gd_source_desc desc = {.bytes = bytes,
                                  .stored = GD_STORED_INT32,
                                  .has_stride = true,
                                  .shape = {2, {10, 10}},
                                  .stride = {10, 1}};
    struct gd_source *source;

    desc.offset = ELEMENTS - 99;
    assert_int_equal(gd_source_create(&desc, &source, NULL), GD_EPROTO);
    desc.offset = 8;
    desc.stride[1] = -1;
    assert_int_equal(gd_source_create(&desc, &source, NULL), GD_EPROTO);
    desc.stride[1] = INT64_MAX / 4;
    assert_int_equal(gd_source_create(&desc, &source, NULL), GD_EPROTO);
    desc.offset = INT64_MAX;
    desc.stride[1] = 1;
    assert_int_equal(gd_source_create(&desc, &source, NULL), GD_EPROTO);
    gd_bytes_unref(bytes);
}

static void test_signs(void **state)
{
    static const float parts[] = {1, 2, -3, 0};
    struct gd_source_desc desc = {
        .stored = GD_STORED_COMPLEX64, .conjugate = true, .shape = {1, {2}}};
    struct gd_source *source;
    float out[4];

    assert_ok(gd_bytes_of_memory(parts, sizeof(parts), NULL, NULL, &desc.bytes, NULL));
    assert_ok(gd_source_create(&desc, &source, NULL));
    assert_ok(gd_source_read_run(source, 0, 2, out, NULL));
    assert_memory_equal(out, ((float[]){1, -2, -3, -0.0F}), sizeof(out));
    gd_source_unref(source);
    desc = (struct gd_source_desc){
        .bytes = desc.bytes, .stored = GD_STORED_FLOAT32, .negate = true, .shape = {1, {4}}};
    assert_ok(gd_source_create(&desc, &source, NULL));
    assert_ok(gd_source_read_run(source, 0, 4, out, NULL));
    assert_memory_equal(out, ((float[]){-1, -2, 3, -0.0F}), sizeof(out));
    gd_source_unref(source);
    gd_bytes_unref(desc.bytes);
}

/* ---- bytes that are made --------------------------------------------------------------------- */

static int loads;

static int load_late(void *ctx, void *ret, size_t size, struct gd_err *err)
{
    if (loads++ == 0) {
        return gd_fail(err, GD_EPROTO, "not yet");
    }
    memset(ret, *(const int *)ctx, size);
    return GD_OK;
}

static void count_free(void *ctx)
{
    *(int *)ctx = -1;
}

static void test_loaded_bytes(void **state)
{
    int value = 5;
    struct gd_bytes *bytes;
    unsigned char out[2];
    struct gd_err err;

    assert_ok(gd_bytes_of_load(load_late, count_free, &value, 100, &bytes, NULL));
    assert_int_equal(gd_bytes_read(bytes, 0, out, 2, &err), GD_EPROTO);
    assert_string_equal(err.text, "not yet");
    assert_ok(gd_bytes_read(bytes, 98, out, 2, NULL));
    assert_ok(gd_bytes_read(bytes, 0, out, 2, NULL));
    assert_true(out[1] == 5 && loads == 2);
    assert_int_equal(gd_bytes_read(bytes, 99, out, 2, NULL), GD_EPROTO);
    assert_int_equal(gd_bytes_read(bytes, UINT64_MAX, out, 2, NULL), GD_EPROTO);
    gd_bytes_unref(bytes);
    assert_int_equal(value, -1);
}

/* ---- more sources than stay open ------------------------------------------------------------- */

#define SOURCES 66000

static int opens;

static int open_one(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    static unsigned char byte;
    struct gd_source_desc desc = {.stored = GD_STORED_UINT8, .note = "a note"};
    int rc = gd_bytes_of_memory(&byte, 1, NULL, NULL, &desc.bytes, err);

    opens++;
    assert_ok(rc);
    rc = gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    return rc;
}

/* After many were used, only a limited number stay open; each can be used again, and keeps its
 * info. */
static void test_sources_are_closed(void **state)
{
    static const struct gd_source_ops ops = {.open = open_one};
    static struct gd_source *source[SOURCES];
    struct gd_source_info info, again;

    for (int i = 0; i < SOURCES; i++) {
        unsigned char value = 1;

        assert_ok(gd_source_create_lazy(&ops, NULL, &source[i], NULL));
        assert_ok(gd_source_info(source[i], &info, NULL));
        gd_source_close(source[i]);
        assert_ok(gd_source_read_run(source[i], 0, 1, &value, NULL));
        assert_int_equal(value, 0);
        gd_source_close(source[i]);
    }
    assert_in_range(opens, SOURCES + 1, 2 * SOURCES);
    opens = 0;
    for (int i = 0; i < 10; i++) {
        assert_ok(gd_source_info(source[i], &again, NULL));
    }
    assert_int_equal(opens, 0);
    assert_ok(gd_source_info(source[SOURCES - 1], &again, NULL));
    assert_int_equal(opens, 0); /* its info is known */
    assert_ptr_equal(again.note, info.note);
    assert_string_equal(again.note, "a note");
    for (int i = 0; i < SOURCES; i++) {
        gd_source_unref(source[i]);
    }
}

/* ---- more files than may be open ------------------------------------------------------------- */

#define FILES 90 /* more than half of 64 descriptors */

static char home[SCRATCH_PATH];

static void name_of(int i, char *out, size_t size)
{
    snprintf(out, size, "%s/%d", home, i);
}

static void write_number(const char *path, int number)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fprintf(file, "%04d", number) == 4);
    assert_int_equal(fclose(file), 0);
}

static void check_number(struct gd_disk *disk, int number)
{
    char text[5] = "", want[16];

    assert_ok(gd_disk_read(disk, 0, text, 4, NULL));
    snprintf(want, sizeof(want), "%04d", number);
    assert_string_equal(text, want);
}

static void test_files_are_opened_again(void **state)
{
    struct gd_disk *disk[FILES];
    char path[128], other[128];
    struct gd_err err;
    char byte;

    for (int i = 0; i < FILES; i++) {
        name_of(i, path, sizeof(path));
        write_number(path, i);
        assert_ok(gd_disk_open(AT_FDCWD, path, false, &disk[i], NULL));
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < FILES; i++) {
            check_number(disk[i], i);
        }
    }
    name_of(0, path, sizeof(path));
    name_of(FILES, other, sizeof(other));
    write_number(other, 7);
    assert_int_equal(rename(other, path), 0);
    assert_true(gd_disk_is_changed(disk[0]) && !gd_disk_is_changed(disk[1]));
    assert_int_equal(gd_disk_read(disk[0], 0, &byte, 1, &err), GD_EIO);
    assert_contains(err.text, "was replaced by another file");
    name_of(FILES - 1, path, sizeof(path));
    assert_int_equal(truncate(path, 2), 0);
    assert_int_equal(gd_disk_read(disk[FILES - 1], 0, other, 4, &err), GD_EPROTO);
    assert_contains(err.text, "was truncated while it was being read");
    for (int i = 0; i < FILES; i++) {
        gd_disk_unref(disk[i]);
        name_of(i, path, sizeof(path));
        assert_int_equal(unlink(path), 0);
    }
}

#define LARGE ((int64_t)3 << 20) /* elements: several pieces */

static bool refuse_progress(void *ctx, uint64_t done)
{
    *(uint64_t *)ctx = done;
    return false;
}

/* A file that is truncated while it is read by several threads; and a caller that cancels. */
static void test_statistics_that_end_early(void **state)
{
    uint64_t done = 0;
    struct gd_stats_options options = {.threads = 2, .go_on = refuse_progress, .go_on_ctx = &done};
    struct gd_source_desc desc = {.stored = GD_STORED_FLOAT32, .shape = {1, {LARGE}}};
    struct gd_source *source;
    struct gd_disk *disk;
    struct gd_stats stats;
    struct gd_err err;
    char path[128];

    name_of(0, path, sizeof(path));
    write_number(path, 0);
    assert_int_equal(truncate(path, LARGE * 4), 0);
    assert_ok(gd_disk_open(AT_FDCWD, path, true, &disk, NULL));
    assert_ok(gd_bytes_of_disk(disk, 0, (uint64_t)LARGE * 4, &desc.bytes, NULL));
    assert_ok(gd_source_create(&desc, &source, NULL));
    options.threads = 1;
    assert_int_equal(gd_source_stats(source, NULL, &options, &stats, &err), GD_EINTR);
    assert_true(done > 0 && done < (uint64_t)LARGE);
    options = (struct gd_stats_options){.threads = 2};
    assert_ok(gd_source_stats(source, NULL, &options, &stats, &err));
    assert_true(stats.count == (uint64_t)LARGE && stats.zero == (uint64_t)LARGE - 1);
    assert_int_equal(truncate(path, 1 << 20), 0);
    for (options.threads = 1; options.threads <= 2; options.threads++) {
        assert_int_equal(gd_source_stats(source, NULL, &options, &stats, &err), GD_EPROTO);
        assert_contains(err.text, "truncated while it was being read: it now ends at byte 1048576");
    }
    gd_source_unref(source);
    gd_bytes_unref(desc.bytes);
    gd_disk_unref(disk);
    assert_int_equal(unlink(path), 0);
}

static void test_first_bytes_of_a_lost_file(void **state)
{
    char path[128], start[16] = "of before";
    struct gd_listing *listing;

    name_of(0, path, sizeof(path));
    write_number(path, 0);
    assert_ok(gd_listing_read(path, 0, NULL, NULL, &listing, NULL));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(gd_listing_peek(listing, 0, start, sizeof(start)), 0);
    assert_string_equal(start, "");
    gd_listing_free(listing);
}

static int make_home(void **state)
{
    struct rlimit limit = {64, 64};

    return scratch_folder(home) && setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : -1;
}

static int remove_home(void **state)
{
    return rmdir(home);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hifloat8),
    cmocka_unit_test(test_less_than_a_byte),
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_layouts),
    cmocka_unit_test(test_absurd_steps),
    cmocka_unit_test(test_reach),
    cmocka_unit_test(test_signs),
    cmocka_unit_test(test_loaded_bytes),
    cmocka_unit_test(test_sources_are_closed),
    cmocka_unit_test(test_files_are_opened_again),
    cmocka_unit_test(test_statistics_that_end_early),
    cmocka_unit_test(test_first_bytes_of_a_lost_file),
};

RUN_TESTS_BETWEEN(make_home, remove_home)
