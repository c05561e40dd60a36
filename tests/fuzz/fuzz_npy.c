// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * NumPy's .npy, complete or truncated. Reading element by element gives the same as reading at
 * once, and statistics of the file equal those of the tensor in memory.
 */
#include "fuzz_archive.h"

#include "dump/files/npy.h"

static void check_runs(struct gd_source *source, const struct gd_tensor *whole)
{
    size_t item = gd_dtype_size(whole->dtype);
    int64_t count = gd_tensor_count(whole), n;
    unsigned char out[64 * 16];

    for (int64_t at = 0; at < count; at += n) {
        n = count - at < 64 ? count - at : 1 + at % 63;
        FUZZ_CHECK(gd_source_read_run(source, at, n, out, NULL) == GD_OK);
        FUZZ_CHECK(memcmp(out, whole->data + (size_t)at * item, (size_t)n * item) == 0);
    }
    FUZZ_CHECK(gd_source_read_run(source, count, 1, out, NULL) != GD_OK);
}

static void check_stats(struct gd_source *source, const struct gd_tensor *whole)
{
    struct gd_stats a, b;

    FUZZ_CHECK(gd_source_stats(source, NULL, NULL, &a, NULL) == GD_OK);
    FUZZ_CHECK(gd_stats_compute(whole, NULL, NULL, &b, NULL) == GD_OK);
    FUZZ_CHECK(a.count == b.count && a.nan == b.nan && a.zero == b.zero);
    FUZZ_CHECK(a.negative == b.negative && (a.min == b.min || a.count == a.nan));
}

static void check_array(struct gd_bytes *bytes, const struct gd_npy *npy, bool partial)
{
    struct gd_source *source;
    struct gd_tensor *whole;
    struct gd_err err = {.text = ""};

    if (gd_npy_source(bytes, npy, "FILE", partial, &source, NULL, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0]);
        return;
    }
    /* The file is small, so nothing in it is large. */
    FUZZ_CHECK(gd_source_read(source, NULL, FUZZ_READ_BYTES, &whole, NULL) == GD_OK);
    check_runs(source, whole);
    check_stats(source, whole);
    gd_tensor_unref(whole);
    gd_source_unref(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_err err = {.text = ""};
    struct gd_bytes *bytes;
    struct gd_npy npy;

    FUZZ_CHECK(gd_bytes_of_memory(data, size, NULL, NULL, &bytes, NULL) == GD_OK);
    if (gd_npy_read_header(bytes, NULL, &npy, &err) == GD_OK) {
        FUZZ_CHECK(npy.data <= size && npy.item > 0);
        check_array(bytes, &npy, false);
        check_array(bytes, &npy, true);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    gd_bytes_unref(bytes);
    return 0;
}
