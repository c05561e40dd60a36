// SPDX-License-Identifier: GPL-3.0-or-later
/* The value in the tensor pane: statistics of the whole, the view of a slice, and its pages. */
#include "tui/panes/pane_tensor_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REQUESTS 8 /* pages requested at the same time */

/* ---- requests: answers may come after the pane has gone ---- */

enum request_kind { REQUEST_FIGURES, REQUEST_PAGE, REQUEST_PART };
struct tensor_request {
    struct tensor_pane *pane; /* NULL: nobody waits any more */
    struct tensor_request *next;
    enum request_kind kind;
    enum gd_iter iter;
    uint64_t serial;
    int64_t at[GD_MAX_RANK]; /* of a page */
};

static struct tensor_request *add_request(struct tensor_pane *pane, enum request_kind kind,
                                          enum gd_iter iter)
{
    struct tensor_request *request = calloc(1, sizeof(*request));

    if (request) {
        *request = (struct tensor_request){pane, pane->requests, kind, iter, pane->serial, {0}};
        pane->requests = request;
        pane->page_requests += kind == REQUEST_PAGE ? 1 : 0;
    }
    return request;
}

static void end_request(struct tensor_request *request)
{
    struct tensor_pane *pane = request->pane;

    if (pane) {
        struct tensor_request **at = &pane->requests;
        while (*at != request) {
            at = &(*at)->next;
        }
        *at = request->next;
        pane->page_requests -= request->kind == REQUEST_PAGE ? 1 : 0;
    }
    free(request);
}

void tensor_forget(struct tensor_pane *pane)
{
    while (pane->requests) {
        struct tensor_request *request = pane->requests;
        pane->requests = request->next;
        request->pane = NULL;
    }
    pane->page_requests = 0;
}

bool tensor_can_ask(const struct tensor_pane *pane)
{
    const struct gd_session *session = pane->session;

    return session && session == pane->tui->debugger->current && !pane->tui->executing &&
           tui_can_ask(session);
}

enum gd_iter tensor_iter(const struct tensor_pane *pane)
{
    return pane->which == TENSOR_PREVIOUS ? GD_PREVIOUS : GD_CURRENT;
}

const struct tensor_figures *tensor_shown(const struct tensor_pane *pane)
{
    return &pane->figures[tensor_iter(pane)];
}

bool tensor_needs(const struct tensor_pane *pane, enum gd_iter iter)
{
    return pane->which == TENSOR_DIFFERENCE || iter == tensor_iter(pane);
}

/* ---- the view ---- */

/* Writes out every axis: ranges with their actual start, the ellipsis as ranges. */
static void expand_slice(const struct gd_slice *slice, const struct gd_shape *shape,
                         struct gd_slice *ret)
{
    const struct gd_slice_item all = {.kind = GD_SLICE_RANGE, .step = 1};
    int named = 0;

    for (int i = 0; i < slice->count; i++) {
        enum gd_slice_kind kind = slice->item[i].kind;
        named += kind == GD_SLICE_INDEX || kind == GD_SLICE_RANGE ? 1 : 0;
    }
    gd_slice_clear(ret);
    int rest = shape->rank - named;
    for (int i = 0; i < slice->count; i++) {
        if (slice->item[i].kind != GD_SLICE_ELLIPSIS) {
            ret->item[ret->count++] = slice->item[i];
            continue;
        }
        for (; rest > 0; rest--) {
            ret->item[ret->count++] = all;
        }
    }
    for (; rest > 0; rest--) {
        ret->item[ret->count++] = all;
    }
}

/* Where each item of the base begins on its axis: the offset when only that axis has a stride. */
static void find_starts(struct gd_slice *base, const struct gd_shape *shape)
{
    struct gd_slice whole = *base;
    int axis = 0;

    for (int i = 0; i < base->count; i++) {
        struct gd_slice_item *item = &base->item[i];
        int64_t stride[GD_MAX_RANK] = {0};
        struct gd_slice_view view;
        if (item->kind == GD_SLICE_NEWAXIS) {
            continue;
        }
        stride[axis++] = 1;
        if (gd_slice_apply(&whole, shape, stride, &view, NULL) == GD_OK) {
            item->start = view.offset;
            item->has_start = true;
        }
    }
}

static int take_view(struct tensor_pane *pane, const struct gd_shape *shape, struct gd_err *err)
{
    int64_t stride[GD_MAX_RANK] = {0};
    struct gd_slice_view view;
    int rc = gd_slice_apply(&pane->slice, shape, stride, &view, err);

    if (rc != GD_OK) {
        return rc;
    }
    expand_slice(&pane->slice, shape, &pane->base);
    find_starts(&pane->base, shape);
    if (!gd_shape_equal(&view.shape, &pane->shape) || pane->axis_x < 0) {
        memset(pane->at, 0, sizeof(pane->at));
        pane->top = pane->left = 0;
        pane->axis_y = view.shape.rank >= 2 ? view.shape.rank - 2 : -1;
        pane->axis_x = view.shape.rank >= 1 ? view.shape.rank - 1 : 0;
    }
    pane->shape = view.shape;
    pane->has_view = true;
    return GD_OK;
}

int64_t tensor_count(const struct tensor_pane *pane)
{
    int64_t count = pane->has_view ? gd_shape_count(&pane->shape) : 0;
    return count > 0 ? count : 0;
}

void tensor_index_of(const struct tensor_pane *pane, int64_t flat, int64_t *index)
{
    for (int i = pane->shape.rank - 1; i >= 0; i--) {
        int64_t dim = pane->shape.dim[i] > 0 ? pane->shape.dim[i] : 1;
        index[i] = flat % dim;
        flat /= dim;
    }
}

int64_t tensor_flat_of(const struct tensor_pane *pane, const int64_t *index)
{
    int64_t flat = 0;

    for (int i = 0; i < pane->shape.rank; i++) {
        flat = flat * pane->shape.dim[i] + index[i];
    }
    return flat;
}

void tensor_compose(const struct tensor_pane *pane, const int64_t *lo, const int64_t *n,
                    struct gd_slice *ret)
{
    int axis = 0;

    gd_slice_clear(ret);
    for (int i = 0; i < pane->base.count; i++) {
        struct gd_slice_item item = pane->base.item[i];
        if (item.kind == GD_SLICE_INDEX) {
            ret->item[ret->count++] = item;
            continue;
        }
        int64_t first = lo[axis], count = n[axis];
        axis++;
        if (item.kind == GD_SLICE_NEWAXIS) {
            if (count >= 0) {
                ret->item[ret->count++] = item;
            }
            continue;
        }
        if (count == pane->shape.dim[axis - 1] && item.start == 0 && item.step == 1 &&
            !item.has_stop) { /* the whole axis stays written as such */
            item.has_start = false;
            ret->item[ret->count++] = item;
            continue;
        }
        item.start += first * item.step;
        item.has_start = true;
        if (count < 0) {
            item = (struct gd_slice_item){.kind = GD_SLICE_INDEX, .start = item.start, .step = 1};
        } else {
            item.stop = item.start + count * item.step;
            /* backwards through the first element there is no end to write */
            item.has_stop = item.stop >= 0;
            item.has_step = item.step != 1;
        }
        ret->item[ret->count++] = item;
    }
}

/* ---- following ---- */

static void drop_page(struct tensor_page *page)
{
    gd_tensor_unref(page->tensor);
    memset(page, 0, sizeof(*page));
}

void tensor_drop_pages(struct tensor_pane *pane)
{
    for (int i = 0; i < TENSOR_PAGES; i++) {
        drop_page(&pane->page[i]);
    }
    pane->serial++;
    tensor_search_stop(pane, "");
}

void tensor_follow(struct tensor_pane *pane)
{
    struct gd_session *session = pane->tui->debugger->current;
    gd_node_id node = !session     ? GD_NO_NODE
                      : pane->name ? gd_graph_lookup(session->graph, pane->name, strlen(pane->name))
                                   : session->current;
    bool same = session == pane->session && node == pane->node;

    if (same && (!session || (session->stop.sequence == pane->stop_sequence &&
                              session->graph_generation == pane->generation))) {
        return;
    }
    if (!same) {
        pane->cell = 0;
        pane->axis_x = -1; /* reset axes and cursor */
        pane->message[0] = '\0';
        if (!pane->name) { /* the slice belonged to another node */
            pane->slot = 0;
            gd_slice_clear(&pane->slice);
        }
    }
    pane->session = session;
    pane->node = node;
    pane->stop_sequence = session ? session->stop.sequence : 0;
    pane->generation = session ? session->graph_generation : 0;
    pane->has_view = false;
    pane->why[0] = '\0';
    memset(pane->figures, 0, sizeof(pane->figures));
    tensor_drop_pages(pane);
}

/* ---- statistics of the whole ---- */

static void figures_have_come(struct tensor_pane *pane, enum gd_iter iter)
{
    struct tensor_figures *figures = &pane->figures[iter];
    struct gd_err err = {.code = GD_OK};

    if (figures->state == TENSOR_HERE && !pane->has_view &&
        take_view(pane, &figures->shape, &err) != GD_OK) {
        snprintf(pane->why, sizeof(pane->why), "%.200s", err.text);
    }
}

/* Statistics are unavailable: uses type and shape as declared by the graph. */
static bool take_declared(struct tensor_pane *pane, struct tensor_figures *figures)
{
    struct gd_output output;

    if (!gd_graph_output(pane->session->graph, pane->node, pane->slot, &output) ||
        gd_shape_count(&output.shape) < 0 || gd_dtype_size(output.dtype) == 0) {
        return false;
    }
    figures->state = TENSOR_HERE;
    figures->dtype = output.dtype;
    figures->shape = output.shape;
    figures->step = -1;
    return true;
}

static void on_figures(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                       const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct tensor_request *request = ctx;
    struct tensor_pane *pane = request->pane;

    if (pane && request->serial == pane->serial) {
        struct tensor_figures *figures = &pane->figures[request->iter];
        if (!err) {
            figures->state = TENSOR_HERE;
            figures->dtype = dtype;
            figures->shape = *shape;
            figures->stats = *stats;
            figures->has_stats = true;
            figures->step = step;
        } else if (err->code != GD_EUNSUPPORTED || !take_declared(pane, figures)) {
            figures->state = TENSOR_FAILED;
            snprintf(figures->why, sizeof(figures->why), "%.199s", err->text);
        }
        figures_have_come(pane, request->iter);
        tui_changed(pane->tui);
    }
    end_request(request);
}

static void ask_figures(struct tensor_pane *pane, enum gd_iter iter)
{
    struct gd_tensor_ref ref = {pane->node, pane->slot, iter};
    struct gd_err err = {.code = GD_OK};
    struct tensor_request *request = add_request(pane, REQUEST_FIGURES, iter);

    if (!request) {
        return;
    }
    pane->figures[iter].state = TENSOR_ASKED;
    if (gd_session_stats(pane->session, &ref, on_figures, request, &err) != GD_OK) {
        on_figures(request, GD_DT_NONE, NULL, NULL, -1, &err);
    }
}

void tensor_want_figures(struct tensor_pane *pane)
{
    if (pane->node == GD_NO_NODE || !tensor_can_ask(pane)) {
        return;
    }
    for (enum gd_iter iter = GD_CURRENT; iter <= GD_PREVIOUS; iter++) {
        if (tensor_needs(pane, iter) && pane->figures[iter].state == TENSOR_NONE) {
            ask_figures(pane, iter);
        }
    }
    /* the mode changed while the statistics were known */
    if (pane->axis_x < 0 || !pane->has_view) {
        figures_have_come(pane, tensor_iter(pane));
    }
}

/* ---- pages ---- */

static void page_of(const struct tensor_pane *pane, const int64_t *index, int64_t *at)
{
    memset(at, 0, GD_MAX_RANK * sizeof(*at));
    for (int i = 0; i < pane->shape.rank; i++) {
        int64_t size = i == pane->axis_y   ? TENSOR_PAGE_ROWS
                       : i != pane->axis_x ? 1
                       : pane->axis_y < 0  ? TENSOR_PAGE_FLAT
                                           : TENSOR_PAGE_COLS;
        at[i] = index[i] - index[i] % size;
    }
}

static struct tensor_page *find_page(struct tensor_pane *pane, enum gd_iter iter, const int64_t *at)
{
    for (int i = 0; i < TENSOR_PAGES; i++) {
        struct tensor_page *page = &pane->page[i];
        if (page->state != TENSOR_NONE && page->iter == iter &&
            memcmp(page->at, at, sizeof(page->at)) == 0) {
            return page;
        }
    }
    return NULL;
}

/* A free entry, or the least recently used page. */
static struct tensor_page *new_page(struct tensor_pane *pane)
{
    struct tensor_page *oldest = NULL;

    for (int i = 0; i < TENSOR_PAGES; i++) {
        struct tensor_page *page = &pane->page[i];
        if (page->state == TENSOR_NONE) {
            return page;
        }
        if (page->state != TENSOR_ASKED && (!oldest || page->used < oldest->used)) {
            oldest = page;
        }
    }
    if (oldest) {
        drop_page(oldest);
    }
    return oldest;
}

/* A copy, because a view would keep all of a large value in memory. */
static int copy_of(struct gd_tensor *tensor, struct gd_tensor **ret, struct gd_err *err)
{
    int rc = gd_tensor_create(tensor->dtype, &tensor->shape, 0, ret, err);

    if (rc == GD_OK && gd_tensor_count(tensor) > 0) {
        gd_strided_copy(gd_tensor_bytes_mut(*ret), tensor->data, &tensor->shape, tensor->stride,
                        gd_dtype_size(tensor->dtype));
    }
    return rc;
}

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct tensor_request *request = ctx;
    struct tensor_pane *pane = request->pane;
    struct gd_err failed = {.code = GD_OK};
    struct gd_tensor *copy = NULL;

    (void)step;
    if (!pane || request->serial != pane->serial) {
        end_request(request);
        return;
    }
    if (!err && copy_of(tensor, &copy, &failed) != GD_OK) {
        err = &failed;
    }
    enum request_kind kind = request->kind;
    enum gd_iter iter = request->iter;
    struct tensor_page *page = kind == REQUEST_PAGE ? find_page(pane, iter, request->at) : NULL;
    end_request(request);
    if (kind == REQUEST_PART) {
        tensor_search_part(pane, iter, copy, err ? err->text : NULL);
    } else if (page) {
        page->tensor = gd_tensor_ref(copy);
        page->state = !err ? TENSOR_HERE : TENSOR_FAILED;
        snprintf(page->why, sizeof(page->why), "%.199s", err ? err->text : "");
    }
    gd_tensor_unref(copy);
    tui_changed(pane->tui);
}

static void fetch_slice(struct tensor_pane *pane, struct tensor_request *request,
                        const struct gd_slice *slice)
{
    struct gd_tensor_ref ref = {pane->node, pane->slot, request->iter};
    struct gd_err err = {.code = GD_OK};

    if (gd_session_fetch(pane->session, &ref, slice, on_tensor, request, &err) != GD_OK) {
        on_tensor(request, NULL, -1, &err);
    }
}

void tensor_ask_part(struct tensor_pane *pane, enum gd_iter iter, const struct gd_slice *slice)
{
    struct tensor_request *request = add_request(pane, REQUEST_PART, iter);

    if (request) {
        fetch_slice(pane, request, slice);
    } else {
        tensor_search_stop(pane, "out of memory");
    }
}

static void ask_page(struct tensor_pane *pane, enum gd_iter iter, const int64_t *at)
{
    int64_t n[GD_MAX_RANK];
    struct gd_slice slice;
    struct tensor_page *page = new_page(pane);
    struct tensor_request *request = page ? add_request(pane, REQUEST_PAGE, iter) : NULL;

    if (!request) {
        return;
    }
    for (int i = 0; i < pane->shape.rank; i++) {
        int64_t size = i == pane->axis_y  ? TENSOR_PAGE_ROWS
                       : pane->axis_y < 0 ? TENSOR_PAGE_FLAT
                                          : TENSOR_PAGE_COLS;
        int64_t rest = pane->shape.dim[i] - at[i];
        n[i] = i != pane->axis_y && i != pane->axis_x ? -1 : rest < size ? rest : size;
    }
    page->state = TENSOR_ASKED;
    page->iter = iter;
    page->used = ++pane->clock;
    memcpy(page->at, at, sizeof(page->at));
    memcpy(request->at, at, sizeof(request->at));
    tensor_compose(pane, at, n, &slice);
    fetch_slice(pane, request, &slice);
}

void tensor_want(struct tensor_pane *pane, const int64_t *index)
{
    int64_t at[GD_MAX_RANK];

    if (!pane->has_view || !tensor_can_ask(pane)) {
        return;
    }
    page_of(pane, index, at);
    for (enum gd_iter iter = GD_CURRENT; iter <= GD_PREVIOUS; iter++) {
        if (pane->page_requests < MAX_REQUESTS && tensor_needs(pane, iter) &&
            pane->figures[iter].state == TENSOR_HERE && !find_page(pane, iter, at)) {
            ask_page(pane, iter, at);
        }
    }
}

/* The address of an element in its page; NULL: not fetched. */
static const unsigned char *find_element(struct tensor_pane *pane, enum gd_iter iter,
                                         const int64_t *index, struct tensor_cell *cell)
{
    int64_t at[GD_MAX_RANK];
    int64_t offset = 0;

    page_of(pane, index, at);
    struct tensor_page *page = find_page(pane, iter, at);
    cell->state = page ? page->state : TENSOR_NONE;
    if (!page || page->state != TENSOR_HERE) {
        cell->why = page ? page->why : "";
        return NULL;
    }
    page->used = ++pane->clock;
    for (int i = 0, axis = 0; i < pane->shape.rank; i++) {
        if (i == pane->axis_y || i == pane->axis_x) {
            int64_t inside = index[i] - at[i];
            if (axis >= page->tensor->shape.rank || inside >= page->tensor->shape.dim[axis]) {
                cell->state = TENSOR_FAILED;
                cell->why = "the training process sent another shape than announced";
                return NULL;
            }
            offset += inside * page->tensor->stride[axis++];
        }
    }
    cell->dtype = page->tensor->dtype;
    return page->tensor->data + offset;
}

struct tensor_cell tensor_cell_at(struct tensor_pane *pane, const int64_t *index)
{
    struct tensor_cell cell = {.state = TENSOR_NONE};

    cell.p = find_element(pane, tensor_iter(pane), index, &cell);
    if (cell.p && pane->which == TENSOR_DIFFERENCE) {
        enum gd_dtype dtype = cell.dtype;
        cell.less = find_element(pane, GD_PREVIOUS, index, &cell);
        if (cell.less && cell.dtype != dtype) {
            cell.state = TENSOR_FAILED;
            cell.why = "the previous value has another type";
        }
    }
    return cell;
}
