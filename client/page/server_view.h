// A search as the server saw it, to be drawn beside releases of two public targets. Those are drawn
// independently of the search with fresh noise, and neither sent, saved nor charged.
#ifndef PRIVATEMAIL_CLIENT_PAGE_SERVER_VIEW_H_
#define PRIVATEMAIL_CLIENT_PAGE_SERVER_VIEW_H_

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "client/schemes/cells/cell_scheme.h"
#include "client/schemes/joint/joint_scheme.h"
#include "common/base/matrix.h"
#include "privatemail/search_result.h"

namespace privatemail::client {

// The rows of an answered release as the server aligns them to its own anchors, in the plane in
// which those differ most: {"slots": C, "anchors": [[x, y]...], "releases": [{"own": slot, "name":
// class, "points": [[x, y]...]}...]}, slots first in "points", the search's release first. joint:
// of a request with with_alignment. Private: "own" of the first names the class. Errors of
// JointScheme::CoordinatesOfDummy and KabschUmeyama.
absl::StatusOr<nlohmann::json> RowsSeen(const JointResult& joint, const PrivacyCost& cost);

// The requested cells: {"cells": K, "releases": [{"own": cell, "cells": [cell...]}...]}, the
// search's first. cells: K of the partition. Private: "own" of the first is the target's cell.
// Errors of CellScheme::NearestCells and ReleaseOfCell.
absl::StatusOr<nlohmann::json> CellsSeen(const CellsResult& result,
                                         const Eigen::RowVectorXf& features, const CellCost& cost,
                                         int64_t cells);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PAGE_SERVER_VIEW_H_
