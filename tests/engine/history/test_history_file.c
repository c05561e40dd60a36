// SPDX-License-Identifier: GPL-3.0-or-later
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../unit.h"
#include "history_bench.h"

static void fill_file(int64_t steps)
{
    struct gd_history *history = hist_create(64 * KIB);

    for (int64_t step = 1; step <= steps; step++) {
        hist_add(history, "a", step, 10 * (double)step);
        hist_add(history, "b", step, 10 * (double)step);
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

    fill_file(4);
    whole = hist_read_bytes(&size);
    place = hist_ring_offset(whole) + 7 * RECORD; /* record 7: "a" of step 4 */
    memcpy(other, whole + hist_ring_offset(whole) + 5 * RECORD, RECORD);
    for (size_t len = 1; len < RECORD; len++) {
        memcpy(torn, whole, size);
        memcpy(torn + place, other, len);
        if (memcmp(torn + place, whole + place, RECORD) == 0 ||
            memcmp(torn + place, other, RECORD) == 0) {
            continue; /* whole after all */
        }
        hist_write_bytes(torn, size);
        history = hist_open_again();
        gd_history_head(history, &head);
        assert_int_equal(head.damaged, 1);
        assert_int_equal(head.last_step, 4);
        hist_expect_steps(history, "a", 1, 3);
        hist_expect_steps(history, "b", 1, 4);
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

    fill_file(4);
    whole = hist_read_bytes(&size);
    ring = hist_ring_offset(whole);
    for (size_t at = 0; at < ring + 10 * RECORD; at += at < 128 ? 1 : at < HEADER ? 37 : 5) {
        struct gd_history *history = NULL;
        struct gd_history_head head;
        struct gd_err err = {0};
        int rc;

        memcpy(bytes, whole, size);
        bytes[at] ^= (unsigned char)(1u << at % 8);
        hist_write_bytes(bytes, size);
        rc = gd_history_open(hist_path, &history, &err);
        if (at < 2048) { /* the header: checked as a whole */
            assert_int_equal(rc, GD_EPROTO);
            assert_contains(err.text, "not a gradb history file");
            assert_null(history);
            continue;
        }
        assert_ok(rc);
        gd_history_head(history, &head);
        if (at >= ring + RECORD && at < ring + 9 * RECORD) {
            assert_int_equal(head.damaged, 1);
            assert_int_equal(head.tensors, 2);
            assert_int_equal(hist_read_all(history, "a") + hist_read_all(history, "b"), 7);
        } else if (at < HEADER || at >= HEADER + 2 * ENTRY) {
            assert_true(hist_read_all(history, "a") == 4 || head.damaged > 0);
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

    fill_file(4);
    whole = hist_read_bytes(&size);
    for (size_t len = 0; len < size; len += len < 300 ? 7 : 1009) {
        struct gd_history *history = NULL;
        struct gd_err err = {0};

        hist_write_bytes(whole, len);
        assert_int_equal(gd_history_open(hist_path, &history, &err), GD_EPROTO);
        assert_null(history);
        assert_contains(err.text, len < HEADER ? "too short" : "truncated");
    }
    unlink(hist_path);
    free(whole);
}

static void test_other_files(void **state)
{
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    unlink(hist_path);
    assert_int_equal(gd_history_open(hist_path, &history, &err), GD_ENOTFOUND);
    assert_int_equal(gd_history_open(hist_home, &history, &err), GD_EPROTO);
    assert_int_equal(gd_history_open("/dev/zero", &history, &err), GD_EPROTO);
    hist_write_bytes((const unsigned char *)"print('hello')\n", 15);
    assert_int_equal(gd_history_open(hist_path, &history, &err), GD_EPROTO);
    assert_contains(err.text, "not a gradb history file");
    /* and such a file is not written over */
    hist_expect_no_file(64 * KIB, GD_EINVAL, "not overwritten");
    assert_int_equal(access(hist_path, F_OK), 0);
    unlink(hist_path);
    assert_int_equal(symlink("/dev/null", hist_path), 0);
    hist_expect_no_file(64 * KIB, GD_EIO, hist_path);
    unlink(hist_path);
}
static void test_open_while_written(void **state)
{
    struct gd_history *history = hist_create(64 * KIB), *reader;

    hist_expect_no_file(64 * KIB, GD_ESTATE, "is being written");
    hist_add(history, "a", 1, 10);
    reader = hist_open_again();
    hist_add(history, "a", 2, 20);
    hist_add(history, "b", 2, 20);
    hist_expect_steps(reader, "a", 1, 1);
    gd_history_close(reader);
    reader = hist_open_again();
    hist_expect_steps(reader, "a", 1, 2);
    hist_expect_steps(reader, "b", 2, 2);
    gd_history_close(reader);
    gd_history_close(history);
}

/* A process writes as fast as it can and is killed in the middle; meanwhile the file is read again
 * and again. Nothing that is read was not written. */
/* In a process of its own. Writes a byte to `ready` after the first step. */
static void write_until_killed(int ready)
{
    struct gd_history *history = hist_create(64 * KIB);

    for (int64_t step = 1;; step++) {
        hist_add(history, "a", step, 10 * (double)step);
        hist_add(history, "b", step, 10 * (double)step);
        if (step == 1 && write(ready, "x", 1) != 1) {
            _exit(1);
        }
    }
}

/* Returns the last step. */
static int64_t expect_written(const char *name, struct gd_history_head *head)
{
    struct gd_history *reader = hist_open_again();
    size_t count = hist_read_all(reader, name);

    for (size_t i = 0; i < count; i++) {
        hist_expect_stats(&hist_records[i].stats, 10 * (double)hist_records[i].step);
        assert_true(i == 0 || hist_records[i].step > hist_records[i - 1].step);
    }
    gd_history_head(reader, head);
    gd_history_close(reader);
    return head->last_step;
}

static void test_killed_writer(void **state)
{
    struct gd_history_head head;
    struct gd_history *reader;
    int ready[2], status;
    char byte;
    pid_t child;

    unlink(hist_path);
    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        write_until_killed(ready[1]);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (int i = 0; i < 100 || head.last_step <= head.steps; i++) { /* until the ring is full */
        expect_written(i % 2 ? "a" : "b", &head);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    int64_t last = expect_written("b", &head);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(expect_written(i % 2 ? "a" : "b", &head), last);
        /* all that was written before the kill is there, but for the one it was at */
        assert_true(head.damaged <= 1);
        reader = hist_open_again();
        assert_true(hist_read_all(reader, "a") >= head.steps - 1);
        gd_history_close(reader);
    }
    close(ready[0]);
}

static void test_no_room(void **state)
{
    struct rlimit old, limit;

    unlink(hist_path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 100 * KIB;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    hist_expect_no_file(1024 * KIB, GD_EIO, "no room for 1048576 bytes");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_not_equal(access(hist_path, F_OK), 0);
}
static int count_histories(void)
{
    char name[300];
    DIR *directory;
    int count = 0;

    snprintf(name, sizeof(name), "%s/gradb", hist_home);
    directory = opendir(name);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        count += strstr(entry->d_name, ".gdhist") != NULL;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}
static struct gd_history *create_in_state(const char *program)
{
    struct gd_peer peer = {.pid = 5};
    struct gd_history *history = NULL;
    struct gd_err err = {0};

    snprintf(peer.program, sizeof(peer.program), "%s", program);
    if (gd_history_create(NULL, 64 * KIB, &peer, &history, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
    return history;
}

static void test_state_directory(void **state)
{
    struct gd_history *live = create_in_state("/x/../../a\n:b --c /d"), *history;
    char other[300], not_ours[300];
    FILE *file;

    assert_contains(gd_history_path(live), hist_home);
    assert_contains(gd_history_path(live), "/gradb/history-a__b-5-");
    snprintf(other, sizeof(other), "%s/gradb/notes.txt", hist_home);
    snprintf(not_ours, sizeof(not_ours), "%s/gradb/history-0.gdhist", hist_home);
    file = fopen(other, "w");
    assert_non_null(file);
    fclose(file);
    file = fopen(not_ours, "w");
    assert_non_null(file);
    fputs("something else", file);
    fclose(file);
    for (int i = 0; i < 12; i++) {
        history = create_in_state("/usr/bin/python3.11 /x/train.py -n 3");
        assert_contains(gd_history_path(history), "/gradb/history-train.py-5-");
        hist_add(history, "a", 1, 10);
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

    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_int_equal(gd_history_create(NULL, 64 * KIB, NULL, &history, &err), GD_EIO);
    assert_contains(err.text, "HOME");
    setenv("XDG_STATE_HOME", hist_home, 1);
    if (old_home) {
        setenv("HOME", old_home, 1);
    }
    free(old_home);
}
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_torn_record),
    cmocka_unit_test(test_flipped_bits),
    cmocka_unit_test(test_truncated),
    cmocka_unit_test(test_other_files),
    cmocka_unit_test(test_open_while_written),
    cmocka_unit_test(test_killed_writer),
    cmocka_unit_test(test_no_room),
    cmocka_unit_test(test_state_directory),
    cmocka_unit_test(test_no_home),
};

RUN_TESTS_BETWEEN(hist_make_home, hist_drop_home)
