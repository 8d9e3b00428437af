/*
 * Checks planar3.hpp against test vectors computed when it was generated.
 * Build and run: make test
 */
#include "planar3.hpp"

#include <cmath>
#include <cstdio>

namespace armdyn_test {

static int passed = 0, failed = 0;

static bool differs(const float* got, const float* expected, std::size_t size)
{
    float scale = 1.0f;
    for (std::size_t k = 0; k < size; ++k)
        if (std::fabs(expected[k]) > scale) scale = std::fabs(expected[k]);
    for (std::size_t k = 0; k < size; ++k)
        if (!(std::fabs(got[k] - expected[k]) <= 0.001f * scale)) return true;
    return false;
}

static void judge(bool wrong, const char* what, int vector)
{
    if (!wrong) { ++passed; return; }
    ++failed;
    std::printf("%s: vector %d differs\n", what, vector);
}

static const float armdyn_inertia_matrix_q[] = {
    1.362f, 0.804f, -1.122f, 0.981f, 1.047f, -0.451f,
    0.034f, 0.307f, -0.483f, 0.365f, 0.697f, 1.083f,
    -0.487f, -0.212f, 0.283f,
};
static const float armdyn_inertia_matrix_parameters[] = {
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f,
};
static const float armdyn_inertia_matrix_expected_H[] = {
    0.9842598f, 0.3694163f, 0.07636355f, 0.3694163f, 0.18790613f, 0.033619728f,
    0.07636355f, 0.033619728f, 0.018f, 0.92935216f, 0.35874316f, 0.087641865f,
    0.35874316f, 0.22146751f, 0.05040042f, 0.087641865f, 0.05040042f, 0.018f,
    1.123671f, 0.455384f, 0.09418664f, 0.455384f, 0.22043027f, 0.0498818f,
    0.09418664f, 0.0498818f, 0.018f, 0.91176224f, 0.3344203f, 0.025526848f,
    0.3344203f, 0.19041166f, 0.034872495f, 0.025526848f, 0.034872495f, 0.018f,
    1.1399541f, 0.46621168f, 0.09745462f, 0.46621168f, 0.22580266f, 0.052567992f,
    0.09745462f, 0.052567992f, 0.018f,
};

static void check_inertia_matrix()
{
    for (int k = 0; k < 5; ++k) {
        std::array<planar3::scalar, 9> got_H;
        planar3::inertia_matrix(planar3::input<3>(armdyn_inertia_matrix_q + k * 3), planar3::input<9>(armdyn_inertia_matrix_parameters + k * 9), got_H);
        judge(differs(got_H.data(), armdyn_inertia_matrix_expected_H + k * 9, 9), "inertia_matrix", k);
        static_assert(noexcept(planar3::inertia_matrix(planar3::input<3>(armdyn_inertia_matrix_q + k * 3), planar3::input<9>(armdyn_inertia_matrix_parameters + k * 9), got_H)));
#ifdef PLANAR3_WITH_EIGEN
        const auto by_eigen = planar3::eigen::inertia_matrix(Eigen::Map<const planar3::eigen::Vector<3>>(armdyn_inertia_matrix_q + k * 3), Eigen::Map<const planar3::eigen::Vector<9>>(armdyn_inertia_matrix_parameters + k * 9));
        judge(differs(by_eigen.data(), armdyn_inertia_matrix_expected_H + k * 9, 9), "inertia_matrix with Eigen", k);
#endif
    }
}

static const float armdyn_gravity_load_q[] = {
    1.362f, 0.804f, -1.122f, 0.981f, 1.047f, -0.451f,
    0.034f, 0.307f, -0.483f, 0.365f, 0.697f, 1.083f,
    -0.487f, -0.212f, 0.283f,
};
static const float armdyn_gravity_load_parameters[] = {
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f,
};
static const float armdyn_gravity_load_expected_g[] = {
    0.1755639f, -1.7562056f, 0.44389263f, 3.4457386f, -1.7376906f, -0.005477188f,
    13.886187f, 4.5720725f, 0.87401354f, 10.137488f, 1.4319224f, -0.47956157f,
    12.047389f, 3.811367f, 0.80759984f,
};

static void check_gravity_load()
{
    for (int k = 0; k < 5; ++k) {
        std::array<planar3::scalar, 3> got_g;
        planar3::gravity_load(planar3::input<3>(armdyn_gravity_load_q + k * 3), planar3::input<9>(armdyn_gravity_load_parameters + k * 9), got_g);
        judge(differs(got_g.data(), armdyn_gravity_load_expected_g + k * 3, 3), "gravity_load", k);
        static_assert(noexcept(planar3::gravity_load(planar3::input<3>(armdyn_gravity_load_q + k * 3), planar3::input<9>(armdyn_gravity_load_parameters + k * 9), got_g)));
#ifdef PLANAR3_WITH_EIGEN
        const auto by_eigen = planar3::eigen::gravity_load(Eigen::Map<const planar3::eigen::Vector<3>>(armdyn_gravity_load_q + k * 3), Eigen::Map<const planar3::eigen::Vector<9>>(armdyn_gravity_load_parameters + k * 9));
        judge(differs(by_eigen.data(), armdyn_gravity_load_expected_g + k * 3, 3), "gravity_load with Eigen", k);
#endif
    }
}

static const float armdyn_payload_parameters_mass[] = {
    1.362f, 0.804f, -1.122f, 0.981f, 1.047f,
};
static const float armdyn_payload_parameters_com[] = {
    -0.451f, 0.034f, 0.307f, -0.483f, 0.365f, 0.697f,
    1.083f, -0.487f, -0.212f, 0.283f, 1.427f, 1.284f,
    -1.325f, 0.795f, -1.027f,
};
static const float armdyn_payload_parameters_inertia[] = {
    -0.667f, 0.251f, 0.838f, -0.98f, 1.28f, -0.455f,
    1.012f, 1.191f, -0.816f, -1.009f, 1.135f, -1.061f,
    0.869f, 1.483f, -1.255f, 0.2f, -0.444f, 0.628f,
    1.14f, -0.534f, -0.516f, -0.749f, 1.053f, 0.795f,
    1.085f, 0.172f, 1.165f, -1.11f, 1.147f, -0.387f,
};
static const float armdyn_payload_parameters_parameters[] = {
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f,
};
static const float armdyn_payload_parameters_expected_values[] = {
    0.77383333f, 1.631f, 0.0f, 0.35658666f, 0.9448f, 0.0f,
    0.88862944f, -0.115662f, 0.046308f, 0.6343333f, 1.352f, 0.0f,
    0.26730666f, 0.7216f, 0.0f, -0.66396195f, -0.057132f, 0.29346f,
    0.15283333f, 0.389f, 0.0f, -0.040853333f, -0.0488f, 0.0f,
    -3.6491406f, -1.461726f, 0.546414f, 0.6785833f, 1.4405f, 0.0f,
    0.29562667f, 0.7924f, 0.0f, 1.8330698f, 0.661923f, 1.399887f,
    0.6950833f, 1.4735f, 0.0f, 0.30618668f, 0.8188f, 0.0f,
    2.9447346f, -0.983175f, 0.832365f,
};

static void check_payload_parameters()
{
    for (int k = 0; k < 5; ++k) {
        std::array<planar3::scalar, 9> got_values;
        planar3::payload_parameters(planar3::input<1>(armdyn_payload_parameters_mass + k * 1), planar3::input<3>(armdyn_payload_parameters_com + k * 3), planar3::input<6>(armdyn_payload_parameters_inertia + k * 6), planar3::input<9>(armdyn_payload_parameters_parameters + k * 9), got_values);
        judge(differs(got_values.data(), armdyn_payload_parameters_expected_values + k * 9, 9), "payload_parameters", k);
        static_assert(noexcept(planar3::payload_parameters(planar3::input<1>(armdyn_payload_parameters_mass + k * 1), planar3::input<3>(armdyn_payload_parameters_com + k * 3), planar3::input<6>(armdyn_payload_parameters_inertia + k * 6), planar3::input<9>(armdyn_payload_parameters_parameters + k * 9), got_values)));
#ifdef PLANAR3_WITH_EIGEN
        const auto by_eigen = planar3::eigen::payload_parameters(armdyn_payload_parameters_mass[k], Eigen::Map<const planar3::eigen::Vector<3>>(armdyn_payload_parameters_com + k * 3), Eigen::Map<const planar3::eigen::Vector<6>>(armdyn_payload_parameters_inertia + k * 6), Eigen::Map<const planar3::eigen::Vector<9>>(armdyn_payload_parameters_parameters + k * 9));
        judge(differs(by_eigen.data(), armdyn_payload_parameters_expected_values + k * 9, 9), "payload_parameters with Eigen", k);
#endif
    }
}

} // namespace armdyn_test

int main()
{
    armdyn_test::check_inertia_matrix();
    armdyn_test::check_gravity_load();
    armdyn_test::check_payload_parameters();
    std::printf("%d passed, %d failed\n", armdyn_test::passed, armdyn_test::failed);
    return armdyn_test::failed != 0;
}
