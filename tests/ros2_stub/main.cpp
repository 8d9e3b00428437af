// Runs the controller once for the positions and velocities on standard input, and prints what it commands.
#include <cstdio>
#include <iostream>

#include "armdyn_controller/gravity_compensation.hpp"

int main(int, char ** argv)
{
  using controller_interface::CallbackReturn;
  armdyn_controller::GravityCompensation controller;
  const rclcpp_lifecycle::State state;
  controller.on_init();
  if (controller.on_configure(state) != CallbackReturn::ERROR) { return 1; }  // no joints are named yet
  std::vector<std::string> names;
  for (std::size_t k = 0; k < ur5::N; ++k) { names.push_back("joint" + std::to_string(k + 1)); }
  controller.node->parameters["joints"].value = names;
  controller.node->parameters["payload_mass"].value = std::stod(argv[1]);
  controller.node->parameters["payload_com"].value = std::vector<double>{0.01, -0.02, 0.05};
  controller.node->parameters["damping"].value = std::stod(argv[2]);
  if (controller.on_configure(state) != CallbackReturn::SUCCESS) { return 2; }
  if (controller.on_activate(state) != CallbackReturn::ERROR) { return 3; }  // no interfaces are loaned yet
  std::map<std::string, double> numbers;
  for (const auto & name : controller.state_interface_configuration().names) {
    controller.state_interfaces_.push_back({&numbers[name]});
  }
  for (const auto & name : controller.command_interface_configuration().names) {
    controller.command_interfaces_.push_back({&numbers[name]});
  }
  if (controller.on_activate(state) != CallbackReturn::SUCCESS) { return 4; }
  for (const char * kind : {"/position", "/velocity"}) {
    for (const auto & name : names) { std::cin >> numbers[name + kind]; }
  }
  controller.update({}, {0.002});
  for (const auto & name : names) { std::printf("%.17g\n", numbers[name + "/effort"]); }
  controller.on_deactivate(state);
  for (const auto & name : names) { if (numbers[name + "/effort"] != 0.0) { return 5; } }
  return 0;
}
