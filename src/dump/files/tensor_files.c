// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tensor files and checkpoints that belong to no other format: a single file, or a directory of
 * them. The entries of a checkpoint become a tree of nodes; several checkpoints of one kind become
 * steps if their names give the step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/detect.h"
#include "dump/files/tensor_names.h"
#include "dump/format.h"
#include "dump/memory/snapshot.h"
#include "engine/debugger.h"

#define MAX_NAME  ((size_t)1 << 20)
#define MAX_TEXTS 1000 /* shown, over all files */

/* Files with these endings are examined; ".index.json" covers its shards. */
static const char *const extensions[] = {
    ".npy", ".npz", ".safetensors", ".index.json", ".pt", ".pth", ".ckpt", ".bin", ".pkl",
};

struct file {
    uint32_t entry;
    struct gd_path_facts facts;
    char *prefix; /* what remains of its path */
};

struct reading {
    const struct gd_listing *listing;
    struct gd_dump *dump;
    struct file *file;
    size_t count, room;
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    bool drop_prefix; /* the same for all checkpoints: says nothing */
    int64_t epoch;    /* steps per epoch */
    uint64_t texts;   /* values found that are not tensors */
    struct gd_err *err;
};

/* ---- candidate files ------------------------------------------------------------------------- */

static const char *find_extension(const char *name)
{
    size_t len = strlen(name);

    if (strcmp(name, "param_name_map.json") == 0) {
        return ".json";
    }
    if (strcmp(name, ".metadata") == 0) { /* PyTorch's distributed checkpoints */
        return ".metadata";
    }
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
        size_t size = strlen(extensions[i]);

        if (len > size && strcmp(name + len - size, extensions[i]) == 0) {
            return extensions[i];
        }
    }
    return NULL;
}

bool gd_is_tensor_file_name(const char *name)
{
    return find_extension(name) != NULL;
}

/* Whether an index next to the file lists it: "model.safetensors.index.json", or MindSpore's
 * map. */
static bool has_index(const struct gd_listing *listing, uint32_t directory, const char *name,
                      const char *extension)
{
    size_t base = strlen(name) - strlen(extension);
    char index[300];

    if (strcmp(extension, ".safetensors") == 0 &&
        gd_listing_child(listing, directory, "param_name_map.json") != GD_NO_ENTRY) {
        return true;
    }
    for (int part = 0; part < 2; part++) { /* strip "-of-00005", then "-00001" */
        while (base > 0 && name[base - 1] >= '0' && name[base - 1] <= '9') {
            base--;
        }
        base -= part == 0 && base >= 4 && memcmp(name + base - 4, "-of-", 4) == 0 ? 4 : 0;
    }
    if (base < 2 || name[base - 1] != '-') {
        return false;
    }
    snprintf(index, sizeof(index), "%.*s%s.index.json", (int)base - 1, name, extension);
    return gd_listing_child(listing, directory, index) != GD_NO_ENTRY;
}

/* Whether to examine an entry: in a directory its name decides, a single file is always
 * examined. */
static const char *wanted_name(const struct gd_listing *listing, uint32_t index)
{
    const struct gd_listing_entry *entry = &listing->entry[index];
    const char *extension;

    if (entry->is_directory) {
        return NULL;
    }
    extension = find_extension(entry->name);
    if (entry->parent == GD_NO_ENTRY) {
        return extension ? extension : "";
    }
    if (extension && has_index(listing, entry->parent, entry->name, extension)) {
        return NULL;
    }
    return extension;
}

/* ---- finding --------------------------------------------------------------------------------- */

struct counts { /* per entry of the listing */
    uint32_t files;
    bool taken;   /* a file that another format reads */
    bool foreign; /* belongs to another format, or has an entry of one below it */
    bool covered; /* inside another format's place */
};

static void count_all(const struct gd_listing *listing, const struct gd_findings *findings,
                      struct counts *counts)
{
    for (size_t i = 0; i < findings->count; i++) {
        struct counts *root = &counts[findings->item[i].root];

        root->taken = findings->item[i].format->beside;
        root->foreign = root->foreign || !root->taken;
        root->covered = true;
    }
    for (uint32_t i = 1; i < listing->count; i++) {
        counts[i].covered = counts[i].covered || counts[listing->entry[i].parent].covered;
    }
    for (uint32_t i = listing->count; i-- > 0;) {
        uint32_t parent = listing->entry[i].parent;

        counts[i].files += !counts[i].taken && wanted_name(listing, i) ? 1 : 0;
        if (parent != GD_NO_ENTRY) {
            counts[parent].files += counts[i].files;
            counts[parent].foreign = counts[parent].foreign || counts[i].foreign;
        }
    }
}

/* Finds the largest subtrees without entries of other formats. */
static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    struct counts *counts = calloc(listing->count, sizeof(*counts));
    int rc = GD_OK;

    if (!counts) {
        return gd_fail_nomem(err);
    }
    count_all(listing, findings, counts);
    for (uint32_t i = 0; rc == GD_OK && i < listing->count; i++) {
        uint32_t parent = listing->entry[i].parent;
        bool inside = parent != GD_NO_ENTRY && !counts[parent].foreign;
        struct gd_finding finding = {.format = format,
                                     .root = i,
                                     .files = counts[i].files,
                                     .rule =
                                         "file names end as those of tensors and checkpoints do"};

        if (counts[i].files == 0 || counts[i].foreign || counts[i].covered || inside) {
            continue;
        }
        if (parent == GD_NO_ENTRY && !listing->entry[i].is_directory) {
            finding.rule = "a single file";
        }
        rc = gd_findings_add(findings, &finding, err);
    }
    free(counts);
    return rc;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int add_file(struct reading *in, uint32_t index, const char *extension)
{
    const struct gd_listing_entry *entry = in->listing->entry;
    struct gd_buf prefix = GD_BUF_INIT(MAX_NAME);
    uint32_t way[GD_LISTING_DEPTH + 2];
    struct file file = {.entry = index};
    const char *base = strrchr(entry[index].name, '/');
    int depth = 0;

    base = base && entry[index].parent == GD_NO_ENTRY ? base + 1 : entry[index].name;
    if (!gd_grow_list(&in->file, in->count, &in->room, sizeof(*in->file))) {
        return gd_fail_nomem(in->err);
    }
    for (uint32_t at = entry[index].parent; at != GD_NO_ENTRY && entry[at].parent != GD_NO_ENTRY;
         at = entry[at].parent) {
        way[depth++] = at;
    }
    while (depth-- > 0) {
        gd_path_directory(entry[way[depth]].name, &file.facts, &prefix);
    }
    gd_path_file(base, strlen(base) - strlen(extension), extension, &file.facts, &prefix);
    file.prefix = strdup(gd_buf_text(&prefix));
    gd_buf_deinit(&prefix);
    if (!file.prefix) {
        return gd_fail_nomem(in->err);
    }
    in->file[in->count++] = file;
    return GD_OK;
}

static bool is_npy(const struct reading *in, const struct file *file)
{
    const char *extension = find_extension(in->listing->entry[file->entry].name);

    return extension && strcmp(extension, ".npy") == 0;
}

/* Needs all names: MindSpore counts steps within an epoch; the highest number seen is the epoch's
 * length. */
static void settle_epochs(struct reading *in)
{
    const char *prefix = NULL;

    in->drop_prefix = true;
    for (size_t i = 0; i < in->count; i++) {
        const struct file *file = &in->file[i];

        if (file->facts.has_epoch && file->facts.step > in->epoch) {
            in->epoch = file->facts.step;
        }
        if (!is_npy(in, file)) {
            in->drop_prefix = in->drop_prefix && (!prefix || strcmp(prefix, file->prefix) == 0);
            prefix = file->prefix;
        }
    }
    for (size_t i = 0; i < in->count; i++) {
        struct gd_path_facts *facts = &in->file[i].facts;

        int64_t step;

        if (facts->has_epoch && facts->epoch > 0 &&
            !__builtin_mul_overflow(facts->epoch - 1, in->epoch, &step) &&
            !__builtin_add_overflow(facts->step, step, &step)) {
            facts->step = step;
        }
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum gd_node_kind kind_of(enum gd_entry_kind kind)
{
    switch (kind) {
    case GD_ENTRY_PARAMETER: return GD_NODE_WEIGHT;
    case GD_ENTRY_BUFFER:
    case GD_ENTRY_OPTIMIZER: return GD_NODE_PARAMETER;
    default: return GD_NODE_AUTO;
    }
}

static const char *type_of(const struct gd_archive *archive, enum gd_entry_kind kind)
{
    const char *format = gd_archive_format(archive);

    if (kind == GD_ENTRY_TENSOR && (strcmp(format, "npy") == 0 || strcmp(format, "npz") == 0)) {
        return "Tensor";
    }
    return kind == GD_ENTRY_BUFFER ? "Buffer" : kind == GD_ENTRY_OPTIMIZER ? "State" : "Parameter";
}

struct node_facts {
    struct gd_attr attr[5];
    uint32_t count;
};

static void add_fact(struct node_facts *facts, const char *name, const char *value)
{
    if (value && value[0]) {
        facts->attr[facts->count++] = (struct gd_attr){name, value};
    }
}

static int add_node(struct gd_graph *graph, const struct gd_archive *archive,
                    const struct gd_archive_entry *entry, const struct gd_source_info *info,
                    const char *name, const char *wire, gd_node_id *ret, struct gd_err *err)
{
    struct gd_output output = {.dtype = GD_DT_NONE};
    struct node_facts facts = {.count = 0};
    struct gd_node_desc desc = {.name = name,
                                .wire_name = wire,
                                .kind = kind_of(entry->kind),
                                .type = type_of(archive, entry->kind),
                                .outputs = &output,
                                .output_count = 1,
                                .order = GD_NO_ORDER};

    if (info) {
        output.dtype = info->dtype;
        output.shape = info->shape;
        if (gd_stored_of_dtype(info->dtype) != info->stored) {
            add_fact(&facts, "stored", gd_stored_name(info->stored));
        }
        add_fact(&facts, "note", info->note);
    }
    add_fact(&facts, "same_as", entry->same_as);
    if (entry->trainable != GD_TRAINABLE_UNKNOWN) {
        add_fact(&facts, "trainable", entry->trainable == GD_TRAINABLE_YES ? "yes" : "no");
    }
    desc.attrs = facts.attr;
    desc.attr_count = facts.count;
    return gd_graph_add(graph, &desc, ret, err);
}

/* The node with exactly this name in the file. */
static gd_node_id find_wire(const struct gd_graph *graph, const char *wire)
{
    gd_node_id node = gd_graph_lookup_wire(graph, wire, strlen(wire));
    struct gd_node_info info;

    return node != GD_NO_NODE && gd_graph_node(graph, node, &info) &&
                   strcmp(info.wire_name, wire) == 0
               ? node
               : GD_NO_NODE;
}

/* "a.b" and "a/b" would become one node: the later one keeps its own spelling, or gets a number. */
static int free_name(const struct gd_graph *graph, const char *wire, struct gd_buf *name,
                     struct gd_err *err)
{
    gd_node_name_of(wire, name);
    for (int i = 1; !name->failed && i < 1000; i++) {
        if (gd_graph_lookup(graph, gd_buf_text(name), name->len) == GD_NO_NODE) {
            return GD_OK;
        }
        gd_buf_clear(name);
        if (i == 1) {
            gd_buf_puts(name, wire);
        } else {
            gd_buf_printf(name, "%s#%d", wire, i);
        }
    }
    return gd_fail(err, GD_ELIMIT, "too many tensors have names like %.100s", wire);
}

/* Finds or creates the node for a tensor's name, shared by all steps. */
static int node_of(struct gd_graph *graph, const struct gd_archive *archive,
                   const struct gd_archive_entry *entry, const struct gd_source_info *info,
                   const char *wire, gd_node_id *ret, struct gd_err *err)
{
    struct gd_buf name = GD_BUF_INIT(MAX_NAME);
    int rc = GD_OK;

    wire = wire[0] ? wire : "tensor";
    *ret = find_wire(graph, wire);
    if (*ret == GD_NO_NODE) {
        rc = free_name(graph, wire, &name, err);
        rc = rc != GD_OK
                 ? rc
                 : add_node(graph, archive, entry, info, gd_buf_text(&name), wire, ret, err);
    }
    gd_buf_deinit(&name);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct place { /* where the tensors of a file go */
    struct gd_catalog *catalog;
    const struct gd_archive *archive;
    const char *path;
    const char *prefix; /* "": none */
    int64_t step;
    double time;
};

static int add_value(struct reading *in, const struct place *place, gd_node_id node,
                     const struct gd_archive_entry *entry, const struct gd_source_info *info)
{
    struct gd_catalog_value value = {.node = node,
                                     .step = place->step,
                                     .source = entry->source,
                                     .dtype = info->dtype,
                                     .shape = &info->shape,
                                     .time = place->time,
                                     .note = info->note[0] ? info->note : NULL};

    return gd_catalog_add(place->catalog, &value, in->err);
}

/* Values in a checkpoint that are not tensors: a number becomes a scalar of its step, if there is
 * one; "'Adam'" or "(0.9, 0.999)" is shown as it is. */
static int add_text(struct reading *in, const struct place *place,
                    const struct gd_archive_entry *entry)
{
    char *end;
    double number = strtod(entry->text, &end);
    const char *name = *entry->name ? entry->name : "value";

    gd_catalog_keep(place->catalog);
    if (place->step != GD_EVERY_STEP && *entry->text && !*end && strlen(name) <= 60) {
        return gd_catalog_add_scalar(place->catalog, place->step, name, number, in->err);
    }
    return in->texts++ < MAX_TEXTS ? gd_catalog_add_fact(place->catalog, name, entry->text, in->err)
                                   : GD_OK;
}

static int add_entry(struct reading *in, const struct place *place,
                     const struct gd_archive_entry *entry)
{
    struct gd_graph *graph = gd_catalog_graph(place->catalog);
    struct gd_buf wire = GD_BUF_INIT(MAX_NAME);
    struct gd_source_info info;
    struct gd_err why = {.text = ""};
    gd_node_id node;
    int rc;

    if (entry->kind == GD_ENTRY_VALUE && entry->text) {
        return add_text(in, place, entry);
    }
    rc = entry->source ? gd_source_info(entry->source, &info, &why) : GD_ENODATA;
    if (rc == GD_ENOMEM || rc == GD_EINTR) {
        return gd_fail(in->err, rc, "%s", why.text);
    }
    /* An .npy file and an unnamed tensor are named by the path; other tensors get the path as
     * prefix if there are several files. */
    gd_buf_puts(&wire, place->prefix);
    if (entry->name[0] && (strcmp(gd_archive_format(place->archive), "npy") != 0 || !wire.len)) {
        gd_buf_printf(&wire, "%s%s", wire.len ? "/" : "", entry->name);
    }
    if (rc != GD_OK) {
        const char *problem = entry->problem ? entry->problem : why.text;

        rc = node_of(graph, place->archive, entry, NULL, gd_buf_text(&wire), &node, in->err);
        rc = rc != GD_OK ? rc : gd_catalog_not_dumped(place->catalog, node, problem, in->err);
    } else {
        rc = node_of(graph, place->archive, entry, &info, gd_buf_text(&wire), &node, in->err);
        rc = rc != GD_OK ? rc : add_value(in, place, node, entry, &info);
    }
    gd_buf_deinit(&wire);
    return rc;
}

static int tell_about(struct reading *in, const struct place *place)
{
    const char *format = gd_archive_format(place->archive);
    struct gd_peer *peer = gd_catalog_peer(place->catalog);
    int rc = GD_OK;

    if (!peer->framework[0] && strncmp(format, "torch", 5) == 0) {
        snprintf(peer->framework, sizeof(peer->framework), "PyTorch");
    } else if (!peer->framework[0] && strcmp(format, "ckpt") == 0) {
        snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
    }
    for (size_t i = 0; rc == GD_OK && i < gd_archive_note_count(place->archive); i++) {
        rc = gd_catalog_add_fact(place->catalog, place->path, gd_archive_note(place->archive, i),
                                 in->err);
    }
    return rc;
}

static int read_file(struct reading *in, const struct file *file)
{
    const struct gd_listing_entry *entry = &in->listing->entry[file->entry];
    struct place place = {.step = file->facts.has_step ? file->facts.step : GD_EVERY_STEP,
                          .time = entry->modified,
                          .prefix = file->prefix};
    const struct gd_open_options *asked = gd_dump_options(in->dump);
    struct gd_archive_options options = {
        .key = asked->key, .dtype = asked->dtype, .partial = asked->partial};
    struct gd_archive *archive;
    struct gd_err why;
    char path[4096];
    int rc = gd_listing_path(in->listing, file->entry, path, sizeof(path), in->err);

    rc = rc != GD_OK ? rc : gd_archive_open(path, &options, &archive, &why);
    if (rc != GD_OK) {
        size_t len = strlen(path);
        bool repeats = strncmp(why.text, path, len) == 0 && strncmp(why.text + len, ": ", 2) == 0;

        /* the only file is the one the user asked for */
        return rc == GD_ENOMEM || in->count == 1
                   ? gd_fail(in->err, rc, "%s", why.text)
                   : gd_dump_left_out(in->dump, path, why.text + (repeats ? len + 2 : 0), in->err);
    }
    place.archive = archive;
    place.path = path;
    if (in->drop_prefix && !is_npy(in, file)) {
        place.prefix = "";
    }
    rc = gd_dump_catalog(in->dump, file->facts.rank, in->listing->entry[0].name, &place.catalog,
                         in->err);
    if (rc == GD_OK && file->facts.has_step) {
        rc = gd_catalog_add_step(place.catalog, place.step, in->err);
    }
    rc = rc != GD_OK ? rc : tell_about(in, &place);
    for (size_t i = 0; rc == GD_OK && i < gd_archive_count(archive); i++) {
        rc = add_entry(in, &place, gd_archive_entry(archive, i));
    }
    gd_archive_close(archive);
    return rc;
}

static int read_files(struct reading *in, uint32_t root)
{
    int rc = GD_OK;

    for (uint32_t i = root; rc == GD_OK && i != GD_NO_ENTRY;
         i = gd_listing_next(in->listing, i, root)) {
        const char *extension = wanted_name(in->listing, i);

        if (extension && !gd_snapshot_is_entry(in->listing, i)) {
            rc = add_file(in, i, extension);
        }
    }
    settle_epochs(in);
    for (size_t i = 0; rc == GD_OK && i < in->count; i++) {
        if (in->go_on && !in->go_on(in->ctx, i)) {
            return gd_fail(in->err, GD_EINTR, "interrupted after %zu of %zu tensor files", i,
                           in->count);
        }
        rc = read_file(in, &in->file[i]);
    }
    return rc;
}

static int read_place(const struct gd_listing *listing, const struct gd_finding *finding,
                      struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                      struct gd_err *err)
{
    struct reading in = {.listing = listing, .dump = dump, .go_on = go_on, .ctx = ctx, .err = err};
    int rc = read_files(&in, finding->root);

    for (size_t i = 0; i < in.count; i++) {
        free(in.file[i].prefix);
    }
    free(in.file);
    return rc;
}

const struct gd_dump_format gd_tensor_files_format = {
    .name = "tensor-files",
    .what = "tensor files and checkpoints (.npy, .npz, safetensors, PyTorch, MindSpore)",
    .find = find_places,
    .read = read_place,
};
