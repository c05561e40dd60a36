// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Overflow records next to files that the front end has converted itself: MindSpore's asynchronous
 * dump as .npy, whole graphs on Ascend. Another format reads the files; the records become events
 * of the same rank and blame the operators named by these files.
 */
#include <string.h>

#include "dump/cann/cann_load.h"
#include "dump/mindspore/ms_file_name.h"

#define MAX_NAME       8192
#define MAX_LOOKED_FOR 1000 /* records; each searches a directory */

static bool is_below(const char *path, const char *directory)
{
    size_t len = strlen(directory);

    while (len > 1 && directory[len - 1] == '/') {
        len--;
    }
    return strncmp(path, directory, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

struct gd_catalog *cann_join_find(struct gd_dump *dump, const struct cann_dirs *tree, uint32_t root,
                                  const char *where, int rank)
{
    struct gd_catalog *found = NULL;

    for (size_t i = 0; i < tree->count; i++) {
        const struct cann_dir *dir = &tree->dir[i];

        if (dir->root == root && dir->place.rank == rank &&
            (!dir->place.is_mindspore || dir->records < dir->files)) {
            return NULL;
        }
    }
    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        struct gd_catalog *at = gd_dump_at(dump, i);

        if (gd_catalog_rank(at) == rank && is_below(gd_catalog_where(at), where)) {
            if (found) {
                return NULL; /* ambiguous: it could be either of two networks */
            }
            found = at;
        }
    }
    return found;
}

/* The only node that files have by that name. */
static gd_node_id node_called(const struct gd_graph *graph, const char *name)
{
    char escaped[MAX_NAME + 1];
    gd_node_id found = GD_NO_NODE;
    uint32_t limit = gd_graph_node_limit(graph);

    for (gd_node_id node = 0; node < limit; node++) {
        const char *full = gd_graph_name(graph, node);

        gd_ms_escape(full, escaped, sizeof(escaped));
        if (full[0] && (strcmp(escaped, name) == 0 || strcmp(gd_ms_short_name(full), name) == 0)) {
            if (found != GD_NO_NODE) {
                return GD_NO_NODE;
            }
            found = node;
        }
    }
    return found;
}

gd_node_id cann_join_blamed(struct cann_load *load, const struct cann_file *record)
{
    const struct gd_listing_entry *entry = load->listing->entry;
    uint32_t at = entry[load->tree->dir[record->dir].entry].first_child;
    struct gd_mapping *mapping = NULL;
    gd_node_id node = GD_NO_NODE;

    if (++load->looked_for > MAX_LOOKED_FOR) {
        return GD_NO_NODE;
    }
    gd_mapping_read(load->listing, load->tree->dir[record->dir].entry, &mapping, NULL);
    for (; at != GD_NO_ENTRY && node == GD_NO_NODE; at = entry[at].next) {
        struct gd_ms_name name;
        char text[MAX_NAME + 1];

        if (!entry[at].is_directory &&
            gd_ms_name_parse(gd_mapping_name(mapping, entry[at].name), &name) &&
            name.task == record->task && name.stream == record->stream &&
            name.name_len < sizeof(text)) {
            memcpy(text, name.name, name.name_len);
            text[name.name_len] = '\0';
            node = node_called(gd_catalog_graph(load->catalog), text);
        }
    }
    gd_mapping_free(mapping);
    return node;
}
