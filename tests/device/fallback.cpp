// SPDX-License-Identifier: GPL-3.0-or-later
// Every other operator: its CPU kernel, queued on the current stream, on the bytes of its
// arguments.
//
// The shapes of what it returns come from its Meta kernel, on the calling thread: errors of shapes
// are thrown there, as by CUDA. What has no Meta kernel, or shapes that depend on data, waits for
// the stream and runs at once, as CUDA does, too; counted as an implicit wait.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>

#include "operators.h"

namespace emulated
{
namespace
{

using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// Whose Meta kernels imitate the shapes of CUDA's kernels, which differ from the CPU's.
const char *const UNLIKE_CPU[] = {"aten::_embedding_bag", "aten::_embedding_bag_forward_only"};

// Whose CPU kernels give the result another shape while they compute it.
const char *const RESHAPING[] = {"aten::mse_loss", "aten::smooth_l1_loss"};

// For scripts whose results on the CPU are known: random numbers are those of the CPU's generator.
const bool draws_as_cpu = getenv("GRADB_EMULATED_SCRIPTS");

template <class Function> void each_tensor(const IValue &value, Function look)
{
    if (value.isTensor()) {
        if (value.toTensor().defined())
            look(value.toTensor(), false);
    } else if (value.isTensorList()) {
        for (const at::Tensor &one : value.toTensorVector())
            look(one, false);
    } else if (value.isOptionalTensorList()) {
        for (const std::optional<at::Tensor> &one : value.toOptionalTensorVector())
            if (one && one->defined())
                look(*one, true);
    }
}

// The same value, with other tensors in it. The function also gets whether the tensor is one of an
// index.
template <class Function> IValue with_tensors(const IValue &value, Function change)
{
    if (value.isTensor())
        return value.toTensor().defined() ? IValue(change(value.toTensor(), false)) : value;
    if (value.isTensorList()) {
        c10::List<at::Tensor> made;
        for (const at::Tensor &one : value.toTensorVector())
            made.push_back(one.defined() ? change(one, false) : one);
        return made;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> made;
        for (const std::optional<at::Tensor> &one : value.toOptionalTensorVector())
            made.push_back(one && one->defined() ? std::make_optional(change(*one, true)) : one);
        return made;
    }
    return value;
}

at::Tensor copy_of(const at::Tensor &host)
{
    at::Tensor made = host.clone();
    if (host.unsafeGetTensorImpl()->is_wrapped_number())
        made.unsafeGetTensorImpl()->set_wrapped_number(true);
    return made;
}

// Shape and type of a result.
struct Form {
    bool defined = true;
    std::vector<int64_t> sizes, strides;
    at::ScalarType dtype = at::kFloat;
};

Form form_of(const at::Tensor &tensor)
{
    if (!tensor.defined())
        return {false, {}, {}, at::kFloat};
    TORCH_CHECK_NOT_IMPLEMENTED(!c10::isQIntType(tensor.scalar_type()),
                                "emulated device: no quantized tensors");
    return {true, tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

// What the Meta kernel says of one call: for each return the forms of its tensors, and the new ones
// of arguments that it writes.
struct Forms {
    std::vector<std::vector<Form>> returns;
    std::vector<std::pair<size_t, Form>> resized;
};

std::mutex known_mutex;
std::unordered_map<std::string, Forms> known; // never emptied: tests have few signatures

void add(std::string &to, const void *data, size_t bytes)
{
    to.append(static_cast<const char *>(data), bytes);
}

void add(std::string &to, int64_t number)
{
    add(to, &number, sizeof(number));
}

void add(std::string &to, at::IntArrayRef numbers)
{
    add(to, static_cast<int64_t>(numbers.size()));
    add(to, numbers.data(), numbers.size() * sizeof(int64_t));
}

// Many Meta kernels are Python functions, which call others: modes of the program, and debuggers,
// must not see them. A real device has none.
class Unseen
{
  public:
    Unseen() : state(at::impl::PythonTorchFunctionTLS::get_disabled_state())
    {
        at::impl::PythonTorchFunctionTLS::set_disabled_state(
            at::impl::TorchFunctionDisabledState::ALL_DISABLED);
    }

    ~Unseen()
    {
        at::impl::PythonTorchFunctionTLS::set_disabled_state(state);
    }

    Unseen(const Unseen &) = delete;
    Unseen &operator=(const Unseen &) = delete;

  private:
    const at::impl::TorchFunctionDisabledState state;
    const c10::impl::ExcludeDispatchKeyGuard modes{
        c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
};

// One call of an operator with tensors of the device.
class Call
{
  public:
    Call(const OperatorHandle &kernel, std::vector<IValue> given)
        : kernel(kernel), given(std::move(given)), schema(kernel.schema())
    {
        find_device();
        check(device);
    }

    Stack run()
    {
        if (!kernel.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU))
            TORCH_CHECK_NOT_IMPLEMENTED(false, "emulated device: no kernel of ",
                                        kernel.schema().name());
        for (size_t place = 0; place < given.size(); ++place)
            on_cpu.push_back(as_cpu(place));
        add_count(KERNELS);
        if (needs_wait())
            return run_at_once();
        const Forms *forms = find_forms();
        if (!forms)
            return run_at_once();
        return run_later(*forms);
    }

  private:
    void find_device()
    {
        for (const IValue &value : given) {
            each_tensor(value, [this](const at::Tensor &one, bool) {
                if (device < 0 && is_ours(one))
                    device = one.device().index();
            });
            if (device < 0 && value.isDevice() && value.toDevice().type() == type())
                device = index_of(value.toDevice());
        }
        if (device < 0)
            device = current_device();
    }

    at::Tensor tensor_for_cpu(const at::Tensor &tensor, bool is_index)
    {
        if (is_ours(tensor)) {
            TORCH_CHECK(
                tensor.device().index() == device,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                c10::Device(type(), static_cast<c10::DeviceIndex>(device)), " and ",
                tensor.device(), "!");
            return for_kernels(tensor);
        }
        if (tensor.device().is_meta())
            return tensor;
        TORCH_CHECK(
            tensor.dim() == 0 || is_index,
            "Expected all tensors to be on the same device, but found at least two devices, ",
            c10::Device(type(), static_cast<c10::DeviceIndex>(device)), " and cpu!");
        return copy_of(tensor); // the host may write it later
    }

    IValue as_cpu(size_t place)
    {
        const IValue &value = given[place];
        if (value.isDevice())
            return c10::Device(c10::kCPU);
        if (value.isGenerator())
            return generator_for_cpu(value.toGenerator());
        if (draws() && schema.arguments()[place].name() == "generator" && !draws_as_cpu)
            return at::detail::createCPUGenerator(draw(device));
        return with_tensors(value, [this](const at::Tensor &one, bool index) {
            return tensor_for_cpu(one, index);
        });
    }

    // Whether it draws random numbers.
    bool draws() const
    {
        return kernel.hasTag(at::Tag::nondeterministic_seeded);
    }

    static IValue generator_for_cpu(const at::Generator &generator)
    {
        if (generator.device().type() == type())
            return at::detail::createCPUGenerator(draw_from(generator.unsafeGetGeneratorImpl()));
        TORCH_CHECK(draws_as_cpu, "Expected a '", type(), "' device type for generator but found '",
                    generator.device().type(), "'");
        return generator;
    }

    bool is_written(size_t place) const
    {
        const auto *alias_info = schema.arguments()[place].alias_info();
        return alias_info && alias_info->isWrite();
    }

    // The results that must be able to change their shape: their places among the arguments.
    std::vector<size_t> reshaped() const
    {
        std::vector<size_t> found;
        for (const char *name : RESHAPING)
            for (size_t place = 0; schema.name() == name && place < given.size(); ++place)
                if (schema.arguments()[place].is_out() && given[place].isTensor())
                    found.push_back(place);
        return found;
    }

    bool needs_wait() const
    {
        if (kernel.hasTag(at::Tag::dynamic_output_shape) ||
            kernel.hasTag(at::Tag::data_dependent_output) || (draws_as_cpu && draws()))
            return true;
        for (const char *name : UNLIKE_CPU)
            if (schema.name() == name)
                return true;
        bool fresh = false, masks = false;
        for (const auto &result : schema.returns()) {
            const bool tensors = result.type()->isSubtypeOf(*c10::TensorType::get()) ||
                                 result.type()->isSubtypeOf(*c10::ListType::ofTensors());
            if (!tensors)
                return true;
            fresh = fresh || !result.alias_info() || !result.alias_info()->isWrite();
        }
        for (const IValue &value : given)
            each_tensor(value, [&masks](const at::Tensor &one, bool index) {
                masks =
                    masks ||
                    (index && (one.scalar_type() == at::kBool || one.scalar_type() == at::kByte));
            });
        const bool out = std::any_of(schema.arguments().begin(), schema.arguments().end(),
                                     [](const auto &argument) { return argument.is_out(); });
        return masks ||
               ((fresh || out) && !kernel.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta));
    }

    // ---- shapes ----

    // What tells calls apart whose results have other shapes. "": it cannot be said.
    std::string signature() const
    {
        std::string text;
        add(text, reinterpret_cast<int64_t>(&schema));
        for (const IValue &value : given) {
            add(text, static_cast<int64_t>(value.isDouble() ? 1 : value.isTensor() ? 2 : 3));
            if (value.isTensor() || value.isTensorList() || value.isOptionalTensorList()) {
                if (value.isOptionalTensorList())
                    for (const auto &one : value.toOptionalTensorVector())
                        add(text, one.has_value() && one->defined());
                else if (value.isTensor())
                    add(text, value.toTensor().defined());
                else
                    add(text, static_cast<int64_t>(value.toListRef().size()));
                each_tensor(value, [&text](const at::Tensor &one, bool) {
                    add(text, static_cast<int64_t>(one.scalar_type()) * 4 + is_ours(one) * 2 +
                                  one.unsafeGetTensorImpl()->is_wrapped_number());
                    add(text, one.sizes());
                    add(text, one.strides());
                });
            } else if (value.isInt()) {
                add(text, value.toInt());
            } else if (value.isBool()) {
                add(text, value.toBool());
            } else if (value.isIntList()) {
                add(text, at::IntArrayRef(value.toIntVector()));
            } else if (value.isBoolList()) {
                for (const bool one : value.toBoolList())
                    add(text, one);
            } else if (value.isString()) {
                text += value.toStringRef();
            } else if (value.isDouble() || value.isDoubleList()) {
                if (schema.name().find("range") != std::string::npos || value.isDoubleList())
                    return "";
            } else if (!value.isNone() && !value.isDevice() && !value.isGenerator()) {
                return "";
            }
        }
        return text;
    }

    // nullptr: there is no Meta kernel, or it says so itself.
    const Forms *find_forms()
    {
        const std::string text = signature();
        {
            const std::lock_guard<std::mutex> lock(known_mutex);
            auto found = known.find(text);
            if (!text.empty() && found != known.end())
                return &found->second;
        }
        if (!kernel.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta))
            return &nothing;
        std::optional<Forms> asked = ask_forms();
        if (!asked)
            return nullptr;
        if (text.empty()) {
            own = std::move(*asked);
            return &own;
        }
        const std::lock_guard<std::mutex> lock(known_mutex);
        return &known.insert_or_assign(text, std::move(*asked)).first->second;
    }

    std::optional<Forms> ask_forms()
    {
        Stack stack;
        for (size_t place = 0; place < given.size(); ++place)
            stack.push_back(as_meta(place));
        const Stack before = stack;
        try {
            const at::AutoDispatchBelowADInplaceOrView guard;
            const Unseen unseen;
            kernel.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
        } catch (const c10::NotImplementedError &) {
            return std::nullopt;
        } catch (pybind11::error_already_set &error) {
            const pybind11::gil_scoped_acquire gil;
            if (error.matches(PyExc_NotImplementedError))
                return std::nullopt;
            throw;
        }
        Forms forms;
        for (const IValue &value : stack) {
            forms.returns.emplace_back();
            if (value.isTensor())
                forms.returns.back().push_back(form_of(value.toTensor()));
            else if (value.isTensorList())
                for (const at::Tensor &one : value.toTensorVector())
                    forms.returns.back().push_back(form_of(one));
        }
        for (size_t place = 0; place < given.size(); ++place)
            if (is_written(place) && given[place].isTensor() && is_ours(given[place].toTensor()) &&
                before[place].toTensor().sizes() != given[place].toTensor().sizes())
                forms.resized.emplace_back(place, form_of(before[place].toTensor()));
        return forms;
    }

    IValue as_meta(size_t place)
    {
        const IValue &value = given[place];
        if (value.isDevice())
            return c10::Device(c10::kMeta);
        if (value.isGenerator())
            return IValue();
        return with_tensors(value, [](const at::Tensor &one, bool) {
            if (!is_ours(one))
                return one.dim() == 0 || one.device().is_meta()
                           ? one
                           : at::Tensor(at::detail::empty_strided_meta(one.sizes(), one.strides(),
                                                                       one.scalar_type()));
            return at::Tensor(
                at::detail::empty_strided_meta(one.sizes(), one.strides(), one.scalar_type()));
        });
    }

    // ---- running ----

    static Stack run_kernel(const OperatorHandle &kernel, Stack stack)
    {
        const at::AutoDispatchBelowADInplaceOrView guard;
        kernel.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
        return stack;
    }

    // The caller's own tensor, which that return is; nullptr: it is a fresh one.
    const IValue *argument_of(size_t result) const
    {
        const auto *alias_info = schema.returns()[result].alias_info();
        if (!alias_info || !alias_info->isWrite())
            return nullptr;
        for (size_t place = 0; place < given.size(); ++place) {
            const auto *of = schema.arguments()[place].alias_info();
            if (of && *of == *alias_info)
                return &given[place];
        }
        return nullptr;
    }

    Stack run_later(const Forms &forms)
    {
        for (const auto &[place, form] : forms.resized) {
            resize(given[place].toTensor(), form.sizes, form.strides);
            on_cpu[place] = for_kernels(given[place].toTensor());
        }
        Stack results;
        std::vector<std::vector<at::Tensor>> places(schema.returns().size());
        for (size_t number = 0; number < schema.returns().size(); ++number) {
            if (const IValue *own = argument_of(number)) {
                results.push_back(*own);
                continue;
            }
            std::vector<at::Tensor> made;
            for (const Form &form : forms.returns[number]) {
                made.push_back(form.defined ? make(form.sizes, form.strides, form.dtype, device)
                                            : at::Tensor());
                places[number].push_back(form.defined ? for_kernels(made.back()) : at::Tensor());
            }
            const bool list = schema.returns()[number].type()->kind() == c10::TypeKind::ListType;
            results.push_back(list ? IValue(c10::List<at::Tensor>(made)) : IValue(made.at(0)));
        }
        current_stream(device).push([kernel = kernel,
                                     arguments = Stack(on_cpu.begin(), on_cpu.end()), places,
                                     reshaped = reshaped()]() mutable {
            std::vector<std::pair<at::Tensor, at::Tensor>> copies;
            for (const size_t place : reshaped) {
                const at::Tensor own = arguments[place].toTensor();
                copies.emplace_back(own, at::empty({0}, own.options())); // else it warns
                arguments[place] = copies.back().second;
            }
            const Stack made = run_kernel(kernel, std::move(arguments));
            for (const auto &[own, copy] : copies)
                own.copy_(copy);
            for (size_t number = 0; number < places.size(); ++number) {
                size_t next = 0;
                if (!places[number].empty())
                    each_tensor(made[number], [&](const at::Tensor &one, bool) {
                        const at::Tensor &place = places[number][next++];
                        if (one.numel() || !place.numel()) // the CPU's batch norm leaves some out
                            place.copy_(one);
                    });
            }
        });
        return results;
    }

    at::Tensor on_device(const at::Tensor &host) const
    {
        at::Tensor made = make(host.sizes(), host.strides(), host.scalar_type(), device);
        if (host.numel())
            for_kernels(made).copy_(host);
        return made;
    }

    Stack run_at_once()
    {
        wait_implicitly(device);
        std::vector<std::pair<at::Tensor, at::Tensor>>
            out; // (the caller's, a CPU tensor that may be resized)
        for (size_t place = 0; place < given.size(); ++place)
            if (is_written(place) && schema.arguments()[place].is_out() &&
                given[place].isTensor() && is_ours(given[place].toTensor())) {
                out.emplace_back(given[place].toTensor(), copy_of(on_cpu[place].toTensor()));
                on_cpu[place] = out.back().second;
            }
        const Stack made = run_kernel(kernel, Stack(on_cpu.begin(), on_cpu.end()));
        for (const auto &[own, host] : out) {
            if (own.sizes() != host.sizes())
                resize(own, host.sizes(), host.strides());
            for_kernels(own).copy_(host);
        }
        Stack results;
        for (size_t number = 0; number < made.size(); ++number) {
            const IValue *own = argument_of(number);
            results.push_back(own ? *own
                                  : with_tensors(made[number], [this](const at::Tensor &one, bool) {
                                        return on_device(one);
                                    }));
        }
        return results;
    }

    const OperatorHandle &kernel;
    const std::vector<IValue> given;
    const c10::FunctionSchema &schema;
    std::vector<IValue> on_cpu;
    int device = -1;
    Forms own;
    static const Forms nothing;
};

const Forms Call::nothing;

// op: what was called; kernel: whose kernels do the work.
void run(const OperatorHandle &op, const OperatorHandle &kernel, std::vector<IValue> given,
         Stack *stack)
{
    Stack results = Call(kernel, std::move(given)).run();
    torch::jit::drop(*stack, op.schema().arguments().size());
    for (IValue &one : results)
        stack->push_back(std::move(one));
}

std::vector<IValue> arguments_of(const OperatorHandle &op, const Stack *stack)
{
    return torch::jit::last(*stack, op.schema().arguments().size()).vec();
}

void fallback(const OperatorHandle &op, Stack *stack)
{
    run(op, op, arguments_of(op, stack), stack);
}

OperatorHandle operator_of(const char *name)
{
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

void convolution(const OperatorHandle &op, Stack *stack)
{
    static const OperatorHandle kernel = operator_of("aten::convolution");
    run(op, kernel, arguments_of(op, stack), stack);
}

void convolution_backward(const OperatorHandle &op, Stack *stack)
{
    static const OperatorHandle kernel = operator_of("aten::convolution_backward");
    std::vector<IValue> given = arguments_of(op, stack);
    const int64_t channels = given[0].toTensor().size(1);
    given.insert(given.begin() + 3,
                 IValue(std::vector<int64_t>{channels})); // the sizes of the bias
    run(op, kernel, std::move(given), stack);
}

// Streams' threads run kernels below autograd, as the calling thread has decided already what they
// are.
void around(const Work &loop)
{
    const at::AutoDispatchBelowADInplaceOrView below;
    const c10::NoGradGuard no_grad;
    loop();
}

} // namespace

void register_fallback()
{
    around_threads = around;
    auto &all = *new torch::Library(torch::Library::IMPL, "_", key(), __FILE__, __LINE__);
    all.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
    auto &some = *new torch::Library(torch::Library::IMPL, "aten", key(), __FILE__, __LINE__);
    some.impl("convolution_overrideable",
              torch::CppFunction::makeFromBoxedFunction<&convolution>());
    some.impl("convolution_backward_overrideable",
              torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
    // Of CUDA: the composite ones look for kernels of CUDA's own.
    for (const char *name : {"convolution", "convolution_backward"})
        some.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

} // namespace emulated
