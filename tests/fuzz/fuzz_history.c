// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The reader of history files, and the session that is made of one. The input is a list of patches
 * (offset in 2 bytes, length in 1, bytes) for a good file of 64 KiB; its first byte says whether
 * the sums are mended afterwards, so that what lies behind them is reached, or the rest is the
 * file.
 */
#include "fuzz.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../scratch.h"
#include "dump/dump.h"
#include "engine/history/history_impl.h"

#define BYTES (64u << 10)

enum { MEND = 1, WHOLE = 2 };

static uint64_t read_le(const unsigned char *p, int bytes)
{
    uint64_t v = 0;

    for (int i = bytes - 1; i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

static void write_le64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++) {
        p[i] = (unsigned char)(v >> (8 * i));
    }
}

/* Three nodes, one of them with two slots, a scalar; two generations; records of all kinds. */
static void fill_history(struct gd_history *history)
{
    static const char *const names[] = {"net/a", "net/b", "net/b", "loss"};

    for (int64_t i = 0; i < 40; i++) {
        struct gd_history_tensor tensor = {.name = names[i % 4],
                                           .slot = i % 4 == 2,
                                           .type = "MatMul",
                                           .file = "model.py",
                                           .line = 3,
                                           .order = (uint32_t)(i % 4),
                                           .kind = GD_NODE_ACTIVATION,
                                           .dtype = GD_FLOAT32,
                                           .shape = {.rank = 2, .dim = {2, 3}},
                                           .is_scalar = i % 4 == 3};
        struct gd_history_record record = {
            .step = 1 + i / 4 % 6,
            .has_stats = i % 7 != 0,
            .error = i % 7 ? 0 : GD_HIT_NOT_CAPTURED,
            .stats = {.count = 6, .nan = i % 5 == 0, .max = (double)i, .has_prev = i % 3 == 0}};

        FUZZ_CHECK(gd_history_add(history, &tensor, &record, NULL) == GD_OK);
        if (i % 8 == 1) {
            struct gd_history_bins bins = {
                .step = record.step, .lo = -1, .hi = 1, .bin = {1, 2, (uint64_t)i << 40}};
            FUZZ_CHECK(gd_history_add_bins(history, &tensor, &bins, NULL) == GD_OK);
        }
    }
}

/* The good file; the same for every input. */
static const unsigned char *template_bytes(void)
{
    static unsigned char bytes[BYTES];
    static bool made;
    char path[SCRATCH_PATH];
    struct gd_history *history;
    int fd;

    if (made) {
        return bytes;
    }
    fd = scratch_file(path);
    FUZZ_CHECK(fd >= 0);
    close(fd);
    FUZZ_CHECK(gd_history_create(path, BYTES, NULL, &history, NULL) == GD_OK);
    fill_history(history);
    memcpy(bytes, history->map, BYTES);
    gd_history_close(history);
    unlink(path);
    made = true;
    return bytes;
}

static void repair_header(unsigned char *p)
{
    uint64_t table = read_le(p + 32, 8), capacity = read_le(p + 40, 4), text = read_le(p + 48, 8);
    uint64_t ring = read_le(p + 64, 8), records = read_le(p + 72, 4);

    write_le64(p + 16, history_checksum(p + 24, HISTORY_HEAD_FIXED - 24));
    for (uint64_t i = 0; i < capacity && table < BYTES && table + 64 * (i + 1) <= BYTES; i++) {
        unsigned char *entry = p + table + 64 * i;
        uint64_t at = read_le(entry + 8, 8), len = read_le(entry + 16, 4);

        if (len && text < BYTES && at < BYTES && text + at + len <= BYTES && len % 8 == 0) {
            write_le64(entry,
                       history_checksum(entry + 8, 56) ^ history_checksum(p + text + at, len));
        }
    }
    for (uint64_t i = 0; i < records && ring < BYTES && ring + HISTORY_RECORD * (i + 1) <= BYTES;
         i++) {
        unsigned char *record = p + ring + HISTORY_RECORD * i;

        if (read_le(record + 8, 8)) {
            write_le64(record, history_checksum(record + 8, HISTORY_RECORD - 8));
        }
    }
}

/* A file in memory, open as the path given back. */
static int make_file(const uint8_t *data, size_t size, char *path, size_t path_size)
{
    unsigned char *bytes = malloc(BYTES);
    int fd = memfd_create("history", MFD_CLOEXEC), flags = data[0];
    size_t len = BYTES;

    FUZZ_CHECK(bytes && fd >= 0);
    data++, size--;
    memcpy(bytes, template_bytes(), BYTES);
    if (flags & WHOLE) {
        len = size;
        memcpy(bytes, data, size);
    }
    while (!(flags & WHOLE) && size >= 3) {
        size_t at = (size_t)read_le(data, 2), count = data[2];

        data += 3, size -= 3;
        count = count < size ? count : size;
        count = count < BYTES - at ? count : BYTES - at;
        memcpy(bytes + at, data, count);
        data += count, size -= count;
    }
    if (flags & MEND && len == BYTES) {
        repair_header(bytes);
    }
    FUZZ_CHECK(write(fd, bytes, len) == (ssize_t)len);
    snprintf(path, path_size, "/proc/self/fd/%d", fd);
    free(bytes);
    return fd;
}

/* What is in bins has a range. */
static void check_bins(const struct gd_history *history, uint32_t index)
{
    static struct gd_history_bins bins[64];
    size_t count = gd_history_read_bins(history, index, bins, 64);

    for (size_t k = 0; k < count; k++) {
        FUZZ_CHECK(bins[k].step >= 0);
        for (int i = 0; i < GD_WATCH_BINS; i++) {
            FUZZ_CHECK(bins[k].bin[i] == 0 || bins[k].lo <= bins[k].hi);
        }
    }
}

static void check_history(const struct gd_history *history)
{
    struct gd_history_record records[64];
    struct gd_history_tensor tensor;
    struct gd_history_head head;
    uint32_t index;

    gd_history_head(history, &head);
    for (uint32_t i = 0; gd_history_tensor(history, i, &tensor); i++) {
        size_t count = gd_history_read(history, i, records, 64);

        FUZZ_CHECK(i < head.tensors && tensor.name[0] && count <= head.records);
        FUZZ_CHECK(tensor.is_bins ? gd_history_find_bins(history, tensor.name, tensor.slot, &index)
                                  : gd_history_find(history, tensor.name, tensor.slot, &index));
        check_bins(history, i);
        for (size_t k = 0; k < count; k++) {
            FUZZ_CHECK(records[k].step >= 0);
            FUZZ_CHECK(!records[k].has_stats || records[k].stats.nan <= records[k].stats.count);
        }
    }
}

static void note_answer(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                        const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    FUZZ_CHECK(err || (shape->rank <= GD_MAX_RANK && step >= 0 && stats->nan <= stats->count));
    ++*(int *)ctx;
}

static void check_session(const char *path)
{
    struct gd_debugger *debugger;
    struct gd_session *session = NULL;
    struct gd_err err;

    FUZZ_CHECK(gd_debugger_create(&debugger, NULL) == GD_OK);
    debugger->settings.max_graph_memory = 64 << 20;
    if (gd_dump_open(debugger, path, NULL, &session, &err) == GD_OK) {
        for (gd_node_id node = 0; node < gd_graph_node_limit(session->graph); node++) {
            for (int iter = 0; iter < 2; iter++) {
                struct gd_tensor_ref ref = {.node = node, .iter = (enum gd_iter)iter};
                int answers = 0;
                int rc = gd_session_stats(session, &ref, note_answer, &answers, &err);

                FUZZ_CHECK(answers == (rc == GD_OK ? 1 : 0));
            }
        }
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    gd_debugger_destroy(debugger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_history *history = NULL;
    struct gd_err err = {.text = ""};
    char path[64];
    int fd;

    if (size < 1 || size > BYTES) {
        return 0;
    }
    fd = make_file(data, size, path, sizeof(path));
    if (gd_history_open(path, &history, &err) == GD_OK) {
        check_history(history);
        gd_history_close(history);
    } else {
        FUZZ_CHECK(!history && err.text[0]);
    }
    check_session(path);
    close(fd);
    return 0;
}
