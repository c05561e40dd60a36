// SPDX-License-Identifier: GPL-3.0-or-later
// The Python module of the emulated device: what tests ask of the runtime. Loading the library
// registers the device.
#include <ATen/Context.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/Generator.h>

#include "backend.h"

namespace
{

const bool registered = [] {
    emulated::register_device();
    emulated::register_operators();
    emulated::register_fallback();
    emulated::register_collectives();
    return true;
}();

pybind11::dict counts()
{
    pybind11::dict found;
    for (int count = 0; count < emulated::COUNTS; ++count)
        found[emulated::count_name(count)] = emulated::count_of(count);
    return found;
}

void set_schedule(const std::string &name, uint64_t seed)
{
    const pybind11::gil_scoped_release released;
    emulated::set_schedule(name == "lazy"     ? emulated::Schedule::lazy
                           : name == "random" ? emulated::Schedule::random
                                              : emulated::Schedule::eager,
                           seed);
}

void clear()
{
    const pybind11::gil_scoped_release released;
    for (int device = 0; device < emulated::DEVICES; ++device)
        emulated::clear(device);
}

void wait_for_all()
{
    if (emulated::was_forked())
        return; // its streams are the parent's
    const pybind11::gil_scoped_release released;
    for (int device = 0; device < emulated::DEVICES; ++device)
        emulated::wait_for_device(device);
}

pybind11::object default_generator(int device)
{
    const auto own = c10::Device(emulated::type(), static_cast<c10::DeviceIndex>(device));
    return pybind11::reinterpret_steal<pybind11::object>(
        THPGenerator_initDefaultGenerator(at::globalContext().defaultGenerator(own)));
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.attr("DEVICES") = emulated::DEVICES;
    m.def("counts", counts, "name -> number, since the last reset_counts()");
    m.def("reset_counts", emulated::reset_counts);
    m.def("set_schedule", set_schedule, "eager, random or lazy; and a seed");
    m.def("fail_allocation", emulated::fail_allocation, "the nth allocation from now fails");
    m.def("fail_kernel", emulated::fail_kernel,
          "the nth piece of work from now fails when it runs");
    m.def("error_of", emulated::error_of);
    m.def("clear", clear, "forgets the errors of all devices");
    m.def("report_faults", emulated::report_faults);
    m.def("wait_for_all", wait_for_all);
    m.def("usage", [](int device) {
        const emulated::Usage usage = emulated::usage_of(device);
        return std::make_pair(usage.bytes, usage.peak);
    });
    m.def("reset_peak", emulated::reset_peak);
    m.def("set_limit", emulated::set_limit, "of a device's memory, in bytes");
    m.def("default_generator", default_generator);
    m.def("was_forked", emulated::was_forked);
    m.def("use_collectives", emulated::use_collectives,
          "gives a process group those of the device");
}
