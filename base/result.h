// Result<T, E>: a value, or the reason why there is none. Nothing in this project throws across an interface.
#pragma once

#include <utility>
#include <variant>

namespace gputrace {

template <typename E>
struct Failure {
  E error;
};
template <typename E>
Failure(E) -> Failure<E>;

// Reading value() of a failure, or error() of a success, is a mistake of the caller (terminates).
template <typename T, typename E>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Failure<E> failure)
      : state_(std::in_place_index<1>, std::move(failure.error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const E& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, E> state_;
};

}  // namespace gputrace
