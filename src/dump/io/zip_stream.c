// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/zip_stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define WINDOW       ((size_t)32 << 20) /* latest output bytes that are kept */
#define STEP         ((size_t)1 << 20)
#define MOST_WINDOWS 4                    /* windows of all streams that are not being read */
#define MARK_BYTES   ((uint64_t)16 << 20) /* minimum distance of two marks, in content */
#define MOST_MARKS   512                  /* each takes about 40 KiB */
#define MOST_REWINDS 16
/* a member up to this size may be inflated whole after all, */
#define LOAD_MAX     ((uint64_t)256 << 20)
#define LOAD_RATIO   32 /* or one up to this many times its compressed size */

struct mark { /* a point where inflating can resume */
    z_stream z;
    uint64_t base;     /* offset in the content */
    uint64_t at, left; /* in the compressed bytes */
    uLong crc;         /* of the content before it */
};

struct zip_stream {
    struct gd_zip *zip;
    const struct gd_zip_entry *entry;
    z_stream z;
    bool begun;
    unsigned rewinds;
    uint64_t at, left; /* compressed bytes not read yet */
    uint64_t base;     /* offset of the window in the content */
    size_t fill;       /* bytes in the window */
    uLong crc;
    uint64_t mark_bytes;
    size_t mark_count; /* sorted by content */
    struct mark mark[MOST_MARKS];
    unsigned char *in;     /* STEP bytes */
    unsigned char *window; /* NULL: taken by another stream */
    /* Guarded by the lock: */
    bool busy;
    struct zip_stream *newer, *older; /* list of the streams with a window */
};

static struct {
    pthread_mutex_t mutex;
    struct zip_stream *newest, *oldest;
    unsigned count;
} windows = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- windows: those read last have one ------------------------------------------------------- */

static void windows_remove(struct zip_stream *s)
{
    *(s->newer ? &s->newer->older : &windows.newest) = s->older;
    *(s->older ? &s->older->newer : &windows.oldest) = s->newer;
    s->newer = s->older = NULL;
    windows.count--;
}

static void windows_add(struct zip_stream *s)
{
    s->older = windows.newest;
    *(windows.newest ? &windows.newest->newer : &windows.oldest) = s;
    windows.newest = s;
    windows.count++;
}

static void drop_window(struct zip_stream *s)
{
    if (s->window) {
        windows_remove(s);
        free(s->window);
        free(s->in);
        s->window = s->in = NULL;
        s->begun = false;
    }
}

static void make_room(void)
{
    struct zip_stream *s = windows.oldest;

    while (s && windows.count >= MOST_WINDOWS) {
        struct zip_stream *newer = s->newer;
        if (!s->busy) {
            drop_window(s);
        }
        s = newer;
    }
}

/* Makes the window this stream's until done_with_window. False: out of memory. */
static bool take_window(struct zip_stream *s)
{
    pthread_mutex_lock(&windows.mutex);
    if (s->window) {
        windows_remove(s);
        windows_add(s);
    } else {
        make_room();
        s->window = malloc(WINDOW);
        s->in = malloc(STEP);
        if (s->window && s->in) {
            windows_add(s);
        } else {
            free(s->window);
            free(s->in);
            s->window = s->in = NULL;
        }
    }
    s->busy = s->window != NULL;
    pthread_mutex_unlock(&windows.mutex);
    return s->busy;
}

static void done_with_window(struct zip_stream *s)
{
    pthread_mutex_lock(&windows.mutex);
    s->busy = false;
    pthread_mutex_unlock(&windows.mutex);
}

/* ---- inflating ------------------------------------------------------------------------------- */

struct zip_stream *zip_stream_new(struct gd_zip *zip, const struct gd_zip_entry *entry)
{
    struct zip_stream *stream = calloc(1, sizeof(*stream));

    if (stream) {
        stream->zip = zip;
        stream->entry = entry;
        stream->mark_bytes =
            entry->size / MOST_MARKS > MARK_BYTES ? entry->size / MOST_MARKS : MARK_BYTES;
        if (inflateInit2(&stream->z, -15) != Z_OK) {
            free(stream);
            stream = NULL;
        }
    }
    return stream;
}

void zip_stream_free(struct zip_stream *stream)
{
    if (stream) {
        pthread_mutex_lock(&windows.mutex);
        drop_window(stream);
        pthread_mutex_unlock(&windows.mutex);
        inflateEnd(&stream->z);
        for (size_t i = 0; i < stream->mark_count; i++) {
            inflateEnd(&stream->mark[i].z);
        }
        free(stream);
    }
}

static int fail_member(const struct zip_stream *s, const char *what, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.200s: the member %.100s is damaged: %s",
                   gd_disk_path(gd_zip_disk(s->zip)), s->entry->name, what);
}

static int begin_stream(struct zip_stream *s, struct gd_err *err)
{
    s->begun = true;
    s->base = s->fill = 0;
    s->crc = crc32(0, NULL, 0);
    s->left = s->entry->packed;
    s->z.avail_in = 0;
    if (inflateReset(&s->z) != Z_OK && inflateInit2(&s->z, -15) != Z_OK) {
        return gd_fail_nomem(err);
    }
    return gd_zip_locate(s->zip, s->entry, &s->at, err);
}

/* Without memory, the mark is skipped: seeking back takes longer. */
static void set_mark(struct zip_stream *s)
{
    uint64_t end = s->base + s->fill;
    uint64_t due = s->mark_count ? s->mark[s->mark_count - 1].base + s->mark_bytes : s->mark_bytes;
    struct mark *mark = &s->mark[s->mark_count];

    if (end >= due && s->mark_count < MOST_MARKS && inflateCopy(&mark->z, &s->z) == Z_OK) {
        mark->base = end;
        mark->at = s->at - s->z.avail_in;
        mark->left = s->left + s->z.avail_in;
        mark->crc = s->crc;
        s->mark_count++;
    }
}

/* The last mark at or before `at`; NULL: none. */
static struct mark *find_mark(struct zip_stream *s, uint64_t at)
{
    size_t low = 0, high = s->mark_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->mark[middle].base <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low ? &s->mark[low - 1] : NULL;
}

static int go_to_mark(struct zip_stream *s, struct mark *mark, struct gd_err *err)
{
    inflateEnd(&s->z);
    if (inflateCopy(&s->z, &mark->z) != Z_OK) {
        return gd_fail_nomem(err);
    }
    s->begun = true;
    s->z.avail_in = 0;
    s->base = mark->base;
    s->fill = 0;
    s->at = mark->at;
    s->left = mark->left;
    s->crc = mark->crc;
    return GD_OK;
}

/* The memory this takes must be in proportion to the file. */
static bool may_load(const struct gd_zip_entry *entry)
{
    return entry->size <= LOAD_MAX || entry->size / LOAD_RATIO <= entry->packed;
}

/* Positions the stream so that reading on reaches `at` by the shortest way. */
static int seek_to(struct zip_stream *s, uint64_t at, struct gd_err *err)
{
    bool back = s->begun && at < s->base;
    struct mark *mark = find_mark(s, at);

    if (back && ++s->rewinds > MOST_REWINDS && may_load(s->entry)) {
        return gd_fail(err, GD_ENODATA, "the member is read out of order");
    }
    if (mark && (back || !s->begun || mark->base > s->base + s->fill)) {
        return go_to_mark(s, mark, err);
    }
    return back || !s->begun ? begin_stream(s, err) : GD_OK;
}

/* At the end there is no more input, but zlib may still have output. */
static int feed_zlib(struct zip_stream *s, struct gd_err *err)
{
    size_t n = s->left < STEP ? (size_t)s->left : STEP;

    if (n == 0) {
        return GD_OK;
    }
    int rc = gd_disk_read(gd_zip_disk(s->zip), s->at, s->in, n, err);
    s->at += n;
    s->left -= n;
    s->z.next_in = s->in;
    s->z.avail_in = (uInt)n;
    return rc;
}

static bool is_cut_short(const struct zip_stream *s, int got)
{
    return got == Z_BUF_ERROR && s->left == 0 && s->z.avail_in == 0;
}

/* Checks size and CRC once everything is inflated. */
static int check_end(struct zip_stream *s, int got, struct gd_err *err)
{
    unsigned char beyond;

    while (got != Z_STREAM_END) {
        int rc = s->z.avail_in == 0 ? feed_zlib(s, err) : GD_OK;
        if (rc != GD_OK) {
            return rc;
        }
        s->z.next_out = &beyond;
        s->z.avail_out = 1;
        got = inflate(&s->z, Z_NO_FLUSH);
        if (is_cut_short(s, got)) {
            return fail_member(s, "its data end too early", err);
        }
        if (s->z.avail_out == 0 || (got != Z_OK && got != Z_STREAM_END)) {
            return fail_member(s, "it inflates to more than its size", err);
        }
    }
    if (s->left || s->z.avail_in) {
        return fail_member(s, "it inflates to less than its size", err);
    }
    return s->crc == s->entry->crc ? GD_OK : fail_member(s, "its CRC is wrong", err);
}

static int inflate_more(struct zip_stream *s, struct gd_err *err)
{
    if (s->fill + STEP > WINDOW) {
        memmove(s->window, s->window + WINDOW / 2, s->fill - WINDOW / 2);
        s->base += WINDOW / 2;
        s->fill -= WINDOW / 2;
    }
    uint64_t rest = s->entry->size - s->base - s->fill;
    size_t room = rest < STEP ? (size_t)rest : STEP;
    int rc = s->z.avail_in == 0 ? feed_zlib(s, err) : GD_OK;

    if (rc != GD_OK) {
        return rc;
    }
    s->z.next_out = s->window + s->fill;
    s->z.avail_out = (uInt)room;
    int got = inflate(&s->z, Z_NO_FLUSH);
    if (is_cut_short(s, got)) {
        return fail_member(s, "its data end too early", err);
    }
    if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR) {
        return fail_member(s, s->z.msg ? s->z.msg : "its data cannot be inflated", err);
    }
    room -= s->z.avail_out;
    s->crc = crc32(s->crc, s->window + s->fill, (uInt)room);
    s->fill += room;
    if (room == rest) {
        return check_end(s, got, err);
    }
    if (got != Z_STREAM_END) {
        set_mark(s);
    }
    return got == Z_STREAM_END ? fail_member(s, "it inflates to less than its size", err) : GD_OK;
}

static int read_window(struct zip_stream *s, uint64_t at, unsigned char *out, size_t size,
                       struct gd_err *err)
{
    int rc = seek_to(s, at, err);

    while (rc == GD_OK && size > 0) {
        uint64_t end = s->base + s->fill;
        if (at < end) {
            size_t n = end - at < size ? (size_t)(end - at) : size;
            memcpy(out, s->window + (at - s->base), n);
            at += n;
            out += n;
            size -= n;
        } else {
            rc = inflate_more(s, err);
        }
    }
    if (rc != GD_OK && rc != GD_ENODATA) {
        s->begun = false; /* later readers get the same error */
    }
    return rc;
}

int zip_stream_read(struct zip_stream *s, uint64_t at, void *ret, size_t size, struct gd_err *err)
{
    if (!take_window(s)) {
        return gd_fail_nomem(err);
    }
    int rc = read_window(s, at, ret, size, err);
    done_with_window(s);
    return rc;
}
