// SPDX-License-Identifier: MIT
/*
 * A pool of shared memory segments. The training process copies a value into one; the debugger maps
 * it once and says when it is free again. So in the steady state a value costs one memcpy.
 *
 * Names: a segment's name is unlinked as soon as the debugger has mapped it, so that a crash of
 * either side leaves behind only what was being handed over at that moment.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_shm.h"

#define MAX_SEGMENTS  256
#define SWEEP_SECONDS 60
#define NAME_SIZE     64
#define PROBE_BYTES   32
#define ROUND         ((size_t)2 << 20) /* segment sizes are multiples of a huge page */

struct segment {
    uint32_t id;
    char name[NAME_SIZE]; /* "": unlinked */
    void *map;
    size_t size;
    bool busy;     /* the debugger may read it */
    uint64_t used; /* for least recently used */
};

struct agent_shm {
    char prefix[48];
    unsigned char nonce[PROBE_BYTES];
    struct segment probe;
    struct segment segments[MAX_SEGMENTS];
    size_t count;
    size_t total, limit; /* bytes; the limit is half of the initially free space */
    uint32_t next_id;
    uint64_t clock;
    uint32_t forgotten[MAX_SEGMENTS];
    size_t forgotten_count;
};

static void segment_unlink(struct segment *segment)
{
    if (segment->name[0]) {
        shm_unlink(segment->name);
        segment->name[0] = '\0';
    }
}

static void segment_close(struct segment *segment)
{
    segment_unlink(segment);
    if (segment->map) {
        munmap(segment->map, segment->size);
    }
    memset(segment, 0, sizeof(*segment));
}

/* Reserves the space here: a full file system must give an error, not a bus error in memcpy. */
static bool segment_open(struct agent_shm *shm, struct segment *segment, size_t size)
{
    memset(segment, 0, sizeof(*segment));
    segment->id = shm->next_id;
    snprintf(segment->name, sizeof(segment->name), "%s-%u", shm->prefix, shm->next_id++);
    int fd = shm_open(segment->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        segment->name[0] = '\0';
        return false;
    }
    int code = 0;
    do {
        code = posix_fallocate(fd, 0, (off_t)size);
    } while (code == EINTR);
    void *map = MAP_FAILED;
    if (code == 0) {
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    }
    struct statvfs fs;
    if (shm->limit == 0 && fstatvfs(fd, &fs) == 0) {
        shm->limit = (size_t)(fs.f_bavail / 2) * (size_t)fs.f_frsize;
    }
    close(fd);
    if (map == MAP_FAILED) {
        segment_unlink(segment);
        return false;
    }
    segment->map = map;
    segment->size = size;
    return true;
}

/* Removes what a killed training process left behind while handing over a value: its process is
 * gone, and the object has been untouched for a minute. */
static void sweep_leftovers(void)
{
    DIR *dir = opendir("/dev/shm");
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        struct stat st;
        char *end = NULL;
        if (strncmp(e->d_name, "gradb-", 6) != 0) {
            continue;
        }
        long pid = strtol(e->d_name + 6, &end, 10);
        if (pid <= 0 || *end != '-' || kill((pid_t)pid, 0) == 0 || errno != ESRCH ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            st.st_uid != geteuid() || !S_ISREG(st.st_mode) ||
            time(NULL) - st.st_ctime < SWEEP_SECONDS || time(NULL) - st.st_mtime < SWEEP_SECONDS) {
            continue;
        }
        unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir) {
        closedir(dir);
    }
}

struct agent_shm *agent_shm_create(void)
{
    struct agent_shm *shm = calloc(1, sizeof(*shm));
    uint64_t id = 0;
    if (!shm || getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id) ||
        getrandom(shm->nonce, sizeof(shm->nonce), 0) != (ssize_t)sizeof(shm->nonce)) {
        free(shm);
        return NULL;
    }
    sweep_leftovers();
    shm->next_id = 1;
    snprintf(shm->prefix, sizeof(shm->prefix), "/gradb-%ld-%016llx", (long)getpid(),
             (unsigned long long)id);
    return shm;
}

void agent_shm_destroy(struct agent_shm *shm)
{
    if (!shm) {
        return;
    }
    segment_close(&shm->probe);
    for (size_t i = 0; i < shm->count; i++) {
        segment_close(&shm->segments[i]);
    }
    free(shm);
}

bool agent_shm_probe(struct agent_shm *shm, Gradb__V1__ShmProbe *ret)
{
    if (!shm->probe.map && !segment_open(shm, &shm->probe, 4096)) {
        return false;
    }
    memcpy(shm->probe.map, shm->nonce, sizeof(shm->nonce));
    gradb__v1__shm_probe__init(ret);
    ret->name = shm->probe.name;
    ret->nonce.data = shm->nonce;
    ret->nonce.len = sizeof(shm->nonce);
    return true;
}

void agent_shm_probe_done(struct agent_shm *shm)
{
    segment_close(&shm->probe);
}

/* ---- the pool ------------------------------------------------------------------------------- */

static struct segment *find_segment(struct agent_shm *shm, uint32_t id)
{
    for (size_t i = 0; i < shm->count; i++) {
        if (shm->segments[i].id == id) {
            return &shm->segments[i];
        }
    }
    return NULL;
}

static void give_up(struct agent_shm *shm, struct segment *segment)
{
    if (shm->forgotten_count < MAX_SEGMENTS) {
        shm->forgotten[shm->forgotten_count++] = segment->id;
    }
    shm->total -= segment->size;
    segment_close(segment);
    *segment = shm->segments[--shm->count];
}

/* Frees unused segments, least recently used first, until there is room. */
static bool make_room(struct agent_shm *shm, size_t size)
{
    while (shm->count == MAX_SEGMENTS || (shm->limit && shm->total + size > shm->limit)) {
        struct segment *oldest = NULL;
        for (size_t i = 0; i < shm->count; i++) {
            struct segment *s = &shm->segments[i];
            if (!s->busy && (!oldest || s->used < oldest->used)) {
                oldest = s;
            }
        }
        if (!oldest || shm->forgotten_count == MAX_SEGMENTS) {
            return false;
        }
        give_up(shm, oldest);
    }
    return true;
}

/* The smallest free segment that fits, unless it would waste three quarters of its size. */
static struct segment *best_fit(struct agent_shm *shm, size_t bytes)
{
    struct segment *best = NULL;
    for (size_t i = 0; i < shm->count; i++) {
        struct segment *s = &shm->segments[i];
        if (!s->busy && s->size >= bytes && (s->size / 4 <= bytes || s->size <= ROUND) &&
            (!best || s->size < best->size)) {
            best = s;
        }
    }
    return best;
}

void *agent_shm_take(struct agent_shm *shm, size_t bytes, Gradb__V1__ShmPlace *place)
{
    struct segment *segment = best_fit(shm, bytes);
    if (!segment) {
        if (bytes > SIZE_MAX / 2) {
            return NULL;
        }
        size_t size = (bytes + ROUND - 1) / ROUND * ROUND;
        if (!make_room(shm, size) || !segment_open(shm, &shm->segments[shm->count], size)) {
            return NULL;
        }
        segment = &shm->segments[shm->count++];
        shm->total += size;
    }
    segment->busy = true;
    segment->used = ++shm->clock;
    gradb__v1__shm_place__init(place);
    place->segment = segment->id;
    place->name = segment->name;
    place->size = segment->size;
    return segment->map;
}

void agent_shm_mapped(struct agent_shm *shm, uint32_t id)
{
    struct segment *segment = find_segment(shm, id);
    if (segment) {
        segment_unlink(segment);
    }
}

void agent_shm_release(struct agent_shm *shm, uint32_t id)
{
    struct segment *segment = find_segment(shm, id);
    if (segment) {
        segment->busy = false;
    }
}

size_t agent_shm_forgotten(struct agent_shm *shm, uint32_t *ret, size_t max)
{
    size_t count = shm->forgotten_count < max ? shm->forgotten_count : max;
    memcpy(ret, shm->forgotten, count * sizeof(*ret));
    memmove(shm->forgotten, shm->forgotten + count,
            (shm->forgotten_count - count) * sizeof(*shm->forgotten));
    shm->forgotten_count -= count;
    return count;
}
