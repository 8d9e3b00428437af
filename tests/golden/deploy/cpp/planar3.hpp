/*
 * planar3: dynamics in straight-line C++17, written by armdyn 0.2.0.
 * Arm: Saha, IJRR 1999, section 6 (structure); the numbers are made up: uniform rods
 * SI units. The arrays of a call must not overlap. No memory allocation, no dependency except libm.
 */
#ifndef PLANAR3_HPP
#define PLANAR3_HPP

#include <math.h>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#ifdef PLANAR3_WITH_EIGEN
#include <Eigen/Core>
#endif

namespace planar3 {

using scalar = float;

inline constexpr std::size_t N = 3;
inline constexpr std::size_t P = 9;

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

/// The arm's minimal parameters, from its file: pass these, or your own, as `parameters`.
inline constexpr std::array<scalar, 9> present_parameters = {{
    0.43333334f, // U33_1
    0.95f, // kx_1
    0.0f, // ky_1
    0.13866666f, // U33_2
    0.4f, // kx_2
    0.0f, // ky_2
    0.018f, // U33_3
    0.09f, // kx_3
    0.0f, // ky_3
}};

/// A body that the tool holds, for payload_parameters and the controllers; point masses have no inertia.
struct payload {
    scalar mass = 0; ///< kg
    std::array<scalar, 3> com{}; ///< centre of mass in the tool frame, m
    std::array<scalar, 6> inertia{}; ///< about com, in the tool's axes: xx, yy, zz, xy, xz, yz, kg m²
};

/*
 * joint-space inertia matrix, by lin_fang_1: wrenches carried inwards, frame by frame
 * Source: lin_fang_1999
 * 12 multiplications, 13 additions, 0 divisions, 4 sines and cosines.
 *   in  q[3], rad
 *   in  parameters[9], SI
 *   out H[3][3], row-major, SI
 */
inline void inertia_matrix(input<3> q, input<9> parameters, output<9> H) noexcept
{
    const float t0 = cosf(q[1]);
    const float t1 = sinf(q[1]);
    const float t2 = cosf(q[2]);
    const float t3 = sinf(q[2]);
    const float t4 = parameters[7] * t2 - parameters[8] * t3;
    const float t5 = parameters[7] * t3 + parameters[8] * t2;
    const float t6 = parameters[3] + (parameters[6] + t4 * 0.8f);
    const float t7 = t0 * (parameters[4] + t4) - t1 * (parameters[5] + t5);
    const float t8 = t6 + t7 * 0.5f;
    const float t9 = parameters[6] + t4 * 0.4f;
    const float t10 = t9 - 0.5f * (t1 * t5 - t0 * t4);
    H[0] = parameters[0] + (t6 + t7);
    H[1] = t8;
    H[2] = t10;
    H[3] = t8;
    H[4] = t6;
    H[5] = t9;
    H[6] = t10;
    H[7] = t9;
    H[8] = parameters[6];
}

/*
 * gravity load, by recursive: forces carried inwards
 * Source: armdyn
 * 16 multiplications, 9 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   in  parameters[9], SI
 *   out g[3], N m
 */
inline void gravity_load(input<3> q, input<9> parameters, output<3> g) noexcept
{
    const float t0 = cosf(q[0]);
    const float t1 = sinf(q[0]);
    const float t2 = cosf(q[1]);
    const float t3 = sinf(q[1]);
    const float t4 = cosf(q[2]);
    const float t5 = sinf(q[2]);
    const float t6 = t1 * 9.81f;
    const float t7 = t0 * 9.81f;
    const float t8 = t2 * t6 + t3 * t7;
    const float t9 = t2 * t7 - t3 * t6;
    const float t10 = parameters[7] * (t4 * t9 - t5 * t8) - parameters[8] * (t4 * t8 + t5 * t9);
    const float t11 = parameters[4] * t9 - parameters[5] * t8 + t10;
    g[0] = parameters[1] * t7 - parameters[2] * t6 + t11;
    g[1] = t11;
    g[2] = t10;
}

/*
 * minimal parameters with a payload at the tool, by superposition: the payload's parameters added to the arm's
 * The payload is not checked. It must be physically possible (non-negative mass, an inertia that a rigid body can
 * have, no NaN), or the negative of such a payload, which removes it. arm.payload_parameters in Python checks it.
 * Source: armdyn
 * 9 multiplications, 12 additions, 0 divisions, 0 sines and cosines.
 *   in  mass (one number), kg
 *   in  com[3], m, in the tool's axes
 *   in  inertia[6], kg m²: xx, yy, zz, xy, xz, yz about com
 *   in  parameters[9], SI
 *   out values[9], SI
 */
inline void payload_parameters(input<1> mass, input<3> com, input<6> inertia, input<9> parameters, output<9> values) noexcept
{
    const float t0 = inertia[2] + parameters[6] + mass[0] * (com[1] * com[1] + com[0] * (com[0] + 0.6f) + 0.09f);
    values[0] = parameters[0] + mass[0] * 0.25f;
    values[1] = parameters[1] + mass[0] * 0.5f;
    values[2] = parameters[2];
    values[3] = parameters[3] + mass[0] * 0.16f;
    values[4] = parameters[4] + mass[0] * 0.4f;
    values[5] = parameters[5];
    values[6] = t0;
    values[7] = parameters[7] + mass[0] * (com[0] + 0.3f);
    values[8] = parameters[8] + mass[0] * com[1];
}

#ifdef PLANAR3_WITH_EIGEN
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

inline Matrix<3, 3> inertia_matrix(const Eigen::Ref<const Vector<3>>& q, const Eigen::Ref<const Vector<9>>& parameters) noexcept
{
    Matrix<3, 3> result;
    planar3::inertia_matrix(input<3>(q.data()), input<9>(parameters.data()), output<9>(result.data()));
    return result;
}

inline Vector<3> gravity_load(const Eigen::Ref<const Vector<3>>& q, const Eigen::Ref<const Vector<9>>& parameters) noexcept
{
    Vector<3> result;
    planar3::gravity_load(input<3>(q.data()), input<9>(parameters.data()), output<3>(result.data()));
    return result;
}

inline Vector<9> payload_parameters(scalar mass, const Eigen::Ref<const Vector<3>>& com, const Eigen::Ref<const Vector<6>>& inertia, const Eigen::Ref<const Vector<9>>& parameters) noexcept
{
    Vector<9> result;
    planar3::payload_parameters(mass, input<3>(com.data()), input<6>(inertia.data()), input<9>(parameters.data()), output<9>(result.data()));
    return result;
}

} // namespace eigen
#endif

} // namespace planar3

#endif // PLANAR3_HPP
