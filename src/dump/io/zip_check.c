// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/zip_check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_RUNS 512 /* separate pieces that are tracked; with more, the verdict stays unknown */

struct run {
    uint64_t at, size;
    uint32_t crc;
};

struct zip_check {
    pthread_mutex_t mutex;
    uint64_t size;
    uint32_t crc;
    enum zip_verdict verdict;
    struct run run[MAX_RUNS]; /* sorted; no two touch */
    size_t count;
};

struct zip_check *zip_check_new(uint64_t size, uint32_t crc)
{
    struct zip_check *check = calloc(1, sizeof(*check));

    if (check) {
        pthread_mutex_init(&check->mutex, NULL);
        check->size = size;
        check->crc = crc;
    }
    return check;
}

void zip_check_free(struct zip_check *check)
{
    if (check) {
        pthread_mutex_destroy(&check->mutex);
        free(check);
    }
}

/* The first run that does not end before `at`. */
static size_t place_of(const struct zip_check *check, uint64_t at)
{
    size_t low = 0, high = check->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (check->run[middle].at + check->run[middle].size < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_touching(const struct run *first, const struct run *second)
{
    return first->at + first->size == second->at;
}

/* Merges two neighbouring runs. */
static void join_runs(struct zip_check *check, size_t first)
{
    struct run *run = &check->run[first];

    run->crc = (uint32_t)crc32_combine(run->crc, run[1].crc, (z_off_t)run[1].size);
    run->size += run[1].size;
    check->count--;
    memmove(run + 1, run + 2, (check->count - first - 1) * sizeof(*run));
}

/* Drops the runs inside the piece: parts that were read before. */
static void forget_within(struct zip_check *check, const struct run *piece, size_t place)
{
    size_t end = place;

    while (end < check->count && check->run[end].at >= piece->at &&
           check->run[end].at + check->run[end].size <= piece->at + piece->size) {
        end++;
    }
    memmove(&check->run[place], &check->run[end], (check->count - end) * sizeof(*check->run));
    check->count -= end - place;
}

static void add_run(struct zip_check *check, const struct run *piece)
{
    size_t place = place_of(check, piece->at);

    /* A run that ends where the piece begins comes before it. */
    if (place < check->count && is_touching(&check->run[place], piece)) {
        place++;
    }
    forget_within(check, piece, place);
    if (check->count == MAX_RUNS ||
        (place < check->count && check->run[place].at < piece->at + piece->size)) {
        return;
    }
    memmove(&check->run[place + 1], &check->run[place],
            (check->count - place) * sizeof(*check->run));
    check->run[place] = *piece;
    check->count++;
    if (place + 1 < check->count && is_touching(&check->run[place], &check->run[place + 1])) {
        join_runs(check, place);
    }
    if (place > 0 && is_touching(&check->run[place - 1], &check->run[place])) {
        join_runs(check, place - 1);
    }
}

static enum zip_verdict read_verdict(struct zip_check *check)
{
    enum zip_verdict verdict;

    pthread_mutex_lock(&check->mutex);
    verdict = check->verdict;
    pthread_mutex_unlock(&check->mutex);
    return verdict;
}

enum zip_verdict zip_check_piece(struct zip_check *check, uint64_t at, const void *data,
                                 size_t size)
{
    enum zip_verdict verdict = read_verdict(check);
    struct run piece = {.at = at, .size = size};

    if (verdict || size == 0) {
        return verdict;
    }
    piece.crc = (uint32_t)crc32_z(0, data, size);
    pthread_mutex_lock(&check->mutex);
    if (!check->verdict) {
        add_run(check, &piece);
    }
    if (!check->verdict && check->count == 1 && check->run[0].size == check->size) {
        check->verdict = check->run[0].crc == check->crc ? ZIP_GOOD : ZIP_DAMAGED;
    }
    verdict = check->verdict;
    pthread_mutex_unlock(&check->mutex);
    return verdict;
}

uint64_t zip_check_missing_head(struct zip_check *check)
{
    uint64_t missing = 0;

    pthread_mutex_lock(&check->mutex);
    if (check->count == 1 && check->run[0].at + check->run[0].size == check->size) {
        missing = check->run[0].at;
    }
    pthread_mutex_unlock(&check->mutex);
    return missing;
}
