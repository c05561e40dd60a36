// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Caches values that are needed more than once: by several watchpoints, or as the previous step's
 * value. Memory is limited.
 */
#include <stdint.h>
#include <stdlib.h>

#include "dump/scan/scan_impl.h"

#define MOST_BYTES  ((size_t)256 << 20) /* of all cached values */
#define MOST_OF_ONE (MOST_BYTES / 4)
#define BUCKETS     1024

struct scan_cache_value {
    struct gd_source *source;
    struct gd_tensor *tensor; /* NULL: being read */
    size_t bytes;
    uint32_t users;                 /* including the thread that reads it */
    struct scan_cache_value *next;  /* of the bucket */
    struct scan_cache_value *newer; /* list of unused values */
    struct scan_cache_value *older;
};

struct scan_cache {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a value was read, or failed */
    size_t bytes;           /* of all values, including those being read */
    struct scan_cache_value *newest, *oldest;
    struct scan_cache_value *bucket[BUCKETS];
};

struct scan_cache *scan_cache_new(void)
{
    struct scan_cache *kept = calloc(1, sizeof(*kept));

    if (kept) {
        pthread_mutex_init(&kept->mutex, NULL);
        pthread_cond_init(&kept->changed, NULL);
    }
    return kept;
}

static struct scan_cache_value **bucket_of(struct scan_cache *kept, const struct gd_source *source)
{
    uint64_t hash = (uint64_t)(uintptr_t)source * UINT64_C(0x9e3779b97f4a7c15);

    return &kept->bucket[hash >> 32 & (BUCKETS - 1)];
}

static struct scan_cache_value *find_value(struct scan_cache *kept, const struct gd_source *source)
{
    struct scan_cache_value *value = *bucket_of(kept, source);

    while (value && value->source != source) {
        value = value->next;
    }
    return value;
}

/* Takes it out of the list of unused values. */
static void take_out(struct scan_cache *kept, struct scan_cache_value *value)
{
    *(value->newer ? &value->newer->older : &kept->newest) = value->older;
    *(value->older ? &value->older->newer : &kept->oldest) = value->newer;
    value->newer = value->older = NULL;
}

/* Frees a value that is not in the list of unused values. */
static void drop_value(struct scan_cache *kept, struct scan_cache_value *value)
{
    struct scan_cache_value **link = bucket_of(kept, value->source);

    while (*link != value) {
        link = &(*link)->next;
    }
    *link = value->next;
    kept->bytes -= value->bytes;
    gd_tensor_unref(value->tensor);
    gd_source_unref(value->source);
    free(value);
}

static bool make_room(struct scan_cache *kept, size_t bytes)
{
    while (kept->bytes + bytes > MOST_BYTES && kept->oldest) {
        struct scan_cache_value *oldest = kept->oldest;

        take_out(kept, oldest);
        drop_value(kept, oldest);
    }
    return kept->bytes + bytes <= MOST_BYTES;
}

static struct scan_cache_value *add_value(struct scan_cache *kept, struct gd_source *source,
                                          size_t bytes)
{
    struct scan_cache_value *value =
        bytes <= MOST_OF_ONE && make_room(kept, bytes) ? calloc(1, sizeof(*value)) : NULL;

    if (value) {
        struct scan_cache_value **bucket = bucket_of(kept, source);

        *value = (struct scan_cache_value){
            .source = gd_source_ref(source), .bytes = bytes, .users = 1, .next = *bucket};
        *bucket = value;
        kept->bytes += bytes;
    }
    return value;
}

/* Called without the lock. */
static int read_value(struct scan_cache *kept, struct scan_cache_value *value, struct gd_err *err)
{
    struct gd_tensor *tensor = NULL;
    int rc;

    pthread_mutex_unlock(&kept->mutex);
    rc = gd_source_read(value->source, NULL, value->bytes, &tensor, err);
    pthread_mutex_lock(&kept->mutex);
    value->tensor = tensor;
    if (rc != GD_OK) { /* waiting threads retry themselves and get the error */
        drop_value(kept, value);
    }
    pthread_cond_broadcast(&kept->changed);
    return rc;
}

int scan_cache_get(struct scan_cache *kept, struct gd_source *source, size_t bytes,
                   struct scan_cache_value **ret, struct gd_err *err)
{
    struct scan_cache_value *value;
    int rc = GD_OK;

    pthread_mutex_lock(&kept->mutex);
    while ((value = find_value(kept, source)) && !value->tensor) {
        pthread_cond_wait(&kept->changed, &kept->mutex);
    }
    if (value) {
        if (value->users++ == 0) {
            take_out(kept, value);
        }
    } else {
        value = add_value(kept, source, bytes);
        rc = value ? read_value(kept, value, err) : GD_ELIMIT;
    }
    pthread_mutex_unlock(&kept->mutex);
    *ret = rc != GD_OK ? NULL : value;
    return rc;
}

const struct gd_tensor *scan_cache_tensor(const struct scan_cache_value *value)
{
    return value ? value->tensor : NULL;
}

void scan_cache_put(struct scan_cache *kept, struct scan_cache_value *value)
{
    if (!value) {
        return;
    }
    pthread_mutex_lock(&kept->mutex);
    if (--value->users == 0) {
        value->older = kept->newest;
        *(kept->newest ? &kept->newest->newer : &kept->oldest) = value;
        kept->newest = value;
    }
    pthread_mutex_unlock(&kept->mutex);
}

void scan_cache_free(struct scan_cache *kept)
{
    if (!kept) {
        return;
    }
    while (kept->oldest) {
        struct scan_cache_value *oldest = kept->oldest;

        take_out(kept, oldest);
        drop_value(kept, oldest);
    }
    pthread_cond_destroy(&kept->changed);
    pthread_mutex_destroy(&kept->mutex);
    free(kept);
}
