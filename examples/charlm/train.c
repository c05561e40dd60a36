// SPDX-License-Identifier: MIT
#include "train.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NORM     1.0f
#define WEIGHT_DECAY 0.01f
#define WARM_UP      10 /* steps until the full learning rate */

int train_create(const struct train_options *options, struct train **ret, char *why,
                 size_t why_size)
{
    struct train *t = calloc(1, sizeof(*t));
    if (!t) {
        snprintf(why, why_size, "out of memory");
        return -1;
    }
    t->options = *options;
    struct config *config = &t->options.config;
    if (data_load(options->data, &t->data, why, why_size) != 0) {
        train_destroy(t);
        return -1;
    }
    if (t->data.count <= config->context + 1) {
        snprintf(why, why_size, "the text has %zu characters: --context %zu needs more",
                 t->data.count, config->context);
        train_destroy(t);
        return -1;
    }
    config->vocabulary = t->data.vocabulary_size;
    t->pool = pool_create(options->threads);
    if (!t->pool) {
        snprintf(why, why_size, "cannot start %d threads: use a smaller --threads",
                 options->threads);
        train_destroy(t);
        return -1;
    }
    t->graph = graph_create(t->pool);
    t->model = model_create(config, t->graph);
    t->optim = optim_create(t->model, MAX_NORM, WEIGHT_DECAY);
    t->rng.state = config->seed ^ 0x5851f42d4c957f2du;
    *ret = t;
    return 0;
}

void train_destroy(struct train *t)
{
    if (t) {
        graph_destroy(t->graph);
        pool_destroy(t->pool);
        data_deinit(&t->data);
        free(t);
    }
}

void train_forward(struct train *t)
{
    struct model *m = t->model;
    const struct config *config = &t->options.config;
    t->step++;
    data_batch(&t->data, &t->rng, m->input->ids, m->target->ids, config->batch, config->context);
    fault_batch(config->fault, t->step, m->input->ids, m->input->count, config->vocabulary);
    fault_batch(config->fault, t->step, m->target->ids, m->target->count, config->vocabulary);
    model_forward(m, t->step);
    t->loss = model_loss(m);
}

void train_backward(struct train *t)
{
    model_backward(t->model);
}

static float warmth_at(int64_t step)
{
    return step < WARM_UP ? (float)step / WARM_UP : 1.0f;
}

double train_rate(const struct train *t)
{
    return (double)(t->options.lr * warmth_at(t->step + 1));
}

void train_set_rate(struct train *t, double rate)
{
    t->options.lr = (float)rate / warmth_at(t->step + 1);
}

void train_update(struct train *t)
{
    optim_step(t->optim, t->step, t->options.lr * warmth_at(t->step));
    t->lr = t->optim->lr;
    t->grad_norm = t->optim->norm->f[0];
}

static int64_t steps_of_epoch(const struct train *t)
{
    size_t batch = t->model->input->count;
    return (int64_t)((t->data.count + batch - 1) / batch);
}

int64_t train_epoch(const struct train *t, int64_t step)
{
    return (step - 1) / steps_of_epoch(t) + 1;
}

int64_t train_batch(const struct train *t, int64_t step)
{
    return (step - 1) % steps_of_epoch(t) + 1;
}

static int write_parameters(const struct train *t, FILE *file)
{
    const struct config *c = &t->options.config;
    fprintf(file, "charlm 1\nstep %lld layers %zu heads %zu width %zu context %zu vocabulary %zu\n",
            (long long)t->step, c->layers, c->heads, c->width, c->context, c->vocabulary);
    fwrite(t->data.vocabulary, 1, c->vocabulary, file);
    for (size_t i = 0; i < t->model->param_count; i++) {
        const struct param *p = &t->model->params[i];
        fprintf(file, "\n%s %zu\n", p->name, p->value->count);
        fwrite(p->value->f, sizeof(*p->value->f), p->value->count, file);
    }
    return ferror(file) || fflush(file) != 0 || fsync(fileno(file)) != 0 ? -1 : 0;
}

int train_save(const struct train *t, const char *dir, char *why, size_t why_size)
{
    char path[1024];
    char temporary[1040];
    snprintf(path, sizeof(path), "%s/charlm-%lld.bin", dir, (long long)t->step);
    snprintf(temporary, sizeof(temporary), "%s.part", path);
    FILE *file = fopen(temporary, "wb");
    int rc = file ? write_parameters(t, file) : -1;
    int saved = errno;
    if (file && fclose(file) != 0 && rc == 0) {
        rc = -1;
        saved = errno;
    }
    if (rc == 0 && rename(temporary, path) != 0) {
        rc = -1;
        saved = errno;
    }
    if (rc != 0) {
        unlink(temporary);
        snprintf(why, why_size, "cannot write %s: %s", path, strerror(saved));
        return -1;
    }
    snprintf(why, why_size, "%s", path);
    return 0;
}
