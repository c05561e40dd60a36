// SPDX-License-Identifier: GPL-3.0-or-later
// Operators that the fallback cannot do: making tensors, views, storages, copies, and those that
// the CPU lacks.
#include "operators.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace emulated
{

bool is_ours(const at::Tensor &tensor)
{
    return tensor.defined() && tensor.device().type() == type();
}

at::Tensor for_kernels(const at::Tensor &tensor)
{
    auto *impl = tensor.unsafeGetTensorImpl();
    char *start = static_cast<char *>(tensor.storage().mutable_data());
    void *place =
        start ? private_of(start + impl->storage_offset() * tensor.element_size()) : nullptr;
    static char none; // of a tensor without elements
    at::Tensor made = at::from_blob(place ? place : &none, tensor.sizes(), tensor.strides(),
                                    at::TensorOptions().dtype(tensor.scalar_type()));
    made._set_conj(tensor.is_conj());
    made._set_neg(tensor.is_neg());
    if (impl->is_wrapped_number())
        made.unsafeGetTensorImpl()->set_wrapped_number(true);
    return made;
}

at::Tensor make(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, int device)
{
    const c10::DeviceGuard guard(c10::Device(type(), static_cast<c10::DeviceIndex>(device)));
    return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(type()),
                                             c10::DispatchKeySet(key()), dtype);
}

void wait_implicitly(int device)
{
    add_count(WAITS_IMPLICIT);
    Stream &stream = current_stream(device);
    stream.wait(stream.last());
    check(device);
}

void resize(const at::Tensor &tensor, at::IntArrayRef sizes, at::IntArrayRef strides)
{
    auto *impl = tensor.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(sizes, strides);
    int64_t last = 0;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
        if (sizes[axis] == 0)
            return;
        last += (sizes[axis] - 1) * strides[axis];
    }
    const size_t bytes = (impl->storage_offset() + last + 1) * tensor.element_size();
    const c10::Storage &storage = tensor.storage();
    if (bytes <= storage.nbytes())
        return;
    const int device = tensor.device().index();
    const c10::DeviceGuard guard(tensor.device());
    c10::StorageImpl *held = storage.unsafeGetStorageImpl();
    c10::DataPtr made = c10::GetAllocator(type())->allocate(bytes);
    const size_t kept = storage.nbytes();
    if (kept) {
        const void *from = private_of(held->data());
        void *to = private_of(made.get());
        current_stream(device).push([=] { memcpy(to, from, kept); });
    }
    held->set_data_ptr_noswap(std::move(made));
    held->set_nbytes(bytes);
}

namespace
{

int device_given(std::optional<c10::Device> device)
{
    return device ? index_of(*device) : current_device();
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format)
{
    const c10::DeviceGuard guard(
        c10::Device(type(), static_cast<c10::DeviceIndex>(device_given(device))));
    return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), c10::GetAllocator(type()),
                                     c10::DispatchKeySet(key()), c10::dtype_or_default(dtype),
                                     format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<c10::Device> device, std::optional<bool>)
{
    return make(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                c10::dtype_or_default(dtype), device_given(device));
}

const at::Tensor &resize_(const at::Tensor &self, c10::SymIntArrayRef size,
                          std::optional<at::MemoryFormat> format)
{
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
    at::Tensor like = at::empty(sizes, self.options().device(at::kMeta), format);
    resize(self, sizes, like.strides());
    return self;
}

at::Tensor &set_nothing(at::Tensor &self)
{
    c10::Storage storage(c10::Storage::use_byte_size_t(), 0, c10::GetAllocator(type()), true);
    return at::native::set_storage_cpu_(self, std::move(storage), 0, {0}, {});
}

at::Tensor &set_from_storage(at::Tensor &self, at::Storage source)
{
    return at::native::set_(self, std::move(source));
}

at::Tensor &set_from_part(at::Tensor &self, at::Storage source, c10::SymInt offset,
                          c10::SymIntArrayRef size, c10::SymIntArrayRef stride)
{
    return at::native::set_storage_cpu_(self, std::move(source), offset.expect_int(),
                                        C10_AS_INTARRAYREF_SLOW(size),
                                        C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor view(const at::Tensor &self, c10::SymIntArrayRef size)
{
    return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor as_strided(const at::Tensor &self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset)
{
    return at::native::as_strided_tensorimpl(
        self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
        offset ? std::make_optional(offset->expect_int()) : std::nullopt);
}

at::Tensor reshape_alias(const at::Tensor &self, c10::SymIntArrayRef size,
                         c10::SymIntArrayRef stride)
{
    return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                      C10_AS_INTARRAYREF_SLOW(stride));
}

at::Scalar local_scalar(const at::Tensor &self)
{
    wait_implicitly(self.device().index());
    return at::native::_local_scalar_dense_cpu(for_kernels(self));
}

void record_stream(at::Tensor &self, c10::Stream stream)
{
    use_on_stream(self.storage().mutable_data(), static_cast<int>(stream.id()));
}

// ---- copies ----

void copy_on_device(const at::Tensor &from, const at::Tensor &to)
{
    const int source = from.device().index(), target = to.device().index();
    Stream &own = current_stream(source);
    if (source != target)
        block(record(current_stream(target)), own);
    own.push([from = for_kernels(from), to = for_kernels(to)]() mutable { to.copy_(from); });
    if (source != target)
        block(record(own), current_stream(target));
    add_count(COPIES_ON_DEVICE);
}

// A CPU tensor over the memory of another one, without a reference to it.
at::Tensor bare(const at::Tensor &host)
{
    return at::from_blob(host.data_ptr(), host.sizes(), host.strides(), host.options());
}

void copy_to_device(const at::Tensor &from, const at::Tensor &to, bool overlaps)
{
    Stream &stream = current_stream(to.device().index());
    const bool pinned = overlaps && from.numel() && is_pinned(from.data_ptr());
    // What is not pinned is taken now: a driver stages it.
    at::Tensor source = pinned ? bare(from) : from.clone();
    const uint64_t ticket =
        stream.push([source, to = for_kernels(to)]() mutable { to.copy_(source); });
    if (pinned)
        use_pinned(from.data_ptr(), stream, ticket);
    add_count(COPIES_TO_DEVICE);
    if (!overlaps)
        wait_implicitly(to.device().index());
}

void copy_to_host(const at::Tensor &from, const at::Tensor &to, bool overlaps)
{
    Stream &stream = current_stream(from.device().index());
    const bool pinned = overlaps && to.numel() && is_pinned(to.data_ptr());
    const uint64_t ticket =
        stream.push([from = for_kernels(from), to = bare(to)]() mutable { to.copy_(from); });
    if (pinned)
        use_pinned(to.data_ptr(), stream, ticket);
    add_count(COPIES_TO_HOST);
    if (!pinned)
        wait_implicitly(from.device().index());
}

at::Tensor copy_from(const at::Tensor &from, const at::Tensor &to, bool overlaps)
{
    if (to.numel() == 0)
        return to;
    check(is_ours(from) ? from.device().index() : to.device().index());
    if (is_ours(from) && is_ours(to))
        copy_on_device(from, to);
    else if (is_ours(to))
        copy_to_device(from, to, overlaps);
    else
        copy_to_host(from, to, overlaps);
    return to;
}

at::Tensor copy_and_resize(const at::Tensor &from, const at::Tensor &to)
{
    to.resize_(from.sizes());
    return copy_from(from, to, false);
}

// Of CUDA, which ATen does not give to _copy_from.
at::Tensor &copy_(at::Tensor &self, const at::Tensor &from, bool overlaps)
{
    copy_from(from, self, overlaps);
    return self;
}

// ---- what the CPU lacks ----

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor &input, double p,
                                                  std::optional<bool> train)
{
    if (!train.value_or(true))
        return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
    at::Tensor mask = at::empty_like(input).bernoulli_(1 - p);
    at::Tensor result = input * mask * (p < 1 ? 1 / (1 - p) : 0.0);
    return {result, mask.to(at::kBool)};
}

using Optional = std::optional<at::Tensor>;

at::Tensor added(const at::Tensor &gates, const Optional &bias)
{
    return bias && bias->defined() ? gates + *bias : gates;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
lstm_cell(const at::Tensor &input, const at::Tensor &hidden, const at::Tensor &cx,
          const Optional &input_bias, const Optional &hidden_bias)
{
    auto gates = (added(input, input_bias) + added(hidden, hidden_bias)).chunk(4, 1);
    at::Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(),
               out = gates[3].sigmoid();
    at::Tensor cy = forget * cx + in * cell;
    return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
lstm_cell_backward(const Optional &grad_hy, const Optional &grad_cy, const at::Tensor &cx,
                   const at::Tensor &cy, const at::Tensor &workspace, bool has_bias)
{
    auto gates = workspace.chunk(4, 1);
    const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
    at::Tensor bent = cy.tanh();
    at::Tensor of_hy = grad_hy && grad_hy->defined() ? *grad_hy : at::zeros_like(cy);
    at::Tensor of_cy = of_hy * out * (1 - bent * bent);
    if (grad_cy && grad_cy->defined())
        of_cy = of_cy + *grad_cy;
    at::Tensor of_gates = at::cat({of_cy * cell * in * (1 - in), of_cy * cx * forget * (1 - forget),
                                   of_cy * in * (1 - cell * cell), of_hy * bent * out * (1 - out)},
                                  1);
    return {of_gates, of_cy * forget, has_bias ? of_gates.sum(0) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor &input, const at::Tensor &hidden,
                                            const at::Tensor &hx, const Optional &input_bias,
                                            const Optional &hidden_bias)
{
    auto given = added(input, input_bias).chunk(3, 1),
         held = added(hidden, hidden_bias).chunk(3, 1);
    at::Tensor reset = (given[0] + held[0]).sigmoid(), update = (given[1] + held[1]).sigmoid();
    at::Tensor fresh = (given[2] + reset * held[2]).tanh();
    return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, held[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
gru_cell_backward(const at::Tensor &grad, const at::Tensor &workspace, bool has_bias)
{
    auto kept = workspace.chunk(5, 1);
    const at::Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &hx = kept[3],
                     &held = kept[4];
    at::Tensor of_fresh = grad * (1 - update) * (1 - fresh * fresh);
    at::Tensor of_update = grad * (hx - fresh) * update * (1 - update);
    at::Tensor of_reset = of_fresh * held * reset * (1 - reset);
    at::Tensor of_input = at::cat({of_reset, of_update, of_fresh}, 1);
    at::Tensor of_hidden = at::cat({of_reset, of_update, of_fresh * reset}, 1);
    return {of_input, of_hidden, grad * update, has_bias ? of_input.sum(0) : at::Tensor(),
            has_bias ? of_hidden.sum(0) : at::Tensor()};
}

// CUDA asks for each loss whether its libraries compute it.
bool use_library_ctc(const at::Tensor &, const at::Tensor &, at::IntArrayRef, at::IntArrayRef,
                     int64_t)
{
    return false;
}

bool use_library_ctc_of_tensors(const at::Tensor &, const at::Tensor &, const at::Tensor &,
                                const at::Tensor &, int64_t)
{
    return false;
}

void register_copies(torch::Library &library)
{
    auto *conjugate = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Conjugate,
                                         __FILE__, __LINE__);
    auto *negative = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Negative,
                                        __FILE__, __LINE__);
    const char *name = type() == c10::DeviceType::CUDA ? "copy_" : "_copy_from";
    if (type() == c10::DeviceType::CUDA)
        library.impl("copy_", copy_);
    else
        library.impl("_copy_from", copy_from);
    library.impl("_copy_from_and_resize", copy_and_resize);
    // Else their own fallback clones, which copies, which clones, for ever.
    conjugate->impl(name, torch::CppFunction::makeFallthrough());
    negative->impl(name, torch::CppFunction::makeFallthrough());
}

} // namespace
} // namespace emulated

namespace at::autocast
{
namespace
{

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m)
{
    m.fallback(torch::CppFunction::makeFallthrough());
}

#define LOWER(...)       KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FULL(...)        KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FULL_RESULT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTED(...)    KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

// The policy of CUDA, from PyTorch's own lists.
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m)
{
    AT_FORALL_LOWER_PRECISION_FP(LOWER)
    AT_FORALL_FP32(FULL)
    AT_FORALL_FP32_SET_OPT_DTYPE(FULL_RESULT)
    AT_FORALL_PROMOTE(PROMOTED)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
}

} // namespace
} // namespace at::autocast

void emulated::register_operators()
{
    auto &m = *new torch::Library(torch::Library::IMPL, "aten", key(), __FILE__, __LINE__);
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl("resize_", resize_);
    m.impl("set_", set_nothing);
    m.impl("set_.source_Tensor", at::native::set_tensor_);
    m.impl("set_.source_Storage", set_from_storage);
    m.impl("set_.source_Storage_storage_offset", set_from_part);
    m.impl("as_strided", as_strided);
    m.impl("view", view);
    m.impl("_reshape_alias", reshape_alias);
    m.impl("unfold", at::native::unfold);
    m.impl("view_as_real", at::native::view_as_real);
    m.impl("view_as_complex", at::native::view_as_complex);
    m.impl("_local_scalar_dense", local_scalar);
    m.impl("record_stream", record_stream);
    m.impl("native_dropout", native_dropout);
    m.impl("_thnn_fused_lstm_cell", lstm_cell);
    m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
    m.impl("_thnn_fused_gru_cell", gru_cell);
    m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
    for (const std::string name : {"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}) {
        m.impl(name.c_str(), use_library_ctc);
        m.impl((name + ".Tensor").c_str(), use_library_ctc_of_tensors);
    }
    register_copies(m);
}
