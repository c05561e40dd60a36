// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The end record is searched from the end of the file; the last one counts. The directory must lie
 * right before it (or before the zip64 one). Everything else follows from the directory.
 */
#include "dump/io/zip.h"
#include "base/cleanup.h"
#include "dump/io/little_endian.h"
#include "dump/io/zip_check.h"
#include "dump/io/zip_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define END_SIZE       22
#define END64_SIZE     56
#define LOCATOR_SIZE   20
#define CENTRAL_SIZE   46
#define LOCAL_SIZE     30
#define MAX_COMMENT    65535
#define MAX_DIRECTORY  ((uint64_t)1 << 30)
#define MAX_RATIO      1100 /* deflate expands at most 1032 to 1 */
#define MAX_INFLATED   ((uint64_t)16 << 30)
#define MAX_ALL        ((uint64_t)64 << 30)
#define FLAG_ENCRYPTED 0x2041 /* any kind of encryption */
#define FLAG_PATCH     0x0020
#define ALL16          0xffffU
#define ALL32          0xffffffffU

struct gd_zip {
    int refs;
    struct gd_disk *disk;
    struct gd_zip_entry *entry;
    size_t count;
    unsigned char *directory; /* as in the file */
    char *names;
    uint32_t *by_name, *by_place; /* sorted indices of entries */
    uint64_t directory_at;
};

struct ends { /* what the end records say */
    uint64_t count, size, at;
    uint64_t place; /* offset where the directory must end */
};

/* ---- numbers --------------------------------------------------------------------------------- */

static uint16_t read_u16(const unsigned char *p)
{
    return (uint16_t)gd_little_endian(p, 2);
}

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)gd_little_endian(p, 4);
}

static uint64_t read_u64(const unsigned char *p)
{
    return gd_little_endian(p, 8);
}

static int fail_broken(const struct gd_zip *zip, uint64_t at, const char *what, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.300s is a broken zip file: %s at byte %llu",
                   gd_disk_path(zip->disk), what, (unsigned long long)at);
}

/* ---- the end of the file --------------------------------------------------------------------- */

static int read_end64(struct gd_zip *zip, uint64_t at, struct ends *ends, struct gd_err *err)
{
    unsigned char locator[LOCATOR_SIZE], end[END64_SIZE];
    uint64_t place;
    int rc = gd_disk_read(zip->disk, at, locator, sizeof(locator), err);

    if (rc != GD_OK) {
        return rc;
    }
    place = read_u64(locator + 8);
    if (read_u32(locator + 16) > 1 || place > at || at - place < END64_SIZE) {
        return fail_broken(zip, at, "a zip64 locator that points outside the file", err);
    }
    rc = gd_disk_read(zip->disk, place, end, sizeof(end), err);
    if (rc != GD_OK) {
        return rc;
    }
    if (read_u32(end) != 0x06064b50 || read_u64(end + 4) != at - place - 12) {
        return fail_broken(zip, place, "no zip64 end record", err);
    }
    if (read_u32(end + 16) || read_u32(end + 20) || read_u64(end + 24) != read_u64(end + 32)) {
        return gd_fail(err, GD_EUNSUPPORTED, "%.300s is part of a multi-part zip file",
                       gd_disk_path(zip->disk));
    }
    *ends = (struct ends){read_u64(end + 32), read_u64(end + 40), read_u64(end + 48), place};
    return GD_OK;
}

static int read_end(struct gd_zip *zip, const unsigned char *end, uint64_t at, struct ends *ends,
                    struct gd_err *err)
{
    unsigned char locator[4];
    bool full = read_u16(end + 8) == ALL16 || read_u16(end + 10) == ALL16 ||
                read_u32(end + 12) == ALL32 || read_u32(end + 16) == ALL32;
    int rc;

    if (at >= LOCATOR_SIZE) {
        rc = gd_disk_read(zip->disk, at - LOCATOR_SIZE, locator, sizeof(locator), err);
        if (rc != GD_OK) {
            return rc;
        }
        if (read_u32(locator) == 0x07064b50) {
            return read_end64(zip, at - LOCATOR_SIZE, ends, err);
        }
    }
    if (full) {
        return fail_broken(zip, at, "an end record without the zip64 record it requires", err);
    }
    if (read_u16(end + 4) || read_u16(end + 6) || read_u16(end + 8) != read_u16(end + 10)) {
        return gd_fail(err, GD_EUNSUPPORTED, "%.300s is part of a multi-part zip file",
                       gd_disk_path(zip->disk));
    }
    *ends = (struct ends){read_u16(end + 10), read_u32(end + 12), read_u32(end + 16), at};
    return GD_OK;
}

static int find_end(struct gd_zip *zip, struct ends *ends, struct gd_err *err)
{
    uint64_t size = gd_disk_size(zip->disk);
    size_t tail = size < END_SIZE + MAX_COMMENT ? (size_t)size : END_SIZE + MAX_COMMENT;
    GD_CLEANUP(gd_cleanup_free) unsigned char *end = malloc(tail ? tail : 1);
    int rc;

    if (!end) {
        return gd_fail_nomem(err);
    }
    rc = gd_disk_read(zip->disk, size - tail, end, tail, err);
    for (size_t at = tail; rc == GD_OK && at-- > 0;) {
        if (tail - at >= END_SIZE && read_u32(end + at) == 0x06054b50) {
            if (read_u16(end + at + 20) != tail - at - END_SIZE) {
                return fail_broken(zip, size - tail + at, "an end record with a wrong comment size",
                                   err);
            }
            return read_end(zip, end + at, size - tail + at, ends, err);
        }
    }
    return rc != GD_OK
               ? rc
               : gd_fail(err, GD_EPROTO, "%.300s is a truncated zip file: it has no end record",
                         gd_disk_path(zip->disk));
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Reads sizes and offsets that do not fit into 32 bits, in zip64's order. */
static bool read_extra(const unsigned char *extra, size_t len, struct gd_zip_entry *entry)
{
    uint64_t *const fields[] = {&entry->size, &entry->packed, &entry->header};
    uint64_t *wanted[3];
    size_t count = 0;

    for (int i = 0; i < 3; i++) {
        if (*fields[i] == ALL32) {
            wanted[count++] = fields[i];
        }
    }
    for (size_t at = 0; count && len - at >= 4;) {
        size_t size = read_u16(extra + at + 2);

        if (size > len - at - 4) {
            return false;
        }
        if (read_u16(extra + at) == 1) {
            if (size < count * 8) {
                return false;
            }
            for (size_t i = 0; i < count; i++) {
                *wanted[i] = read_u64(extra + at + 4 + i * 8);
            }
            return true;
        }
        at += 4 + size;
    }
    return count == 0;
}

static int check_entry(const struct gd_zip *zip, const struct gd_zip_entry *entry, uint64_t at,
                       struct gd_err *err)
{
    if (entry->flags & (FLAG_ENCRYPTED | FLAG_PATCH)) {
        return gd_fail(err, GD_EUNSUPPORTED, "%.200s: the member %.100s is encrypted",
                       gd_disk_path(zip->disk), entry->name);
    }
    if (entry->method != GD_ZIP_STORED && entry->method != GD_ZIP_DEFLATED) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%.200s: the member %.100s uses compression method %u; only stored (0) and "
                       "deflated (8) can be read",
                       gd_disk_path(zip->disk), entry->name, entry->method);
    }
    if (entry->method == GD_ZIP_STORED && entry->size != entry->packed) {
        return fail_broken(zip, at, "a stored member with two different sizes", err);
    }
    if (entry->method == GD_ZIP_DEFLATED &&
        (entry->size > MAX_INFLATED || entry->size / MAX_RATIO > entry->packed)) {
        return gd_fail(err, GD_ELIMIT,
                       "%.200s: the member %.100s claims to inflate from %llu to %llu bytes",
                       gd_disk_path(zip->disk), entry->name, (unsigned long long)entry->packed,
                       (unsigned long long)entry->size);
    }
    return GD_OK;
}

/* Reads the entry at p, with `left` bytes available; *used gets its length. Appends its name to
 * *names. */
static int read_entry(struct gd_zip *zip, const unsigned char *p, size_t left, char **names,
                      size_t *used, struct gd_err *err)
{
    uint64_t at = zip->directory_at + (uint64_t)(p - zip->directory);
    struct gd_zip_entry *entry = &zip->entry[zip->count];
    size_t name, extra;

    if (left < CENTRAL_SIZE || read_u32(p) != 0x02014b50) {
        return fail_broken(zip, at, "no directory entry", err);
    }
    name = read_u16(p + 28);
    extra = read_u16(p + 30);
    *used = CENTRAL_SIZE + name + extra + read_u16(p + 32);
    if (*used > left) {
        return fail_broken(zip, at, "a directory entry that exceeds the directory", err);
    }
    if (name == 0 || name > GD_ZIP_MAX_NAME || memchr(p + CENTRAL_SIZE, 0, name)) {
        return fail_broken(zip, at, "a member name that is empty, too long or contains a NUL", err);
    }
    if (read_u16(p + 34)) {
        return gd_fail(err, GD_EUNSUPPORTED, "%.300s is part of a multi-part zip file",
                       gd_disk_path(zip->disk));
    }
    memcpy(*names, p + CENTRAL_SIZE, name);
    (*names)[name] = '\0';
    *entry = (struct gd_zip_entry){.name = *names,
                                   .flags = read_u16(p + 8),
                                   .method = read_u16(p + 10),
                                   .crc = read_u32(p + 16),
                                   .packed = read_u32(p + 20),
                                   .size = read_u32(p + 24),
                                   .header = read_u32(p + 42)};
    *names += name + 1;
    if (!read_extra(p + CENTRAL_SIZE + name, extra, entry)) {
        return fail_broken(zip, at, "a member without the zip64 size its entry announces", err);
    }
    zip->count++;
    return check_entry(zip, entry, at, err);
}

static int read_directory(struct gd_zip *zip, const struct ends *ends, struct gd_err *err)
{
    const unsigned char *p = zip->directory;
    size_t left = (size_t)ends->size, used = 0;
    uint64_t inflated = 0;
    char *names = zip->names;

    for (uint64_t i = 0; i < ends->count; i++) {
        const struct gd_zip_entry *entry = &zip->entry[zip->count];
        int rc = read_entry(zip, p, left, &names, &used, err);

        if (rc != GD_OK) {
            return rc;
        }
        inflated += entry->method == GD_ZIP_DEFLATED ? entry->size : 0;
        if (inflated > MAX_ALL) {
            return gd_fail(err, GD_ELIMIT, "%.300s claims to inflate to more than %llu bytes",
                           gd_disk_path(zip->disk), (unsigned long long)MAX_ALL);
        }
        p += used;
        left -= used;
    }
    if (left) {
        return fail_broken(zip, zip->directory_at + (uint64_t)(p - zip->directory),
                           "unexpected bytes after the last directory entry", err);
    }
    return GD_OK;
}

static int order_by_name(const void *a, const void *b, void *ctx)
{
    const struct gd_zip *zip = ctx;

    return strcmp(zip->entry[*(const uint32_t *)a].name, zip->entry[*(const uint32_t *)b].name);
}

static int order_by_place(const void *a, const void *b, void *ctx)
{
    const struct gd_zip *zip = ctx;
    uint64_t x = zip->entry[*(const uint32_t *)a].header;
    uint64_t y = zip->entry[*(const uint32_t *)b].header;

    return x < y ? -1 : x > y;
}

/* Where the member after number `i` of by_place begins. */
static uint64_t end_of_place(const struct gd_zip *zip, size_t i)
{
    return i + 1 < zip->count ? zip->entry[zip->by_place[i + 1]].header : zip->directory_at;
}

/* Checks that names are unique and that members overlap neither each other nor the directory. The
 * size of a local header is known only when it is read: see gd_zip_locate. */
static int check_all(struct gd_zip *zip, struct gd_err *err)
{
    for (uint32_t i = 0; i < zip->count; i++) {
        zip->by_name[i] = zip->by_place[i] = i;
    }
    qsort_r(zip->by_name, zip->count, sizeof(*zip->by_name), order_by_name, zip);
    qsort_r(zip->by_place, zip->count, sizeof(*zip->by_place), order_by_place, zip);
    for (size_t i = 1; i < zip->count; i++) {
        if (order_by_name(&zip->by_name[i - 1], &zip->by_name[i], zip) == 0) {
            return gd_fail(err, GD_EPROTO, "%.200s has two members named %.100s",
                           gd_disk_path(zip->disk), zip->entry[zip->by_name[i]].name);
        }
    }
    for (size_t i = 0; i < zip->count; i++) {
        const struct gd_zip_entry *entry = &zip->entry[zip->by_place[i]];
        uint64_t end = end_of_place(zip, i), head = LOCAL_SIZE + strlen(entry->name);

        if (entry->header > end || end - entry->header < head ||
            end - entry->header - head < entry->packed) {
            return fail_broken(zip, entry->header,
                               "a member that overlaps another or exceeds the file", err);
        }
    }
    return GD_OK;
}

static int allocate_tables(struct gd_zip *zip, const struct ends *ends, struct gd_err *err)
{
    size_t count = (size_t)ends->count;

    zip->directory = malloc((size_t)ends->size + 1);
    zip->names = malloc((size_t)ends->size + 1);
    zip->entry = calloc(count + 1, sizeof(*zip->entry));
    zip->by_name = calloc(count + 1, sizeof(*zip->by_name));
    zip->by_place = calloc(count + 1, sizeof(*zip->by_place));
    if (!zip->directory || !zip->names || !zip->entry || !zip->by_name || !zip->by_place) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a directory of %llu bytes",
                       (unsigned long long)ends->size);
    }
    return GD_OK;
}

static int read_all(struct gd_zip *zip, struct gd_err *err)
{
    struct ends ends = {0, 0, 0, 0};
    int rc = find_end(zip, &ends, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (ends.count > GD_ZIP_MAX_ENTRIES || ends.size > MAX_DIRECTORY) {
        return gd_fail(err, GD_ELIMIT, "%.300s claims to have %llu members in %llu bytes",
                       gd_disk_path(zip->disk), (unsigned long long)ends.count,
                       (unsigned long long)ends.size);
    }
    if (ends.size > ends.place || ends.at != ends.place - ends.size) {
        return fail_broken(zip, ends.place,
                           "an end record that does not directly follow its directory", err);
    }
    if (ends.count > ends.size / CENTRAL_SIZE) {
        return fail_broken(zip, ends.place, "a directory too short for its members", err);
    }
    zip->directory_at = ends.at;
    rc = allocate_tables(zip, &ends, err);
    if (rc == GD_OK) {
        rc = gd_disk_read(zip->disk, ends.at, zip->directory, (size_t)ends.size, err);
    }
    rc = rc != GD_OK ? rc : read_directory(zip, &ends, err);
    free(zip->directory);
    zip->directory = NULL;
    return rc != GD_OK ? rc : check_all(zip, err);
}

/* ---- the interface --------------------------------------------------------------------------- */

bool gd_zip_is(const unsigned char *start, size_t size)
{
    return size >= 4 && (read_u32(start) == 0x04034b50 || read_u32(start) == 0x06054b50);
}

int gd_zip_open(struct gd_disk *disk, struct gd_zip **ret, struct gd_err *err)
{
    struct gd_zip *zip = calloc(1, sizeof(*zip));
    int rc;

    if (!zip) {
        return gd_fail_nomem(err);
    }
    zip->refs = 1;
    zip->disk = gd_disk_ref(disk);
    rc = read_all(zip, err);
    if (rc != GD_OK) {
        gd_zip_unref(zip);
        return rc;
    }
    *ret = zip;
    return GD_OK;
}

struct gd_zip *gd_zip_ref(struct gd_zip *zip)
{
    __atomic_add_fetch(&zip->refs, 1, __ATOMIC_RELAXED);
    return zip;
}

void gd_zip_unref(struct gd_zip *zip)
{
    if (!zip || __atomic_sub_fetch(&zip->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    gd_disk_unref(zip->disk);
    free(zip->directory);
    free(zip->names);
    free(zip->entry);
    free(zip->by_name);
    free(zip->by_place);
    free(zip);
}

struct gd_disk *gd_zip_disk(const struct gd_zip *zip)
{
    return zip->disk;
}

size_t gd_zip_count(const struct gd_zip *zip)
{
    return zip->count;
}

const struct gd_zip_entry *gd_zip_entry(const struct gd_zip *zip, size_t index)
{
    return index < zip->count ? &zip->entry[index] : NULL;
}

const struct gd_zip_entry *gd_zip_find(const struct gd_zip *zip, const char *name)
{
    size_t low = 0, high = zip->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gd_zip_entry *entry = &zip->entry[zip->by_name[middle]];
        int order = strcmp(name, entry->name);

        if (order == 0) {
            return entry;
        }
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    return NULL;
}

static size_t place_of(const struct gd_zip *zip, const struct gd_zip_entry *entry)
{
    size_t low = 0, high = zip->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        *(zip->entry[zip->by_place[middle]].header > entry->header ? &high : &low) = middle;
    }
    return low;
}

/* Whether a size in a local header matches the directory's, or is left to the data descriptor. */
static bool is_same_size(uint32_t local, uint64_t size)
{
    return local == 0 || local == ALL32 || local == size;
}

int gd_zip_locate(struct gd_zip *zip, const struct gd_zip_entry *entry, uint64_t *ret,
                  struct gd_err *err)
{
    unsigned char head[LOCAL_SIZE + GD_ZIP_MAX_NAME];
    uint64_t at = entry->header, end = end_of_place(zip, place_of(zip, entry)), data;
    size_t name = strlen(entry->name);
    int rc = gd_disk_read(zip->disk, at, head, LOCAL_SIZE + name, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (read_u32(head) != 0x04034b50 || read_u16(head + 26) != name ||
        memcmp(head + LOCAL_SIZE, entry->name, name) != 0) {
        return fail_broken(zip, at, "a local header of another member", err);
    }
    if (read_u16(head + 8) != entry->method ||
        (read_u16(head + 6) & (FLAG_ENCRYPTED | FLAG_PATCH)) ||
        !is_same_size(read_u32(head + 18), entry->packed) ||
        !is_same_size(read_u32(head + 22), entry->size)) {
        return fail_broken(zip, at, "a local header that contradicts the directory", err);
    }
    data = at + LOCAL_SIZE + name + read_u16(head + 28);
    if (data > end || end - data < entry->packed) {
        return fail_broken(zip, at, "a member that overlaps another or exceeds the file", err);
    }
    *ret = data;
    return GD_OK;
}

/* ---- contents -------------------------------------------------------------------------------- */

#define STEP            ((size_t)256 << 10)
#define HEAD_STEP       ((size_t)4096)
/* Larger .npy headers leave the checksum unknown. */
#define GD_ZIP_MAX_HEAD ((size_t)16 << 10)

struct member {
    struct gd_zip *zip;
    const struct gd_zip_entry *entry;
    bool check;
    struct zip_check *large;   /* for a stored member that is checked while it is read */
    struct zip_stream *stream; /* for a large deflated member; otherwise NULL */
};

static int wrong_crc(const struct member *member, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.200s: the member %.100s is damaged: its CRC is not %08x",
                   gd_disk_path(member->zip->disk), member->entry->name, member->entry->crc);
}

static int locate_stored(void *ctx, uint64_t *ret, struct gd_err *err)
{
    const struct member *member = ctx;
    uint64_t size = member->entry->size;
    GD_CLEANUP(gd_cleanup_free) unsigned char *data = NULL;
    int rc = gd_zip_locate(member->zip, member->entry, ret, err);

    if (rc != GD_OK || !member->check || size > GD_ZIP_CHECKED) {
        return rc;
    }
    data = malloc((size_t)size + 1);
    if (!data) {
        return gd_fail_nomem(err);
    }
    rc = gd_disk_read(member->zip->disk, *ret, data, (size_t)size, err);
    if (rc == GD_OK && crc32(0, data, (uInt)size) != member->entry->crc) {
        rc = wrong_crc(member, err);
    }
    return rc;
}

/* An array's header is read separately from its values: add it to the checksum. */
static enum zip_verdict tell_head(const struct member *member, uint64_t size)
{
    unsigned char head[GD_ZIP_MAX_HEAD];
    uint64_t at;

    if (size == 0 || size > sizeof(head) ||
        gd_zip_locate(member->zip, member->entry, &at, NULL) != GD_OK ||
        gd_disk_read(member->zip->disk, at, head, (size_t)size, NULL) != GD_OK) {
        return ZIP_UNKNOWN;
    }
    return zip_check_piece(member->large, 0, head, (size_t)size);
}

static int seen_stored(void *ctx, uint64_t at, const void *data, size_t size, struct gd_err *err)
{
    const struct member *member = ctx;
    enum zip_verdict verdict = zip_check_piece(member->large, at, data, size);

    if (verdict == ZIP_UNKNOWN) {
        verdict = tell_head(member, zip_check_missing_head(member->large));
    }
    return verdict == ZIP_DAMAGED ? wrong_crc(member, err) : GD_OK;
}

static int inflate_fault(const struct member *member, const char *what, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.200s: the member %.100s is damaged: %s",
                   gd_disk_path(member->zip->disk), member->entry->name, what);
}

/* Gives zlib the next bytes of the member. At the end there are none, although zlib may still have
 * output. */
static int feed_zlib(const struct member *member, z_stream *stream, uint64_t *at, uint64_t *left,
                     unsigned char *in, size_t step, struct gd_err *err)
{
    size_t n = *left < step ? (size_t)*left : step;
    int rc;

    if (n == 0) {
        return GD_OK;
    }
    rc = gd_disk_read(member->zip->disk, *at, in, n, err);
    *at += n;
    *left -= n;
    stream->next_in = in;
    stream->avail_in = (uInt)n;
    return rc;
}

/* zlib counts in 32 bits, so it gets room piece by piece, plus one byte more than expected, to
 * detect excess data. */
static int inflate_all(const struct member *member, z_stream *stream, unsigned char *in,
                       unsigned char *ret, size_t size, struct gd_err *err)
{
    uint64_t at, left = member->entry->packed;
    unsigned char beyond;
    size_t done = 0;
    int rc = gd_zip_locate(member->zip, member->entry, &at, err);

    while (rc == GD_OK) {
        size_t room = size - done < STEP ? size - done : STEP;
        int got;

        if (stream->avail_in == 0) {
            rc = feed_zlib(member, stream, &at, &left, in, STEP, err);
            if (rc != GD_OK) {
                return rc;
            }
        }
        stream->next_out = room ? ret + done : &beyond;
        stream->avail_out = room ? (uInt)room : 1;
        got = inflate(stream, Z_NO_FLUSH);
        if (room == 0 && stream->avail_out == 0) {
            return inflate_fault(member, "it inflates to more than its size", err);
        }
        done += room ? room - stream->avail_out : 0;
        if (got == Z_STREAM_END) {
            break;
        }
        if (got == Z_BUF_ERROR && left == 0 && stream->avail_in == 0) {
            return inflate_fault(member, "its data end too early", err);
        }
        if (got != Z_OK && got != Z_BUF_ERROR) {
            return inflate_fault(member, stream->msg ? stream->msg : "its data cannot be inflated",
                                 err);
        }
    }
    if (rc == GD_OK && (done != size || left || stream->avail_in)) {
        rc = inflate_fault(member, "it inflates to less than its size", err);
    }
    return rc;
}

static uint32_t crc_of(const unsigned char *data, size_t size)
{
    uLong crc = crc32(0, NULL, 0);

    for (size_t at = 0; at < size; at += STEP) {
        crc = crc32(crc, data + at, (uInt)(size - at < STEP ? size - at : STEP));
    }
    return (uint32_t)crc;
}

static int load_deflated(void *ctx, void *ret, size_t size, struct gd_err *err)
{
    const struct member *member = ctx;
    GD_CLEANUP(gd_cleanup_free) unsigned char *in = malloc(STEP);
    z_stream stream;
    int rc;

    memset(&stream, 0, sizeof(stream));
    if (!in || inflateInit2(&stream, -15) != Z_OK) {
        return gd_fail_nomem(err);
    }
    rc = inflate_all(member, &stream, in, ret, size, err);
    inflateEnd(&stream);
    if (rc == GD_OK && crc_of(ret, size) != member->entry->crc) {
        rc = wrong_crc(member, err);
    }
    return rc;
}

/* Inflates the first `size` bytes of a member. */
static int inflate_head(const struct member *member, unsigned char *in, unsigned char *ret,
                        size_t size, struct gd_err *err)
{
    uint64_t at, left = member->entry->packed;
    z_stream stream;
    int rc = gd_zip_locate(member->zip, member->entry, &at, err), got = Z_OK;

    if (rc != GD_OK) {
        return rc;
    }
    memset(&stream, 0, sizeof(stream));
    if (inflateInit2(&stream, -15) != Z_OK) {
        return gd_fail_nomem(err);
    }
    stream.next_out = ret;
    stream.avail_out = (uInt)size;
    while (rc == GD_OK && stream.avail_out && got == Z_OK) {
        if (stream.avail_in == 0) {
            rc = feed_zlib(member, &stream, &at, &left, in, HEAD_STEP, err);
        }
        got = rc == GD_OK ? inflate(&stream, Z_NO_FLUSH) : got;
    }
    if (rc == GD_OK && stream.avail_out) {
        rc = inflate_fault(member, stream.msg ? stream.msg : "its data end too early", err);
    }
    inflateEnd(&stream);
    return rc;
}

int gd_zip_head(struct gd_zip *zip, const struct gd_zip_entry *entry, void *ret, size_t size,
                size_t *got, struct gd_err *err)
{
    struct member member = {.zip = zip, .entry = entry};
    GD_CLEANUP(gd_cleanup_free) unsigned char *in = NULL;
    uint64_t at;
    int rc;

    size = size < entry->size ? size : (size_t)entry->size;
    *got = size;
    if (entry->method == GD_ZIP_STORED || size == 0) {
        rc = gd_zip_locate(zip, entry, &at, err);
        return rc != GD_OK ? rc : gd_disk_read(zip->disk, at, ret, size, err);
    }
    in = malloc(HEAD_STEP);
    return in ? inflate_head(&member, in, ret, size, err) : gd_fail_nomem(err);
}

static int read_stream(void *ctx, uint64_t at, void *ret, size_t size, struct gd_err *err)
{
    return zip_stream_read(((const struct member *)ctx)->stream, at, ret, size, err);
}

static void free_member(void *ctx)
{
    struct member *member = ctx;

    zip_check_free(member->large);
    zip_stream_free(member->stream);
    gd_zip_unref(member->zip);
    free(member);
}

int gd_zip_bytes(struct gd_zip *zip, const struct gd_zip_entry *entry, bool check,
                 struct gd_bytes **ret, struct gd_err *err)
{
    struct member *member = calloc(1, sizeof(*member));
    bool large = entry->method == GD_ZIP_STORED && check && entry->size > GD_ZIP_CHECKED;
    int rc;

    if (!member || (large && !(member->large = zip_check_new(entry->size, entry->crc)))) {
        free(member);
        return gd_fail_nomem(err);
    }
    member->zip = gd_zip_ref(zip);
    member->entry = entry;
    member->check = check;
    if (entry->method == GD_ZIP_STORED) {
        rc =
            gd_bytes_of_place(zip->disk, locate_stored, free_member, member, entry->size, ret, err);
        if (rc == GD_OK && large) {
            gd_bytes_tell(*ret, seen_stored);
        }
        return rc;
    }
    member->stream = entry->size > ZIP_STREAM_MIN ? zip_stream_new(zip, entry) : NULL;
    rc = gd_bytes_of_load(load_deflated, free_member, member, entry->size, ret, err);
    if (rc == GD_OK && member->stream) {
        gd_bytes_stream(*ret, read_stream);
    }
    return rc;
}
