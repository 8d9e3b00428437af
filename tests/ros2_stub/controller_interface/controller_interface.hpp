// A stub of what the example in examples/ros2 uses of ros2_control: parameters, loaned interfaces, the life cycle's calls.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace rclcpp
{
struct Time {};
struct Duration
{
  double s;
  double seconds() const { return s; }
};
struct Parameter
{
  std::variant<double, std::vector<double>, std::vector<std::string>> value;
  double as_double() const { return std::get<double>(value); }
  std::vector<double> as_double_array() const { return std::get<std::vector<double>>(value); }
  std::vector<std::string> as_string_array() const { return std::get<std::vector<std::string>>(value); }
};
}  // namespace rclcpp

namespace rclcpp_lifecycle
{
struct State {};
struct LifecycleNode
{
  std::map<std::string, rclcpp::Parameter> parameters;
  rclcpp::Parameter get_parameter(const std::string & name) const { return parameters.at(name); }
};
}  // namespace rclcpp_lifecycle

namespace hardware_interface
{
struct LoanedInterface
{
  double * number;
  double get_value() const { return *number; }
  bool set_value(double x) { *number = x; return true; }
};
}  // namespace hardware_interface

namespace controller_interface
{
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };
struct InterfaceConfiguration
{
  interface_configuration_type type;
  std::vector<std::string> names;
};

class ControllerInterface
{
public:
  virtual ~ControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }
  virtual return_type update(const rclcpp::Time &, const rclcpp::Duration &) = 0;

  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() const { return node; }
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node = std::make_shared<rclcpp_lifecycle::LifecycleNode>();
  std::vector<hardware_interface::LoanedInterface> command_interfaces_, state_interfaces_;

protected:
  template <typename T>
  void auto_declare(const std::string & name, const T & value)
  {
    node->parameters.emplace(name, rclcpp::Parameter{value});
  }
};
}  // namespace controller_interface
