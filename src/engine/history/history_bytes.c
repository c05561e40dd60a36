// SPDX-License-Identifier: GPL-3.0-or-later
/* A history's header, table entries and records as bytes. */
#include <endian.h>
#include <math.h>
#include <string.h>

#include "engine/history/history_impl.h"

static void put_u32(unsigned char *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, 4);
}

static void put_u64(unsigned char *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, 8);
}

static uint32_t get_u32(const unsigned char *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return le32toh(v);
}

static uint64_t get_u64(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return le64toh(v);
}

static void put_double(unsigned char *p, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, 8);
    put_u64(p, bits);
}

static double get_double(const unsigned char *p)
{
    uint64_t bits = get_u64(p);
    double v;

    memcpy(&v, &bits, 8);
    return v;
}

uint64_t history_checksum(const unsigned char *p, size_t len)
{
    uint64_t sum = UINT64_C(0x6772616462206872);

    for (size_t i = 0; i + 8 <= len; i += 8) {
        sum = (sum ^ get_u64(p + i)) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

/* ---- records --------------------------------------------------------------------------------- */

enum { AT_COUNTS = 48, AT_VALUES = 120, AT_DELTAS = 168, AT_MISMATCH = 224 };
enum { FLAG_STATS = 1, FLAG_PREVIOUS = 2, FLAG_BINS = 4 };
enum { AT_BINS_FORM = 36, AT_LOW = 48, AT_HIGH = 56, AT_BINS = 64, AT_SHIFT = 68, AT_BIN = 72 };
#define BINS_FORM 1 /* the form of a histogram's record */
#define COUNTS    9
#define VALUES    6
#define DELTAS    7

_Static_assert(AT_COUNTS + 8 * COUNTS == AT_VALUES && AT_VALUES + 8 * VALUES == AT_DELTAS &&
                   AT_DELTAS + 8 * DELTAS == AT_MISMATCH && AT_MISMATCH + 8 == HISTORY_RECORD,
               "the parts of a record follow each other");
_Static_assert(AT_BIN + 4 * GD_WATCH_BINS == HISTORY_RECORD, "a histogram fills its record");

/* Counts beyond 32 bits are divided, all by the same; what is not empty does not become so. */
static void put_bins(unsigned char *p, const struct gd_history_bins *bins)
{
    uint64_t most = 0;
    uint32_t shift = 0;

    for (int i = 0; i < GD_WATCH_BINS; i++) {
        most = bins->bin[i] > most ? bins->bin[i] : most;
    }
    while (most >> shift > UINT32_MAX) {
        shift++;
    }
    put_u32(p + AT_BINS_FORM, BINS_FORM);
    put_double(p + AT_LOW, bins->lo);
    put_double(p + AT_HIGH, bins->hi);
    put_u32(p + AT_BINS, GD_WATCH_BINS);
    put_u32(p + AT_SHIFT, shift);
    for (int i = 0; i < GD_WATCH_BINS; i++) {
        uint64_t count = bins->bin[i] >> shift;
        put_u32(p + AT_BIN + 4 * i, (uint32_t)(bins->bin[i] && !count ? 1 : count));
    }
}

/* False: of a later form, or damaged. */
static bool get_bins(const unsigned char *p, struct gd_history_bins *ret)
{
    uint32_t shift = get_u32(p + AT_SHIFT);
    uint64_t total = 0;

    ret->lo = get_double(p + AT_LOW);
    ret->hi = get_double(p + AT_HIGH);
    if (get_u32(p + AT_BINS_FORM) != BINS_FORM || get_u32(p + AT_BINS) != GD_WATCH_BINS ||
        shift > 31) {
        return false;
    }
    for (int i = 0; i < GD_WATCH_BINS; i++) {
        ret->bin[i] = (uint64_t)get_u32(p + AT_BIN + 4 * i) << shift;
        total |= ret->bin[i];
    }
    if (total == 0) { /* their range in the file means nothing */
        ret->lo = INFINITY;
        ret->hi = -INFINITY;
        return true;
    }
    return isfinite(ret->lo) && isfinite(ret->hi) && ret->lo <= ret->hi;
}

static void put_stats(unsigned char *p, const struct gd_stats *s)
{
    const uint64_t counts[COUNTS] = {s->count,    s->nan,      s->pos_inf,  s->neg_inf, s->zero,
                                     s->neg_zero, s->positive, s->negative, s->denormal};
    const double values[VALUES] = {s->min, s->max, s->mean, s->abs_mean, s->sum_sq, s->std};
    const double deltas[DELTAS] = {s->mean_abs_delta, s->mean_delta,    s->sum_sq_delta,
                                   s->max_abs_delta,  s->mean_abs_prev, s->dot,
                                   s->sum_sq_prev};

    for (int i = 0; i < COUNTS; i++) {
        put_u64(p + AT_COUNTS + 8 * i, counts[i]);
    }
    for (int i = 0; i < VALUES; i++) {
        put_double(p + AT_VALUES + 8 * i, values[i]);
    }
    if (s->has_prev) {
        for (int i = 0; i < DELTAS; i++) {
            put_double(p + AT_DELTAS + 8 * i, deltas[i]);
        }
        put_u64(p + AT_MISMATCH, s->mismatch);
    }
}

/* False: no tensor has such counts. */
static bool get_stats(const unsigned char *p, struct gd_stats *s)
{
    uint64_t *counts[COUNTS] = {&s->count,    &s->nan,      &s->pos_inf,  &s->neg_inf, &s->zero,
                                &s->neg_zero, &s->positive, &s->negative, &s->denormal};
    double *values[VALUES] = {&s->min, &s->max, &s->mean, &s->abs_mean, &s->sum_sq, &s->std};
    double *deltas[DELTAS] = {&s->mean_abs_delta, &s->mean_delta,    &s->sum_sq_delta,
                              &s->max_abs_delta,  &s->mean_abs_prev, &s->dot,
                              &s->sum_sq_prev};

    for (int i = 0; i < COUNTS; i++) {
        *counts[i] = get_u64(p + AT_COUNTS + 8 * i);
        if (*counts[i] > s->count || *counts[i] > INT64_MAX) {
            return false;
        }
    }
    for (int i = 0; i < VALUES; i++) {
        *values[i] = get_double(p + AT_VALUES + 8 * i);
    }
    for (int i = 0; s->has_prev && i < DELTAS; i++) {
        *deltas[i] = get_double(p + AT_DELTAS + 8 * i);
    }
    s->mismatch = s->has_prev ? get_u64(p + AT_MISMATCH) : 0;
    return s->mismatch <= s->count;
}

void history_put_record(unsigned char *p, const struct history_record *record)
{
    unsigned char out[HISTORY_RECORD] = {0};
    const struct gd_history_record *value = &record->value;
    uint32_t flags = 0;

    put_u64(out + 8, record->sequence);
    put_u64(out + 16, (uint64_t)(record->is_bins ? record->bins.step : value->step));
    put_u32(out + 24, record->tensor);
    put_u32(out + 32, record->generation);
    put_u64(out + 40, record->number);
    if (record->is_bins) {
        put_bins(out, &record->bins);
        flags = FLAG_BINS;
    } else {
        put_u32(out + 36, value->has_stats ? value->stats.unknown : 0);
        flags = value->error << 16;
    }
    if (!record->is_bins && value->has_stats) {
        put_stats(out, &value->stats);
        flags |= FLAG_STATS | (value->stats.has_prev ? FLAG_PREVIOUS : 0u);
    }
    put_u32(out + 28, flags);
    put_u64(out, history_checksum(out + 8, HISTORY_RECORD - 8));
    memcpy(p, out, HISTORY_RECORD);
}

bool history_get_record(const unsigned char *p, struct history_record *ret)
{
    struct history_record record = {.sequence = get_u64(p + 8)};
    uint32_t flags = get_u32(p + 28);

    if (record.sequence == 0 || get_u64(p) != history_checksum(p + 8, HISTORY_RECORD - 8)) {
        return false;
    }
    int64_t step = (int64_t)get_u64(p + 16);
    record.tensor = get_u32(p + 24);
    record.generation = get_u32(p + 32);
    record.number = get_u64(p + 40);
    record.is_bins = flags & FLAG_BINS;
    if (step < 0 || record.is_bins) {
        record.bins.step = step;
        *ret = record;
        return step >= 0 && get_bins(p, &ret->bins);
    }
    record.value.step = step;
    record.value.error = flags >> 16;
    record.value.has_stats = flags & FLAG_STATS;
    record.value.stats.has_prev = (flags & FLAG_STATS) && (flags & FLAG_PREVIOUS);
    if (record.value.has_stats && !get_stats(p, &record.value.stats)) {
        return false;
    }
    record.value.stats.unknown = get_u32(p + 36) & GD_UNKNOWN_ALL;
    *ret = record;
    return true;
}

/* ---- the header ------------------------------------------------------------------------------ */

struct peer_text {
    char *text;
    size_t size;
};
#define PEER_TEXTS 6

static void peer_texts(struct gd_peer *peer, struct peer_text ret[PEER_TEXTS])
{
    ret[0] = (struct peer_text){peer->framework, sizeof(peer->framework)};
    ret[1] = (struct peer_text){peer->version, sizeof(peer->version)};
    ret[2] = (struct peer_text){peer->device, sizeof(peer->device)};
    ret[3] = (struct peer_text){peer->host, sizeof(peer->host)};
    ret[4] = (struct peer_text){peer->program, sizeof(peer->program)};
    ret[5] = (struct peer_text){peer->address, sizeof(peer->address)};
}

enum { AT_SUM = 16, AT_COVERED = 24, AT_PEER = 112 };

void history_put_head(unsigned char *p, const struct gd_history *history)
{
    const struct history_layout *l = &history->layout;
    struct gd_peer peer = history->peer;
    struct peer_text texts[PEER_TEXTS];
    size_t at = AT_PEER;

    put_u32(p + 8, HISTORY_VERSION);
    put_u32(p + 12, HISTORY_HEADER);
    put_u64(p + 24, l->bytes);
    put_u64(p + 32, l->table);
    put_u32(p + 40, l->capacity);
    put_u32(p + 44, HISTORY_ENTRY);
    put_u64(p + 48, l->text);
    put_u64(p + 56, l->text_bytes);
    put_u64(p + 64, l->ring);
    put_u32(p + 72, l->records);
    put_u32(p + 76, HISTORY_RECORD);
    put_u32(p + 80, (uint32_t)peer.rank);
    put_u32(p + 84, (uint32_t)peer.world_size);
    put_u64(p + 88, (uint64_t)peer.pid);
    put_double(p + 96, history->started);
    peer_texts(&peer, texts);
    for (int i = 0; i < PEER_TEXTS; i++) {
        memcpy(p + at, texts[i].text, strnlen(texts[i].text, texts[i].size));
        at += texts[i].size;
    }
    put_u64(p + AT_SUM, history_checksum(p + AT_COVERED, HISTORY_HEAD_FIXED - AT_COVERED));
    memcpy(p, HISTORY_MAGIC, 8); /* last: a truncated file is not a history */
}

/* A part of the file that begins after `from` and ends before the file does. */
static bool part_fits(uint64_t at, uint64_t count, uint64_t size, uint64_t from, uint64_t bytes)
{
    return at >= from && at <= bytes && count <= (bytes - at) / size;
}

static bool layout_is_sane(const struct history_layout *l)
{
    return part_fits(l->table, l->capacity, HISTORY_ENTRY, HISTORY_HEADER, l->bytes) &&
           part_fits(l->text, l->text_bytes, 1, l->table + (uint64_t)l->capacity * HISTORY_ENTRY,
                     l->bytes) &&
           part_fits(l->ring, l->records, HISTORY_RECORD, l->text + l->text_bytes, l->bytes) &&
           l->records > 0 && l->capacity <= l->bytes / (32 * HISTORY_ENTRY) &&
           l->text_bytes <= l->bytes / 8;
}

int history_get_head(const unsigned char *p, struct gd_history *history, uint64_t file_bytes,
                     struct gd_err *err)
{
    struct history_layout *l = &history->layout;
    struct gd_peer *peer = &history->peer;
    struct peer_text texts[PEER_TEXTS];
    size_t at = AT_PEER;

    if (memcmp(p, HISTORY_MAGIC, 8) != 0) {
        return gd_fail(err, GD_EPROTO, "it does not start like one");
    }
    if (get_u32(p + 8) != HISTORY_VERSION) {
        return gd_fail(err, GD_EPROTO, "its format is version %u, this gradb reads version %d",
                       get_u32(p + 8), HISTORY_VERSION);
    }
    if (get_u32(p + 12) != HISTORY_HEADER || get_u32(p + 44) != HISTORY_ENTRY ||
        get_u32(p + 76) != HISTORY_RECORD ||
        get_u64(p + AT_SUM) != history_checksum(p + AT_COVERED, HISTORY_HEAD_FIXED - AT_COVERED)) {
        return gd_fail(err, GD_EPROTO, "its header is damaged");
    }
    l->bytes = get_u64(p + 24);
    l->table = get_u64(p + 32);
    l->capacity = get_u32(p + 40);
    l->text = get_u64(p + 48);
    l->text_bytes = get_u64(p + 56);
    l->ring = get_u64(p + 64);
    l->records = get_u32(p + 72);
    if (l->bytes > HISTORY_MAX_BYTES || !layout_is_sane(l)) {
        return gd_fail(err, GD_EPROTO, "its header is invalid");
    }
    if (l->bytes > file_bytes) {
        return gd_fail(err, GD_EPROTO, "it is truncated: %llu of %llu bytes are there",
                       (unsigned long long)file_bytes, (unsigned long long)l->bytes);
    }
    peer->rank = (int)get_u32(p + 80);
    peer->world_size = (int)get_u32(p + 84);
    peer->pid = (int64_t)get_u64(p + 88);
    history->started = get_double(p + 96);
    peer_texts(peer, texts);
    for (int i = 0; i < PEER_TEXTS; i++) {
        memcpy(texts[i].text, p + at, texts[i].size - 1);
        texts[i].text[texts[i].size - 1] = '\0';
        at += texts[i].size;
    }
    return GD_OK;
}

/* Two copies, written alternately: one of them is complete at any time. */
void history_put_state(unsigned char *head, uint64_t serial, uint64_t left_out)
{
    unsigned char out[HISTORY_STATE_BYTES] = {0};

    put_u64(out + 8, serial);
    put_u64(out + 16, left_out);
    put_u64(out, history_checksum(out + 8, HISTORY_STATE_BYTES - 8));
    memcpy(head + HISTORY_HEAD_FIXED + serial % 2 * HISTORY_STATE_BYTES, out, HISTORY_STATE_BYTES);
}

void history_get_state(const unsigned char *head, uint64_t *left_out)
{
    uint64_t serial = 0;

    *left_out = 0;
    for (size_t i = 0; i < 2; i++) {
        const unsigned char *p = head + HISTORY_HEAD_FIXED + i * HISTORY_STATE_BYTES;

        if (get_u64(p) == history_checksum(p + 8, HISTORY_STATE_BYTES - 8) &&
            get_u64(p + 8) > serial) {
            serial = get_u64(p + 8);
            *left_out = get_u64(p + 16);
        }
    }
}

/* ---- entries of the table -------------------------------------------------------------------- */

#define ENTRY_TEXTS 5
enum { AT_LENGTHS = 36, FLAG_SCALAR = 1, FLAG_OF_BINS = 2 };

static enum gd_node_kind kind_named(const char *name)
{
    for (int kind = GD_NODE_OTHER; kind < GD_NODE_KIND_COUNT; kind++) {
        if (strcmp(name, gd_node_kind_name((enum gd_node_kind)kind)) == 0) {
            return (enum gd_node_kind)kind;
        }
    }
    return GD_NODE_OTHER;
}

int history_put_entry(unsigned char *entry, unsigned char *text, uint64_t text_at, uint64_t room,
                      const struct gd_history_tensor *tensor, uint64_t *used)
{
    unsigned char out[HISTORY_ENTRY] = {0};
    const char *texts[ENTRY_TEXTS] = {
        tensor->name ? tensor->name : "", tensor->type ? tensor->type : "",
        tensor->file ? tensor->file : "", gd_dtype_name(tensor->dtype),
        gd_node_kind_name(tensor->kind)};
    int rank = tensor->shape.rank;
    unsigned char *p = text + text_at;
    uint64_t need = 8 * (uint64_t)rank;

    for (int i = 0; i < ENTRY_TEXTS; i++) {
        size_t len = strlen(texts[i]);

        if (len > room) {
            return GD_ELIMIT;
        }
        put_u32(out + AT_LENGTHS + 4 * i, (uint32_t)len);
        need += len + 1;
    }
    need = (need + 7) / 8 * 8;
    if (need > room) {
        return GD_ELIMIT;
    }
    for (int i = 0; i < rank; i++, p += 8) {
        put_u64(p, (uint64_t)tensor->shape.dim[i]);
    }
    for (int i = 0; i < ENTRY_TEXTS; i++) {
        size_t len = strlen(texts[i]) + 1;

        memcpy(p, texts[i], len);
        p += len;
    }
    put_u64(out + 8, text_at);
    put_u32(out + 16, (uint32_t)need);
    put_u32(out + 20, tensor->slot);
    put_u32(out + 24, tensor->order);
    put_u32(out + 28, tensor->line);
    put_u32(out + 32, (uint32_t)rank | (tensor->is_scalar ? FLAG_SCALAR << 16 : 0u) |
                          (tensor->is_bins ? FLAG_OF_BINS << 16 : 0u));
    put_u64(out,
            history_checksum(out + 8, HISTORY_ENTRY - 8) ^ history_checksum(text + text_at, need));
    memcpy(entry, out, HISTORY_ENTRY);
    *used = need;
    return GD_OK;
}

/* The strings after the dimensions; false if their lengths do not fit. */
static bool get_texts(const unsigned char *entry, const unsigned char *p, uint64_t room,
                      struct gd_arena *arena, const char *ret[ENTRY_TEXTS])
{
    for (int i = 0; i < ENTRY_TEXTS; i++) {
        uint64_t len = get_u32(entry + AT_LENGTHS + 4 * i);

        if (len + 1 > room || p[len] != '\0' || memchr(p, '\0', len)) {
            return false;
        }
        ret[i] = gd_arena_strndup(arena, (const char *)p, len);
        if (!ret[i]) {
            return false;
        }
        p += len + 1;
        room -= len + 1;
    }
    return true;
}

bool history_get_entry(const unsigned char *entry, const unsigned char *text, uint64_t text_bytes,
                       struct gd_arena *arena, struct gd_history_tensor *ret)
{
    uint64_t at = get_u64(entry + 8), len = get_u32(entry + 16);
    uint32_t rank = get_u32(entry + 32) & 0xffff;
    struct gd_history_tensor tensor = {.slot = get_u32(entry + 20),
                                       .order = get_u32(entry + 24),
                                       .line = get_u32(entry + 28),
                                       .is_scalar = get_u32(entry + 32) >> 16 & FLAG_SCALAR,
                                       .is_bins = get_u32(entry + 32) >> 16 & FLAG_OF_BINS,
                                       .shape.rank = (int)rank};
    const char *texts[ENTRY_TEXTS];

    if (at % 8 != 0 || len % 8 != 0 || at > text_bytes || len > text_bytes - at ||
        get_u64(entry) !=
            (history_checksum(entry + 8, HISTORY_ENTRY - 8) ^ history_checksum(text + at, len)) ||
        rank > GD_MAX_RANK || len < 8 * (uint64_t)rank || tensor.slot > HISTORY_MAX_SLOT) {
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        tensor.shape.dim[i] = (int64_t)get_u64(text + at + 8 * i);
        if (tensor.shape.dim[i] < -1) {
            return false;
        }
    }
    if (!get_texts(entry, text + at + 8 * rank, len - 8 * rank, arena, texts) || !texts[0][0]) {
        return false;
    }
    tensor.name = texts[0];
    tensor.type = texts[1];
    tensor.file = texts[2];
    tensor.dtype = gd_dtype_from_name(texts[3]);
    tensor.kind = kind_named(texts[4]);
    *ret = tensor;
    return true;
}
