// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tensors in shared memory. Segments are mapped read-only and stay mapped; each tensor in one is a
 * lease, and the segment returns to the training process when the lease ends, on any thread and
 * possibly after the process is gone.
 *
 * The peer is not trusted: names must match one pattern and share the probe's prefix, the object
 * must be a regular file of our own user that nobody else may open, and its size is taken from the
 * system. (A process of the same user can still shrink the file under us; it could as well kill
 * us.)
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/v1/v1_impl.h"

#define NAME_MAX_LEN 63
#define MAX_SEGMENTS 1024
#define PROBE_BYTES  32

struct segment {
    uint32_t id; /* 0: free entry */
    unsigned char *map;
    size_t size;
    unsigned leases;
    bool forgotten; /* unmap when the last lease ends */
};

struct v1_shm {
    pthread_mutex_t lock;
    unsigned refs;                 /* the target and every lease */
    char prefix[NAME_MAX_LEN + 1]; /* "/gradb-PID-HEX-" */
    struct segment segments[MAX_SEGMENTS];
    size_t count; /* entries used so far */
    uint32_t released[MAX_SEGMENTS];
    size_t released_count;
};

struct lease {
    struct v1_shm *shm;
    uint32_t segment;
};

/* ---- names and files ----------------------------------------------------------------- */

/* "/gradb-PID-HEX-N": the length including the last '-', or 0. */
static size_t check_name(const char *name)
{
    static const char start[] = "/gradb-", digits[] = "0123456789", hex[] = "0123456789abcdef";
    size_t at = sizeof(start) - 1;
    if (strlen(name) > NAME_MAX_LEN || strncmp(name, start, at) != 0) {
        return 0;
    }
    size_t n = strspn(name + at, digits);
    if (n == 0 || name[at + n] != '-') {
        return 0;
    }
    at += n + 1;
    n = strspn(name + at, hex);
    if (n != 16 || name[at + n] != '-') {
        return 0;
    }
    at += n + 1;
    n = strspn(name + at, digits);
    return n > 0 && name[at + n] == '\0' ? at : 0;
}

/* Opens and maps an object that is ours. */
static int map_object(const char *name, size_t size, unsigned char **ret, struct gd_err *err)
{
    int fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot open the shared memory %s", name);
    }
    struct stat st;
    int rc = GD_OK;
    if (fstat(fd, &st) < 0) {
        rc = gd_fail_errno(err, GD_EIO, "cannot stat the shared memory %s", name);
    } else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        rc = gd_fail(err, GD_EPROTO, "the shared memory %s can be opened by others", name);
    } else if (size == 0 || st.st_size < 0 || (uint64_t)st.st_size < size) {
        rc = gd_fail(err, GD_EPROTO, "the shared memory %s has %lld bytes, not %zu", name,
                     (long long)st.st_size, size);
    }
    void *map = MAP_FAILED;
    if (rc == GD_OK) {
        map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) {
            rc = gd_fail_errno(err, GD_EIO, "cannot map the shared memory %s", name);
        }
    }
    close(fd);
    if (rc == GD_OK) {
        shm_unlink(name); /* both sides have it mapped: after a crash no name remains */
        *ret = map;
    }
    return rc;
}

struct v1_shm *v1_shm_create(const Gradb__V1__ShmProbe *probe, struct gd_err *err)
{
    size_t prefix = check_name(probe->name);
    if (prefix == 0 || probe->nonce.len != PROBE_BYTES) {
        gd_fail(err, GD_EPROTO, "the shared memory probe is malformed");
        return NULL;
    }
    unsigned char *map = NULL;
    if (map_object(probe->name, PROBE_BYTES, &map, err) != GD_OK) {
        return NULL;
    }
    bool same = memcmp(map, probe->nonce.data, PROBE_BYTES) == 0;
    munmap(map, PROBE_BYTES);
    if (!same) {
        gd_fail(err, GD_EPROTO, "the shared memory probe has unexpected content");
        return NULL;
    }
    struct v1_shm *shm = calloc(1, sizeof(*shm));
    if (!shm || pthread_mutex_init(&shm->lock, NULL) != 0) {
        free(shm);
        gd_fail(err, GD_ENOMEM, "out of memory for shared memory");
        return NULL;
    }
    shm->refs = 1;
    memcpy(shm->prefix, probe->name, prefix);
    return shm;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void segment_close(struct segment *segment)
{
    if (segment->id) {
        munmap(segment->map, segment->size);
        memset(segment, 0, sizeof(*segment));
    }
}

/* Called with the lock; releases it. */
static void unref_unlock(struct v1_shm *shm)
{
    bool last = --shm->refs == 0;
    pthread_mutex_unlock(&shm->lock);
    if (last) {
        for (size_t i = 0; i < shm->count; i++) {
            segment_close(&shm->segments[i]);
        }
        pthread_mutex_destroy(&shm->lock);
        free(shm);
    }
}

static struct segment *find_mapping(struct v1_shm *shm, uint32_t id)
{
    for (size_t i = 0; i < shm->count; i++) {
        if (shm->segments[i].id == id) {
            return &shm->segments[i];
        }
    }
    return NULL;
}

void v1_shm_destroy(struct v1_shm *shm)
{
    if (!shm) {
        return;
    }
    pthread_mutex_lock(&shm->lock);
    for (size_t i = 0; i < shm->count; i++) {
        shm->segments[i].forgotten = true;
        if (shm->segments[i].leases == 0) {
            segment_close(&shm->segments[i]);
        }
    }
    unref_unlock(shm);
}

static void end_lease(void *data, size_t bytes, void *ctx)
{
    (void)data;
    (void)bytes;
    struct lease *lease = ctx;
    struct v1_shm *shm = lease->shm;
    pthread_mutex_lock(&shm->lock);
    struct segment *segment = find_mapping(shm, lease->segment);
    if (segment && --segment->leases == 0) {
        if (segment->forgotten) {
            segment_close(segment);
        } else if (shm->released_count < MAX_SEGMENTS) {
            shm->released[shm->released_count++] = segment->id;
        }
    }
    unref_unlock(shm);
    free(lease);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static struct segment *free_place(struct v1_shm *shm)
{
    for (size_t i = 0; i < shm->count; i++) {
        if (shm->segments[i].id == 0) {
            return &shm->segments[i];
        }
    }
    return shm->count < MAX_SEGMENTS ? &shm->segments[shm->count++] : NULL;
}

/* With the lock. */
static int segment_of(struct v1_shm *shm, const Gradb__V1__ShmPlace *place, struct segment **ret,
                      bool *mapped, struct gd_err *err)
{
    struct segment *segment = place->segment ? find_mapping(shm, place->segment) : NULL;
    if (segment) {
        if (segment->leases > 0 || segment->forgotten || segment->size != place->size) {
            return gd_fail(err, GD_EPROTO,
                           "shared memory segment %u is in use or has changed its size",
                           place->segment);
        }
        *ret = segment;
        return GD_OK;
    }
    size_t prefix = check_name(place->name);
    if (place->segment == 0 || prefix == 0 || strncmp(place->name, shm->prefix, prefix) != 0) {
        return gd_fail(err, GD_EPROTO, "shared memory segment %u has an invalid name",
                       place->segment);
    }
    segment = free_place(shm);
    if (!segment || place->size > SIZE_MAX / 2) {
        return gd_fail(err, GD_ELIMIT, "more than %d shared memory segments", MAX_SEGMENTS);
    }
    int rc = map_object(place->name, (size_t)place->size, &segment->map, err);
    if (rc != GD_OK) {
        return rc;
    }
    segment->id = place->segment;
    segment->size = (size_t)place->size;
    segment->leases = 0;
    segment->forgotten = false;
    *mapped = true;
    *ret = segment;
    return GD_OK;
}

static int lease_tensor(struct v1_shm *shm, struct segment *segment,
                        const Gradb__V1__ShmPlace *place, enum gd_dtype dtype,
                        const struct gd_shape *shape, size_t bytes, struct gd_tensor **ret,
                        struct gd_err *err)
{
    if (place->offset > segment->size || bytes > segment->size - place->offset) {
        return gd_fail(err, GD_EPROTO, "%zu bytes at %llu exceed a shared memory segment of %zu",
                       bytes, (unsigned long long)place->offset, segment->size);
    }
    struct lease *lease = malloc(sizeof(*lease));
    if (!lease) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a tensor");
    }
    *lease = (struct lease){.shm = shm, .segment = segment->id};
    int rc = gd_tensor_wrap(dtype, shape, segment->map + place->offset, bytes, end_lease, lease,
                            ret, err);
    if (rc != GD_OK) {
        free(lease);
        return rc;
    }
    segment->leases++;
    shm->refs++;
    return GD_OK;
}

int v1_shm_tensor(struct v1_shm *shm, const Gradb__V1__ShmPlace *place, enum gd_dtype dtype,
                  const struct gd_shape *shape, size_t bytes, struct gd_tensor **ret, bool *mapped,
                  struct gd_err *err)
{
    struct segment *segment = NULL;
    *mapped = false;
    pthread_mutex_lock(&shm->lock);
    int rc = segment_of(shm, place, &segment, mapped, err);
    if (rc == GD_OK) {
        rc = lease_tensor(shm, segment, place, dtype, shape, bytes, ret, err);
    }
    pthread_mutex_unlock(&shm->lock);
    return rc;
}

void v1_shm_forget(struct v1_shm *shm, uint32_t id)
{
    pthread_mutex_lock(&shm->lock);
    struct segment *segment = id ? find_mapping(shm, id) : NULL;
    if (segment) {
        segment->forgotten = true;
        if (segment->leases == 0) {
            segment_close(segment);
        }
    }
    pthread_mutex_unlock(&shm->lock);
}

size_t v1_shm_released(struct v1_shm *shm, uint32_t *ret, size_t max)
{
    pthread_mutex_lock(&shm->lock);
    size_t count = shm->released_count < max ? shm->released_count : max;
    memcpy(ret, shm->released, count * sizeof(*ret));
    memmove(shm->released, shm->released + count,
            (shm->released_count - count) * sizeof(*shm->released));
    shm->released_count -= count;
    pthread_mutex_unlock(&shm->lock);
    return count;
}

void v1_shm_usage(struct v1_shm *shm, size_t *segments, size_t *bytes)
{
    *segments = *bytes = 0;
    pthread_mutex_lock(&shm->lock);
    for (size_t i = 0; i < shm->count; i++) {
        *segments += shm->segments[i].id != 0;
        *bytes += shm->segments[i].size;
    }
    pthread_mutex_unlock(&shm->lock);
}
