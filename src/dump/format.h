// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a format implements. There are two kinds, one table each:
 *
 * - A dump format (gd_dump_format) is a layout of files below a directory, such as a tool's dump.
 *   It finds its places in a listing and fills catalogs (catalog.h). Table: formats.c.
 * - A tensor file format (gd_archive_format) is one file with named tensors, such as .npz. It adds
 *   entries to an archive (files/archive.h). Table: files/archive_formats.c. The dump format
 *   gd_tensor_files_format turns any such files into catalogs.
 *
 * To add a format:
 *
 * 1. Write it in a file of the folder of its origin (cann/, mindspore/, msprobe/, torch/, memory/,
 * files/), and list the file in the meson.build there. Small models: atb_table.c for a dump, npz.c
 * for a file whose values are read in place, atb.c for one whose header is parsed. Never trust the
 *    input: read files through io/ (disk.h, csv.h, json.h, zip.h), which limits and checks sizes,
 *    and give values as sources (io/source.h), which read on demand.
 * 2. Declare it below and add it to the table of its kind. Order matters: the first file format
 * that claims a file gets it; a dump format that leaves files to another comes after that one.
 * 3. A file format: add its ending to files/tensor_files.c, or it is found only when it is opened
 *    by name, not in a folder.
 * 4. Describe it in docs/formats.md.
 * 5. Test it: a writer or files of the original tool in tests/dump, and a fuzz target or a corpus
 *    in tests/fuzz.
 *
 * For a dump format, --format, `info formats` and their completion follow from the table.
 */
#ifndef GD_DUMP_FORMAT_H
#define GD_DUMP_FORMAT_H

#include "dump/catalog.h"
#include "dump/files/archive.h"

/* ---- dump formats ---------------------------------------------------------------------------- */

struct gd_finding {
    const struct gd_dump_format *format;
    uint32_t root;    /* listing entry it lies under */
    const char *rule; /* how it was recognised, one line; copied */
    uint32_t files;   /* files that belong to it, as far as known */
};

struct gd_findings { /* in the order of gd_dump_formats, then of the listing */
    struct gd_finding *item;
    size_t count, cap;
};

/* GD_ELIMIT: too many. */
int gd_findings_add(struct gd_findings *findings, const struct gd_finding *finding,
                    struct gd_err *err);
/* The same, but adds to the files of a finding of this format with the same root. */
int gd_findings_add_root(struct gd_findings *findings, const struct gd_finding *finding,
                         struct gd_err *err);
/* Adds each file of the listing that `wants` accepts, as a place of its own. */
int gd_findings_add_files(struct gd_findings *findings, const struct gd_dump_format *format,
                          const struct gd_listing *listing,
                          bool (*wants)(const struct gd_listing *listing, uint32_t entry),
                          const char *rule, struct gd_err *err);
/* The same for directories. */
int gd_findings_add_directories(struct gd_findings *findings, const struct gd_dump_format *format,
                                const struct gd_listing *listing,
                                bool (*wants)(const struct gd_listing *listing, uint32_t entry),
                                const char *rule, struct gd_err *err);
void gd_findings_remove(struct gd_findings *findings, size_t index);
void gd_findings_clear(struct gd_findings *findings);

struct gd_dump_format {
    const char *name; /* "mindspore-sync" */
    const char *what; /* "MindSpore synchronous dump (1.3 and later)" */
    bool beside;      /* its findings are single files, whose neighbours may be of another format */
    const void *detail; /* private to the format's functions; lets several formats share them */
    /* Searches the listing and reports every place where the format is (gd_findings_add). */
    int (*find)(const struct gd_dump_format *format, const struct gd_listing *listing,
                struct gd_findings *findings, struct gd_err *err);
    /* Fills catalogs from the finding's root. A broken file is left out with a reason
     * (gd_dump_leave_out); an error ends the reading of this finding. go_on: see gd_listing_read.
     */
    int (*read)(const struct gd_listing *listing, const struct gd_finding *finding,
                struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                struct gd_err *err);
};

extern const struct gd_dump_format gd_ms_sync_format, gd_ms_bin_format, gd_cann_format,
    gd_tf_ascend_format, gd_overflow_format, gd_ptdbg_format, gd_msprobe_format, gd_api_info_format,
    gd_grad_probe_format, gd_monitor_format, gd_atb_table_format, gd_results_format, gd_rdr_format,
    gd_ms_ir_format, gd_glog_format, gd_loss_log_format, gd_memory_snapshot_format,
    gd_memory_timeline_format, gd_profile_format, gd_rank_profile_format, gd_trace_format,
    gd_tensor_files_format;

/* Whether a directory is read as gd_profile_format, with the trace in it; as
 * gd_rank_profile_format. */
bool gd_is_profile_place(const struct gd_listing *listing, uint32_t entry);
bool gd_is_rank_profile_place(const struct gd_listing *listing, uint32_t entry);

/* Whether a file is read as gd_memory_timeline_format, not as a trace. */
bool gd_is_memory_timeline(const struct gd_listing *listing, uint32_t entry);

/* In detection order; ends with NULL. */
extern const struct gd_dump_format *const gd_dump_formats[];
/* NULL: no such format. */
const struct gd_dump_format *gd_dump_format_find(const char *name);

/* ---- tensor file formats --------------------------------------------------------------------- */

#define GD_ARCHIVE_START 4096 /* bytes */

struct gd_archive_format {
    const char *name; /* "npz" */
    const char *what; /* "NumPy archive (.npz)": for `info formats` */
    /* Whether the file is of this format; start: its first size bytes, at most GD_ARCHIVE_START. */
    bool (*is)(const unsigned char *start, size_t size, struct gd_disk *disk);
    /* Adds the file's entries (gd_archive_add). GD_EPROTO: broken: names file, byte and reason. */
    int (*read)(struct gd_archive *archive, struct gd_disk *disk,
                const struct gd_archive_options *options, struct gd_err *err);
};

extern const struct gd_archive_format gd_npy_format, gd_atb_format, gd_npz_format,
    gd_safetensors_format, gd_sharded_format, gd_torch_format, gd_torch_legacy_format,
    gd_torch_tar_format, gd_torch_dcp_format, gd_pickle_format, gd_ms_ckpt_format;

#endif
