// SPDX-License-Identifier: GPL-3.0-or-later
/* Saves and resumes the results of a scan: a file that grows by complete records. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/io/file_name.h"
#include "dump/scan/scan_impl.h"
#include "engine/state_dir.h"

#define KEPT_FILES  8 /* files of interrupted scans that are kept */
#define NAME_PREFIX "scan-"

/* ---- file name ------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t hash_head(const struct gd_scan_head *head, const char *key)
{
    uint64_t hash = hash_text(hash_text(UINT64_C(0xcbf29ce484222325), key), head->watched);
    char text[96];

    for (uint32_t i = 0; i <= head->range_count; i++) {
        const struct gd_scan_range *range = i == 0 ? &head->steps : &head->ranks[i - 1];

        snprintf(text, sizeof(text), "%lld %lld;", (long long)range->from, (long long)range->to);
        hash = hash_text(hash, text);
    }
    snprintf(text, sizeof(text), "%u/%u", head->shard, head->shards);
    return hash_text(hash, text);
}

static double time_of(int directory, const char *name)
{
    struct stat about;

    return fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) == 0
               ? (double)about.st_mtim.tv_sec + 1e-9 * (double)about.st_mtim.tv_nsec
               : -1;
}

static int name_in_state(struct scan_progress *state, const struct gd_scan_head *head,
                         const char *key, struct gd_err *err)
{
    int rc = gd_state_directory(state->path, sizeof(state->path) - 64, err);

    if (rc == GD_OK) {
        size_t len = strlen(state->path);

        gd_state_trim(state->path, NAME_PREFIX, GD_SCAN_SUFFIX, KEPT_FILES, time_of);
        snprintf(state->path + len, sizeof(state->path) - len, "/" NAME_PREFIX "%016llx%s",
                 (unsigned long long)hash_head(head, key), GD_SCAN_SUFFIX);
    }
    return rc;
}

static int name_asked_for(struct scan_progress *state, const struct gd_scan_head *head,
                          const char *out, struct gd_err *err)
{
    struct stat about;
    int len;

    if (stat(out, &about) == 0 && S_ISDIR(about.st_mode)) {
        len = snprintf(state->path, sizeof(state->path), "%s/part-%06u-of-%06u%s", out, head->shard,
                       head->shards, GD_SCAN_SUFFIX);
    } else {
        len = snprintf(state->path, sizeof(state->path), "%s", out);
    }
    return len < 0 || (size_t)len >= sizeof(state->path)
               ? gd_fail(err, GD_ELIMIT, "%.300s: the path is too long", out)
               : GD_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;

    while (size > 0) {
        ssize_t done = write(fd, at, size);

        if (done < 0 && errno != EINTR) {
            return -1;
        }
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int begin_anew(struct scan_progress *state, const struct gd_scan_head *head,
                      struct gd_err *err)
{
    struct gd_buf start = GD_BUF_INIT(1 << 23);
    int rc = GD_OK;

    gd_scan_file_free(state->file);
    state->file = NULL;
    state->units = 0;
    gd_scan_put_start(&start, head);
    if (start.failed) {
        rc = gd_fail_nomem(err);
    } else if (ftruncate(state->fd, 0) != 0 || lseek(state->fd, 0, SEEK_SET) < 0 ||
               write_all(state->fd, start.data, start.len) != 0) {
        rc = gd_fail_errno(err, GD_EIO, "cannot write %.300s", state->path);
    }
    gd_buf_deinit(&start);
    return rc;
}

/* Resumes from the existing file; an incomplete last record is cut off. */
static int go_on_with(struct scan_progress *state, const struct gd_scan_head *head,
                      struct gd_err *err)
{
    const struct gd_scan_head *there;
    struct gd_err why = {.text = ""};
    int rc = gd_scan_file_open(state->path, &state->file, &why);
    bool fits = false;

    if (rc == GD_OK) {
        there = gd_scan_file_head(state->file);
        fits = gd_scan_head_equal(there, head) && there->shard == head->shard &&
               there->shards == head->shards;
    }
    if (rc == GD_ENOMEM) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (!fits && state->keeps) {
        return rc != GD_OK
                   ? gd_fail(err, GD_ESTATE, "%.400s, and is not overwritten: choose another file",
                             why.text)
                   : gd_fail(err, GD_ESTATE,
                             "%.300s is a scan of other steps, ranks, parts or watchpoints: choose "
                             "another file, or remove it",
                             state->path);
    }
    if (!fits) {
        return begin_anew(state, head, err);
    }
    state->units = gd_scan_file_units(state->file);
    off_t good = (off_t)gd_scan_file_good(state->file);
    if (ftruncate(state->fd, good) != 0 || lseek(state->fd, good, SEEK_SET) < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot write %.300s", state->path);
    }
    return GD_OK;
}

static int open_file(struct scan_progress *state, const struct gd_scan_head *head,
                     struct gd_err *err)
{
    struct stat about;

    state->fd = open(state->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                     state->keeps ? 0666 : 0600);
    if (state->fd < 0 || fstat(state->fd, &about) != 0) {
        return gd_fail_errno(err, GD_EIO, "cannot open %.300s", state->path);
    }
    if (!S_ISREG(about.st_mode)) {
        return gd_fail(err, GD_EIO, "%.300s is not a regular file", state->path);
    }
    /* If the file system has no locks, continue without. */
    if (flock(state->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return gd_fail(err, GD_ESTATE, "%.300s is being written by another scan", state->path);
    }
    return about.st_size == 0 ? begin_anew(state, head, err) : go_on_with(state, head, err);
}

static void give_up(struct scan_progress *state)
{
    if (state->fd >= 0) {
        close(state->fd);
    }
    gd_scan_file_free(state->file);
    state->fd = -1;
    state->file = NULL;
    state->units = 0;
}

int scan_progress_open(struct scan_progress *state, const struct gd_scan_options *options,
                       const struct gd_scan_head *head, const char *key, char *warning, size_t size,
                       struct gd_err *err)
{
    struct gd_err why = {.text = ""};
    int rc;

    *state = (struct scan_progress){.fd = -1, .keeps = options->out != NULL};
    if (!options->out && !options->remember) {
        return GD_OK;
    }
    rc = options->out ? name_asked_for(state, head, options->out, &why)
                      : name_in_state(state, head, key, &why);
    rc = rc != GD_OK ? rc : open_file(state, head, &why);
    if (rc == GD_OK) {
        return GD_OK;
    }
    give_up(state);
    if (options->out || rc == GD_ENOMEM) {
        return gd_fail(err, rc, "%s", why.text);
    }
    snprintf(warning, size, "results are not saved: %.350s", why.text);
    state->path[0] = '\0';
    return GD_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

int scan_progress_add(struct scan_progress *state, struct gd_buf *bytes, struct gd_err *err)
{
    int rc = GD_OK;

    if (state->fd < 0 || bytes->len == 0) {
        return GD_OK;
    }
    if (bytes->failed) {
        rc = gd_fail_nomem(err);
    } else if (write_all(state->fd, bytes->data, bytes->len) != 0) {
        rc = gd_fail_errno(err, GD_EIO, "cannot write %.300s", state->path);
    }
    state->written = true;
    if (rc != GD_OK && !state->keeps) { /* continue without saving */
        close(state->fd);
        state->fd = -1;
        rc = GD_OK;
    }
    return rc;
}

int scan_progress_close(struct scan_progress *state, bool complete, struct gd_err *err)
{
    struct gd_buf end = GD_BUF_INIT(1 << 10);
    bool ended = state->file && gd_scan_file_is_complete(state->file) && !state->written;
    int rc = GD_OK;

    if (complete && state->keeps && !ended) {
        gd_scan_put_end(&end);
        rc = scan_progress_add(state, &end, err);
        if (rc == GD_OK && state->fd >= 0 && fsync(state->fd) != 0 && errno != EINVAL) {
            rc = gd_fail_errno(err, GD_EIO, "cannot write %.300s", state->path);
        }
    }
    if (complete && !state->keeps && state->fd >= 0) {
        unlink(state->path);
        state->path[0] = '\0';
    }
    gd_buf_deinit(&end);
    give_up(state);
    return rc;
}
