// SPDX-License-Identifier: GPL-3.0-or-later
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../unit.h"
#include "engine/history/history_impl.h"
#include "engine/watch/watch_report.h"
#include "fake_target.h"
#include "history_bench.h"

/* ---- writing and reading --------------------------------------------------------------------- */

static void expect_head(const struct gd_history *history)
{
    struct gd_history_head head;

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
}

static void test_round_trip(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_tensor scalar = {.name = "loss", .is_scalar = true, .dtype = GD_FLOAT64};
    struct gd_history_record unknown = {.step = 2, .error = GD_HIT_NOT_CAPTURED | GD_HIT_EMPTY};
    struct gd_history_tensor about;
    uint32_t index;

    hist_add(history, "net/a", 1, 10);
    assert_ok(gd_history_add(history, &scalar, &unknown, NULL));
    hist_add(history, "net/a", 2, 20);
    for (int again = 0; again < 2; again++) { /* the one that is written, and the file */
        expect_head(history);
        assert_string_equal(gd_history_path(history), hist_path);
        hist_expect_steps(history, "net/a", 1, 2);
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
        assert_int_equal(hist_read_all(history, "loss"), 1);
        assert_false(hist_records[0].has_stats);
        assert_int_equal(hist_records[0].error, GD_HIT_NOT_CAPTURED | GD_HIT_EMPTY);
        assert_false(gd_history_find(history, "net/a", 1, &index));
        assert_false(gd_history_find(history, "net", 0, &index));
        assert_false(gd_history_tensor(history, 2, &about));
        gd_history_close(history);
        history = again == 0 ? hist_open_again() : NULL;
    }
}

static void test_not_finite(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_tensor tensor = hist_tensor("a");
    struct gd_history_record record = hist_record(1, 1);

    record.stats.min = INFINITY;
    record.stats.max = -INFINITY;
    record.stats.mean = NAN;
    assert_ok(gd_history_add(history, &tensor, &record, NULL));
    gd_history_close(history);
    history = hist_open_again();
    assert_int_equal(hist_read_all(history, "a"), 1);
    assert_true(isinf(hist_records[0].stats.min) && hist_records[0].stats.min > 0);
    assert_true(isinf(hist_records[0].stats.max) && hist_records[0].stats.max < 0);
    assert_true(isnan(hist_records[0].stats.mean));
    gd_history_close(history);
}

static void test_ring_wraps(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_head head;
    int64_t last = 0;

    hist_add(history, "a", 1, 10);
    hist_add(history, "b", 1, 10);
    gd_history_head(history, &head);
    assert_true(head.steps >= 16);
    for (int64_t step = 2; step <= 3 * (int64_t)head.steps + 5; step++) {
        hist_add(history, "a", step, 10 * (double)step);
        hist_add(history, "b", step, 10 * (double)step);
        last = step;
    }
    for (int again = 0; again < 2; again++) {
        gd_history_head(history, &head);
        assert_int_equal(head.last_step, last);
        /* an odd ring keeps one more record of the one than of the other */
        assert_in_range(head.first_step, last - head.steps, last - head.steps + 1);
        hist_expect_steps(history, "b", last - head.steps + 1, last);
        assert_int_equal(gd_history_read(history, 0, hist_records, 3), 3);
        assert_int_equal(hist_records[0].step, last - 2);
        assert_int_equal(hist_records[2].step, last);
        gd_history_close(history);
        history = again == 0 ? hist_open_again() : NULL;
    }
}

/* One tensor comes seldom: what it had leaves the ring, and is not mistaken for another's. */
static void test_rare_tensor(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_head head;

    hist_add(history, "rare", 1, 10);
    gd_history_head(history, &head);
    for (int64_t step = 1; step <= (int64_t)head.steps; step++) {
        hist_add(history, "often", step, 10 * (double)step);
    }
    assert_int_equal(hist_read_all(history, "rare"), 0);
    hist_add(history, "rare", 1000, 10000);
    hist_expect_steps(history, "rare", 1000, 1000);
    gd_history_close(history);
    history = hist_open_again();
    hist_expect_steps(history, "rare", 1000, 1000);
    gd_history_close(history);
}

static void test_same_step_replaces(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_tensor about;

    hist_add(history, "a", 1, 10);
    hist_add(history, "a", 2, 999);
    hist_add(history, "b", 2, 20);
    hist_add(history, "a", 2, 20);
    for (int again = 0; again < 2; again++) {
        hist_expect_steps(history, "a", 1, 2);
        hist_expect_steps(history, "b", 2, 2);
        assert_true(gd_history_tensor(history, 0, &about));
        assert_int_equal(about.seen, 2);
        gd_history_close(history);
        history = again == 0 ? hist_open_again() : NULL;
    }
}

static void test_steps_go_back(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_head head;

    for (int64_t step = 5; step <= 9; step++) {
        hist_add(history, "a", step, 10 * (double)step);
        hist_add(history, "b", step, 10 * (double)step);
    }
    hist_add(history, "a", 1, 10);
    hist_add(history, "a", 2, 20);
    for (int again = 0; again < 2; again++) {
        gd_history_head(history, &head);
        assert_int_equal(head.generation, 1);
        assert_int_equal(head.first_step, 1);
        assert_int_equal(head.last_step, 2);
        hist_expect_steps(history, "a", 1, 2);
        assert_int_equal(hist_read_all(history, "b"), 0);
        gd_history_close(history);
        history = again == 0 ? hist_open_again() : NULL;
    }
}

static void test_scalar_and_node_of_one_name(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_tensor scalar = {.name = "loss", .is_scalar = true};
    struct gd_history_record record = hist_record(1, 50);
    uint32_t index;
    struct gd_history_tensor about;

    assert_ok(gd_history_add(history, &scalar, &record, NULL));
    assert_true(gd_history_find(history, "loss", 0, &index));
    assert_true(gd_history_tensor(history, index, &about) && about.is_scalar);
    hist_add(history, "loss", 1, 10);
    assert_true(gd_history_find(history, "loss", 0, &index)); /* the node comes first */
    assert_true(gd_history_tensor(history, index, &about) && !about.is_scalar);
    hist_expect_steps(history, "loss", 1, 1);
    gd_history_close(history);
}

/* Histograms lie beside the statistics of their tensor, and a reader gets the same counts; those
 * beyond 32 bits are divided. */
static void test_histograms(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_tensor tensor = hist_tensor("net/a");
    struct gd_history_bins bins = {.lo = -1, .hi = 3}, read[8];
    struct gd_history_tensor about;
    struct gd_history_head head;
    uint32_t stats, index;

    for (int64_t step = 1; step <= 3; step++) {
        hist_add(history, "net/a", step, (double)step * 10);
        bins.step = step;
        bins.bin[step] = (uint64_t)step << 40;
        bins.bin[GD_WATCH_BINS - 1] = 7;
        bins.lo = step == 3 ? -INFINITY : -1; /* no number between them can be drawn */
        bins.hi = step == 3 ? INFINITY : 3;
        if (step == 3) {
            memset(bins.bin, 0, sizeof(bins.bin)); /* nothing finite */
        }
        assert_ok(gd_history_add_bins(history, &tensor, &bins, NULL));
    }
    for (int again = 0; again < 2; again++) {
        gd_history_head(history, &head);
        assert_int_equal(head.tensors, 2);
        assert_int_equal(head.histograms, 1);
        assert_int_equal(head.damaged, 0);
        assert_true(gd_history_find(history, "net/a", 0, &stats));
        assert_true(gd_history_find_bins(history, "net/a", 0, &index) && index != stats);
        assert_false(gd_history_find_bins(history, "net/a", 1, &index));
        assert_true(gd_history_find_bins(history, "net/a", 0, &index));
        assert_true(gd_history_tensor(history, index, &about) && about.is_bins);
        assert_int_equal(gd_history_read(history, index, hist_records, 8), 0);
        assert_int_equal(gd_history_read_bins(history, stats, read, 8), 0);
        hist_expect_steps(history, "net/a", 1, 3);
        assert_int_equal(gd_history_read_bins(history, index, read, 8), 3);
        assert_int_equal(read[1].step, 2);
        assert_true(read[1].bin[2] == UINT64_C(2) << 40 && read[1].bin[1] == UINT64_C(1) << 40);
        assert_true(read[1].bin[0] == 0 && read[1].bin[GD_WATCH_BINS - 1] > 0);
        assert_true(read[0].lo == -1 && read[0].hi == 3 && read[2].lo > read[2].hi);
        assert_int_equal(gd_history_read_bins(history, index, read, 1), 1);
        assert_int_equal(read[0].step, 3);
        gd_history_close(history);
        history = again == 0 ? hist_open_again() : NULL;
    }
}

/* A histogram that no program wrote is left out, and the rest is read. */
static void test_damaged_histograms(void **state)
{
    static const struct {
        size_t at;
        unsigned char byte;
    } damage[] = {{28, 1}, {36, 2}, {55, 0x7f}, {64, 41}, {68, 32}};
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_tensor tensor = hist_tensor("net/a");
    struct gd_history_bins bins = {.step = 1, .lo = 0, .hi = 1, .bin = {5}};
    struct gd_history_head head;
    uint32_t index;
    size_t size;

    hist_add(history, "net/a", 1, 10);
    assert_ok(gd_history_add_bins(history, &tensor, &bins, NULL));
    gd_history_close(history);
    for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
        unsigned char *bytes = hist_read_bytes(&size);
        unsigned char *p = bytes + hist_ring_offset(bytes) + (size_t)2 * HISTORY_RECORD;
        unsigned char was = p[damage[i].at];
        p[damage[i].at] = damage[i].byte;
        for (int pass = 0; pass < 2; pass++) { /* then as it was */
            uint64_t sum = htole64(history_checksum(p + 8, HISTORY_RECORD - 8));
            memcpy(p, &sum, 8);
            hist_write_bytes(bytes, size);
            history = hist_open_again();
            gd_history_head(history, &head);
            assert_int_equal(head.damaged, pass == 0);
            hist_expect_steps(history, "net/a", 1, 1);
            assert_true(gd_history_find_bins(history, "net/a", 0, &index));
            assert_int_equal(gd_history_read_bins(history, index, &bins, 1), pass);
            gd_history_close(history);
            p[damage[i].at] = was;
        }
        free(bytes);
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void test_sizes(void **state)
{
    struct gd_history *history;
    struct gd_history_head head;

    hist_expect_no_file(64 * KIB - 1, GD_EINVAL, "64 KiB");
    hist_expect_no_file(0, GD_EINVAL, "64 KiB");
    hist_expect_no_file(UINT64_MAX, GD_EINVAL, "4 GiB");
    for (uint64_t bytes = 64 * KIB; bytes <= 16 * 1024 * KIB; bytes = bytes * 3 + 1) {
        struct stat st;

        history = hist_create(bytes);
        assert_int_equal(stat(hist_path, &st), 0);
        assert_int_equal(st.st_size, bytes);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_true((uint64_t)st.st_blocks * 512 >= bytes);
        gd_history_head(history, &head);
        assert_true(head.steps / head.capacity >= 16); /* with one tensor all are its own */
        assert_int_equal(head.first_step, -1);
        assert_int_equal(head.last_step, -1);
        gd_history_close(history);
        gd_history_close(hist_open_again());
    }
}

static void test_more_tensors_than_fit(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_head head;
    struct gd_history_record record = hist_record(1, 1);
    struct gd_err err;
    uint32_t capacity;

    gd_history_head(history, &head);
    capacity = head.capacity;
    for (int64_t step = 1; step <= 3; step++) {
        for (uint32_t i = 0; i < capacity + 100; i++) {
            struct gd_history_tensor tensor;
            char name[32];

            snprintf(name, sizeof(name), "t%u", i);
            tensor = hist_tensor(name);
            record = hist_record(step, 10 * (double)step);
            assert_int_equal(gd_history_add(history, &tensor, &record, &err),
                             i < capacity ? GD_OK : GD_ELIMIT);
        }
    }
    assert_contains(err.text, "not recorded");
    for (int again = 0; again < 2; again++) {
        gd_history_head(history, &head);
        assert_int_equal(head.tensors, capacity);
        assert_int_equal(head.left_out, 100);
        assert_true(head.steps >= 16);
        hist_expect_steps(history, "t0", 1, 3);
        assert_int_equal(hist_read_all(history, "t100000"), 0);
        gd_history_close(history);
        history = again == 0 ? hist_open_again() : NULL;
    }
}

/* Long names fill the room for text before the table is full. */
static void test_long_names(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_record record = hist_record(1, 10);
    struct gd_history_head head;
    char *name = malloc(3000);
    int kept = 0;

    memset(name, 'x', 2999);
    name[2999] = '\0';
    for (int i = 0; i < 5; i++) {
        struct gd_history_tensor tensor = hist_tensor(name);

        name[0] = (char)('a' + i);
        kept += gd_history_add(history, &tensor, &record, NULL) == GD_OK;
    }
    assert_in_range(kept, 1, 4);
    hist_add(history, "short", 1, 10); /* still fits */
    gd_history_close(history);
    history = hist_open_again();
    gd_history_head(history, &head);
    assert_int_equal(head.tensors, kept + 1);
    assert_int_equal(head.left_out, 5 - kept);
    name[0] = 'a';
    hist_expect_steps(history, name, 1, 1);
    hist_expect_steps(history, "short", 1, 1);
    gd_history_close(history);
    free(name);
}

static void test_refused_values(void **state)
{
    struct gd_history *history = hist_create(64 * KIB);
    struct gd_history_record good = hist_record(1, 1), before = hist_record(-1, 1);
    struct gd_history_tensor tensor = hist_tensor(""), none = {.name = NULL};
    struct gd_err err;

    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_EINVAL);
    assert_int_equal(gd_history_add(history, &none, &good, &err), GD_EINVAL);
    tensor = hist_tensor("a");
    assert_int_equal(gd_history_add(history, &tensor, &before, &err), GD_EINVAL);
    tensor.slot = 1 << 20;
    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_EINVAL);
    tensor = hist_tensor("a");
    tensor.shape.rank = GD_MAX_RANK + 1;
    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_EINVAL);
    gd_history_close(history);
    history = hist_open_again();
    tensor = hist_tensor("a");
    assert_int_equal(gd_history_add(history, &tensor, &good, &err), GD_ESTATE);
    gd_history_close(history);
}
/* ---- with a session -------------------------------------------------------------------------- */

struct bench {
    struct gd_debugger *debugger;
    struct gd_session *session;
    int warnings;
    char warning[600];
};

static void observe_event(void *ctx, const struct gd_event *event)
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

    assert_ok(gd_session_create(bench->debugger, &fake_create(true, NULL)->target, NULL,
                                &bench->session, NULL));
    assert_ok(gd_graph_add(bench->session->graph, &desc, NULL, NULL));
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
}

static void make_bench(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    assert_ok(gd_debugger_create(&bench->debugger, NULL));
    assert_ok(gd_debugger_observe(bench->debugger, observe_event, bench));
    bench->debugger->settings.history_bytes = 64 * KIB;
    snprintf(bench->debugger->settings.history_file, sizeof(bench->debugger->settings.history_file),
             "%s", hist_path);
    connect_session(bench);
}

static void report_value(struct gd_session *session, int64_t step, double x)
{
    struct gd_stats stats = hist_record(step, x).stats;
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

    make_bench(&bench);
    gd_session_on_scalar(bench.session, "loss", 9, 0); /* before there is a history: kept */
    assert_null(bench.session->history);
    report_value(bench.session, 1, 10);
    gd_session_on_scalar(bench.session, "loss", 2.5, 1);
    report_value(bench.session, 2, 20);
    gd_session_on_scalar(bench.session, "loss", NAN, 2);
    gd_session_on_scalar(bench.session, "lr", 1, 1); /* late: does not begin anew */
    assert_non_null(bench.session->history);
    assert_int_equal(bench.warnings, 0);
    gd_debugger_destroy(bench.debugger);
    history = hist_open_again();
    hist_expect_steps(history, "net/a", 1, 2);
    assert_true(gd_history_find(history, "net/a", 0, &index));
    assert_true(gd_history_tensor(history, index, &about));
    assert_string_equal(about.type, "Log");
    assert_string_equal(about.file, "net.py");
    assert_int_equal(about.line, 12);
    assert_int_equal(about.kind, GD_NODE_ACTIVATION);
    assert_int_equal(about.order, 3);
    assert_int_equal(about.shape.dim[0], 1000);
    assert_int_equal(hist_read_all(history, "loss"), 3);
    assert_true(hist_records[0].step == 0 && hist_records[0].stats.mean == 9);
    assert_true(hist_records[1].stats.mean == 2.5 && hist_records[1].stats.max == 2.5);
    assert_true(hist_records[1].stats.positive == 1 && hist_records[1].stats.count == 1);
    assert_true(hist_records[2].stats.nan == 1 && hist_records[2].stats.positive == 0);
    assert_int_equal(hist_read_all(history, "lr"), 1);
    assert_int_equal(hist_records[0].step, 1);
    gd_history_head(history, &head);
    assert_int_equal(head.generation, 0);
    assert_int_equal(head.last_step, 2);
    gd_history_close(history);
}

static void test_session_off_and_failing(void **state)
{
    struct bench bench;

    unlink(hist_path);
    make_bench(&bench);
    bench.debugger->settings.history_bytes = 0;
    report_value(bench.session, 1, 10);
    assert_null(bench.session->history);
    assert_int_equal(bench.warnings, 0);
    bench.debugger->settings.history_bytes = 64 * KIB;
    hist_write_bytes((const unsigned char *)"precious", 8);
    report_value(bench.session, 2, 20);
    report_value(bench.session, 3, 30);
    assert_null(bench.session->history);
    assert_int_equal(bench.warnings, 1); /* once */
    assert_contains(bench.warning, "no history is kept: ");
    unlink(hist_path);
    connect_session(&bench); /* the second session has a file of its own */
    report_value(bench.session, 1, 10);
    assert_non_null(bench.session->history);
    assert_string_equal(gd_history_path(bench.session->history) + strlen(hist_path), ".2");
    gd_debugger_destroy(bench.debugger);
}

static void test_session_left_out(void **state)
{
    struct bench bench;
    struct gd_stats stats = hist_record(1, 1).stats;

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
    assert_contains(bench.warning, "not recorded");
    gd_debugger_destroy(bench.debugger);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_round_trip),
    cmocka_unit_test(test_not_finite),
    cmocka_unit_test(test_ring_wraps),
    cmocka_unit_test(test_rare_tensor),
    cmocka_unit_test(test_same_step_replaces),
    cmocka_unit_test(test_steps_go_back),
    cmocka_unit_test(test_scalar_and_node_of_one_name),
    cmocka_unit_test(test_histograms),
    cmocka_unit_test(test_damaged_histograms),
    cmocka_unit_test(test_sizes),
    cmocka_unit_test(test_more_tensors_than_fit),
    cmocka_unit_test(test_long_names),
    cmocka_unit_test(test_refused_values),
    cmocka_unit_test(test_session),
    cmocka_unit_test(test_session_off_and_failing),
    cmocka_unit_test(test_session_left_out),
};

RUN_TESTS_BETWEEN(hist_make_home, hist_drop_home)
