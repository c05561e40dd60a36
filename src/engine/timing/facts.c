// SPDX-License-Identifier: GPL-3.0-or-later
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/timing/facts.h"

#define MOST 1e15 /* of a count */

static void read_text(const cJSON *from, const char *key, char *ret, size_t size)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (cJSON_IsString(item)) {
        snprintf(ret, size, "%s", item->valuestring);
    }
}

/* Keeps *ret where there is no such number, or an impossible one. */
static void read_real(const cJSON *from, const char *key, double *ret)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (cJSON_IsNumber(item) && isfinite(item->valuedouble) && item->valuedouble >= 0) {
        *ret = item->valuedouble;
    }
}

static void read_count(const cJSON *from, const char *key, int64_t *ret)
{
    double value = -1;
    read_real(from, key, &value);
    if (value >= 0 && value < MOST) {
        *ret = (int64_t)value;
    }
}

static void read_size(const cJSON *from, const char *key, uint64_t *ret)
{
    int64_t value = -1;
    read_count(from, key, &value);
    if (value >= 0) {
        *ret = (uint64_t)value;
    }
}

static void read_flag(const cJSON *from, const char *key, int *ret)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (cJSON_IsBool(item)) {
        *ret = cJSON_IsTrue(item);
    }
}

static void read_loader(const cJSON *from, struct gd_time_loader *loader)
{
    read_text(from, "kind", loader->kind, sizeof(loader->kind));
    read_text(from, "place", loader->place, sizeof(loader->place));
    read_text(from, "operations", loader->operations, sizeof(loader->operations));
    read_count(from, "workers", &loader->workers);
    read_count(from, "prefetch", &loader->prefetch);
    read_count(from, "batch_size", &loader->batch_size);
    read_flag(from, "pinned", &loader->pinned);
    read_flag(from, "persistent", &loader->persistent);
    read_flag(from, "stream", &loader->stream);
    read_size(from, "requests", &loader->requests);
    loader->knows_queue = cJSON_HasObjectItem(from, "empty");
    read_size(from, "empty", &loader->empty);
}

static void read_waits(const cJSON *list, struct gd_time_facts *facts)
{
    const cJSON *item;
    facts->wait_count = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (facts->wait_count == GD_TIME_WAITS) {
            return;
        }
        struct gd_time_wait wait = {.steps = 0};
        read_text(item, "function", wait.function, sizeof(wait.function));
        read_text(item, "place", wait.place, sizeof(wait.place));
        read_size(item, "calls", &wait.calls);
        read_real(item, "seconds", &wait.seconds);
        read_count(item, "steps", &wait.steps);
        if (wait.calls > 0 && wait.steps > 0) {
            facts->wait[facts->wait_count++] = wait;
        }
    }
}

static void read_compilations(const cJSON *list, struct gd_time_facts *facts)
{
    const cJSON *item;
    facts->compilation_count = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (facts->compilation_count == GD_TIME_COMPILES) {
            return;
        }
        struct gd_time_compile found = {.seconds = -1};
        read_text(item, "name", found.name, sizeof(found.name));
        read_text(item, "place", found.place, sizeof(found.place));
        read_count(item, "step", &found.step);
        read_real(item, "seconds", &found.seconds);
        if (found.name[0] && found.step > 0 && found.seconds >= 0) {
            facts->compilation[facts->compilation_count++] = found;
        }
    }
}

static void read_gradients(const cJSON *list, struct gd_time_facts *facts)
{
    int size = cJSON_GetArraySize(list), count = 0;
    const cJSON *item;
    struct gd_time_gradient *found =
        size > 0 && size <= GD_TIME_GRADIENTS ? calloc((size_t)size, sizeof(*found)) : NULL;
    if (!found) {
        return;
    }
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *bytes = cJSON_GetArrayItem(item, 0), *ready = cJSON_GetArrayItem(item, 1);
        double last = count > 0 ? found[count - 1].ready : 0;
        if (!cJSON_IsNumber(bytes) || !cJSON_IsNumber(ready) ||
            !(bytes->valuedouble >= 0 && bytes->valuedouble < MOST) ||
            !(ready->valuedouble >= last && ready->valuedouble < MOST)) {
            free(found);
            return;
        }
        found[count++] =
            (struct gd_time_gradient){(uint64_t)bytes->valuedouble, ready->valuedouble};
    }
    free(facts->gradient);
    facts->gradient = found;
    facts->gradient_count = count;
}

static void read_reducer(const cJSON *from, struct gd_time_facts *facts)
{
    const cJSON *item, *buckets = cJSON_GetObjectItemCaseSensitive(from, "buckets");
    read_text(from, "kind", facts->reducer, sizeof(facts->reducer));
    read_count(from, "world_size", &facts->world_size);
    read_real(from, "bucket_limit", &facts->bucket_limit);
    read_real(from, "communication", &facts->communication);
    read_real(from, "hidden", &facts->hidden);
    if (cJSON_IsArray(buckets)) {
        facts->bucket_count = 0;
    }
    cJSON_ArrayForEach(item, buckets)
    {
        if (facts->bucket_count < GD_TIME_BUCKETS && cJSON_IsNumber(item) &&
            item->valuedouble >= 0 && item->valuedouble < MOST) {
            facts->bucket[facts->bucket_count++] = (uint64_t)item->valuedouble;
        }
    }
    read_gradients(cJSON_GetObjectItemCaseSensitive(from, "gradients"), facts);
}

static void read_collectives(const cJSON *list, struct gd_time_facts *facts)
{
    const cJSON *item;
    facts->collective_count = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (facts->collective_count == GD_TIME_CALLS) {
            return;
        }
        struct gd_time_collective found = {.steps = 0};
        read_text(item, "kind", found.kind, sizeof(found.kind));
        read_text(item, "place", found.place, sizeof(found.place));
        read_count(item, "steps", &found.steps);
        read_size(item, "calls", &found.calls);
        read_size(item, "bytes", &found.bytes);
        read_real(item, "seconds", &found.seconds);
        read_real(item, "elapsed", &found.elapsed);
        read_size(item, "begun", &found.begun);
        read_real(item, "ahead", &found.ahead);
        read_flag(item, "device", &found.on_device);
        if (found.kind[0] && found.steps > 0 && found.calls > 0 && found.elapsed > 0) {
            facts->collective[facts->collective_count++] = found;
        }
    }
}

static void read_step(const cJSON *from, struct gd_time_report *report)
{
    int64_t step = 0;
    double tail = -1, cost = -1;
    read_count(from, "step", &step);
    read_real(from, "tail", &tail);
    read_real(from, "cost", &cost);
    gd_time_note_costs(report, step, tail, cost);
}

static void read_members(struct gd_time_report *report, const cJSON *root)
{
    struct gd_time_facts *facts = &report->facts;
    read_text(root, "framework", facts->framework, sizeof(facts->framework));
    read_text(root, "device", facts->device, sizeof(facts->device));
    read_text(root, "mode", facts->mode, sizeof(facts->mode));
    read_text(root, "sink", facts->sink, sizeof(facts->sink));
    read_text(root, "note", facts->note, sizeof(facts->note));
    read_real(root, "compile", &facts->compile);
    read_count(root, "compiles", &facts->compiles);
    read_count(root, "compiles_late", &facts->compiles_late);
    read_text(root, "compiled", facts->compiled, sizeof(facts->compiled));
    read_text(root, "compile_place", facts->compile_place, sizeof(facts->compile_place));
    read_text(root, "compile_cause", facts->compile_cause, sizeof(facts->compile_cause));
    read_real(root, "compiled_seconds", &facts->compiled_seconds);
    read_count(root, "compile_count", &facts->compilations);
    read_count(root, "processors", &facts->processors);
    read_step(root, report);
    const cJSON *loader = cJSON_GetObjectItemCaseSensitive(root, "loader");
    const cJSON *waits = cJSON_GetObjectItemCaseSensitive(root, "waits");
    const cJSON *reducer = cJSON_GetObjectItemCaseSensitive(root, "reducer");
    const cJSON *compilations = cJSON_GetObjectItemCaseSensitive(root, "compilations");
    if (cJSON_IsObject(loader)) {
        read_loader(loader, &facts->loader);
    }
    if (cJSON_IsArray(waits)) {
        read_waits(waits, facts);
    }
    const cJSON *collectives = cJSON_GetObjectItemCaseSensitive(root, "collectives");
    if (cJSON_IsArray(collectives)) {
        read_collectives(collectives, facts);
    }
    if (cJSON_IsArray(compilations)) {
        read_compilations(compilations, facts);
    }
    if (cJSON_IsObject(reducer)) {
        read_reducer(reducer, facts);
    }
}

void gd_time_read_facts(struct gd_time_report *report, const char *json)
{
    cJSON *root = cJSON_Parse(json);
    if (cJSON_IsObject(root)) {
        read_members(report, root);
    }
    cJSON_Delete(root);
}
