// SPDX-License-Identifier: MIT
#include "data.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)64 << 20)
#define MAX_DEPTH 16
#define PATH_SIZE 4096
/* From the folder of the installed program. */
#define INSTALLED "../../share/gradb/charlm"

struct bytes {
    uint8_t *data;
    size_t count, cap;
};

static int add_bytes(struct bytes *bytes, const uint8_t *data, size_t count)
{
    if (count > MAX_BYTES - bytes->count) {
        count = MAX_BYTES - bytes->count;
    }
    if (bytes->count + count > bytes->cap) {
        size_t cap = 2 * (bytes->count + count);
        uint8_t *bigger = realloc(bytes->data, cap);
        if (!bigger) {
            return -1;
        }
        bytes->data = bigger;
        bytes->cap = cap;
    }
    memcpy(bytes->data + bytes->count, data, count);
    bytes->count += count;
    return 0;
}

static int add_file(struct bytes *bytes, const char *path, char *why, size_t why_size)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(why, why_size, "cannot open %s: %s", path, strerror(errno));
        return -1;
    }
    uint8_t chunk[16384];
    int rc = 0;
    while (rc == 0 && bytes->count < MAX_BYTES) {
        size_t got = fread(chunk, 1, sizeof(chunk), file);
        if (got == 0) {
            break;
        }
        rc = add_bytes(bytes, chunk, got);
    }
    if (rc != 0) {
        snprintf(why, why_size, "out of memory for the text of %s", path);
    } else if (ferror(file)) {
        snprintf(why, why_size, "cannot read %s: %s", path, strerror(errno));
        rc = -1;
    }
    fclose(file);
    return rc;
}

static bool is_source(const char *name)
{
    size_t len = strlen(name);
    return len > 2 && name[len - 2] == '.' && (name[len - 1] == 'c' || name[len - 1] == 'h');
}

static int is_not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* not alphasort, which depends on the locale */
}

static int add_directory(struct bytes *bytes, const char *path, int depth, char *why,
                         size_t why_size)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_not_hidden, compare_bytes);
    if (count < 0) {
        snprintf(why, why_size, "cannot read directory %s: %s", path, strerror(errno));
        return -1;
    }
    int rc = 0;
    for (int i = 0; i < count; i++) {
        char full[PATH_SIZE];
        struct stat st;
        int len = snprintf(full, sizeof(full), "%s/%s", path, entries[i]->d_name);
        if (rc == 0 && len < (int)sizeof(full) && lstat(full, &st) == 0) {
            if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH) {
                rc = add_directory(bytes, full, depth + 1, why, why_size);
            } else if (S_ISREG(st.st_mode) && is_source(entries[i]->d_name)) {
                rc = add_file(bytes, full, why, why_size);
            }
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

const char *data_installed_sources(void)
{
    static char path[PATH_MAX];
    char own[PATH_MAX];

    ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (len <= 0) {
        return NULL;
    }
    own[len] = '\0';
    char *slash = strrchr(own, '/');
    if (!slash) {
        return NULL;
    }
    *slash = '\0';
    char full[PATH_MAX + sizeof(INSTALLED)];
    snprintf(full, sizeof(full), "%s/%s", own, INSTALLED);
    return realpath(full, path);
}

/* The sources that this program was built from, or the installed ones. */
static const char *find_default_path(void)
{
    return access(CHARLM_DEFAULT_DATA, R_OK) == 0 ? CHARLM_DEFAULT_DATA : data_installed_sources();
}

static void convert_to_ids(struct data *data)
{
    bool seen[256] = {false};
    uint8_t id_of[256] = {0};
    for (size_t i = 0; i < data->count; i++) {
        seen[data->ids[i]] = true;
    }
    for (size_t byte = 0; byte < 256; byte++) {
        if (seen[byte]) {
            id_of[byte] = (uint8_t)data->vocabulary_size;
            data->vocabulary[data->vocabulary_size++] = (uint8_t)byte;
        }
    }
    for (size_t i = 0; i < data->count; i++) {
        data->ids[i] = id_of[data->ids[i]];
    }
}

int data_load(const char *path, struct data *ret, char *why, size_t why_size)
{
    path = path ? path : find_default_path();
    if (!path) {
        snprintf(why, why_size,
                 "cannot find the default text (this program's sources): use --data PATH");
        return -1;
    }
    struct stat st;
    if (stat(path, &st) != 0) {
        snprintf(why, why_size, "cannot open %s: %s", path, strerror(errno));
        return -1;
    }
    struct bytes bytes = {0};
    int rc = S_ISDIR(st.st_mode) ? add_directory(&bytes, path, 0, why, why_size)
                                 : add_file(&bytes, path, why, why_size);
    if (rc == 0 && bytes.count == 0) {
        snprintf(why, why_size,
                 "%s contains no text: give a file, or a directory with .c or .h files", path);
        rc = -1;
    }
    if (rc != 0) {
        free(bytes.data);
        return -1;
    }
    *ret = (struct data){.ids = bytes.data, .count = bytes.count};
    convert_to_ids(ret);
    return 0;
}

void data_deinit(struct data *data)
{
    free(data->ids);
    data->ids = NULL;
}

void data_batch(const struct data *data, struct rng *rng, int32_t *input, int32_t *target,
                size_t rows, size_t cols)
{
    for (size_t row = 0; row < rows; row++) {
        const uint8_t *from = data->ids + rng_next(rng) % (data->count - cols);
        for (size_t i = 0; i < cols; i++) {
            input[row * cols + i] = from[i];
            target[row * cols + i] = from[i + 1];
        }
    }
}
