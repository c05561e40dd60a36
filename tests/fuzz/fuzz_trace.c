// SPDX-License-Identifier: GPL-3.0-or-later
/* Traces: what is read of one can be analysed, its operators do not take longer than their calls,
 * its catalog is consistent, and it can be exported: alone, and with one that was taken at another
 * time. */
#include "dump/trace/trace_nest.h"
#include "dump/trace/trace_writer.h"
#include "fuzz_disk.h"

static void check_spans(const struct trace_run *run)
{
    for (size_t i = 0; i < run->spans.count; i++) {
        const struct trace_span *span = &run->spans.span[i];

        FUZZ_CHECK(span->lane < run->spans.lanes && span->name < run->spans.texts);
        FUZZ_CHECK(i == 0 || run->spans.span[i - 1].start <= span->start);
        FUZZ_CHECK(span->op == TRACE_NONE || span->op < run->ops);
        FUZZ_CHECK(span->duration >= 0 && span->self >= 0);
    }
    for (size_t i = 0; i < run->nodes; i++) {
        FUZZ_CHECK(run->node[i].self <= run->node[i].total);
    }
}

static void export_both(struct gd_catalog *catalog)
{
    static struct gd_session session, other;
    struct gd_timeline_span span = {.start = 7, .duration = 5, .step = 1, .kind = GD_ON_STEP};
    struct trace_written written;
    struct gd_session *const both[] = {&session, &other};
    FILE *out = fopen("/dev/null", "w");

    session.graph = other.graph = gd_catalog_graph(catalog);
    session.timeline = gd_catalog_give_timeline(catalog);
    other.timeline = gd_timeline_create();
    FUZZ_CHECK(out && other.timeline);
    gd_timeline_add(other.timeline, &span);
    for (size_t count = 1; session.timeline && count <= 2; count++) {
        FUZZ_CHECK(trace_write(out, false, both, count, NULL, NULL, &written, NULL) == GD_OK);
    }
    fclose(out);
    gd_timeline_destroy(session.timeline);
    gd_timeline_destroy(other.timeline);
}

static void analyse_run(struct trace_run *run)
{
    struct gd_err err = {.text = ""};
    struct gd_dump *dump = NULL;
    struct gd_catalog *catalog;

    if (trace_run_analyse(run, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0]);
        return;
    }
    check_spans(run);
    FUZZ_CHECK(gd_dump_create((uint64_t)64 << 20, &dump, NULL) == GD_OK);
    FUZZ_CHECK(gd_dump_catalog(dump, 0, "fuzz", &catalog, NULL) == GD_OK);
    FUZZ_CHECK(trace_fill(run, catalog, &err) == GD_OK || err.text[0]);
    FUZZ_CHECK(gd_dump_finish(dump, &err) == GD_OK || err.text[0]);
    if (gd_dump_count(dump) > 0) { /* not left out, because it is empty */
        export_both(gd_dump_at(dump, 0));
    }
    gd_dump_destroy(dump);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_run run = {.nodes = 0};
    struct gd_err err = {.text = ""};
    struct gd_disk *disk = fuzz_disk(data, size);
    uint64_t cut = 0;

    if (trace_spans_read(&run.spans, disk, NULL, NULL, &cut, &err) == GD_OK) {
        FUZZ_CHECK(cut == 0 || cut == size);
        analyse_run(&run);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    trace_run_deinit(&run);
    gd_disk_unref(disk);
    return 0;
}
