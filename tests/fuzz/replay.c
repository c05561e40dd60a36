// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A fuzz target without a fuzzer: plays every file of a corpus directory, every prefix of the short
 * ones, then mutations with a fixed seed, so that failures are reproducible.
 *
 *     fuzz_NAME CORPUS_DIR MAX_LEN [MUTATIONS]
 *     fuzz_NAME FILE MAX_LEN          plays that one input
 *
 * On a crash, the input is written to standard error in hexadecimal.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define MAX_SEEDS         256
#define DEFAULT_MUTATIONS 20000
#define SHORT_SEED        512 /* every prefix of these is played */

struct seed {
    char *name;
    uint8_t *data;
    size_t size;
};

static struct seed seeds[MAX_SEEDS];
static size_t seed_count;
static const uint8_t *playing;
static size_t playing_size;

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t random_next(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t random_below(size_t limit)
{
    return limit ? (size_t)(random_next() % limit) : 0;
}

static void give_up(const char *what, const char *name)
{
    printf("Bail out! %s %s\n", what, name);
    exit(2);
}

static void *must_alloc(size_t size)
{
    void *p = malloc(size ? size : 1);

    if (!p) {
        give_up("out of memory for", "an input");
    }
    return p;
}

/* A sanitizer ends the process itself after its report: this is its hook, if there is one. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void show_input(void)
{
    static const char digits[] = "0123456789abcdef";
    static const char head[] = "# the input was: ";
    char text[2 * 4096 + 1];
    size_t len = 0;

    for (size_t i = 0; i < playing_size && i < 4096; i++) {
        text[len++] = digits[playing[i] >> 4];
        text[len++] = digits[playing[i] & 15];
    }
    text[len++] = '\n';
    if (write(2, head, sizeof(head) - 1) < 0 || write(2, text, len) < 0) {
        _exit(1);
    }
}

static void on_signal(int sig)
{
    show_input();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* A copy of exactly that size: the sanitizer then detects reading one byte beyond it. */
static void play_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = must_alloc(size);

    if (size) {
        memcpy(copy, data, size);
    }
    playing = copy;
    playing_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    playing_size = 0;
    free(copy);
}

static void read_seed(const char *path, const char *name, size_t max_len)
{
    struct seed *seed = &seeds[seed_count];
    FILE *file = fopen(path, "rb");

    if (!file || seed_count == MAX_SEEDS) {
        give_up("cannot take the seed", path);
    }
    seed->data = must_alloc(max_len);
    seed->size = fread(seed->data, 1, max_len, file);
    seed->name = strdup(name);
    fclose(file);
    seed_count++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct seed *)a)->name, ((const struct seed *)b)->name);
}

static void read_corpus(const char *dir_path, size_t max_len)
{
    DIR *dir = opendir(dir_path);
    struct dirent *entry;
    char path[4096];

    if (!dir) {
        give_up("cannot open the corpus", dir_path);
    }
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", dir_path, entry->d_name);
        read_seed(path, entry->d_name, max_len);
    }
    closedir(dir);
    /* The order of a directory differs between machines. */
    qsort(seeds, seed_count, sizeof(seeds[0]), by_name);
    if (seed_count == 0) {
        give_up("no seeds in", dir_path);
    }
}

static size_t insert_bytes(uint8_t *data, size_t size, size_t max_len, const uint8_t *from,
                           size_t len)
{
    size_t at = random_below(size + 1);

    if (len > max_len - size) {
        len = max_len - size;
    }
    memmove(data + at + len, data + at, size - at);
    memcpy(data + at, from, len);
    return size + len;
}

static size_t mutate_once(uint8_t *data, size_t size, size_t max_len)
{
    static const uint8_t odd[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '-', '[', ']', ':', ' ', '9'};
    size_t at = random_below(size), len = size ? 1 + random_below(size - at) : 0;
    uint8_t bytes[8];

    switch (random_below(8)) {
    case 0: /* one bit */
        if (size) {
            data[at] ^= (uint8_t)(1U << random_below(8));
        }
        return size;
    case 1: /* one byte */
        if (size) {
            data[at] = (uint8_t)random_next();
        }
        return size;
    case 2: /* one byte of the kind that matters */
        if (size) {
            data[at] = odd[random_below(sizeof(odd))];
        }
        return size;
    case 3: /* cut a piece out */
        memmove(data + at, data + at + len, size - at - len);
        return size - len;
    case 4: /* cut the end off */ return at;
    case 5: /* random bytes */
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (uint8_t)random_next();
        }
        return insert_bytes(data, size, max_len, bytes, 1 + random_below(sizeof(bytes)));
    case 6: { /* a piece of another seed */
        const struct seed *other = &seeds[random_below(seed_count)];
        size_t start = random_below(other->size);

        return insert_bytes(data, size, max_len, other->data + start,
                            random_below(other->size - start + 1));
    }
    default: /* a byte many times over, for lengths and depths */
        for (size_t i = 0; i < len && size; i++) {
            data[at + i] = data[at];
        }
        return size;
    }
}

static void play_mutations(size_t max_len, size_t times)
{
    uint8_t *data = must_alloc(max_len);

    for (size_t i = 0; i < times; i++) {
        const struct seed *seed = &seeds[random_below(seed_count)];
        size_t size = seed->size, changes = 1 + random_below(5);

        memcpy(data, seed->data, size);
        while (changes--) {
            size = mutate_once(data, size, max_len);
        }
        play_copy(data, size);
    }
    free(data);
}

int main(int argc, char **argv)
{
    struct stat info;
    size_t max_len = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    size_t mutations = argc > 3 ? strtoul(argv[3], NULL, 10) : DEFAULT_MUTATIONS;

    if (argc < 3 || max_len == 0) {
        give_up("usage: CORPUS_DIR|FILE MAX_LEN [MUTATIONS], not", argc > 1 ? argv[1] : "nothing");
    }
    signal(SIGABRT, on_signal);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(show_input);
    } else {
        signal(SIGSEGV, on_signal);
    }
    if (stat(argv[1], &info) == 0 && S_ISDIR(info.st_mode)) {
        read_corpus(argv[1], max_len);
    } else {
        read_seed(argv[1], argv[1], max_len);
    }
    printf("1..2\n");
    fflush(stdout);
    for (size_t i = 0; i < seed_count; i++) {
        size_t first = seeds[i].size <= SHORT_SEED ? 0 : seeds[i].size;

        for (size_t size = first; size <= seeds[i].size; size++) {
            play_copy(seeds[i].data, size);
        }
    }
    printf("ok 1 - %zu seeds\n", seed_count);
    fflush(stdout);
    if (S_ISDIR(info.st_mode)) {
        play_mutations(max_len, mutations);
    }
    printf("ok 2 - %zu mutations\n", S_ISDIR(info.st_mode) ? mutations : 0);
    for (size_t i = 0; i < seed_count; i++) {
        free(seeds[i].name);
        free(seeds[i].data);
    }
    return 0;
}
