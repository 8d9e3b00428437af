// Pinocchio in C++, headers only: times of its algorithms, and their results, for a model that Python wrote as text.
//
//   pinocchio_peer MODEL INPUTS RESULTS ROUNDS
//
// INPUTS are doubles: q, v, a, tau of each configuration. Every quantity is computed for all configurations in each
// round, into Pinocchio's own data; the best round counts. RESULTS gets those of the first configuration, row by row.
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

#include <ctime>
#include <fstream>
#include <iostream>

namespace se3 = pinocchio;
using Eigen::MatrixXd;
using Eigen::VectorXd;

static double thread_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static se3::SE3 placement(std::istream &in) {
  se3::SE3 M;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) in >> M.rotation()(i, j);
  for (int i = 0; i < 3; ++i) in >> M.translation()(i);
  return M;
}

static se3::Model read(const char *path) {
  std::ifstream in(path);
  se3::Model model;
  int joints;
  in >> joints;
  for (int i = 0; i < 3; ++i) {
    double g;
    in >> g;
    model.gravity.linear()(i) = g;
  }
  for (int k = 0; k < joints; ++k) {
    int parent;
    std::string kind;
    Eigen::Vector3d axis, lever;
    double mass, armature;
    Eigen::Matrix3d inertia;
    in >> parent >> kind >> axis(0) >> axis(1) >> axis(2) >> armature >> mass >> lever(0) >> lever(1) >> lever(2);
    for (int i = 0; i < 9; ++i) in >> inertia(i / 3, i % 3);
    const se3::SE3 at = placement(in);
    se3::JointModel joint;
    if (kind == "RX") joint = se3::JointModelRX();
    else if (kind == "RY") joint = se3::JointModelRY();
    else if (kind == "RZ") joint = se3::JointModelRZ();
    else if (kind == "PX") joint = se3::JointModelPX();
    else if (kind == "PY") joint = se3::JointModelPY();
    else if (kind == "PZ") joint = se3::JointModelPZ();
    else if (kind == "RevoluteUnaligned") joint = se3::JointModelRevoluteUnaligned(axis);
    else if (kind == "PrismaticUnaligned") joint = se3::JointModelPrismaticUnaligned(axis);
    else if (kind == "FreeFlyer") joint = se3::JointModelFreeFlyer();
    else throw std::runtime_error("no joint of the kind " + kind);
    const auto id = model.addJoint(parent, joint, at, "joint" + std::to_string(k));
    model.appendBodyToJoint(id, se3::Inertia(mass, lever, inertia), se3::SE3::Identity());
    model.armature.segment(model.joints[id].idx_v(), model.joints[id].nv()).setConstant(armature);
  }
  return model;
}

int main(int, char **argv) {
  const se3::Model model = read(argv[1]);
  se3::Data data(model);
  const int nq = model.nq, nv = model.nv, row = nq + 3 * nv, rounds = std::atoi(argv[4]);
  std::ifstream in(argv[2], std::ios::binary);
  std::vector<double> numbers;
  in.seekg(0, std::ios::end);
  numbers.resize(in.tellg() / sizeof(double));
  in.seekg(0);
  in.read(reinterpret_cast<char *>(numbers.data()), numbers.size() * sizeof(double));
  const int count = numbers.size() / row;
  std::vector<VectorXd> q, v, a, tau;
  for (int k = 0; k < count; ++k) {
    const double *at = numbers.data() + k * row;
    q.push_back(Eigen::Map<const VectorXd>(at, nq));
    v.push_back(Eigen::Map<const VectorXd>(at + nq, nv));
    a.push_back(Eigen::Map<const VectorXd>(at + nq + nv, nv));
    tau.push_back(Eigen::Map<const VectorXd>(at + nq + 2 * nv, nv));
  }
  const se3::JointIndex last = model.njoints - 1;
  MatrixXd J = MatrixXd::Zero(6, nv);
  std::ofstream results(argv[3]);
  results.precision(17);
  const auto write = [&](const MatrixXd &M) {
    for (int i = 0; i < M.rows(); ++i)
      for (int j = 0; j < M.cols(); ++j) results << M(i, j) << ' ';
  };
  const auto timed = [&](const char *name, auto compute, auto show) {
    compute(0);
    results << name << ' ';
    show();
    results << '\n';
    double best = 1e9;
    for (int r = 0; r < rounds; ++r) {
      const double start = thread_time();
      for (int k = 0; k < count; ++k) compute(k);
      best = std::min(best, (thread_time() - start) / count);
    }
    std::cout << name << ' ' << best << std::endl;
  };
  timed("inertia_matrix", [&](int k) { se3::crba(model, data, q[k], se3::Convention::WORLD); },
        [&] { write(MatrixXd(data.M.selfadjointView<Eigen::Upper>())); });
  timed("inverse_dynamics", [&](int k) { se3::rnea(model, data, q[k], v[k], a[k]); }, [&] { write(data.tau); });
  timed("forward_dynamics", [&](int k) { se3::aba(model, data, q[k], v[k], tau[k], se3::Convention::WORLD); },
        [&] { write(data.ddq); });
  timed("gravity_load", [&](int k) { se3::computeGeneralizedGravity(model, data, q[k]); }, [&] { write(data.g); });
  timed("jacobian",
        [&](int k) {
          se3::computeJointJacobians(model, data, q[k]);
          J.setZero();
          se3::getJointJacobian(model, data, last, se3::LOCAL_WORLD_ALIGNED, J);
        },
        [&] { write(J); });
  timed("inverse_dynamics_derivatives", [&](int k) { se3::computeRNEADerivatives(model, data, q[k], v[k], a[k]); },
        [&] { write(data.dtau_dq); write(data.dtau_dv); write(MatrixXd(data.M.selfadjointView<Eigen::Upper>())); });
  timed("forward_dynamics_derivatives", [&](int k) { se3::computeABADerivatives(model, data, q[k], v[k], tau[k]); },
        [&] { write(data.ddq_dq); write(data.ddq_dv); write(MatrixXd(data.Minv.selfadjointView<Eigen::Upper>())); });
  timed("regressor", [&](int k) { se3::computeJointTorqueRegressor(model, data, q[k], v[k], a[k]); },
        [&] { write(data.jointTorqueRegressor); });
}
