#include "armdyn_controller/gravity_compensation.hpp"

#include "pluginlib/class_list_macros.hpp"

namespace armdyn_controller
{
using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;

CallbackReturn GravityCompensation::on_init()
{
  auto_declare<std::vector<std::string>>("joints", {});
  auto_declare<double>("payload_mass", 0.0);
  auto_declare<std::vector<double>>("payload_com", {0.0, 0.0, 0.0});
  auto_declare<double>("damping", 0.0);
  return CallbackReturn::SUCCESS;
}

CallbackReturn GravityCompensation::on_configure(const rclcpp_lifecycle::State &)
{
  joints_ = get_node()->get_parameter("joints").as_string_array();
  const auto com = get_node()->get_parameter("payload_com").as_double_array();
  if (joints_.size() != ur5::N || com.size() != 3) {
    return CallbackReturn::ERROR;  // the names of all joints, in the order of armdyn, and three lengths
  }
  law_.gains.payload.mass = get_node()->get_parameter("payload_mass").as_double();
  for (std::size_t k = 0; k < 3; ++k) {
    law_.gains.payload.com[k] = com[k];
  }
  law_.gains.damping.fill(get_node()->get_parameter("damping").as_double());
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration GravityCompensation::command_interface_configuration() const
{
  InterfaceConfiguration wanted{interface_configuration_type::INDIVIDUAL, {}};
  for (const auto & joint : joints_) {
    wanted.names.push_back(joint + "/effort");
  }
  return wanted;
}

InterfaceConfiguration GravityCompensation::state_interface_configuration() const
{
  InterfaceConfiguration wanted{interface_configuration_type::INDIVIDUAL, {}};
  for (const auto & joint : joints_) {  // update() relies on this order
    wanted.names.push_back(joint + "/position");
    wanted.names.push_back(joint + "/velocity");
  }
  return wanted;
}

CallbackReturn GravityCompensation::on_activate(const rclcpp_lifecycle::State &)
{
  const bool there = command_interfaces_.size() == ur5::N && state_interfaces_.size() == 2 * ur5::N;
  return there ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
}

CallbackReturn GravityCompensation::on_deactivate(const rclcpp_lifecycle::State &)
{
  for (auto & command : command_interfaces_) {
    static_cast<void>(command.set_value(0.0));
  }
  return CallbackReturn::SUCCESS;
}

controller_interface::return_type GravityCompensation::update(const rclcpp::Time &, const rclcpp::Duration & period)
{
  decltype(law_)::in measured;
  for (std::size_t k = 0; k < ur5::N; ++k) {
    measured.q[k] = state_interfaces_[2 * k].get_value();
    measured.qd[k] = state_interfaces_[2 * k + 1].get_value();
  }
  const auto commanded = law_.update(measured, period.seconds());
  for (std::size_t k = 0; k < ur5::N; ++k) {
    static_cast<void>(command_interfaces_[k].set_value(commanded.tau[k]));
  }
  return controller_interface::return_type::OK;
}
}  // namespace armdyn_controller

PLUGINLIB_EXPORT_CLASS(armdyn_controller::GravityCompensation, controller_interface::ControllerInterface)
