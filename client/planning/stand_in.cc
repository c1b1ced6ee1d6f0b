#include "client/planning/stand_in.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "common/base/thread_pool.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

constexpr int64_t kFolds = 10;

using Order = std::vector<int32_t>;  // anchors

// Evenly spaced.
Order Chosen(int64_t anchors) {
  const int64_t count = std::min(anchors, kMostStandIns);
  Order chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back(static_cast<int32_t>(i * anchors / count));
  return chosen;
}

// A fixed one, spelled out since std::shuffle's depends on the library.
Order Shuffled(Order order) {
  std::mt19937_64 numbers(1);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[numbers() % i]);
  return order;
}

// For each of `chosen` the others of them, nearest first: how they are told apart by whoever has
// the one as it is and the others as `items` have them.
std::vector<Order> OrdersAround(const Matrix& anchors, const Matrix& items, const Order& chosen) {
  const Matrix some = items(chosen, Eigen::all);
  std::vector<Order> orders(chosen.size());
  ParallelFor(static_cast<int>(chosen.size()), [&](int i) {
    const Matrix query = anchors.row(chosen[static_cast<size_t>(i)]);
    Order& order = orders[static_cast<size_t>(i)];
    const auto nearest = NearestRows(query, some, some.rows());
    for (const Neighbor& one : nearest.front()) {
      if (one.row != i) order.push_back(chosen[static_cast<size_t>(one.row)]);
    }
  });
  return orders;
}

// Where each of some anchors lies among them; -1: it is none.
std::vector<int32_t> PlacesOf(const Order& some, int64_t anchors) {
  std::vector<int32_t> places(static_cast<size_t>(anchors), -1);
  for (size_t place = 0; place < some.size(); ++place) {
    places[static_cast<size_t>(some[place])] = static_cast<int32_t>(place);
  }
  return places;
}

// What stand-ins are made of.
class Material {
 public:
  Material(const Matrix& anchors, const Matrix& decoded, int64_t neighbours)
      : anchors_(anchors.rows()),
        neighbours_(neighbours),
        chosen_(Chosen(anchors_)),
        rows_(PlacesOf(chosen_, anchors_)),
        orders_(OrdersAround(anchors, anchors, chosen_)),
        by_codes_(OrdersAround(anchors, decoded, chosen_)) {}

  const Order& chosen() const { return chosen_; }

  // items, held_out: of the chosen, in any order.
  StandIn Make(const Order& items, const Order& held_out) const {
    StandIn made{.items = {items.begin(), items.end()}, .nearest = {}, .held_out = {}, .known = {}};
    std::sort(made.items.begin(), made.items.end());
    const std::vector<int32_t> places = PlacesOf({made.items.begin(), made.items.end()}, anchors_);
    for (const int64_t item : made.items) made.nearest.push_back(NearestTo(item, places));
    const size_t askers = std::min(held_out.size(), static_cast<size_t>(kMostAskers));
    for (size_t i = 0; i < askers; ++i) {
      made.held_out.push_back(AskerFor(held_out[i], places));
      if (i < items.size()) made.known.push_back(AskerFor(items[i], places));
    }
    return made;
  }

 private:
  // Of an order those that have a place.
  static Order PlacesIn(const Order& order, const std::vector<int32_t>& places) {
    Order of_order;
    for (const int32_t anchor : order) {
      const int32_t place = places[static_cast<size_t>(anchor)];
      if (place >= 0) of_order.push_back(place);
    }
    return of_order;
  }

  size_t RowOf(int64_t anchor) const {
    return static_cast<size_t>(rows_[static_cast<size_t>(anchor)]);
  }

  std::vector<int64_t> NearestTo(int64_t item, const std::vector<int32_t>& places) const {
    const Order others = PlacesIn(orders_[RowOf(item)], places);
    return {others.begin(), others.begin() + std::min(neighbours_, std::ssize(others))};
  }

  Asker AskerFor(int64_t anchor, const std::vector<int32_t>& places) const {
    return {.anchor = anchor,
            .items = PlacesIn(orders_[RowOf(anchor)], places),
            .by_codes = PlacesIn(by_codes_[RowOf(anchor)], places)};
  }

  int64_t anchors_;
  int64_t neighbours_;
  Order chosen_;
  std::vector<int32_t> rows_;  // of each anchor, in what follows
  std::vector<Order> orders_;
  std::vector<Order> by_codes_;
};

}  // namespace

std::vector<StandIn> MakeStandIns(const Matrix& anchors, const Matrix& decoded,
                                  int64_t neighbours) {
  const Material material(anchors, decoded, neighbours);
  const Order shuffled = Shuffled(material.chosen());
  const auto count = std::ssize(shuffled);
  const int64_t folds = std::min(kFolds, count);
  std::vector<StandIn> stand_ins;
  for (int64_t fold = 0; fold < folds; ++fold) {
    const auto first = shuffled.begin() + fold * count / folds;
    const auto last = shuffled.begin() + (fold + 1) * count / folds;
    Order items(shuffled.begin(), first);
    items.insert(items.end(), last, shuffled.end());
    stand_ins.push_back(material.Make(items, {first, last}));
  }
  return stand_ins;
}

}  // namespace privatemail::client
