// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Time to open a tensor file and know the names, types and shapes of all its tensors. Reads one
 * path per line, prints seconds and the number of tensors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "dump/files/archive.h"

static size_t open_file(const struct gd_archive *archive)
{
    size_t tensors = 0;

    for (size_t i = 0; i < gd_archive_count(archive); i++) {
        const struct gd_archive_entry *entry = gd_archive_entry(archive, i);
        struct gd_source_info info;

        tensors += entry->source && gd_source_info(entry->source, &info, NULL) == GD_OK &&
                   info.shape.rank >= 0;
    }
    return tensors;
}

int main(void)
{
    struct gd_archive *archive;
    size_t room = 0, tensors;
    struct gd_err err;
    char *line = NULL;

    while (getline(&line, &room, stdin) > 0) {
        double start = bench_now();

        line[strcspn(line, "\n")] = '\0';
        if (gd_archive_open(line, NULL, &archive, &err) != GD_OK) {
            fprintf(stderr, "bench_open: %s\n", err.text);
            return 1;
        }
        tensors = open_file(archive);
        gd_archive_close(archive);
        printf("%.9f %zu\n", bench_now() - start, tensors);
        fflush(stdout);
    }
    free(line);
    return 0;
}
