// SPDX-License-Identifier: GPL-3.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/history.h"
#include "fake_target.h"

#define KIB        UINT64_C(1024)
#define RECORD     232 /* bytes; docs/history.md */
#define HEADER     4096
#define ENTRY      64
#define RING_FIELD 64 /* offset of the ring's offset in the header */

/* ---- a directory of our own ------------------------------------------------------------------ */

static char home[] = "/tmp/gradb-test-history-XXXXXX";
static char path[256];

static int make_home(void **state)
{
    (void)state;
    if (!mkdtemp(home) || setenv("XDG_STATE_HOME", home, 1)) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/file", home);
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

static int drop_home(void **state)
{
    char state_dir[300];

    (void)state;
    snprintf(state_dir, sizeof(state_dir), "%s/gradb", home);
    empty_directory(state_dir);
    rmdir(state_dir);
    empty_directory(home);
    return rmdir(home);
}

static int count_histories(void)
{
    char name[300];
    DIR *directory;
    int count = 0;

    snprintf(name, sizeof(name), "%s/gradb", home);
    directory = opendir(name);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        count += strstr(entry->d_name, ".gdhist") != NULL;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

/* ---- values ---------------------------------------------------------------------------------- */

static struct gd_history_tensor tensor_named(const char *name)
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
static struct gd_history_record record_of(int64_t step, double x)
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

static void add(struct gd_history *history, const char *name, int64_t step, double x)
{
    struct gd_history_tensor tensor = tensor_named(name);
    struct gd_history_record record = record_of(step, x);
    struct gd_err err = {0};

    if (gd_history_add(history, &tensor, &record, &err)) {
        fail_msg("%s", err.text);
    }
}

static struct gd_history *create(uint64_t bytes)
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

    if (gd_history_create(path, bytes, &peer, &history, &err)) {
        fail_msg("%s", err.text);
    }
    return history;
}

static struct gd_history *open_again(void)
{
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    if (gd_history_open(path, &history, &err)) {
        fail_msg("%s", err.text);
    }
    return history;
}

static struct gd_history_record records[5000];

static size_t read_all(const struct gd_history *history, const char *name)
{
    uint32_t index;

    return gd_history_find(history, name, 0, &index)
               ? gd_history_read(history, index, records, sizeof(records) / sizeof(records[0]))
               : 0;
}

static void expect_stats(const struct gd_stats *a, double x)
{
    struct gd_stats b = record_of(0, x).stats;

    assert_memory_equal(a, &b, sizeof(b));
}

/* The steps first ... last, each with x = 10 * step. */
static void expect_steps(const struct gd_history *history, const char *name, int64_t first,
                         int64_t last)
{
    size_t count = read_all(history, name);

    assert_int_equal(count, last - first + 1);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(records[i].step, first + (int64_t)i);
        assert_true(records[i].has_stats);
        expect_stats(&records[i].stats, 10 * (double)records[i].step);
    }
}

static void expect_no_file(uint64_t bytes, int code, const char *text)
{
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    assert_int_equal(gd_history_create(path, bytes, NULL, &history, &err), code);
    assert_null(history);
    if (!strstr(err.text, text)) {
        fail_msg("\"%s\" lacks \"%s\"", err.text, text);
    }
}

/* ---- writing and reading --------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_tensor scalar = {.name = "loss", .is_scalar = true, .dtype = GD_FLOAT64};
    struct gd_history_record unknown = {.step = 2, .error = GD_HIT_NOT_CAPTURED | GD_HIT_EMPTY};
    struct gd_history_head head;
    struct gd_history_tensor about;
    uint32_t index;

    (void)state;
    add(history, "net/a", 1, 10);
    assert_int_equal(gd_history_add(history, &scalar, &unknown, NULL), GD_OK);
    add(history, "net/a", 2, 20);
    for (int again = 0; again < 2; again++) { /* the one that is written, and the file */
        gd_history_head(history, &head);
        assert_string_equal(head.peer.program, "/opt/train me.py");
        assert_string_equal(head.peer.host, "node7");
        assert_string_equal(head.peer.version, "1.2");
        assert_int_equal(head.peer.pid, 77);
        assert_int_equal(head.peer.rank, 3);
        assert_int_equal(head.peer.world_size, 8);
        assert_int_equal(head.first_step, 1);
        assert_int_equal(head.last_step, 2);
        assert_int_equal(head.tensors, 2);
        assert_int_equal(head.bytes, 64 * KIB);
        assert_int_equal(head.damaged, 0);
        assert_int_equal(head.left_out, 0);
        assert_true(head.started > 1e9);
        assert_string_equal(gd_history_path(history), path);
        expect_steps(history, "net/a", 1, 2);
        assert_true(gd_history_find(history, "net/a", 0, &index));
        assert_true(gd_history_tensor(history, index, &about));
        assert_string_equal(about.name, "net/a");
        assert_string_equal(about.type, "MatMul");
        assert_string_equal(about.file, "model.py");
        assert_int_equal(about.line, 42);
        assert_int_equal(about.kind, GD_NODE_GRADIENT);
        assert_int_equal(about.dtype, GD_FLOAT32);
        assert_int_equal(about.order, 7);
        assert_int_equal(about.shape.rank, 2);
        assert_int_equal(about.shape.dim[0], 3);
        assert_int_equal(about.shape.dim[1], -1);
        assert_int_equal(about.seen, 2);
        assert_int_equal(read_all(history, "loss"), 1);
        assert_false(records[0].has_stats);
        assert_int_equal(records[0].error, GD_HIT_NOT_CAPTURED | GD_HIT_EMPTY);
        assert_false(gd_history_find(history, "net/a", 1, &index));
        assert_false(gd_history_find(history, "net", 0, &index));
        assert_false(gd_history_tensor(history, 2, &about));
        gd_history_close(history);
        history = again == 0 ? open_again() : NULL;
    }
}

static void test_not_finite(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_tensor tensor = tensor_named("a");
    struct gd_history_record record = record_of(1, 1);

    (void)state;
    record.stats.min = INFINITY;
    record.stats.max = -INFINITY;
    record.stats.mean = NAN;
    assert_int_equal(gd_history_add(history, &tensor, &record, NULL), GD_OK);
    gd_history_close(history);
    history = open_again();
    assert_int_equal(read_all(history, "a"), 1);
    assert_true(isinf(records[0].stats.min) && records[0].stats.min > 0);
    assert_true(isinf(records[0].stats.max) && records[0].stats.max < 0);
    assert_true(isnan(records[0].stats.mean));
    gd_history_close(history);
}

static void test_ring_wraps(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_head head;
    int64_t last = 0;

    (void)state;
    add(history, "a", 1, 10);
    add(history, "b", 1, 10);
    gd_history_head(history, &head);
    assert_true(head.steps >= 16);
    for (int64_t step = 2; step <= 3 * (int64_t)head.steps + 5; step++) {
        add(history, "a", step, 10 * (double)step);
        add(history, "b", step, 10 * (double)step);
        last = step;
    }
    for (int again = 0; again < 2; again++) {
        gd_history_head(history, &head);
        assert_int_equal(head.last_step, last);
        /* an odd ring keeps one more record of the one than of the other */
        assert_in_range(head.first_step, last - head.steps, last - head.steps + 1);
        expect_steps(history, "b", last - head.steps + 1, last);
        assert_int_equal(gd_history_read(history, 0, records, 3), 3);
        assert_int_equal(records[0].step, last - 2);
        assert_int_equal(records[2].step, last);
        gd_history_close(history);
        history = again == 0 ? open_again() : NULL;
    }
}

/* One tensor comes seldom: what it had leaves the ring, and is not mistaken for another's. */
static void test_rare_tensor(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_head head;

    (void)state;
    add(history, "rare", 1, 10);
    gd_history_head(history, &head);
    for (int64_t step = 1; step <= (int64_t)head.steps; step++) {
        add(history, "often", step, 10 * (double)step);
    }
    assert_int_equal(read_all(history, "rare"), 0);
    add(history, "rare", 1000, 10000);
    expect_steps(history, "rare", 1000, 1000);
    gd_history_close(history);
    history = open_again();
    expect_steps(history, "rare", 1000, 1000);
    gd_history_close(history);
}

static void test_same_step_replaces(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_tensor about;

    (void)state;
    add(history, "a", 1, 10);
    add(history, "a", 2, 999);
    add(history, "b", 2, 20);
    add(history, "a", 2, 20);
    for (int again = 0; again < 2; again++) {
        expect_steps(history, "a", 1, 2);
        expect_steps(history, "b", 2, 2);
        assert_true(gd_history_tensor(history, 0, &about));
        assert_int_equal(about.seen, 2);
        gd_history_close(history);
        history = again == 0 ? open_again() : NULL;
    }
}

static void test_steps_go_back(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_head head;

    (void)state;
    for (int64_t step = 5; step <= 9; step++) {
        add(history, "a", step, 10 * (double)step);
        add(history, "b", step, 10 * (double)step);
    }
    add(history, "a", 1, 10);
    add(history, "a", 2, 20);
    for (int again = 0; again < 2; again++) {
        gd_history_head(history, &head);
        assert_int_equal(head.generation, 1);
        assert_int_equal(head.first_step, 1);
        assert_int_equal(head.last_step, 2);
        expect_steps(history, "a", 1, 2);
        assert_int_equal(read_all(history, "b"), 0);
        gd_history_close(history);
        history = again == 0 ? open_again() : NULL;
    }
}

static void test_scalar_and_node_of_one_name(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_tensor scalar = {.name = "loss", .is_scalar = true};
    struct gd_history_record record = record_of(1, 50);
    uint32_t index;
    struct gd_history_tensor about;

    (void)state;
    assert_int_equal(gd_history_add(history, &scalar, &record, NULL), GD_OK);
    assert_true(gd_history_find(history, "loss", 0, &index));
    assert_true(gd_history_tensor(history, index, &about) && about.is_scalar);
    add(history, "loss", 1, 10);
    assert_true(gd_history_find(history, "loss", 0, &index)); /* the node comes first */
    assert_true(gd_history_tensor(history, index, &about) && !about.is_scalar);
    expect_steps(history, "loss", 1, 1);
    gd_history_close(history);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void test_sizes(void **state)
{
    struct gd_history *history;
    struct gd_history_head head;

    (void)state;
    expect_no_file(64 * KIB - 1, GD_EINVAL, "64 KiB");
    expect_no_file(0, GD_EINVAL, "64 KiB");
    expect_no_file(UINT64_MAX, GD_EINVAL, "4 GiB");
    for (uint64_t bytes = 64 * KIB; bytes <= 16 * 1024 * KIB; bytes = bytes * 3 + 1) {
        struct stat st;

        history = create(bytes);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, bytes);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_true((uint64_t)st.st_blocks * 512 >= bytes);
        gd_history_head(history, &head);
        assert_true(head.steps / head.capacity >= 16); /* with one tensor all are its own */
        assert_int_equal(head.first_step, -1);
        assert_int_equal(head.last_step, -1);
        gd_history_close(history);
        gd_history_close(open_again());
    }
}

static void test_more_tensors_than_fit(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_head head;
    struct gd_history_record record = record_of(1, 1);
    struct gd_err err;
    uint32_t capacity;

    (void)state;
    gd_history_head(history, &head);
    capacity = head.capacity;
    for (int64_t step = 1; step <= 3; step++) {
        for (uint32_t i = 0; i < capacity + 100; i++) {
            struct gd_history_tensor tensor;
            char name[32];

            snprintf(name, sizeof(name), "t%u", i);
            tensor = tensor_named(name);
            record = record_of(step, 10 * (double)step);
            assert_int_equal(gd_history_add(history, &tensor, &record, &err),
                             i < capacity ? GD_OK : GD_ELIMIT);
        }
    }
    assert_non_null(strstr(err.text, "left out"));
    for (int again = 0; again < 2; again++) {
        gd_history_head(history, &head);
        assert_int_equal(head.tensors, capacity);
        assert_int_equal(head.left_out, 100);
        assert_true(head.steps >= 16);
        expect_steps(history, "t0", 1, 3);
        assert_int_equal(read_all(history, "t100000"), 0);
        gd_history_close(history);
        history = again == 0 ? open_again() : NULL;
    }
}

/* Long names fill the room for text before the table is full. */
static void test_long_names(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_record record = record_of(1, 10);
    struct gd_history_head head;
    char *name = malloc(3000);
    int kept = 0;

    (void)state;
    memset(name, 'x', 2999);
    name[2999] = '\0';
    for (int i = 0; i < 5; i++) {
        struct gd_history_tensor tensor = tensor_named(name);

        name[0] = (char)('a' + i);
        kept += gd_history_add(history, &tensor, &record, NULL) == GD_OK;
    }
    assert_in_range(kept, 1, 4);
    add(history, "short", 1, 10); /* still fits */
    gd_history_close(history);
    history = open_again();
    gd_history_head(history, &head);
    assert_int_equal(head.tensors, kept + 1);
    assert_int_equal(head.left_out, 5 - kept);
    name[0] = 'a';
    expect_steps(history, name, 1, 1);
    expect_steps(history, "short", 1, 1);
    gd_history_close(history);
    free(name);
}

static void test_refused_values(void **state)
{
    struct gd_history *history = create(64 * KIB);
    struct gd_history_record good = record_of(1, 1), before = record_of(-1, 1);
    struct gd_history_tensor tensor = tensor_named(""), none = {.name = NULL};
    struct gd_err err;

    (void)state;
    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_EINVAL);
    assert_int_equal(gd_history_add(history, &none, &good, &err), GD_EINVAL);
    tensor = tensor_named("a");
    assert_int_equal(gd_history_add(history, &tensor, &before, &err), GD_EINVAL);
    tensor.slot = 1 << 20;
    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_EINVAL);
    tensor = tensor_named("a");
    tensor.shape.rank = GD_MAX_RANK + 1;
    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_EINVAL);
    gd_history_close(history);
    history = open_again();
    tensor = tensor_named("a");
    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_ESTATE);
    gd_history_close(history);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static uint64_t ring_offset(const unsigned char *bytes)
{
    uint64_t offset = 0;

    for (int i = 7; i >= 0; i--) {
        offset = offset << 8 | bytes[RING_FIELD + i];
    }
    return offset;
}

static unsigned char *read_bytes(size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = malloc(64 * KIB);

    assert_non_null(file);
    *size = fread(bytes, 1, 64 * KIB, file);
    fclose(file);
    return bytes;
}

static void write_bytes(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void fill(int64_t steps)
{
    struct gd_history *history = create(64 * KIB);

    for (int64_t step = 1; step <= steps; step++) {
        add(history, "a", step, 10 * (double)step);
        add(history, "b", step, 10 * (double)step);
    }
    gd_history_close(history);
}

/* A record that was written half over an older one, at every length. */
static void test_torn_record(void **state)
{
    unsigned char *whole, *torn = malloc(64 * KIB), other[RECORD];
    struct gd_history *history;
    struct gd_history_head head;
    size_t size, place;

    (void)state;
    fill(4);
    whole = read_bytes(&size);
    place = ring_offset(whole) + 7 * RECORD; /* record 7: "a" of step 4 */
    memcpy(other, whole + ring_offset(whole) + 5 * RECORD, RECORD);
    for (size_t len = 1; len < RECORD; len++) {
        memcpy(torn, whole, size);
        memcpy(torn + place, other, len);
        if (memcmp(torn + place, whole + place, RECORD) == 0 ||
            memcmp(torn + place, other, RECORD) == 0) {
            continue; /* whole after all */
        }
        write_bytes(torn, size);
        history = open_again();
        gd_history_head(history, &head);
        assert_int_equal(head.damaged, 1);
        assert_int_equal(head.last_step, 4);
        expect_steps(history, "a", 1, 3);
        expect_steps(history, "b", 1, 4);
        gd_history_close(history);
    }
    free(whole);
    free(torn);
}

/* A flipped bit loses what it is in and nothing else; a flipped bit of the header is told. */
static void test_flipped_bits(void **state)
{
    unsigned char *whole, *bytes = malloc(64 * KIB);
    size_t size, ring;

    (void)state;
    fill(4);
    whole = read_bytes(&size);
    ring = ring_offset(whole);
    for (size_t at = 0; at < ring + 10 * RECORD; at += at < 128 ? 1 : at < HEADER ? 37 : 5) {
        struct gd_history *history = NULL;
        struct gd_history_head head;
        struct gd_err err = {0};
        int rc;

        memcpy(bytes, whole, size);
        bytes[at] ^= (unsigned char)(1u << at % 8);
        write_bytes(bytes, size);
        rc = gd_history_open(path, &history, &err);
        if (at < 2048) { /* the header: checked as a whole */
            assert_int_equal(rc, GD_EPROTO);
            assert_non_null(strstr(err.text, "not a gradb history file"));
            assert_null(history);
            continue;
        }
        assert_int_equal(rc, GD_OK);
        gd_history_head(history, &head);
        if (at >= ring + RECORD && at < ring + 9 * RECORD) {
            assert_int_equal(head.damaged, 1);
            assert_int_equal(head.tensors, 2);
            assert_int_equal(read_all(history, "a") + read_all(history, "b"), 7);
        } else if (at < HEADER || at >= HEADER + 2 * ENTRY) {
            assert_true(read_all(history, "a") == 4 || head.damaged > 0);
        } else {
            assert_int_equal(head.tensors, 1);
            assert_true(head.damaged > 0);
        }
        gd_history_close(history);
    }
    free(whole);
    free(bytes);
}

static void test_truncated(void **state)
{
    unsigned char *whole;
    size_t size;

    (void)state;
    fill(4);
    whole = read_bytes(&size);
    for (size_t len = 0; len < size; len += len < 300 ? 7 : 1009) {
        struct gd_history *history = NULL;
        struct gd_err err = {0};

        write_bytes(whole, len);
        assert_int_equal(gd_history_open(path, &history, &err), GD_EPROTO);
        assert_null(history);
        assert_non_null(strstr(err.text, len < HEADER ? "too short" : "cut off"));
    }
    unlink(path);
    free(whole);
}

static void test_other_files(void **state)
{
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    (void)state;
    unlink(path);
    assert_int_equal(gd_history_open(path, &history, &err), GD_ENOTFOUND);
    assert_int_equal(gd_history_open(home, &history, &err), GD_EPROTO);
    assert_int_equal(gd_history_open("/dev/zero", &history, &err), GD_EPROTO);
    write_bytes((const unsigned char *)"print('hello')\n", 15);
    assert_int_equal(gd_history_open(path, &history, &err), GD_EPROTO);
    assert_non_null(strstr(err.text, "not a gradb history file"));
    /* and such a file is not written over */
    expect_no_file(64 * KIB, GD_EINVAL, "not overwritten");
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    expect_no_file(64 * KIB, GD_EIO, path);
    unlink(path);
}

/* ---- others look on -------------------------------------------------------------------------- */

static void test_open_while_written(void **state)
{
    struct gd_history *history = create(64 * KIB), *reader;

    (void)state;
    add(history, "a", 1, 10);
    reader = open_again();
    add(history, "a", 2, 20);
    add(history, "b", 2, 20);
    expect_steps(reader, "a", 1, 1);
    gd_history_close(reader);
    reader = open_again();
    expect_steps(reader, "a", 1, 2);
    expect_steps(reader, "b", 2, 2);
    gd_history_close(reader);
    gd_history_close(history);
}

/* A process writes as fast as it can and is killed in the middle; meanwhile the file is read again
 * and again. Nothing that is read was not written. */
static void test_killed_writer(void **state)
{
    struct gd_history *reader;
    int64_t seen = 0;
    int ready[2], status;
    char byte;
    pid_t child;

    (void)state;
    unlink(path);
    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct gd_history *history = create(64 * KIB);

        for (int64_t step = 1;; step++) {
            add(history, "a", step, 10 * (double)step);
            add(history, "b", step, 10 * (double)step);
            if (step == 1 && write(ready[1], "x", 1) != 1) {
                _exit(1);
            }
        }
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (int i = 0; i < 200; i++) {
        size_t count;

        reader = open_again();
        count = read_all(reader, i % 2 ? "a" : "b");
        for (size_t k = 0; k < count; k++) {
            expect_stats(&records[k].stats, 10 * (double)records[k].step);
            assert_true(k == 0 || records[k].step > records[k - 1].step);
        }
        gd_history_close(reader);
        if (i == 100) {
            assert_int_equal(kill(child, SIGKILL), 0);
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFSIGNALED(status));
        }
        if (i >= 100) {
            struct gd_history_head head;

            reader = open_again();
            gd_history_head(reader, &head);
            assert_true(seen == 0 || seen == head.last_step);
            seen = head.last_step;
            /* all that was written before the kill is there, but for the one it was at */
            assert_true(head.damaged <= 1);
            assert_true(read_all(reader, "a") >= head.steps - 1);
            gd_history_close(reader);
        }
    }
    close(ready[0]);
}

static void test_no_room(void **state)
{
    struct rlimit old, limit;

    (void)state;
    unlink(path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 100 * KIB;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_no_file(1024 * KIB, GD_EIO, "no room for 1048576 bytes");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* ---- the state directory --------------------------------------------------------------------- */

static struct gd_history *create_in_state(const char *program)
{
    struct gd_peer peer = {.pid = 5};
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    snprintf(peer.program, sizeof(peer.program), "%s", program);
    if (gd_history_create(NULL, 64 * KIB, &peer, &history, &err)) {
        fail_msg("%s", err.text);
    }
    return history;
}

static void test_state_directory(void **state)
{
    struct gd_history *live = create_in_state("/x/../../a\n:b --c /d"), *history;
    char other[300], not_ours[300];
    FILE *file;

    (void)state;
    assert_non_null(strstr(gd_history_path(live), home));
    assert_non_null(strstr(gd_history_path(live), "/gradb/history-a__b-5-"));
    snprintf(other, sizeof(other), "%s/gradb/notes.txt", home);
    snprintf(not_ours, sizeof(not_ours), "%s/gradb/history-0.gdhist", home);
    file = fopen(other, "w");
    assert_non_null(file);
    fclose(file);
    file = fopen(not_ours, "w");
    assert_non_null(file);
    fputs("something else", file);
    fclose(file);
    for (int i = 0; i < 12; i++) {
        history = create_in_state("/usr/bin/python3.11 /x/train.py -n 3");
        assert_non_null(strstr(gd_history_path(history), "/gradb/history-train.py-5-"));
        add(history, "a", 1, 10);
        gd_history_close(history);
    }
    /* eight, and the one that is written, and the one that only has such a name */
    assert_int_equal(count_histories(), 10);
    assert_int_equal(access(gd_history_path(live), F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(access(not_ours, F_OK), 0);
    gd_history_close(live);
}

static void test_no_home(void **state)
{
    struct gd_history *history = NULL;
    struct gd_err err = {0};
    char *old_home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;

    (void)state;
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_int_equal(gd_history_create(NULL, 64 * KIB, NULL, &history, &err), GD_EIO);
    assert_non_null(strstr(err.text, "HOME"));
    setenv("XDG_STATE_HOME", home, 1);
    if (old_home) {
        setenv("HOME", old_home, 1);
    }
    free(old_home);
}

/* ---- with a session -------------------------------------------------------------------------- */

struct bench {
    struct gd_debugger *debugger;
    struct gd_session *session;
    int warnings;
    char warning[600];
};

static void observe(void *ctx, const struct gd_event *event)
{
    struct bench *bench = ctx;

    if (event->type == GD_EV_WARNING) {
        bench->warnings++;
        snprintf(bench->warning, sizeof(bench->warning), "%s", event->text);
    }
}

static void connect_session(struct bench *bench)
{
    struct gd_frame frames[] = {{.is_title = true, .code = "title"},
                                {.file = "net.py", .line = 12, .function = "f", .code = "x"}};
    struct gd_node_desc desc = {.name = "net/a",
                                .type = "Log",
                                .kind = GD_NODE_ACTIVATION,
                                .frames = frames,
                                .frame_count = 2,
                                .order = 3};

    assert_int_equal(gd_session_create(bench->debugger, &fake_create(true, NULL)->target, NULL,
                                       &bench->session, NULL),
                     GD_OK);
    assert_int_equal(gd_graph_add(bench->session->graph, &desc, NULL, NULL), GD_OK);
    assert_int_equal(gd_graph_commit(bench->session->graph, NULL), GD_OK);
    gd_session_on_graph(bench->session);
}

static void make_bench(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    assert_int_equal(gd_debugger_create(&bench->debugger, NULL), GD_OK);
    assert_int_equal(gd_debugger_observe(bench->debugger, observe, bench), GD_OK);
    bench->debugger->settings.history_bytes = 64 * KIB;
    snprintf(bench->debugger->settings.history_file, sizeof(bench->debugger->settings.history_file),
             "%s", path);
    connect_session(bench);
}

static void report(struct gd_session *session, int64_t step, double x)
{
    struct gd_stats stats = record_of(step, x).stats;
    struct gd_shape shape = {.rank = 1, .dim = {1000}};
    struct gd_watch_value value = {.dtype = GD_FLOAT32, .shape = &shape, .stats = &stats};

    gd_session_history_add(session, &value, step);
}

static void test_session(void **state)
{
    struct bench bench;
    struct gd_history_tensor about;
    struct gd_history_head head;
    struct gd_history *history;
    uint32_t index;

    (void)state;
    make_bench(&bench);
    gd_session_on_scalar(bench.session, "loss", 9, 0); /* before there is a history */
    assert_null(bench.session->history);
    report(bench.session, 1, 10);
    gd_session_on_scalar(bench.session, "loss", 2.5, 1);
    report(bench.session, 2, 20);
    gd_session_on_scalar(bench.session, "loss", NAN, 2);
    gd_session_on_scalar(bench.session, "lr", 1, 1); /* late: does not begin anew */
    assert_non_null(bench.session->history);
    assert_int_equal(bench.warnings, 0);
    gd_debugger_destroy(bench.debugger);
    history = open_again();
    expect_steps(history, "net/a", 1, 2);
    assert_true(gd_history_find(history, "net/a", 0, &index));
    assert_true(gd_history_tensor(history, index, &about));
    assert_string_equal(about.type, "Log");
    assert_string_equal(about.file, "net.py");
    assert_int_equal(about.line, 12);
    assert_int_equal(about.kind, GD_NODE_ACTIVATION);
    assert_int_equal(about.order, 3);
    assert_int_equal(about.shape.dim[0], 1000);
    assert_int_equal(read_all(history, "loss"), 2);
    assert_true(records[0].stats.mean == 2.5 && records[0].stats.max == 2.5);
    assert_true(records[0].stats.positive == 1 && records[0].stats.count == 1);
    assert_true(records[1].stats.nan == 1 && records[1].stats.positive == 0);
    assert_int_equal(read_all(history, "lr"), 1);
    assert_int_equal(records[0].step, 1);
    gd_history_head(history, &head);
    assert_int_equal(head.generation, 0);
    assert_int_equal(head.last_step, 2);
    gd_history_close(history);
}

static void test_session_off_and_failing(void **state)
{
    struct bench bench;

    (void)state;
    unlink(path);
    make_bench(&bench);
    bench.debugger->settings.history_bytes = 0;
    report(bench.session, 1, 10);
    assert_null(bench.session->history);
    assert_int_equal(bench.warnings, 0);
    bench.debugger->settings.history_bytes = 64 * KIB;
    write_bytes((const unsigned char *)"precious", 8);
    report(bench.session, 2, 20);
    report(bench.session, 3, 30);
    assert_null(bench.session->history);
    assert_int_equal(bench.warnings, 1); /* once */
    assert_non_null(strstr(bench.warning, "no history is kept: "));
    unlink(path);
    connect_session(&bench); /* the second session has a file of its own */
    report(bench.session, 1, 10);
    assert_non_null(bench.session->history);
    assert_string_equal(gd_history_path(bench.session->history) + strlen(path), ".2");
    gd_debugger_destroy(bench.debugger);
}

static void test_session_left_out(void **state)
{
    struct bench bench;
    struct gd_stats stats = record_of(1, 1).stats;

    (void)state;
    make_bench(&bench);
    for (int64_t step = 1; step <= 2; step++) {
        for (int i = 0; i < 40; i++) {
            char name[16];
            struct gd_watch_value value = {.node = GD_NO_NODE, .scalar = name, .stats = &stats};

            snprintf(name, sizeof(name), "s%d", i);
            gd_session_history_add(bench.session, &value, step);
        }
    }
    assert_int_equal(bench.warnings, 1);
    assert_non_null(strstr(bench.warning, "left out"));
    gd_debugger_destroy(bench.debugger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_ring_wraps),
        cmocka_unit_test(test_rare_tensor),
        cmocka_unit_test(test_same_step_replaces),
        cmocka_unit_test(test_steps_go_back),
        cmocka_unit_test(test_scalar_and_node_of_one_name),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_more_tensors_than_fit),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_refused_values),
        cmocka_unit_test(test_torn_record),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_open_while_written),
        cmocka_unit_test(test_killed_writer),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_state_directory),
        cmocka_unit_test(test_no_home),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_session_off_and_failing),
        cmocka_unit_test(test_session_left_out),
    };

    return cmocka_run_group_tests(tests, make_home, drop_home);
}
