#include "client/planning/stand_in.h"

#include <algorithm>
#include <random>
#include <utility>

#include "common/base/thread_pool.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

constexpr int64_t kFolds = 10;

using Order = std::vector<int32_t>;  // anchors

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

// The position of each anchor among these; -1: absent.
std::vector<int32_t> PlacesOf(const Order& some, int64_t anchors) {
  std::vector<int32_t> places(static_cast<size_t>(anchors), -1);
  for (size_t place = 0; place < some.size(); ++place) {
    places[static_cast<size_t>(some[place])] = static_cast<int32_t>(place);
  }
  return places;
}

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

// The rank of each item in the list of a cell.
using Places = std::vector<int32_t>;

std::vector<Places> PlacesInLists(const StandIn& stand_in, const StandInAsk& ask) {
  ItemCells lie;
  for (const int64_t anchor : stand_in.items) {
    lie.cells.push_back(ask.lie.cells[static_cast<size_t>(anchor)]);
    lie.squared_distances.push_back(ask.lie.squared_distances[static_cast<size_t>(anchor)]);
  }
  const auto items = std::ssize(stand_in.items);
  const Demand demand({.nearest = stand_in.nearest, .cells = lie.cells}, ask.cells, items,
                      ask.ranks_per_fold);
  std::vector<Places> places;
  for (int64_t cell = 0; cell < ask.cells; ++cell) {
    Places& of_cell = places.emplace_back(stand_in.items.size());
    int32_t place = 0;
    for (const int64_t item : CellList(demand, lie, cell, QuantiseEpsilon(ask.epsilon), items)) {
      of_cell[static_cast<size_t>(item)] = place++;
    }
  }
  return places;
}

// Of each item how much of it is among the k nearest to an asker; k need not be whole.
std::vector<double> PartsAmongNearest(const Asker& asker, double k, size_t items) {
  std::vector<double> parts(items);
  for (size_t rank = 0; rank < asker.items.size() && static_cast<double>(rank) < k; ++rank) {
    parts[static_cast<size_t>(asker.items[rank])] = std::min(1., k - static_cast<double>(rank));
  }
  return parts;
}

// The share of the k items nearest to an asker, of which `nearest` has the parts, that are among
// those it keeps: the k first by their codes of the first `length` of a list. Neither need be
// whole.
double FidelityIn(const Places& places, const Asker& asker, const std::vector<double>& nearest,
                  double k, double length) {
  double found = 0, kept = 0;
  for (const int32_t place : asker.by_codes) {
    const auto item = static_cast<size_t>(place);
    const double comes = std::clamp(length - places[item], 0., 1.);
    found += std::min(nearest[item] * comes, k - kept);
    kept += comes;
    if (kept >= k) break;
  }
  return found / std::min(k, static_cast<double>(asker.items.size()));
}

class StandInAnswers {
 public:
  StandInAnswers(const StandIn& stand_in, const StandInAsk& ask)
      : ask_(ask), places_(PlacesInLists(stand_in, ask)) {
    for (const int64_t anchor : stand_in.items) labels_.push_back(LabelOf(anchor));
  }

  // On an average over the cells that may be asked for.
  double Fidelity(const Asker& asker, double length) const {
    const double other = (1 - ask_.own) / static_cast<double>(ask_.cells - 1);
    const std::vector<double> nearest = PartsAmongNearest(asker, ask_.k, labels_.size());
    double mean = 0;
    for (int64_t cell = 0; cell < ask_.cells; ++cell) {
      const double probability = cell == CellOf(asker) ? ask_.own : other;
      mean += probability * FidelityIn(PlacesOf(cell), asker, nearest, ask_.k, length);
    }
    return mean;
  }

  void AddLikeness(const Asker& asker, const ListLengths& lengths, Found* found) const {
    for (int64_t cell = 0; cell < ask_.cells; ++cell) {
      if (cell == CellOf(asker)) {
        AddLikenessIn(PlacesOf(cell), asker, lengths.own, &found->own);
      } else {
        AddLikenessIn(PlacesOf(cell), asker, lengths.other, &found->other);
      }
    }
  }

 private:
  int32_t LabelOf(int64_t anchor) const { return ask_.labels[static_cast<size_t>(anchor)]; }
  int64_t CellOf(const Asker& asker) const {
    return ask_.lie.cells[static_cast<size_t>(asker.anchor)];
  }
  const Places& PlacesOf(int64_t cell) const { return places_[static_cast<size_t>(cell)]; }

  // Of the first `length` of a list, those that are nearest to the asker by their codes.
  void AddLikenessIn(const Places& places, const Asker& asker, int64_t length,
                     Likeness* likeness) const {
    int64_t came = 0, same = 0;
    for (const int32_t item : asker.by_codes) {
      if (places[static_cast<size_t>(item)] >= length) continue;
      same += labels_[static_cast<size_t>(item)] == LabelOf(asker.anchor) ? 1 : 0;
      if (++came == ask_.alike) break;
    }
    const auto pairs = [](int64_t of) { return static_cast<double>(of * (of - 1)) / 2; };
    likeness->one.Add({.count = static_cast<double>(came), .sum = static_cast<double>(same)}, 1);
    likeness->both.Add({.count = pairs(came), .sum = pairs(same)}, 1);
  }

  const StandInAsk& ask_;
  std::vector<Places> places_;   // one a cell
  std::vector<int32_t> labels_;  // of the items
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

void Found::Add(const Found& more, double sign) {
  held_out_fidelity.Add(more.held_out_fidelity, sign);
  known_fidelity.Add(more.known_fidelity, sign);
  own.Add(more.own, sign);
  other.Add(more.other, sign);
}

std::vector<Found> AskStandIn(const StandIn& stand_in, const StandInAsk& ask) {
  const StandInAnswers asked(stand_in, ask);
  std::vector<Found> found;
  for (const ListLengths& lengths : ask.lengths) {
    Found& one = found.emplace_back();
    for (const Asker& asker : stand_in.held_out) {
      one.held_out_fidelity.Add(asked.Fidelity(asker, lengths.fidelity));
      asked.AddLikeness(asker, lengths, &one);
    }
    for (const Asker& asker : stand_in.known) {
      one.known_fidelity.Add(asked.Fidelity(asker, lengths.fidelity));
    }
  }
  return found;
}

}  // namespace privatemail::client
