// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/files/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "engine/hash_index.h"

#define MAX_ENTRIES    ((size_t)1000000)
#define MAX_NOTES      1000
/* The containers of a pickle may contain each other, so a small file can name very many entries:
 * their number is limited by the file's size. */
#define FREE_ENTRIES   ((size_t)1000)
#define ENTRY_BYTES    4 /* required of the file per entry beyond those */
#define FREE_TEXTS     ((uint64_t)16 << 20)
#define TEXTS_PER_BYTE 16

struct gd_archive {
    const char *format;
    struct gd_disk *disk;
    struct gd_arena texts;
    struct gd_archive_entry *entry;
    size_t count, room;
    struct gd_hash_index names;
    const char **note;
    size_t notes, note_room;
};

static uint32_t find_name(const struct gd_archive *archive, const char *name)
{
    return gd_hash_index_find(&archive->names, name, archive->entry, sizeof(*archive->entry));
}

static size_t texts_max(struct gd_disk *disk)
{
    uint64_t size = gd_disk_size(disk);

    return size < UINT32_MAX ? (size_t)(FREE_TEXTS + size * TEXTS_PER_BYTE) : 0;
}

static size_t entries_max(struct gd_disk *disk)
{
    uint64_t most = FREE_ENTRIES + gd_disk_size(disk) / ENTRY_BYTES;

    return most < MAX_ENTRIES ? (size_t)most : MAX_ENTRIES;
}

int gd_archive_create(struct gd_disk *disk, const char *format, struct gd_archive **ret,
                      struct gd_err *err)
{
    struct gd_archive *archive = calloc(1, sizeof(*archive));

    if (!archive) {
        return gd_fail_nomem(err);
    }
    gd_arena_init(&archive->texts, texts_max(disk));
    archive->format = format;
    archive->disk = gd_disk_ref(disk);
    *ret = archive;
    return GD_OK;
}

void gd_archive_close(struct gd_archive *archive)
{
    if (!archive) {
        return;
    }
    for (size_t i = 0; i < archive->count; i++) {
        gd_source_unref(archive->entry[i].source);
    }
    gd_disk_unref(archive->disk);
    gd_arena_deinit(&archive->texts);
    free(archive->entry);
    gd_hash_index_deinit(&archive->names);
    free(archive->note);
    free(archive);
}

/* ---- queries --------------------------------------------------------------------------------- */

const char *gd_archive_format(const struct gd_archive *archive)
{
    return archive->format;
}

const char *gd_archive_path(const struct gd_archive *archive)
{
    return gd_disk_path(archive->disk);
}

size_t gd_archive_count(const struct gd_archive *archive)
{
    return archive->count;
}

const struct gd_archive_entry *gd_archive_entry(const struct gd_archive *archive, size_t index)
{
    return index < archive->count ? &archive->entry[index] : NULL;
}

const struct gd_archive_entry *gd_archive_find(const struct gd_archive *archive, const char *name)
{
    uint32_t found = find_name(archive, name);

    if (found != UINT32_MAX) {
        return &archive->entry[found];
    }
    return name[0] == '\0' && archive->count == 1 ? &archive->entry[0] : NULL;
}

size_t gd_archive_note_count(const struct gd_archive *archive)
{
    return archive->notes;
}

const char *gd_archive_note(const struct gd_archive *archive, size_t index)
{
    return index < archive->notes ? archive->note[index] : NULL;
}

/* ---- for the readers of formats -------------------------------------------------------------- */

/* NULL stays NULL. */
static bool copy_text(struct gd_archive *archive, const char **text)
{
    if (*text) {
        *text = gd_arena_strdup(&archive->texts, *text);
        return *text != NULL;
    }
    return true;
}

static int make_room(struct gd_archive *archive, struct gd_err *err)
{
    if (archive->count >= entries_max(archive->disk)) {
        return gd_fail(err, GD_ELIMIT,
                       "%.300s has more than %zu tensors and values: too many for its size",
                       gd_disk_path(archive->disk), archive->count);
    }
    if (!gd_grow_list(&archive->entry, archive->count, &archive->room, sizeof(*archive->entry))) {
        return gd_fail_nomem(err);
    }
    return GD_OK;
}

int gd_archive_add(struct gd_archive *archive, const struct gd_archive_entry *entry,
                   struct gd_err *err)
{
    struct gd_archive_entry copy = *entry;
    struct gd_err line;
    int rc = make_room(archive, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (copy.problem) { /* keep it on one line, whatever the file contains */
        gd_fail(&line, GD_OK, "%s", copy.problem);
        copy.problem = line.text;
    }
    if (!copy_text(archive, &copy.name) || !copy_text(archive, &copy.text) ||
        !copy_text(archive, &copy.problem) || !copy_text(archive, &copy.same_as)) {
        return gd_fail(err, GD_ELIMIT, "%.300s: its names take more memory than its size allows",
                       gd_disk_path(archive->disk));
    }
    /* of duplicate names, the first is found */
    rc = find_name(archive, copy.name) != UINT32_MAX
             ? GD_OK
             : gd_hash_index_add_name(&archive->names, copy.name, (uint32_t)archive->count, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (copy.source) {
        gd_source_ref(copy.source);
    }
    archive->entry[archive->count++] = copy;
    return GD_OK;
}

void gd_archive_add_note(struct gd_archive *archive, const char *format, ...)
{
    struct gd_err text;
    char line[GD_ERR_TEXT_MAX];
    va_list args;

    if (archive->notes == MAX_NOTES) {
        return;
    }
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    /* Keep it on one line, whatever the file contains. */
    gd_fail(&text, GD_OK, "%s", line);
    if (gd_grow_list(&archive->note, archive->notes, &archive->note_room, sizeof(char *))) {
        archive->note[archive->notes] = gd_arena_strdup(&archive->texts, text.text);
        archive->notes += archive->note[archive->notes] != NULL;
    }
}
