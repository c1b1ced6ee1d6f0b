#include "client/planning/stand_in.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "common/base/parallel.h"
#include "common/numerics/neighbors.h"

namespace privatemail {
namespace {

constexpr int64_t kFolds = 10;

using Order = std::vector<int64_t>;  // anchors

// Evenly spaced.
Order Chosen(int64_t anchors) {
  const int64_t count = std::min(anchors, kMostStandIns);
  Order chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back(i * anchors / count);
  return chosen;
}

// A fixed one, spelled out since std::shuffle's depends on the library.
Order Shuffled(Order order) {
  std::mt19937_64 numbers(1);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[numbers() % i]);
  return order;
}

// For each of `chosen` the others of them, nearest first.
std::vector<Order> OrdersAround(const Matrix& anchors, const Order& chosen) {
  const Matrix some = anchors(chosen, Eigen::all);
  std::vector<Order> orders(chosen.size());
  ParallelFor(static_cast<int>(chosen.size()), [&](int i) {
    const Matrix query = some.row(i);
    Order& order = orders[static_cast<size_t>(i)];
    const std::vector<Neighbor> nearest = NearestRows(query, some, some.rows()).front();
    for (const Neighbor& one : nearest) {
      if (one.row != i) order.push_back(chosen[static_cast<size_t>(one.row)]);
    }
  });
  return orders;
}

// Where each item lies among the items of a stand-in; -1: it is none.
std::vector<int32_t> PlacesOf(const Order& items, int64_t anchors) {
  std::vector<int32_t> places(static_cast<size_t>(anchors), -1);
  for (size_t place = 0; place < items.size(); ++place) {
    places[static_cast<size_t>(items[place])] = static_cast<int32_t>(place);
  }
  return places;
}

}  // namespace

std::vector<StandIn> MakeStandIns(const Matrix& anchors, int64_t neighbours) {
  const Order chosen = Chosen(anchors.rows());
  const std::vector<Order> orders = OrdersAround(anchors, chosen);
  const std::vector<int32_t> row_of = PlacesOf(chosen, anchors.rows());
  const Order shuffled = Shuffled(chosen);
  const auto count = std::ssize(chosen);
  const int64_t folds = std::min(kFolds, count);
  std::vector<StandIn> stand_ins;
  for (int64_t fold = 0; fold < folds; ++fold) {
    const auto first = shuffled.begin() + fold * count / folds;
    const auto last = shuffled.begin() + (fold + 1) * count / folds;
    StandIn& made = stand_ins.emplace_back();
    made.items.assign(shuffled.begin(), first);
    made.items.insert(made.items.end(), last, shuffled.end());
    const Order any_items = made.items;  // in no order
    std::sort(made.items.begin(), made.items.end());
    const std::vector<int32_t> places = PlacesOf(made.items, anchors.rows());
    const auto asker = [&](int64_t anchor) {
      Asker asker{.anchor = anchor, .items = {}};
      for (const int64_t other : orders[static_cast<size_t>(row_of[static_cast<size_t>(anchor)])]) {
        const int32_t place = places[static_cast<size_t>(other)];
        if (place >= 0) asker.items.push_back(place);
      }
      return asker;
    };
    for (const int64_t item : made.items) {
      const std::vector<int32_t> others = asker(item).items;
      const auto end = others.begin() + std::min(neighbours, std::ssize(others));
      made.nearest.emplace_back(others.begin(), end);
    }
    const auto askers = static_cast<size_t>(std::min(last - first, kMostAskers));
    for (size_t i = 0; i < askers; ++i) {
      made.held_out.push_back(asker(*(first + static_cast<int64_t>(i))));
      if (i < any_items.size()) made.known.push_back(asker(any_items[i]));
    }
  }
  return stand_ins;
}

}  // namespace privatemail
