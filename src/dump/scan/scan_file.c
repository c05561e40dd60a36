// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/scan/scan_file.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/io/disk.h"
#include "dump/io/little_endian.h"

#include <fcntl.h>

#define MAGIC        "GDSCAN1\n"
#define MAGIC_BYTES  8
#define HEAD_BYTES   12                   /* of a record: type, length, checksum */
#define RECORD_BYTES ((size_t)4 << 20)    /* size at which a record of results is closed */
#define LONGEST      ((uint32_t)16 << 20) /* largest record that is read */
#define MAX_FILE     ((uint64_t)1 << 40)

enum type { TYPE_HEAD = 1, TYPE_UNIT, TYPE_RESULTS, TYPE_END };
enum status { STATUS_NOTHING, STATUS_STATS, STATUS_ERROR };

/* The counters of the statistics, in file order. */
static const size_t counts_at[] = {
    offsetof(struct gd_stats, count),      offsetof(struct gd_stats, nan),
    offsetof(struct gd_stats, pos_inf),    offsetof(struct gd_stats, neg_inf),
    offsetof(struct gd_stats, zero),       offsetof(struct gd_stats, neg_zero),
    offsetof(struct gd_stats, positive),   offsetof(struct gd_stats, negative),
    offsetof(struct gd_stats, denormal),   offsetof(struct gd_stats, unpaired),
    offsetof(struct gd_stats, mismatch),   offsetof(struct gd_stats, units),
    offsetof(struct gd_stats, dead_units),
};
static const size_t doubles_at[] = {
    offsetof(struct gd_stats, min),
    offsetof(struct gd_stats, max),
    offsetof(struct gd_stats, mean),
    offsetof(struct gd_stats, abs_mean),
    offsetof(struct gd_stats, sum_sq),
    offsetof(struct gd_stats, std),
    offsetof(struct gd_stats, mean_abs_delta),
    offsetof(struct gd_stats, mean_delta),
    offsetof(struct gd_stats, sum_sq_delta),
    offsetof(struct gd_stats, max_abs_delta),
    offsetof(struct gd_stats, mean_abs_prev),
    offsetof(struct gd_stats, dot),
    offsetof(struct gd_stats, sum_sq_prev),
};
#define COUNTS  (sizeof(counts_at) / sizeof(counts_at[0]))
#define DOUBLES (sizeof(doubles_at) / sizeof(doubles_at[0]))

/* ---- writing --------------------------------------------------------------------------------- */

static void put_u8(struct gd_buf *out, unsigned value)
{
    gd_buf_putc(out, (char)value);
}

static void put_u32(struct gd_buf *out, uint32_t value)
{
    value = htole32(value);
    gd_buf_add(out, &value, 4);
}

static void put_u64(struct gd_buf *out, uint64_t value)
{
    value = htole64(value);
    gd_buf_add(out, &value, 8);
}

/* Reserves a record's header, filled in once its length is known. */
static size_t begin_record(struct gd_buf *out)
{
    size_t at = out->len;

    gd_buf_fill(out, '\0', HEAD_BYTES);
    return at;
}

static uint32_t record_checksum(uint32_t type, const unsigned char *bytes, uint32_t len)
{
    uint32_t head[2] = {htole32(type), htole32(len)};

    return (uint32_t)crc32(crc32(0, (const unsigned char *)head, sizeof(head)), bytes, len);
}

static void end_record(struct gd_buf *out, size_t at, enum type type)
{
    if (!out->failed) {
        uint32_t len = (uint32_t)(out->len - at - HEAD_BYTES);
        const unsigned char *bytes = (const unsigned char *)out->data + at + HEAD_BYTES;
        uint32_t head[3] = {htole32((uint32_t)type), htole32(len),
                            htole32(record_checksum((uint32_t)type, bytes, len))};

        memcpy(out->data + at, head, sizeof(head));
    }
}

void gd_scan_put_start(struct gd_buf *out, const struct gd_scan_head *head)
{
    gd_buf_add(out, MAGIC, MAGIC_BYTES);
    size_t at = begin_record(out);
    put_u32(out, head->shard);
    put_u32(out, head->shards);
    put_u64(out, (uint64_t)head->steps.from);
    put_u64(out, (uint64_t)head->steps.to);
    put_u32(out, head->range_count);
    for (uint32_t i = 0; i < head->range_count; i++) {
        put_u64(out, (uint64_t)head->ranks[i].from);
        put_u64(out, (uint64_t)head->ranks[i].to);
    }
    gd_buf_puts(out, head->watched);
    end_record(out, at, TYPE_HEAD);
}

void gd_scan_put_unit(struct gd_buf *out, uint32_t number, const struct gd_scan_unit *unit)
{
    size_t at = begin_record(out);

    put_u32(out, number);
    put_u32(out, unit->member);
    put_u32(out, (uint32_t)unit->rank);
    put_u64(out, (uint64_t)unit->step);
    put_u32(out, unit->items);
    put_u64(out, unit->names);
    put_u64(out, unit->stamps);
    end_record(out, at, TYPE_UNIT);
}

static void put_stats(struct gd_buf *out, const struct gd_stats *stats)
{
    for (size_t i = 0; i < COUNTS; i++) {
        uint64_t value;

        memcpy(&value, (const char *)stats + counts_at[i], 8);
        put_u64(out, value);
    }
    for (size_t i = 0; i < DOUBLES; i++) {
        uint64_t bits;

        memcpy(&bits, (const char *)stats + doubles_at[i], 8);
        put_u64(out, bits);
    }
    put_u8(out, stats->has_prev);
    put_u32(out, stats->unknown);
    put_u8(out, (unsigned)stats->range_count);
    for (int i = 0; i < stats->range_count; i++) {
        put_u64(out, stats->in_range[i]);
    }
}

static void put_result(struct gd_buf *out, const struct gd_scan_result *result)
{
    const struct gd_scan_stats *f = result->figures;

    put_u32(out, result->index);
    put_u8(out, !f ? STATUS_NOTHING : f->error ? STATUS_ERROR : STATUS_STATS);
    if (!f) {
        return;
    }
    put_u8(out, (unsigned)f->dtype);
    put_u8(out, (unsigned)f->shape.rank);
    for (int i = 0; i < f->shape.rank; i++) {
        put_u64(out, (uint64_t)f->shape.dim[i]);
    }
    if (f->error) {
        put_u32(out, f->error);
    } else {
        put_stats(out, &f->stats);
    }
}

void gd_scan_put_results(struct gd_buf *out, uint32_t number, const struct gd_scan_result *results,
                         size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t at = begin_record(out);

        put_u32(out, number);
        while (i < count && !out->failed && out->len - at < RECORD_BYTES) {
            put_result(out, &results[i++]);
        }
        end_record(out, at, TYPE_RESULTS);
        if (out->failed) {
            return;
        }
    }
}

void gd_scan_put_end(struct gd_buf *out)
{
    end_record(out, begin_record(out), TYPE_END);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct entry {
    uint32_t index;
    uint32_t figures; /* number in the file, from 1; 0: none */
};

struct unit {
    struct gd_scan_unit about;
    struct entry *entry; /* sorted by index when everything is read */
    size_t count, cap;
};

struct gd_scan_file {
    struct gd_scan_head head;
    struct unit *unit;
    uint32_t unit_count, unit_cap;
    uint32_t *order; /* unit numbers by member, step and number */
    struct gd_scan_stats *figures;
    size_t figures_count, figures_cap;
    size_t good;
    bool ended, cut;
    uint64_t results;
};

struct input { /* the rest of a record */
    const unsigned char *at;
    size_t left;
    bool bad;
};

static uint64_t take_number(struct input *in, size_t bytes)
{
    uint64_t value;

    if (in->left < bytes) {
        in->bad = true;
        in->left = 0;
        return 0;
    }
    value = gd_little_endian(in->at, bytes);
    in->at += bytes;
    in->left -= bytes;
    return value;
}

static struct gd_scan_range take_range(struct input *in)
{
    struct gd_scan_range range = {.from = (int64_t)take_number(in, 8)};

    range.to = (int64_t)take_number(in, 8);
    in->bad = in->bad || range.from > range.to;
    return range;
}

static int take_head(struct gd_scan_file *file, struct input *in)
{
    struct gd_scan_head *head = &file->head;

    head->shard = (uint32_t)take_number(in, 4);
    head->shards = (uint32_t)take_number(in, 4);
    head->steps = take_range(in);
    head->range_count = (uint32_t)take_number(in, 4);
    if (in->bad || head->shard < 1 || head->shard > head->shards ||
        head->shards > GD_SCAN_MAX_SHARDS || head->range_count > GD_SCAN_MAX_RANGES) {
        return GD_EPROTO;
    }
    for (uint32_t i = 0; i < head->range_count; i++) {
        head->ranks[i] = take_range(in);
    }
    if (in->bad || memchr(in->at, '\0', in->left)) {
        return GD_EPROTO;
    }
    head->watched = strndup((const char *)in->at, in->left);
    return head->watched ? GD_OK : GD_ENOMEM;
}

static int take_unit(struct gd_scan_file *file, struct input *in)
{
    struct gd_scan_unit about = {0};
    size_t cap = file->unit_cap;

    if (take_number(in, 4) != file->unit_count) {
        return GD_EPROTO;
    }
    about.member = (uint32_t)take_number(in, 4);
    about.rank = (int32_t)take_number(in, 4);
    about.step = (int64_t)take_number(in, 8);
    about.items = (uint32_t)take_number(in, 4);
    about.names = take_number(in, 8);
    about.stamps = take_number(in, 8);
    if (in->bad || in->left > 0 || file->unit_count == UINT32_MAX - 1) {
        return GD_EPROTO;
    }
    if (!gd_grow_list(&file->unit, file->unit_count, &cap, sizeof(*file->unit))) {
        return GD_ENOMEM;
    }
    file->unit_cap = (uint32_t)cap;
    file->unit[file->unit_count++] = (struct unit){.about = about};
    return GD_OK;
}

static bool is_possible(const struct gd_stats *s)
{
    uint64_t n = s->unknown & GD_UNKNOWN_COUNT ? (uint64_t)1 << 60 : s->count;

    return s->nan <= n && s->pos_inf <= n && s->neg_inf <= n && s->zero <= n &&
           s->neg_zero <= s->zero && s->positive <= n && s->negative <= n && s->denormal <= n &&
           s->unpaired <= n && s->mismatch <= n && s->dead_units <= s->units &&
           (s->unknown & ~(unsigned)GD_UNKNOWN_ALL) == 0;
}

static void take_stats(struct input *in, struct gd_stats *ret)
{
    for (size_t i = 0; i < COUNTS; i++) {
        uint64_t value = take_number(in, 8);

        memcpy((char *)ret + counts_at[i], &value, 8);
    }
    for (size_t i = 0; i < DOUBLES; i++) {
        uint64_t bits = take_number(in, 8);

        memcpy((char *)ret + doubles_at[i], &bits, 8);
    }
    uint64_t flag = take_number(in, 1);
    ret->has_prev = flag == 1;
    ret->unknown = (unsigned)take_number(in, 4);
    uint64_t ranges = take_number(in, 1);
    if (flag > 1 || ranges > GD_MAX_RANGES || !is_possible(ret)) {
        in->bad = true;
        return;
    }
    ret->range_count = (int)ranges;
    for (int i = 0; i < ret->range_count; i++) {
        ret->in_range[i] = take_number(in, 8);
        in->bad = in->bad || ret->in_range[i] > ret->count;
    }
}

/* False: not a valid shape. */
static bool take_shape(struct input *in, struct gd_scan_stats *ret)
{
    uint64_t dtype = take_number(in, 1), rank = take_number(in, 1), count = 1;

    if (rank > GD_MAX_RANK || (dtype != GD_DT_NONE && gd_dtype_size((enum gd_dtype)dtype) == 0)) {
        return false;
    }
    ret->dtype = (enum gd_dtype)dtype;
    ret->shape.rank = (int)rank;
    for (int i = 0; i < ret->shape.rank; i++) {
        uint64_t dim = take_number(in, 8);

        if (dim > INT64_MAX || __builtin_mul_overflow(count, dim ? dim : 1, &count) ||
            count > INT64_MAX / 16) {
            return false;
        }
        ret->shape.dim[i] = (int64_t)dim;
    }
    return !in->bad;
}

static int take_figures(struct gd_scan_file *file, struct input *in, enum status status)
{
    struct gd_scan_stats f = {.error = 0};

    if (!take_shape(in, &f) || file->figures_count == UINT32_MAX - 1) {
        return GD_EPROTO;
    }
    if (status == STATUS_ERROR) {
        f.error = (unsigned)take_number(in, 4);
        in->bad = in->bad || f.error == 0;
    } else {
        take_stats(in, &f.stats);
    }
    if (in->bad) {
        return GD_EPROTO;
    }
    if (!gd_grow_list(&file->figures, file->figures_count, &file->figures_cap,
                      sizeof(*file->figures))) {
        return GD_ENOMEM;
    }
    file->figures[file->figures_count++] = f;
    return GD_OK;
}

static int take_result(struct gd_scan_file *file, struct unit *unit, struct input *in)
{
    struct entry entry = {.index = (uint32_t)take_number(in, 4)};
    uint64_t status = take_number(in, 1);
    int rc = GD_OK;

    if (in->bad || entry.index >= unit->about.items || status > STATUS_ERROR) {
        return GD_EPROTO;
    }
    if (status != STATUS_NOTHING) {
        rc = take_figures(file, in, (enum status)status);
        entry.figures = (uint32_t)file->figures_count;
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_grow_list(&unit->entry, unit->count, &unit->cap, sizeof(*unit->entry))) {
        return GD_ENOMEM;
    }
    unit->entry[unit->count++] = entry;
    file->results++;
    return GD_OK;
}

static int take_results(struct gd_scan_file *file, struct input *in)
{
    uint64_t number = take_number(in, 4);
    int rc = in->bad || number >= file->unit_count ? GD_EPROTO : GD_OK;

    while (rc == GD_OK && in->left > 0) {
        rc = take_result(file, &file->unit[number], in);
    }
    return rc;
}

static int take_record(struct gd_scan_file *file, uint32_t type, struct input in)
{
    bool first = file->good == MAGIC_BYTES;

    if (first != (type == TYPE_HEAD)) {
        return GD_EPROTO;
    }
    file->ended = type == TYPE_END; /* if more follows, a later end counts */
    switch (type) {
    case TYPE_HEAD: return take_head(file, &in);
    case TYPE_UNIT: return take_unit(file, &in);
    case TYPE_RESULTS: return take_results(file, &in);
    case TYPE_END: return in.left > 0 ? GD_EPROTO : GD_OK;
    default: return GD_EPROTO;
    }
}

static int take_records(struct gd_scan_file *file, const unsigned char *bytes, size_t size)
{
    while (size - file->good >= HEAD_BYTES) {
        struct input head = {.at = bytes + file->good, .left = HEAD_BYTES};
        uint32_t type = (uint32_t)take_number(&head, 4), len = (uint32_t)take_number(&head, 4);
        uint32_t sum = (uint32_t)take_number(&head, 4);

        if (len > LONGEST || len > size - file->good - HEAD_BYTES ||
            record_checksum(type, head.at, len) != sum) {
            break;
        }
        int rc = take_record(file, type, (struct input){.at = head.at, .left = len});
        if (rc == GD_ENOMEM) {
            return rc;
        }
        if (rc != GD_OK) {
            break;
        }
        file->good += HEAD_BYTES + len;
    }
    file->cut = file->good < size;
    return GD_OK;
}

static int by_index(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

static int compare_units(const struct gd_scan_unit *x, uint32_t member, int64_t step)
{
    if (x->member != member) {
        return x->member < member ? -1 : 1;
    }
    return (x->step > step) - (x->step < step);
}

static int by_unit(const void *a, const void *b, void *ctx)
{
    const struct gd_scan_file *file = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct gd_scan_unit *second = &file->unit[y].about;
    int order = compare_units(&file->unit[x].about, second->member, second->step);

    return order ? order : (x > y) - (x < y);
}

static int put_in_order(struct gd_scan_file *file)
{
    file->order = malloc((file->unit_count + (size_t)1) * sizeof(*file->order));
    if (!file->order) {
        return GD_ENOMEM;
    }
    for (uint32_t i = 0; i < file->unit_count; i++) {
        struct unit *unit = &file->unit[i];

        file->order[i] = i;
        if (unit->count > 0) {
            qsort(unit->entry, unit->count, sizeof(*unit->entry), by_index);
        }
    }
    qsort_r(file->order, file->unit_count, sizeof(*file->order), by_unit, file);
    return GD_OK;
}

int gd_scan_file_read(const void *bytes, size_t size, struct gd_scan_file **ret, struct gd_err *err)
{
    struct gd_scan_file *file;
    int rc;

    if (size < MAGIC_BYTES || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0) {
        return gd_fail(err, GD_EPROTO, "not a scan file of this version of gradb");
    }
    file = calloc(1, sizeof(*file));
    if (!file) {
        return gd_fail_nomem(err);
    }
    file->good = MAGIC_BYTES;
    rc = take_records(file, bytes, size);
    if (rc == GD_OK && !file->head.watched) {
        rc = gd_fail(err, GD_EPROTO, "the header of the scan file is broken");
    } else {
        rc = rc != GD_OK ? rc : put_in_order(file);
        rc = rc != GD_OK ? gd_fail_nomem(err) : GD_OK;
    }
    if (rc != GD_OK) {
        gd_scan_file_free(file);
        return rc;
    }
    *ret = file;
    return GD_OK;
}

int gd_scan_file_open(const char *path, struct gd_scan_file **ret, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_file_text file;
    struct gd_err why;
    int rc = gd_disk_open(AT_FDCWD, path, true, &disk, err);

    rc = rc != GD_OK ? rc : gd_disk_read_text(disk, MAX_FILE, &file, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_scan_file_read(file.data, file.size, ret, &why);
    free(file.data);
    return rc != GD_OK ? gd_fail(err, rc, "%.300s: %.150s", path, why.text) : GD_OK;
}

void gd_scan_file_free(struct gd_scan_file *file)
{
    if (!file) {
        return;
    }
    for (uint32_t i = 0; i < file->unit_count; i++) {
        free(file->unit[i].entry);
    }
    free(file->unit);
    free(file->order);
    free(file->figures);
    free(file->head.watched);
    free(file);
}

bool gd_scan_head_equal(const struct gd_scan_head *a, const struct gd_scan_head *b)
{
    bool equal = a->steps.from == b->steps.from && a->steps.to == b->steps.to &&
                 a->range_count == b->range_count && strcmp(a->watched, b->watched) == 0;

    for (uint32_t i = 0; equal && i < a->range_count; i++) {
        equal = a->ranks[i].from == b->ranks[i].from && a->ranks[i].to == b->ranks[i].to;
    }
    return equal;
}

/* ---- queries --------------------------------------------------------------------------------- */

const struct gd_scan_head *gd_scan_file_head(const struct gd_scan_file *file)
{
    return &file->head;
}

size_t gd_scan_file_good(const struct gd_scan_file *file)
{
    return file->good;
}

bool gd_scan_file_is_complete(const struct gd_scan_file *file)
{
    return file->ended && !file->cut;
}

uint32_t gd_scan_file_units(const struct gd_scan_file *file)
{
    return file->unit_count;
}

const struct gd_scan_unit *gd_scan_file_unit(const struct gd_scan_file *file, uint32_t number)
{
    return number < file->unit_count ? &file->unit[number].about : NULL;
}

uint32_t gd_scan_file_find(const struct gd_scan_file *file, uint32_t member, int64_t step)
{
    uint32_t low = 0, high = file->unit_count;

    while (low < high) { /* the first one after it */
        uint32_t middle = low + (high - low) / 2;

        if (compare_units(&file->unit[file->order[middle]].about, member, step) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || compare_units(&file->unit[file->order[low - 1]].about, member, step) != 0) {
        return UINT32_MAX;
    }
    return file->order[low - 1];
}

bool gd_scan_file_result(const struct gd_scan_file *file, uint32_t number, uint32_t index,
                         const struct gd_scan_stats **ret)
{
    const struct unit *unit = number < file->unit_count ? &file->unit[number] : NULL;
    struct entry key = {.index = index};
    const struct entry *found = unit && unit->count > 0
                                    ? bsearch(&key, unit->entry, unit->count, sizeof(key), by_index)
                                    : NULL;

    if (!found) {
        return false;
    }
    *ret = found->figures ? &file->figures[found->figures - 1] : NULL;
    return true;
}

uint64_t gd_scan_file_results(const struct gd_scan_file *file)
{
    return file->results;
}
