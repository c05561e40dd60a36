// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/cache.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct gd_tensor_ref ref;
    struct gd_tensor *tensor; /* NULL: statistics only */
    bool has_stats;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t step;
    uint64_t bytes;
    struct entry *hash_next;
    struct entry *newer, *older;
};

struct gd_cache {
    uint64_t max;
    uint64_t bytes;
    struct entry **bucket;
    size_t bucket_count; /* a power of two */
    size_t entry_count;
    struct entry *newest, *oldest;
};

int gd_cache_create(uint64_t max_bytes, struct gd_cache **ret, struct gd_err *err)
{
    struct gd_cache *cache = calloc(1, sizeof(*cache));

    if (cache) {
        cache->max = max_bytes;
        cache->bucket_count = 64;
        cache->bucket = calloc(cache->bucket_count, sizeof(*cache->bucket));
    }
    if (!cache || !cache->bucket) {
        free(cache);
        return gd_fail_nomem(err);
    }
    *ret = cache;
    return GD_OK;
}

static size_t bucket_of(const struct gd_cache *cache, const struct gd_tensor_ref *ref)
{
    uint64_t key = (uint64_t)ref->node << 32 ^ (uint64_t)ref->slot << 1 ^ (uint64_t)ref->iter;

    key *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(key >> 32) & (cache->bucket_count - 1);
}

static struct entry *find_entry(const struct gd_cache *cache, const struct gd_tensor_ref *ref)
{
    struct entry *entry = cache->bucket[bucket_of(cache, ref)];

    while (entry && (entry->ref.node != ref->node || entry->ref.slot != ref->slot ||
                     entry->ref.iter != ref->iter)) {
        entry = entry->hash_next;
    }
    return entry;
}

static void remove_from_bucket(struct gd_cache *cache, struct entry *entry)
{
    struct entry **link = &cache->bucket[bucket_of(cache, &entry->ref)];

    while (*link != entry) {
        link = &(*link)->hash_next;
    }
    *link = entry->hash_next;
}

static void add_to_bucket(struct gd_cache *cache, struct entry *entry)
{
    struct entry **head = &cache->bucket[bucket_of(cache, &entry->ref)];

    entry->hash_next = *head;
    *head = entry;
}

static void unlink_age(struct gd_cache *cache, struct entry *entry)
{
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void make_newest(struct gd_cache *cache, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static void drop_entry(struct gd_cache *cache, struct entry *entry)
{
    remove_from_bucket(cache, entry);
    unlink_age(cache, entry);
    cache->bytes -= entry->bytes;
    cache->entry_count--;
    gd_tensor_unref(entry->tensor);
    free(entry);
}

static void shrink_to_limit(struct gd_cache *cache, const struct entry *keep)
{
    while (cache->bytes > cache->max && cache->oldest && cache->oldest != keep) {
        drop_entry(cache, cache->oldest);
    }
}

/* More buckets when there are many entries; on failure it only gets slower. */
static void grow_buckets(struct gd_cache *cache)
{
    size_t count = cache->bucket_count * 2;

    if (cache->entry_count < cache->bucket_count || count < cache->bucket_count) {
        return;
    }
    struct entry **bucket = calloc(count, sizeof(*bucket));
    if (!bucket) {
        return;
    }
    free(cache->bucket);
    cache->bucket = bucket;
    cache->bucket_count = count;
    for (struct entry *entry = cache->newest; entry; entry = entry->older) {
        add_to_bucket(cache, entry);
    }
}

static struct entry *find_or_add(struct gd_cache *cache, const struct gd_tensor_ref *ref)
{
    struct entry *entry = find_entry(cache, ref);

    if (entry) {
        unlink_age(cache, entry);
        make_newest(cache, entry);
        return entry;
    }
    entry = calloc(1, sizeof(*entry));
    if (!entry) {
        return NULL;
    }
    grow_buckets(cache);
    entry->ref = *ref;
    entry->bytes = sizeof(*entry);
    cache->bytes += entry->bytes;
    cache->entry_count++;
    add_to_bucket(cache, entry);
    make_newest(cache, entry);
    return entry;
}

void gd_cache_set_max(struct gd_cache *cache, uint64_t max_bytes)
{
    cache->max = max_bytes;
    shrink_to_limit(cache, NULL);
}

int gd_cache_put(struct gd_cache *cache, const struct gd_tensor_ref *ref, struct gd_tensor *tensor,
                 int64_t step)
{
    uint64_t bytes = gd_tensor_bytes(tensor);
    struct entry *entry = find_entry(cache, ref);

    if (bytes > cache->max || sizeof(*entry) > cache->max - bytes) {
        if (entry) {
            drop_entry(cache, entry);
        }
        return GD_OK;
    }
    entry = find_or_add(cache, ref);
    if (!entry) {
        return GD_ENOMEM;
    }
    if (entry->step != step) {
        entry->has_stats = false;
    }
    gd_tensor_ref(tensor);
    gd_tensor_unref(entry->tensor);
    entry->tensor = tensor;
    entry->step = step;
    cache->bytes += sizeof(*entry) + bytes - entry->bytes;
    entry->bytes = sizeof(*entry) + bytes;
    shrink_to_limit(cache, entry);
    return GD_OK;
}

int gd_cache_put_stats(struct gd_cache *cache, const struct gd_tensor_ref *ref, enum gd_dtype dtype,
                       const struct gd_shape *shape, const struct gd_stats *stats, int64_t step)
{
    struct entry *entry;

    if (sizeof(*entry) > cache->max) {
        return GD_OK;
    }
    entry = find_or_add(cache, ref);
    if (!entry) {
        return GD_ENOMEM;
    }
    if (entry->tensor && entry->step != step) {
        gd_tensor_unref(entry->tensor);
        entry->tensor = NULL;
        cache->bytes -= entry->bytes - sizeof(*entry);
        entry->bytes = sizeof(*entry);
    }
    entry->has_stats = true;
    entry->dtype = dtype;
    entry->shape = *shape;
    entry->stats = *stats;
    entry->step = step;
    shrink_to_limit(cache, entry);
    return GD_OK;
}

struct gd_tensor *gd_cache_get(struct gd_cache *cache, const struct gd_tensor_ref *ref,
                               int64_t *step)
{
    struct entry *entry = find_entry(cache, ref);

    if (!entry || !entry->tensor) {
        return NULL;
    }
    unlink_age(cache, entry);
    make_newest(cache, entry);
    if (step) {
        *step = entry->step;
    }
    return entry->tensor;
}

bool gd_cache_get_stats(struct gd_cache *cache, const struct gd_tensor_ref *ref,
                        enum gd_dtype *dtype, struct gd_shape *shape, struct gd_stats *stats,
                        int64_t *step)
{
    struct entry *entry = find_entry(cache, ref);

    if (!entry || !entry->has_stats) {
        return false;
    }
    unlink_age(cache, entry);
    make_newest(cache, entry);
    *dtype = entry->dtype;
    *shape = entry->shape;
    *stats = entry->stats;
    if (step) {
        *step = entry->step;
    }
    return true;
}

bool gd_cache_has_stats(struct gd_cache *cache, const struct gd_tensor_ref *ref)
{
    const struct entry *entry = find_entry(cache, ref);

    return entry && entry->has_stats;
}

void gd_cache_move(struct gd_cache *cache, int64_t last_step, int64_t new_step)
{
    bool next = last_step < new_step && last_step == new_step - 1;
    struct entry *older;

    for (struct entry *entry = cache->newest; entry; entry = older) {
        older = entry->older;
        if (entry->ref.iter == GD_PREVIOUS && new_step != last_step) {
            drop_entry(cache, entry);
        }
    }
    for (struct entry *entry = cache->newest; entry; entry = older) {
        older = entry->older;
        if (entry->ref.iter != GD_CURRENT) {
            continue;
        }
        if (!next || entry->step != last_step) {
            drop_entry(cache, entry);
            continue;
        }
        remove_from_bucket(cache, entry);
        entry->ref.iter = GD_PREVIOUS;
        entry->stats.has_prev = false; /* it was computed against a step that is out of reach now */
        add_to_bucket(cache, entry);
    }
}

uint64_t gd_cache_bytes(const struct gd_cache *cache)
{
    return cache->bytes;
}

void gd_cache_destroy(struct gd_cache *cache)
{
    if (cache) {
        while (cache->oldest) {
            drop_entry(cache, cache->oldest);
        }
        free(cache->bucket);
        free(cache);
    }
}
