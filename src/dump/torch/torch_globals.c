// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The classes and functions that a pickle names: those known here, those that are only listed, and
 * those that no checkpoint needs but an attack does.
 */
#include <stdio.h>
#include <string.h>

#include "dump/torch/torch_impl.h"

#define MAX_NAMED 6 /* classes named in one note */

struct name {
    const char *module, *name; /* name NULL: everything in the module and its submodules */
};

static const struct name known[] = {
    {"collections", "OrderedDict"},
    {"collections", "defaultdict"},
    {"collections", "Counter"},
    {"collections", "deque"},
    {"builtins", "set"},
    {"builtins", "frozenset"},
    {"builtins", "bytearray"},
    {"builtins", "bytes"},
    {"builtins", "complex"},
    {"builtins", "dict"},
    {"builtins", "list"},
    {"builtins", "int"},
    {"builtins", "float"},
    {"builtins", "object"},
    {"builtins", "slice"},
    {"builtins", "range"},
    {"__builtin__", "set"},
    {"__builtin__", "frozenset"},
    {"__builtin__", "bytearray"},
    {"__builtin__", "bytes"},
    {"__builtin__", "complex"},
    {"__builtin__", "dict"},
    {"__builtin__", "list"},
    {"__builtin__", "int"},
    {"__builtin__", "float"},
    {"__builtin__", "object"},
    {"__builtin__", "long"},
    {"_codecs", "encode"},
    {"copyreg", "_reconstructor"},
    {"copy_reg", "_reconstructor"},
    {"numpy", "ndarray"},
    {"numpy", "dtype"},
    {"numpy.core.multiarray", "_reconstruct"},
    {"numpy.core.multiarray", "scalar"},
    {"numpy.core.numeric", "_frombuffer"},
    {"numpy._core.multiarray", "_reconstruct"},
    {"numpy._core.multiarray", "scalar"},
    {"numpy._core.numeric", "_frombuffer"},
    {"torch", "Size"},
    {"torch", "device"},
    {"torch", "Tensor"},
    {"torch._tensor", "Tensor"},
    {"torch", "per_tensor_affine"},
    {"torch", "per_channel_affine"},
    {"torch", "per_channel_affine_float_qparams"},
    {"torch", "strided"},
    {"torch", "sparse_coo"},
    {"torch", "sparse_csr"},
    {"torch", "sparse_csc"},
    {"torch", "sparse_bsr"},
    {"torch", "sparse_bsc"},
    {"torch.serialization", "_get_layout"},
    {"torch.nn.parameter", "Parameter"},
    {"torch.nn.parameter", "Buffer"},
    {"torch.storage", "TypedStorage"},
    {"torch.storage", "_load_from_bytes"},
    {"torch.distributed.checkpoint", NULL},
    {"ml_dtypes", NULL},
    {"mindspore._c_expression.np_dtypes", NULL},
    {"mindspore._c_expression.typing", NULL},
    {"mindspore.common.tensor", "Tensor"},
    {"mindspore.common.parameter", "Parameter"},
};

static const struct name suspicious[] = {
    {"os", NULL},
    {"posix", NULL},
    {"posixpath", NULL},
    {"nt", NULL},
    {"ntpath", NULL},
    {"sys", NULL},
    {"subprocess", NULL},
    {"_posixsubprocess", NULL},
    {"socket", NULL},
    {"_socket", NULL},
    {"shutil", NULL},
    {"runpy", NULL},
    {"importlib", NULL},
    {"_frozen_importlib", NULL},
    {"pty", NULL},
    {"ctypes", NULL},
    {"_ctypes", NULL},
    {"webbrowser", NULL},
    {"code", NULL},
    {"codeop", NULL},
    {"pdb", NULL},
    {"bdb", NULL},
    {"timeit", NULL},
    {"pickle", NULL},
    {"_pickle", NULL},
    {"marshal", NULL},
    {"types", "CodeType"},
    {"types", "FunctionType"},
    {"urllib", NULL},
    {"http", NULL},
    {"requests", NULL},
    {"tempfile", NULL},
    {"pip", NULL},
    {"torch.hub", NULL},
    {"operator", "attrgetter"},
    {"operator", "methodcaller"},
    {"operator", "itemgetter"},
    {"_operator", "attrgetter"},
    {"_operator", "methodcaller"},
    {"_operator", "itemgetter"},
    {"functools", "partial"},
    {"functools", "reduce"},
    {"_functools", "partial"},
    {"_functools", "reduce"},
    {"builtins", "eval"},
    {"builtins", "exec"},
    {"builtins", "compile"},
    {"builtins", "open"},
    {"builtins", "getattr"},
    {"builtins", "setattr"},
    {"builtins", "delattr"},
    {"builtins", "__import__"},
    {"builtins", "apply"},
    {"builtins", "globals"},
    {"builtins", "locals"},
    {"builtins", "vars"},
    {"builtins", "input"},
    {"builtins", "breakpoint"},
    {"builtins", "map"},
    {"builtins", "type"},
    {"__builtin__", "eval"},
    {"__builtin__", "exec"},
    {"__builtin__", "execfile"},
    {"__builtin__", "compile"},
    {"__builtin__", "open"},
    {"__builtin__", "file"},
    {"__builtin__", "getattr"},
    {"__builtin__", "setattr"},
    {"__builtin__", "delattr"},
    {"__builtin__", "__import__"},
    {"__builtin__", "apply"},
    {"__builtin__", "globals"},
    {"__builtin__", "locals"},
    {"__builtin__", "vars"},
    {"__builtin__", "input"},
    {"__builtin__", "reload"},
    {"__builtin__", "map"},
    {"__builtin__", "type"},
};

static bool is_in(const struct name *names, size_t count, const struct gd_pickle_global *global)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(names[i].module);

        if (strncmp(global->module, names[i].module, len) != 0) {
            continue;
        }
        if (names[i].name ? global->module[len] == '\0' && strcmp(global->name, names[i].name) == 0
                          : global->module[len] == '\0' || global->module[len] == '.') {
            return true;
        }
    }
    return false;
}

/* STACK_GLOBAL and protocol 4 allow a path as name: "getattr.__call__" in builtins and the like. */
static bool is_suspicious(const struct gd_pickle_global *global)
{
    char first[64];
    struct gd_pickle_global plain = {.module = global->module, .name = first};

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(global->name, "."), global->name);
    return is_in(suspicious, sizeof(suspicious) / sizeof(suspicious[0]), &plain);
}

static bool is_storage_module(const char *module)
{
    return strncmp(module, "torch", 5) == 0 || strncmp(module, "mindtorch.", 10) == 0;
}

static bool is_known(const struct gd_pickle_global *global)
{
    struct gd_pickle_value value = {.kind = GD_PICKLE_GLOBAL, .global = global};

    return is_in(known, sizeof(known) / sizeof(known[0]), global) || torch_is_rebuild(global) ||
           (is_storage_module(global->module) && torch_storage_type(global->name)) ||
           torch_dtype(&value);
}

void torch_note_globals(struct torch_file *file, const struct gd_pickle *pickle)
{
    size_t count = gd_pickle_global_count(pickle), unknown = 0, alarms = 0;
    struct gd_buf names = GD_BUF_INIT(GD_ERR_TEXT_MAX);

    for (size_t i = 0; i < count; i++) {
        const struct gd_pickle_global *global = gd_pickle_global_at(pickle, i);

        if (file->has_enumerations && strcmp(global->module, "builtins") == 0 &&
            strcmp(global->name, "getattr") == 0) {
            continue;
        }
        if (is_suspicious(global)) {
            alarms++;
            if (alarms <= MAX_NAMED) {
                gd_archive_add_note(file->archive,
                                    "SUSPICIOUS: %.100s.%.100s at byte %llu of the pickle: no "
                                    "checkpoint needs it; it was not run",
                                    global->module, global->name, (unsigned long long)global->at);
            }
        } else if (!is_known(global)) {
            unknown++;
            if (unknown <= MAX_NAMED) {
                gd_buf_printf(&names, "%s%.60s.%.60s", unknown > 1 ? ", " : "", global->module,
                              global->name);
            }
        }
    }
    if (alarms > MAX_NAMED) {
        gd_archive_add_note(file->archive, "SUSPICIOUS: %zu more like these", alarms - MAX_NAMED);
    }
    if (unknown) {
        gd_archive_add_note(file->archive,
                            "objects of these classes were listed, not created: %s%s",
                            gd_buf_text(&names), unknown > MAX_NAMED ? ", ..." : "");
    }
    gd_buf_deinit(&names);
}
