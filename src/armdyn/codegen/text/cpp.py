"""Programs as one C++17 header without dependencies, with a unit test and a Makefile.

The functions take views whose size is known at compile time, so that an array of the wrong length does not compile.
Nothing allocates or throws. A macro adds overloads that take and return Eigen matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from armdyn.codegen.text.c import TOLERANCES, Package, banner, doc, literal, out_name, statements, vectors
from armdyn.codegen.text.names import identifier
from armdyn.graph import Port, Program

VIEW = """\
/// A non-owning view of exactly Size numbers.
template <typename T, std::size_t Size>
class view {
public:
    /// From an array of this size.
    constexpr view(T (&numbers)[Size]) noexcept : data_(numbers) {}

    /// From any container with data() and this size at compile time: std::array, another view.
    template <typename Array, std::size_t S = std::tuple_size<std::remove_cv_t<Array>>::value,
              typename = std::enable_if_t<S == Size &&
                                          std::is_convertible_v<decltype(std::declval<Array&>().data()), T*>>>
    constexpr view(Array& numbers) noexcept : data_(numbers.data()) {}

    template <typename U, typename = std::enable_if_t<std::is_convertible_v<U*, T*>>>
    constexpr view(const view<U, Size>& other) noexcept : data_(other.data()) {}

    /// From one number.
    template <std::size_t S = Size, typename = std::enable_if_t<S == 1>>
    constexpr view(T& number) noexcept : data_(&number) {}

    /// From a pointer to Size numbers, unchecked: `input<6>(vector.data())`.
    constexpr explicit view(T* numbers) noexcept : data_(numbers) {}

    constexpr T& operator[](std::size_t k) const noexcept { return data_[k]; }
    constexpr T* data() const noexcept { return data_; }
    constexpr T* begin() const noexcept { return data_; }
    constexpr T* end() const noexcept { return data_ + Size; }
    static constexpr std::size_t size() noexcept { return Size; }

private:
    T* data_;
};

template <std::size_t Size>
using input = view<const scalar, Size>;
template <std::size_t Size>
using output = view<scalar, Size>;
"""

EIGEN = """\
/// The same functions on Eigen matrices, without copies of inputs or allocation.
namespace eigen {

template <int Rows>
using Vector = Eigen::Matrix<scalar, Rows, 1>;
template <int Rows, int Columns>
using Matrix = Eigen::Matrix<scalar, Rows, Columns, Columns == 1 ? Eigen::ColMajor : Eigen::RowMajor>;

/// A view as an Eigen vector.
template <std::size_t Size>
Eigen::Map<const Vector<static_cast<int>(Size)>> map(input<Size> numbers) noexcept
{
    return Eigen::Map<const Vector<static_cast<int>(Size)>>(numbers.data());
}

template <std::size_t Size>
Eigen::Map<Vector<static_cast<int>(Size)>> map(output<Size> numbers) noexcept
{
    return Eigen::Map<Vector<static_cast<int>(Size)>>(numbers.data());
}
"""


def namespace(name: str) -> str:
    """A valid namespace, made from any name."""
    return identifier(name)


def files(package: Package) -> dict[str, str]:
    """File name -> text."""
    name = namespace(package.name)
    return {
        f"{name}.hpp": _header(name, package),
        f"test_{name}.cpp": _test(name, package),
        "Makefile": _makefile(name),
    }


def signature(quantity: str, program: Program) -> str:
    """The declaration of a function, without the semicolon."""
    inputs = [f"input<{len(port.nodes)}> {port.name}" for port in program.inputs]
    outputs = [f"output<{len(port.nodes)}> {out_name(port, program)}" for port in program.outputs]
    return f"void {quantity}({', '.join(inputs + outputs)}) noexcept"


def eigen_macro(name: str) -> str:
    """The macro that enables Eigen."""
    return f"{name.upper()}_WITH_EIGEN"


def with_eigen(program: Program) -> bool:
    """Whether a function has a single output that fits an Eigen vector or matrix."""
    return len(program.outputs) == 1 and 1 <= len(program.outputs[0].shape) <= 2


def _header(name: str, package: Package) -> str:
    guard = f"{name.upper()}_HPP"
    includes = ["array", "cstddef", "tuple", "type_traits", "utility"]
    lines = [banner(package.comment), f"#ifndef {guard}", f"#define {guard}", "", "#include <math.h>", ""]
    lines += [*(f"#include <{include}>" for include in includes), ""]
    lines += [f"#ifdef {eigen_macro(name)}", "#include <Eigen/Core>", "#endif", ""]
    lines += [f"namespace {name} {{", "", f"using scalar = {package.dtype};", ""]
    lines += [f"inline constexpr std::size_t {key} = {value};" for key, value in package.constants.items()]
    lines += ["", VIEW]
    if package.parameters:
        lines += [
            "/// The arm's minimal parameters, from its file: pass these, or your own, as `parameters`.",
            f"inline constexpr std::array<scalar, {len(package.parameters)}> present_parameters = {{{{",
            *(f"    {literal(value, package.dtype)}, // {label}" for label, value in package.parameters),
            "}};",
            "",
        ]
    for struct in package.structs:
        lines += [f"/// {struct.words}", f"struct {struct.name} {{"]
        for key, n, words in struct.fields:
            lines.append(f"    {f'std::array<scalar, {n}> {key}{{}}' if n else f'scalar {key} = 0'}; ///< {words}")
        lines += ["};", ""]
    for quantity, function in package.functions.items():
        head = f"inline {signature(quantity, function.program)}"
        lines += [doc(function), head, "{", *statements(function.program, package.dtype), "}", ""]
    lines += _eigen(name, package)
    lines += [f"}} // namespace {name}", "", f"#endif // {guard}", ""]
    return "\n".join(lines)


def _eigen(name: str, package: Package) -> list[str]:
    lines = [f"#ifdef {eigen_macro(name)}", EIGEN]
    for quantity, function in package.functions.items():
        if with_eigen(function.program):
            lines += [*_eigen_function(name, quantity, function.program), ""]
    return [*lines, "} // namespace eigen", "#endif", ""]


def _eigen_function(name: str, quantity: str, program: Program) -> list[str]:
    (out,) = program.outputs
    result = _eigen_type(out)
    arguments = [
        f"scalar {port.name}" if not port.shape else f"const Eigen::Ref<const {_eigen_type(port)}>& {port.name}"
        for port in program.inputs
    ]
    given = [
        port.name if not port.shape else f"input<{len(port.nodes)}>({port.name}.data())" for port in program.inputs
    ]
    return [
        f"inline {result} {quantity}({', '.join(arguments)}) noexcept",
        "{",
        f"    {result} result;",
        f"    {name}::{quantity}({', '.join([*given, f'output<{len(out.nodes)}>(result.data())'])});",
        "    return result;",
        "}",
    ]


def _eigen_type(port: Port) -> str:
    return f"Vector<{port.shape[0]}>" if len(port.shape) == 1 else f"Matrix<{', '.join(map(str, port.shape))}>"


def _test(name: str, package: Package) -> str:
    dtype = package.dtype
    tolerance, one = literal(TOLERANCES[dtype], dtype), literal(1.0, dtype)
    lines = [
        banner(f"Checks {name}.hpp against test vectors computed when it was generated.\nBuild and run: make test"),
        f'#include "{name}.hpp"',
        "",
        "#include <cmath>",
        "#include <cstdio>",
        "",
        "namespace armdyn_test {",
        "",
        "static int passed = 0, failed = 0;",
        "",
        f"static bool differs(const {dtype}* got, const {dtype}* expected, std::size_t size)",
        "{",
        f"    {dtype} scale = {one};",
        "    for (std::size_t k = 0; k < size; ++k)",
        "        if (std::fabs(expected[k]) > scale) scale = std::fabs(expected[k]);",
        "    for (std::size_t k = 0; k < size; ++k)",
        f"        if (!(std::fabs(got[k] - expected[k]) <= {tolerance} * scale)) return true;",
        "    return false;",
        "}",
        "",
        "static void judge(bool wrong, const char* what, int vector)",
        "{",
        "    if (!wrong) { ++passed; return; }",
        "    ++failed;",
        '    std::printf("%s: vector %d differs\\n", what, vector);',
        "}",
        "",
    ]
    for quantity, function in package.functions.items():
        lines += [*vectors(quantity, function, dtype), ""]
        lines += [*_check(name, quantity, function.program, len(function.outputs[0])), ""]
    lines += ["} // namespace armdyn_test", "", "int main()", "{"]
    lines += [f"    armdyn_test::check_{quantity}();" for quantity in package.functions]
    lines += ['    std::printf("%d passed, %d failed\\n", armdyn_test::passed, armdyn_test::failed);']
    lines += ["    return armdyn_test::failed != 0;", "}", ""]
    return "\n".join(lines)


def _check(name: str, quantity: str, program: Program, count: int) -> list[str]:
    arguments = [
        f"{name}::input<{len(port.nodes)}>(armdyn_{quantity}_{port.name} + k * {len(port.nodes)})"
        for port in program.inputs
    ]
    got = [f"got_{port.name}" for port in program.outputs]
    call = f"{name}::{quantity}({', '.join([*arguments, *got])})"
    wrong = " || ".join(
        f"differs(got_{port.name}.data(), armdyn_{quantity}_expected_{port.name} + k * {size}, {size})"
        for port, size in ((port, len(port.nodes)) for port in program.outputs)
    )
    return [
        f"static void check_{quantity}()",
        "{",
        f"    for (int k = 0; k < {count}; ++k) {{",
        *(f"        std::array<{name}::scalar, {len(port.nodes)}> got_{port.name};" for port in program.outputs),
        f"        {call};",
        f'        judge({wrong}, "{quantity}", k);',
        f"        static_assert(noexcept({call}));",
        *_eigen_check(name, quantity, program),
        "    }",
        "}",
    ]


def _eigen_check(name: str, quantity: str, program: Program) -> Sequence[str]:
    if not with_eigen(program):
        return ()
    (out,) = program.outputs
    size = math.prod(out.shape)
    place = f"armdyn_{quantity}"
    given = [
        f"{place}_{port.name}[k]"
        if not port.shape
        else f"Eigen::Map<const {name}::eigen::{_eigen_type(port)}>({place}_{port.name} + k * {len(port.nodes)})"
        for port in program.inputs
    ]
    wrong = f"differs(by_eigen.data(), armdyn_{quantity}_expected_{out.name} + k * {size}, {size})"
    return [
        f"#ifdef {eigen_macro(name)}",
        f"        const auto by_eigen = {name}::eigen::{quantity}({', '.join(given)});",
        f'        judge({wrong}, "{quantity} with Eigen", k);',
        "#endif",
    ]


def _makefile(name: str) -> str:
    return (
        "CXXFLAGS ?= -std=c++17 -O2 -Wall -Wextra -Werror -pedantic\n"
        "# Eigen is optional: if it is found, the test also checks the functions on Eigen matrices.\n"
        "EIGEN ?= $(firstword $(wildcard /usr/include/eigen3 /usr/local/include/eigen3 /opt/homebrew/include/eigen3))\n"
        f"WITH_EIGEN := $(if $(EIGEN),-D{eigen_macro(name)} -isystem $(EIGEN))\n\n"
        f"test: test_{name}\n\t./test_{name}\n\n"
        f"test_{name}: test_{name}.cpp {name}.hpp\n"
        f"\t$(CXX) $(CXXFLAGS) $(WITH_EIGEN) -o $@ test_{name}.cpp\n\n"
        f"clean:\n\trm -f test_{name}\n\n.PHONY: test clean\n"
    )
