// A ros2_control controller that holds the weight of an arm: torques from the code that armdyn generated for this arm.
#pragma once

#include <string>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "ur5_controllers.hpp"  // armdyn deploy ur5.urdf --target cpp --controller gravity_compensation -o generated

namespace armdyn_controller
{
class GravityCompensation : public controller_interface::ControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  std::vector<std::string> joints_;
  ur5::controllers::gravity_compensation law_;  // fixed size: update() allocates nothing
};
}  // namespace armdyn_controller
