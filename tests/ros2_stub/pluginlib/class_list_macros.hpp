// A stub: without plugins, the class is only checked to be one of its base.
#pragma once
#include <type_traits>
#define PLUGINLIB_EXPORT_CLASS(derived, base) static_assert(std::is_base_of_v<base, derived>);
