// SPDX-License-Identifier: GPL-3.0-or-later
#include <dirent.h>
#include <unistd.h>

#include "../../scratch.h"
#include "../../unit.h"
#include "history_bench.h"

char hist_home[SCRATCH_PATH];
char hist_path[256];

int hist_make_home(void **state)
{
    if (!scratch_folder(hist_home) || setenv("XDG_STATE_HOME", hist_home, 1)) {
        return -1;
    }
    snprintf(hist_path, sizeof(hist_path), "%s/file", hist_home);
    return 0;
}

static void empty_directory(const char *name)
{
    DIR *directory = opendir(name);

    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char full[600];

        snprintf(full, sizeof(full), "%s/%s", name, entry->d_name);
        unlink(full);
    }
    if (directory) {
        closedir(directory);
    }
}

int hist_drop_home(void **state)
{
    char state_dir[300];

    snprintf(state_dir, sizeof(state_dir), "%s/gradb", hist_home);
    empty_directory(state_dir);
    rmdir(state_dir);
    empty_directory(hist_home);
    return rmdir(hist_home);
}

struct gd_history_tensor hist_tensor(const char *name)
{
    return (struct gd_history_tensor){.name = name,
                                      .type = "MatMul",
                                      .file = "model.py",
                                      .line = 42,
                                      .kind = GD_NODE_GRADIENT,
                                      .dtype = GD_FLOAT32,
                                      .order = 7,
                                      .shape = {.rank = 2, .dim = {3, -1}}};
}

/* Every field has a value of its own. */
struct gd_history_record hist_record(int64_t step, double x)
{
    return (struct gd_history_record){.step = step,
                                      .has_stats = true,
                                      .stats = {.count = 1000,
                                                .nan = 1,
                                                .pos_inf = 2,
                                                .neg_inf = 3,
                                                .zero = 4,
                                                .neg_zero = 5,
                                                .positive = 6,
                                                .negative = 7,
                                                .denormal = 8,
                                                .min = -x,
                                                .max = x,
                                                .mean = x / 2,
                                                .abs_mean = x / 3,
                                                .sum_sq = x * x,
                                                .std = x / 5,
                                                .has_prev = true,
                                                .mean_abs_delta = x / 7,
                                                .mean_delta = -x / 7,
                                                .sum_sq_delta = x / 9,
                                                .max_abs_delta = x / 11,
                                                .mean_abs_prev = x / 13,
                                                .dot = x / 17,
                                                .sum_sq_prev = x / 19,
                                                .mismatch = 9}};
}

void hist_add(struct gd_history *history, const char *name, int64_t step, double x)
{
    struct gd_history_tensor tensor = hist_tensor(name);
    struct gd_history_record record = hist_record(step, x);
    struct gd_err err = {0};

    if (gd_history_add(history, &tensor, &record, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
}

struct gd_history *hist_create(uint64_t bytes)
{
    struct gd_peer peer = {.program = "/opt/train me.py",
                           .framework = "f",
                           .pid = 77,
                           .rank = 3,
                           .world_size = 8,
                           .host = "node7",
                           .version = "1.2",
                           .device = "cpu"};
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    if (gd_history_create(hist_path, bytes, &peer, &history, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
    return history;
}

struct gd_history *hist_open_again(void)
{
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    if (gd_history_open(hist_path, &history, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
    return history;
}

struct gd_history_record hist_records[5000];

size_t hist_read_all(const struct gd_history *history, const char *name)
{
    uint32_t index;

    return gd_history_find(history, name, 0, &index)
               ? gd_history_read(history, index, hist_records,
                                 sizeof(hist_records) / sizeof(hist_records[0]))
               : 0;
}

void hist_expect_stats(const struct gd_stats *a, double x)
{
    struct gd_stats b = hist_record(0, x).stats;

    assert_memory_equal(a, &b, sizeof(b));
}

/* The steps first ... last, each with x = 10 * step. */
void hist_expect_steps(const struct gd_history *history, const char *name, int64_t first,
                       int64_t last)
{
    size_t count = hist_read_all(history, name);

    assert_int_equal(count, last - first + 1);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(hist_records[i].step, first + (int64_t)i);
        assert_true(hist_records[i].has_stats);
        hist_expect_stats(&hist_records[i].stats, 10 * (double)hist_records[i].step);
    }
}

void hist_expect_no_file(uint64_t bytes, int code, const char *text)
{
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    assert_int_equal(gd_history_create(hist_path, bytes, NULL, &history, &err), code);
    assert_null(history);
    if (!strstr(err.text, text)) {
        fail_msg("\"%s\" lacks \"%s\"", err.text, text);
    }
}
uint64_t hist_ring_offset(const unsigned char *bytes)
{
    uint64_t offset = 0;

    for (int i = 7; i >= 0; i--) {
        offset = offset << 8 | bytes[RING_FIELD + i];
    }
    return offset;
}

unsigned char *hist_read_bytes(size_t *size)
{
    FILE *file = fopen(hist_path, "rb");
    unsigned char *bytes = malloc(64 * KIB);

    assert_non_null(file);
    *size = fread(bytes, 1, 64 * KIB, file);
    fclose(file);
    return bytes;
}

void hist_write_bytes(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(hist_path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}
