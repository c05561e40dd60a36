// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads a history file, which may be written at the same time, may be truncated anywhere, or may
 * not be one: everything is checked; what is incomplete is left out and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/history/history_impl.h"

#define CHUNK (UINT32_C(1) << 12) /* records read at once */

static int read_at(int fd, void *out, size_t len, uint64_t offset, struct gd_err *err)
{
    unsigned char *p = out;

    while (len > 0) {
        ssize_t got = pread(fd, p, len, (off_t)offset);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return gd_fail_errno(err, GD_EIO, "it cannot be read");
        }
        if (got == 0) {
            return gd_fail(err, GD_EPROTO, "it is truncated at byte %llu",
                           (unsigned long long)offset);
        }
        p += got;
        offset += (uint64_t)got;
        len -= (size_t)got;
    }
    return GD_OK;
}

/* A buffer filled with that many bytes of the file. */
static int read_part(int fd, uint64_t offset, uint64_t len, unsigned char **ret, struct gd_err *err)
{
    unsigned char *part = malloc(len ? (size_t)len : 1);

    if (!part) {
        return gd_fail(err, GD_ENOMEM, "there is not enough memory to read it");
    }
    int rc = read_at(fd, part, (size_t)len, offset, err);
    if (rc != GD_OK) {
        free(part);
        return rc;
    }
    *ret = part;
    return GD_OK;
}

static bool is_empty(const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i]) {
            return false;
        }
    }
    return true;
}

/* numbers: by place in the table, the tensor's number or HISTORY_NONE. */
static int take_entries(struct gd_history *history, const unsigned char *table,
                        const unsigned char *text, uint32_t *numbers, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < history->layout.capacity; i++) {
        const unsigned char *entry = table + (size_t)i * HISTORY_ENTRY;
        struct gd_history_tensor about;

        numbers[i] = HISTORY_NONE;
        if (is_empty(entry, HISTORY_ENTRY)) {
            continue;
        }
        if (!history_get_entry(entry, text, history->layout.text_bytes, &history->arena, &about) ||
            (about.is_bins && about.is_scalar) ||
            history_find(history, about.name, about.slot, history_kind_of(&about)) !=
                HISTORY_NONE) {
            history->damaged++;
            continue;
        }
        rc = history_add_tensor(history, &about, &numbers[i], err);
    }
    return rc;
}

static int read_table(struct gd_history *history, int fd, uint32_t *numbers, struct gd_err *err)
{
    const struct history_layout *l = &history->layout;
    unsigned char *table = NULL, *text = NULL;
    int rc = read_part(fd, l->table, (uint64_t)l->capacity * HISTORY_ENTRY, &table, err);

    if (rc == GD_OK) {
        rc = read_part(fd, l->text, l->text_bytes, &text, err);
    }
    if (rc == GD_OK) {
        rc = take_entries(history, table, text, numbers, err);
    }
    free(table);
    free(text);
    return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

struct good { /* the complete records, as stored in the file */
    unsigned char *bytes;
    uint32_t count, room;
    uint64_t newest; /* sequence */
    uint32_t newest_at;
};

static bool keep_record(struct good *good, const unsigned char *p)
{
    if (good->count == good->room) {
        uint32_t room = good->room ? good->room * 2 : 256;
        unsigned char *grown = realloc(good->bytes, (size_t)room * HISTORY_RECORD);

        if (!grown) {
            return false;
        }
        good->bytes = grown;
        good->room = room;
    }
    memcpy(good->bytes + (size_t)good->count++ * HISTORY_RECORD, p, HISTORY_RECORD);
    return true;
}

/* A record belongs at its place in the ring, to a tensor of the table. */
static bool take_record(struct gd_history *history, const uint32_t *numbers, uint32_t place,
                        const unsigned char *p, struct good *good)
{
    const struct history_layout *l = &history->layout;
    struct history_record record;

    if (is_empty(p, HISTORY_RECORD)) {
        return true;
    }
    if (!history_get_record(p, &record) || record.sequence % l->records != place ||
        record.tensor >= l->capacity || numbers[record.tensor] == HISTORY_NONE ||
        history->tensors[numbers[record.tensor]].about.is_bins != record.is_bins) {
        history->damaged++;
        return true;
    }
    if (record.sequence > good->newest) {
        good->newest = record.sequence;
        good->newest_at = good->count;
    }
    return keep_record(good, p);
}

static int scan_ring(struct gd_history *history, int fd, const uint32_t *numbers, struct good *good,
                     struct gd_err *err)
{
    const struct history_layout *l = &history->layout;
    unsigned char *chunk = malloc((size_t)CHUNK * HISTORY_RECORD);
    int rc = chunk ? GD_OK : GD_ENOMEM;

    for (uint32_t at = 0; rc == GD_OK && at < l->records;) {
        uint32_t count = l->records - at < CHUNK ? l->records - at : CHUNK;

        rc = read_at(fd, chunk, (size_t)count * HISTORY_RECORD,
                     l->ring + (uint64_t)at * HISTORY_RECORD, err);
        for (uint32_t i = 0; rc == GD_OK && i < count; i++) {
            if (!take_record(history, numbers, at + i, chunk + (size_t)i * HISTORY_RECORD, good)) {
                rc = GD_ENOMEM;
            }
        }
        at += count;
    }
    free(chunk);
    return rc == GD_ENOMEM ? gd_fail(err, rc, "there is not enough memory to read it") : rc;
}

/* Oldest first: records are stored by sequence modulo the ring, so the oldest follows the newest.
 * One older than the ring's length is invalid. */
static int order_records(struct gd_history *history, const uint32_t *numbers, struct good *good,
                         struct gd_err *err)
{
    struct history_record record;
    uint32_t place = 0;
    int rc = history_reserve(history, good->count, err);

    if (rc == GD_OK && good->count) {
        history->copy = malloc((size_t)good->count * HISTORY_RECORD);
        rc = history->copy ? GD_OK
                           : gd_fail(err, GD_ENOMEM, "there is not enough memory to read it");
    }
    for (uint32_t i = 1; rc == GD_OK && i <= good->count; i++) {
        uint32_t at = (uint32_t)(((uint64_t)good->newest_at + i) % good->count);
        const unsigned char *p = good->bytes + (size_t)at * HISTORY_RECORD;

        if (!history_get_record(p, &record) ||
            good->newest - record.sequence >= history->layout.records) {
            history->damaged++;
            continue;
        }
        memcpy(history->copy + (size_t)place * HISTORY_RECORD, p, HISTORY_RECORD);
        history_link(history, place++, record.sequence, numbers[record.tensor]);
        if (history->tensors[numbers[record.tensor]].about.seen < record.number) {
            history->tensors[numbers[record.tensor]].about.seen = record.number;
        }
        int64_t step = record.is_bins ? record.bins.step : record.value.step;
        if (history->generation != record.generation || step > history->last_step) {
            history->last_step = step;
        }
        history->generation = record.generation; /* finally, of the newest */
    }
    return rc;
}

static int read_file(struct gd_history *history, int fd, uint64_t bytes, struct gd_err *err)
{
    unsigned char *head = NULL;
    uint32_t *numbers = NULL;
    struct good good = {0};

    if (bytes < HISTORY_HEADER) {
        return gd_fail(err, GD_EPROTO, "it is too short");
    }
    int rc = read_part(fd, 0, HISTORY_HEADER, &head, err);
    if (rc == GD_OK) {
        rc = history_get_head(head, history, bytes, err);
    }
    if (rc == GD_OK) {
        history_get_state(head, &history->left_out);
        numbers = malloc(((size_t)history->layout.capacity + 1) * sizeof(*numbers));
        rc = numbers ? GD_OK : gd_fail(err, GD_ENOMEM, "there is not enough memory to read it");
    }
    if (rc == GD_OK) {
        rc = read_table(history, fd, numbers, err);
    }
    if (rc == GD_OK) {
        rc = scan_ring(history, fd, numbers, &good, err);
    }
    if (rc == GD_OK) {
        rc = order_records(history, numbers, &good, err);
    }
    free(good.bytes);
    free(numbers);
    free(head);
    return rc;
}

static int open_file(const char *path, int *fd, uint64_t *bytes, struct gd_err *err)
{
    struct stat st;

    *fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0) {
        return gd_fail_errno(err, errno == ENOENT ? GD_ENOTFOUND : GD_EIO, "%.400s", path);
    }
    if (fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(*fd);
        return gd_fail(err, GD_EPROTO, "not a gradb history file: %.400s: it is not a regular file",
                       path);
    }
    *bytes = (uint64_t)st.st_size;
    return GD_OK;
}

int gd_history_open(const char *path, struct gd_history **ret, struct gd_err *err)
{
    struct gd_err why = {.text = ""};
    uint64_t bytes = 0;
    int fd, rc = open_file(path, &fd, &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    struct gd_history *history = history_new();
    if (history) {
        history->path = strdup(path);
    }
    rc = history && history->path ? read_file(history, fd, bytes, &why) : gd_fail_nomem(&why);
    close(fd);
    if (rc != GD_OK) {
        gd_history_close(history);
        return gd_fail(err, rc, "%s: %.300s: %s",
                       rc == GD_EPROTO ? "not a gradb history file" : "the history cannot be read",
                       path, why.text);
    }
    *ret = history;
    return GD_OK;
}
