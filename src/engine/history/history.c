// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/history/history.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/grow.h"
#include "engine/history/history_impl.h"

#define MAX_REFUSED (1u << 20) /* names remembered to count them once */

/* ---- making and breaking --------------------------------------------------------------------- */

struct gd_history *history_new(void)
{
    struct gd_history *history = calloc(1, sizeof(*history));

    if (history) {
        gd_arena_init(&history->arena, 0);
        history->fd = -1;
        history->last_step = -1;
        history->next_sequence = 1;
    }
    return history;
}

int history_reserve(struct gd_history *history, uint32_t places, struct gd_err *err)
{
    size_t count = places ? places : 1;

    history->places = places;
    history->sequence_of = calloc(count, sizeof(*history->sequence_of));
    history->tensor_of = malloc(count * sizeof(*history->tensor_of));
    history->before = malloc(count * sizeof(*history->before));
    if (!history->sequence_of || !history->tensor_of || !history->before) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a history of %u records", places);
    }
    return GD_OK;
}

void gd_history_close(struct gd_history *history)
{
    if (!history) {
        return;
    }
    if (history->map) {
        munmap(history->map, (size_t)history->layout.bytes);
    }
    if (history->fd >= 0) {
        close(history->fd);
    }
    gd_arena_deinit(&history->arena);
    gd_hash_index_deinit(&history->refused);
    free(history->copy);
    free(history->tensors);
    gd_hash_index_deinit(&history->index);
    free(history->sequence_of);
    free(history->tensor_of);
    free(history->before);
    free(history->path);
    free(history);
}

const char *gd_history_path(const struct gd_history *history)
{
    return history->path;
}

/* ---- tensors by name ------------------------------------------------------------------------- */

enum history_kind history_kind_of(const struct gd_history_tensor *tensor)
{
    return tensor->is_bins     ? HISTORY_OF_BINS
           : tensor->is_scalar ? HISTORY_OF_SCALAR
                               : HISTORY_OF_NODE;
}

static uint64_t hash_of(const char *name, uint32_t slot, enum history_kind kind)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ slot ^ (uint64_t)kind << 32;

    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

uint32_t history_find(const struct gd_history *history, const char *name, uint32_t slot,
                      enum history_kind kind)
{
    uint64_t hash = hash_of(name, slot, kind);
    uint32_t tensor;

    for (size_t at = 0; gd_hash_index_next(&history->index, hash, &at, &tensor);) {
        const struct gd_history_tensor *about = &history->tensors[tensor].about;

        if (about->slot == slot && history_kind_of(about) == kind &&
            strcmp(about->name, name) == 0) {
            return tensor;
        }
    }
    return HISTORY_NONE;
}

int history_add_tensor(struct gd_history *history, const struct gd_history_tensor *about,
                       uint32_t *ret, struct gd_err *err)
{
    uint32_t number = history->tensor_count;

    if (!gd_grow_list(&history->tensors, number, &history->tensor_room,
                      sizeof(*history->tensors))) {
        return gd_fail_nomem(err);
    }
    history->tensors[number] = (struct history_tensor){.about = *about, .last = HISTORY_NONE};
    int rc = gd_hash_index_add(
        &history->index, hash_of(about->name, about->slot, history_kind_of(about)), number, err);
    if (rc == GD_OK) {
        history->tensor_count++;
        *ret = number;
    }
    return rc;
}

/* ---- those that do not fit ------------------------------------------------------------------- */

/* Whether it was not refused before. */
static bool is_first_refusal(struct gd_hash_index *refused, uint64_t hash)
{
    size_t at = 0;
    uint32_t number;

    return !gd_hash_index_next(refused, hash, &at, &number) && refused->used < MAX_REFUSED &&
           gd_hash_index_add(refused, hash, 0, NULL) == GD_OK;
}

static int refuse_file(struct gd_history *history, const struct gd_history_tensor *tensor,
                       struct gd_err *err)
{
    if (is_first_refusal(&history->refused,
                         hash_of(tensor->name, tensor->slot, history_kind_of(tensor)))) {
        history->left_out++;
        history_put_state(history->map, ++history->state_serial, history->left_out);
    }
    return gd_fail(err, GD_ELIMIT,
                   "a history of %llu bytes holds at most %u tensors: %.200s is not recorded",
                   (unsigned long long)history->layout.bytes, history->tensor_count, tensor->name);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_valid(const struct gd_history_tensor *tensor)
{
    if (!tensor->name || !tensor->name[0] || tensor->slot > HISTORY_MAX_SLOT ||
        tensor->shape.rank < 0 || tensor->shape.rank > GD_MAX_RANK) {
        return false;
    }
    for (int i = 0; i < tensor->shape.rank; i++) {
        if (tensor->shape.dim[i] < -1) {
            return false;
        }
    }
    return true;
}

static int write_tensor(struct gd_history *history, const struct gd_history_tensor *tensor,
                        uint32_t *ret, struct gd_err *err)
{
    const struct history_layout *l = &history->layout;
    struct gd_history_tensor about;
    unsigned char *entry =
        history->map + l->table + (uint64_t)history->tensor_count * HISTORY_ENTRY;
    uint64_t used;

    if (!is_valid(tensor)) {
        return gd_fail(err, GD_EINVAL, "a tensor of a history needs a name, a slot and a shape");
    }
    if (history->tensor_count == l->capacity ||
        history_put_entry(entry, history->map + l->text, history->text_used,
                          l->text_bytes - history->text_used, tensor, &used) != GD_OK) {
        return refuse_file(history, tensor, err);
    }
    /* the arena's copy is shortened to what the file can hold, as it will be read back */
    if (!history_get_entry(entry, history->map + l->text, l->text_bytes, &history->arena, &about)) {
        memset(entry, 0, HISTORY_ENTRY);
        return gd_fail_nomem(err);
    }
    int rc = history_add_tensor(history, &about, ret, err);
    if (rc != GD_OK) {
        memset(entry, 0, HISTORY_ENTRY);
        return rc;
    }
    history->text_used += used;
    return GD_OK;
}

void history_link(struct gd_history *history, uint32_t place, uint64_t sequence, uint32_t tensor)
{
    struct history_tensor *of = &history->tensors[tensor];
    bool known = of->last != HISTORY_NONE && history->sequence_of[of->last] == of->last_sequence &&
                 of->last != place;

    history->before[place] = known ? of->last : HISTORY_NONE;
    history->sequence_of[place] = sequence;
    history->tensor_of[place] = tensor;
    of->last = place;
    of->last_sequence = sequence;
}

static const unsigned char *history_at(const struct gd_history *history, uint32_t place)
{
    const unsigned char *records =
        history->map ? history->map + history->layout.ring : history->copy;

    return records + (size_t)place * HISTORY_RECORD;
}

/* Whether the tensor's last record is still there, of this step and generation. */
static bool same_step(const struct gd_history *history, const struct history_tensor *of,
                      int64_t step)
{
    return of->last != HISTORY_NONE && history->sequence_of[of->last] == of->last_sequence &&
           of->last_generation == history->generation && of->last_step == step;
}

/* Fills in what `out` lacks, and writes it. */
static int put_record(struct gd_history *history, uint32_t index, int64_t step, bool late,
                      struct history_record *out, struct gd_err *err)
{
    struct history_tensor *of = &history->tensors[index];
    uint32_t place;

    if (!history->map) {
        return gd_fail(err, GD_ESTATE, "a history that was opened for reading cannot be written");
    }
    if (step < history->last_step && !late) {
        history->generation++; /* the training started again */
        history->last_step = step;
    } else if (step > history->last_step) {
        history->last_step = step;
    }
    out->tensor = index;
    out->generation = history->generation;
    if (same_step(history, of, step)) {
        out->sequence = of->last_sequence;
        out->number = of->about.seen;
        place = of->last;
    } else {
        out->sequence = history->next_sequence++;
        out->number = ++of->about.seen;
        place = (uint32_t)(out->sequence % history->places);
        history_link(history, place, out->sequence, index);
        of->last_step = step;
        of->last_generation = history->generation;
    }
    history_put_record(history->map + history->layout.ring + (size_t)place * HISTORY_RECORD, out);
    return GD_OK;
}

int history_record(struct gd_history *history, uint32_t index,
                   const struct gd_history_record *record, bool late, struct gd_err *err)
{
    struct history_record out = {.value = *record};

    return put_record(history, index, record->step, late, &out, err);
}

int history_record_bins(struct gd_history *history, uint32_t index,
                        const struct gd_history_bins *bins, struct gd_err *err)
{
    struct history_record out = {.bins = *bins, .is_bins = true};

    return put_record(history, index, bins->step, false, &out, err);
}

int history_enter(struct gd_history *history, const struct gd_history_tensor *tensor, uint32_t *ret,
                  struct gd_err *err)
{
    uint32_t index = HISTORY_NONE;

    if (tensor->name) {
        index = history_find(history, tensor->name, tensor->slot, history_kind_of(tensor));
    }
    if (!history->map) {
        return gd_fail(err, GD_ESTATE, "a history that was opened for reading cannot be written");
    }
    if (index == HISTORY_NONE) {
        return write_tensor(history, tensor, ret, err);
    }
    *ret = index;
    return GD_OK;
}

int gd_history_add(struct gd_history *history, const struct gd_history_tensor *tensor,
                   const struct gd_history_record *record, struct gd_err *err)
{
    uint32_t index = 0;

    if (record->step < 0) {
        return gd_fail(err, GD_EINVAL, "there is no step %lld", (long long)record->step);
    }
    int rc = history_enter(history, tensor, &index, err);
    return rc != GD_OK ? rc : history_record(history, index, record, false, err);
}

int gd_history_add_bins(struct gd_history *history, const struct gd_history_tensor *tensor,
                        const struct gd_history_bins *bins, struct gd_err *err)
{
    struct gd_history_tensor about = *tensor;
    uint32_t index = 0;

    if (bins->step < 0) {
        return gd_fail(err, GD_EINVAL, "there is no step %lld", (long long)bins->step);
    }
    about.is_bins = true;
    int rc = history_enter(history, &about, &index, err);
    return rc != GD_OK ? rc : history_record_bins(history, index, bins, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The step of the oldest record of this generation; -1 none. Sequences rise from the oldest place
 * on. */
static int64_t first_step(const struct gd_history *history)
{
    uint32_t start = history->map ? (uint32_t)(history->next_sequence % history->places) : 0;

    for (uint32_t i = 0; i < history->places; i++) {
        uint32_t place = (uint32_t)(((uint64_t)start + i) % history->places);
        struct history_record record;

        if (history->sequence_of[place] &&
            history_get_record(history_at(history, place), &record) &&
            record.generation == history->generation) {
            return record.is_bins ? record.bins.step : record.value.step;
        }
    }
    return -1;
}

void gd_history_head(const struct gd_history *history, struct gd_history_head *ret)
{
    uint32_t tensors = history->tensor_count ? history->tensor_count : 1, histograms = 0;

    for (uint32_t i = 0; i < history->tensor_count; i++) {
        histograms += history->tensors[i].about.is_bins;
    }

    *ret = (struct gd_history_head){
        .peer = history->peer,
        .started = history->started,
        .first_step = first_step(history),
        .last_step = history->last_step,
        .tensors = history->tensor_count,
        .histograms = histograms,
        .capacity = history->layout.capacity,
        .steps = history->layout.records / tensors,
        .bytes = history->layout.bytes,
        .left_out = history->left_out,
        .generation = history->generation,
        .records = history->layout.records,
        .damaged = history->damaged,
    };
}

bool gd_history_tensor(const struct gd_history *history, uint32_t index,
                       struct gd_history_tensor *ret)
{
    if (index >= history->tensor_count) {
        return false;
    }
    *ret = history->tensors[index].about;
    return true;
}

bool gd_history_find(const struct gd_history *history, const char *name, uint32_t slot,
                     uint32_t *ret)
{
    uint32_t index = history_find(history, name, slot, HISTORY_OF_NODE);

    if (index == HISTORY_NONE) {
        index = history_find(history, name, slot, HISTORY_OF_SCALAR);
    }
    if (index == HISTORY_NONE) {
        return false;
    }
    *ret = index;
    return true;
}

bool gd_history_find_bins(const struct gd_history *history, const char *name, uint32_t slot,
                          uint32_t *ret)
{
    uint32_t index = history_find(history, name, slot, HISTORY_OF_BINS);

    if (index == HISTORY_NONE) {
        return false;
    }
    *ret = index;
    return true;
}

/* The newest records of a tensor, newest first. Returns how many `take` was given. */
static size_t each_record(const struct gd_history *history, uint32_t index, size_t max,
                          void (*take)(void *ctx, size_t number, const struct history_record *),
                          void *ctx)
{
    struct history_record record;
    uint32_t place = HISTORY_NONE;
    uint64_t sequence = UINT64_MAX;
    size_t count = 0;

    if (index < history->tensor_count) {
        const struct history_tensor *of = &history->tensors[index];

        place = of->last;
        if (place != HISTORY_NONE && history->sequence_of[place] != of->last_sequence) {
            place = HISTORY_NONE; /* it has left the ring */
        }
    }
    /* Newest first. A place that was reused has a higher number than what pointed to it. */
    while (place != HISTORY_NONE && count < max && history->sequence_of[place] < sequence &&
           history->tensor_of[place] == index) {
        if (history_get_record(history_at(history, place), &record)) {
            if (record.generation != history->generation) {
                break;
            }
            take(ctx, count++, &record);
        }
        sequence = history->sequence_of[place];
        place = history->before[place];
    }
    return count;
}

static void take_value(void *ctx, size_t number, const struct history_record *record)
{
    ((struct gd_history_record *)ctx)[number] = record->value;
}

static void take_bins(void *ctx, size_t number, const struct history_record *record)
{
    ((struct gd_history_bins *)ctx)[number] = record->bins;
}

union history_item { /* what is read */
    struct gd_history_record value;
    struct gd_history_bins bins;
};

static void put_oldest_first(void *items, size_t count, size_t size)
{
    unsigned char other[sizeof(union history_item)];

    for (size_t i = 0; i < count / 2; i++) {
        unsigned char *first = (unsigned char *)items + i * size;
        unsigned char *last = (unsigned char *)items + (count - 1 - i) * size;
        memcpy(other, first, size);
        memcpy(first, last, size);
        memcpy(last, other, size);
    }
}

size_t gd_history_read(const struct gd_history *history, uint32_t index,
                       struct gd_history_record *ret, size_t max)
{
    if (index >= history->tensor_count || history->tensors[index].about.is_bins) {
        return 0;
    }
    size_t count = each_record(history, index, max, take_value, ret);
    put_oldest_first(ret, count, sizeof(*ret));
    return count;
}

size_t gd_history_read_bins(const struct gd_history *history, uint32_t index,
                            struct gd_history_bins *ret, size_t max)
{
    if (index >= history->tensor_count || !history->tensors[index].about.is_bins) {
        return 0;
    }
    size_t count = each_record(history, index, max, take_bins, ret);
    put_oldest_first(ret, count, sizeof(*ret));
    return count;
}
