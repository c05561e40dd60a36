// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/files/archive.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
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
    const struct gd_archive_format *format;
    struct gd_disk *disk;
    struct gd_arena texts;
    struct gd_archive_entry *entry;
    size_t count, room;
    struct gd_hash_index names;
    const char **note;
    size_t notes;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Finds the entry with this name; false: none. */
static bool find_name(const struct gd_archive *archive, const char *name, uint64_t hash,
                      uint32_t *ret)
{
    for (size_t at = 0; gd_hash_index_next(&archive->names, hash, &at, ret);) {
        if (strcmp(archive->entry[*ret].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- opening --------------------------------------------------------------------------------- */

static const struct gd_archive_format *find_format(const char *name, const unsigned char *start,
                                                   size_t size, struct gd_disk *disk)
{
    for (size_t i = 0; gd_archive_formats[i]; i++) {
        const struct gd_archive_format *format = gd_archive_formats[i];

        if (name ? strcmp(format->name, name) == 0 : format->is(start, size, disk)) {
            return format;
        }
    }
    return NULL;
}

bool gd_is_profile(const char *name, bool is_directory)
{
    static const char *const ends[] = {".pt.trace.json", ".trace.json", ".trace.json.gz",
                                       ".nsys-rep",      ".qdrep",      ".ncu-rep"};

    if (is_directory) {
        return gd_ends_with(name, "_ascend_ms") || gd_ends_with(name, "_ascend_pt") ||
               strcmp(name, "ASCEND_PROFILER_OUTPUT") == 0 || strncmp(name, "PROF_", 5) == 0;
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (gd_ends_with(name, ends[i])) {
            return true;
        }
    }
    return (strncmp(name, "profiler_info", 13) == 0 ||
            strncmp(name, "ascend_timeline_display", 23) == 0) &&
           gd_ends_with(name, ".json");
}

int gd_fail_profile(const char *path, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO,
                   "%.300s is profiler output: it contains times, not tensors. Open it with "
                   "Perfetto, TensorBoard or MindStudio Insight; \"info timing\" shows the times "
                   "of a run that gradb debugs",
                   path);
}

/* Recognises a Chrome trace of any name: an object with "traceEvents" near its beginning. */
static bool is_trace(struct gd_disk *disk)
{
    char start[8193];
    uint64_t size = gd_disk_size(disk);
    size_t len = size < sizeof(start) - 1 ? (size_t)size : sizeof(start) - 1;

    if (gd_disk_read(disk, 0, start, len, NULL) != GD_OK) {
        return false;
    }
    start[len] = '\0';
    return start[strspn(start, " \t\r\n")] == '{' && strstr(start, "\"traceEvents\"");
}

static int no_format(struct gd_disk *disk, const char *name, struct gd_err *err)
{
    char all[256];
    size_t used = 0;

    all[0] = '\0';
    for (size_t i = 0; gd_archive_formats[i] && used < sizeof(all); i++) {
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                                 gd_archive_formats[i]->name);
    }
    if (name) {
        return gd_fail(err, GD_EINVAL, "\"%.60s\" is not a tensor file format: there are %s", name,
                       all);
    }
    if (gd_disk_size(disk) == 0) {
        return gd_fail(err, GD_EPROTO, "%.300s is empty: the writer was interrupted",
                       gd_disk_path(disk));
    }
    const char *slash = strrchr(gd_disk_path(disk), '/');
    if (gd_is_profile(slash ? slash + 1 : gd_disk_path(disk), false) || is_trace(disk)) {
        return gd_fail_profile(gd_disk_path(disk), err);
    }
    const char *dot = strrchr(gd_disk_path(disk), '.');
    if (dot && strcmp(dot, ".csv") == 0) {
        return gd_fail(err, GD_EPROTO, "%.300s is a table: open its dump's directory instead",
                       gd_disk_path(disk));
    }
    return gd_fail(err, GD_EPROTO, "%.300s is not a tensor file of a known format (%s)",
                   gd_disk_path(disk), all);
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

int gd_archive_open_disk(struct gd_disk *disk, const struct gd_archive_options *options,
                         struct gd_archive **ret, struct gd_err *err)
{
    static const struct gd_archive_options none;
    const struct gd_archive_format *format;
    unsigned char start[GD_ARCHIVE_START];
    size_t size = gd_disk_size(disk) < sizeof(start) ? (size_t)gd_disk_size(disk) : sizeof(start);
    struct gd_archive *archive;
    int rc = gd_disk_read(disk, 0, start, size, err);

    if (rc != GD_OK) {
        return rc;
    }
    options = options ? options : &none;
    format = find_format(options->format, start, size, disk);
    if (!format) {
        return no_format(disk, options->format, err);
    }
    archive = calloc(1, sizeof(*archive));
    if (!archive) {
        return gd_fail_nomem(err);
    }
    gd_arena_init(&archive->texts, texts_max(disk));
    archive->format = format;
    archive->disk = gd_disk_ref(disk);
    rc = format->read(archive, disk, options, err);
    if (rc != GD_OK) {
        gd_archive_close(archive);
        return rc;
    }
    if (gd_disk_is_changed(disk)) {
        gd_archive_add_note(archive, "the file was modified while it was being read");
    }
    *ret = archive;
    return GD_OK;
}

int gd_archive_open(const char *path, const struct gd_archive_options *options,
                    struct gd_archive **ret, struct gd_err *err)
{
    struct gd_disk *disk;
    int rc = gd_disk_open(AT_FDCWD, path, true, &disk, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_archive_open_disk(disk, options, ret, err);
    gd_disk_unref(disk);
    return rc;
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
    return archive->format->name;
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
    struct gd_hash_index seeded = archive->names;
    uint32_t found;

    if (find_name(archive, name, gd_hash_index_hash(&seeded, name, strlen(name)), &found)) {
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
    struct gd_archive_entry *grown;

    if (archive->count >= entries_max(archive->disk)) {
        return gd_fail(err, GD_ELIMIT,
                       "%.300s has more than %zu tensors and values: too many for its size",
                       gd_disk_path(archive->disk), archive->count);
    }
    grown = gd_grow(archive->entry, archive->count, &archive->room, sizeof(*grown));
    if (!grown) {
        return gd_fail_nomem(err);
    }
    archive->entry = grown;
    return GD_OK;
}

/* Adds an entry to the index. Of duplicate names, the first is found. */
static int index_name(struct gd_archive *archive, const char *name, struct gd_err *err)
{
    uint64_t hash = gd_hash_index_hash(&archive->names, name, strlen(name));
    uint32_t known;

    return find_name(archive, name, hash, &known)
               ? GD_OK
               : gd_hash_index_add(&archive->names, hash, (uint32_t)archive->count, err);
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
    rc = index_name(archive, copy.name, err);
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
    const char **grown;
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
    if ((archive->notes & (archive->notes + 1)) == 0) {
        grown = realloc(archive->note, (archive->notes * 2 + 2) * sizeof(*grown));
        if (!grown) {
            return;
        }
        archive->note = grown;
    }
    archive->note[archive->notes] = gd_arena_strdup(&archive->texts, text.text);
    archive->notes += archive->note[archive->notes] != NULL;
}
