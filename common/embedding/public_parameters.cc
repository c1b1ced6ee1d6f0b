#include "common/embedding/public_parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/digests.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/lattice/scores.h"

namespace privatemail {
namespace {

static_assert(std::endian::native == std::endian::little,
              "digests and files are little-endian; a big-endian port swaps bytes here");

void AppendString(absl::string_view name, absl::string_view value, std::string* text) {
  absl::StrAppend(text, name, " ", value.size(), " ", value, "\n");
}

void AppendSettings(const EmbeddingSettings& s, std::string* text) {
  absl::StrAppendFormat(text, "kernel_bandwidth %a\nalpha %a\nkernel %d\nlabel_graph %d\n",
                        s.kernel_bandwidth, s.alpha, static_cast<int>(s.kernel),
                        static_cast<int>(s.label_graph));
  absl::StrAppendFormat(text, "embedding_dim %d\nsteps %d\nnormalise %d\n", s.embedding_dim,
                        s.steps, s.normalise ? 1 : 0);
  absl::StrAppendFormat(text, "start_stddev %a\nstart %d\n", s.start_stddev,
                        static_cast<int>(s.start));
}

void AppendCodebook(const ProductCodebook& codebook, std::string* text) {
  const FloatMatrix& centroids = codebook.centroids;
  absl::StrAppend(text, "cell_codebook ", centroids.rows(), " ", centroids.cols(), "\n");
  AppendString("centroids",
               {reinterpret_cast<const char*>(centroids.data()),
                static_cast<size_t>(centroids.size()) * sizeof(float)},
               text);
  absl::StrAppendFormat(text, "relative_squared_error %a\n", codebook.relative_squared_error);
}

std::vector<int32_t> DistinctLabels(const std::vector<int32_t>& labels) {
  const std::set<int32_t> distinct(labels.begin(), labels.end());
  return {distinct.begin(), distinct.end()};
}

// The class code has one dimension less than classes.
absl::Status CheckClassCode(const EmbeddingSettings& settings, size_t classes) {
  if (settings.label_graph != LabelGraphKind::kBalanced && settings.start != StartKind::kClasses) {
    return absl::OkStatus();
  }
  if (static_cast<size_t>(settings.embedding_dim) < classes) return absl::OkStatus();
  return InvalidField(
      "embedding_dim",
      absl::StrCat("must be at most ", classes - 1, ", one less than the ", classes,
                   " classes, with the label graph balanced or the start classes, but is ",
                   settings.embedding_dim));
}

// The most bytes of all names of items: every description of a collection has them.
constexpr size_t kMaxItemNamesBytes = 1 << 20;

// classes: 0 without any; then names are those of the items' labels.
absl::Status CheckClassNames(const std::vector<std::string>& names, size_t classes) {
  if (std::ssize(names) > kMaxSlots) {
    return InvalidField("class_names", absl::StrCat("must hold at most ", kMaxSlots,
                                                    " names, but holds ", names.size()));
  }
  size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size();
  if (classes == 0 && bytes > kMaxItemNamesBytes) {
    return InvalidField("class_names", absl::StrCat("must have at most ", kMaxItemNamesBytes,
                                                    " bytes in all, but have ", bytes));
  }
  if (names.empty() || classes == 0 || names.size() == classes) return absl::OkStatus();
  return InvalidField("class_names", absl::StrCat("must hold no name or one for each of the ",
                                                  classes, " classes, but holds ", names.size()));
}

absl::Status CheckLength(absl::string_view field, absl::string_view text, size_t most) {
  if (text.size() <= most) return absl::OkStatus();
  return InvalidField(field,
                      absl::StrCat("must have at most ", most, " bytes, but has ", text.size()));
}

// A query may refer to its class by name.
absl::Status CheckDistinct(const std::vector<std::string>& names) {
  std::map<absl::string_view, size_t> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [first, fresh] = seen.emplace(names[i], i);
    if (fresh) continue;
    return InvalidField("class_names", absl::StrCat("must differ, but class_names[", first->second,
                                                    "] and class_names[", i, "] are the same: \"",
                                                    Printable(names[i]), "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckTexts(absl::string_view extractor, const std::vector<std::string>& class_names) {
  PM_RETURN_IF_ERROR(CheckLength("extractor", extractor, kMaxExtractorBytes));
  for (size_t i = 0; i < class_names.size(); ++i) {
    const std::string& name = class_names[i];
    const bool has_length = !name.empty() && name.size() <= kMaxClassNameBytes;
    if (has_length && Printable(name) == name) continue;
    return InvalidField(
        absl::StrCat("class_names[", i, "]"),
        absl::StrCat("must be 1 to ", kMaxClassNameBytes, " bytes of printable UTF-8, but ",
                     has_length ? absl::StrCat("is \"", Printable(name), "\"")
                                : absl::StrCat("has ", name.size(), " bytes")));
  }
  return CheckDistinct(class_names);
}

absl::Status CheckHasCodebook(const std::optional<CellCode>& code, bool has_codebook) {
  const bool wanted = code.has_value() && IsProductCode(*code);
  if (wanted == has_codebook) return absl::OkStatus();
  return InvalidField("cell_codebook",
                      wanted ? "must be given where cell_code is a pq code, but is not"
                             : "must not be given where cell_code is no pq code");
}

absl::Status CheckExtractor(absl::string_view extractor) {
  if (!extractor.empty()) return absl::OkStatus();
  return InvalidField("extractor",
                      "must name how features are made (\"vectors\" for your own), but is empty");
}

// The embedding ignores labels then, and nothing else may need classes.
absl::Status CheckWithoutClasses(const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckClassNames(parameters.class_names, 0));
  const EmbeddingSettings& settings = parameters.settings;
  if (settings.alpha == 0 && settings.label_graph == LabelGraphKind::kDistance &&
      settings.start == StartKind::kRandom) {
    return absl::OkStatus();
  }
  return InvalidField(
      "settings",
      absl::StrCat("must be alpha 0, the label graph distance and the start random "
                   "where anchors have no labels, but are alpha ",
                   settings.alpha, ", label graph number ", static_cast<int>(settings.label_graph),
                   " and start number ", static_cast<int>(settings.start)));
}

absl::Status CheckClasses(const PublicParameters& parameters) {
  const std::vector<int32_t>& labels = parameters.slot_labels;
  if (static_cast<int64_t>(labels.size()) > kMaxSlots) {
    return InvalidField(
        "slot_labels",
        absl::StrCat("must hold at most ", kMaxSlots, " classes, but hold ", labels.size(),
                     ": use coarser classes with cells, which need none"));
  }
  if (labels.size() < 2 || DistinctLabels(labels) != labels) {
    return InvalidField("slot_labels", "must be at least two, ascending and distinct");
  }
  PM_RETURN_IF_ERROR(CheckClassCode(parameters.settings, labels.size()));
  return CheckClassNames(parameters.class_names, labels.size());
}

// Checks the rules that do not depend on publish_quality, metric and with_encrypted.
absl::Status CheckWithAnchors(const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(parameters.HasClasses() ? CheckClasses(parameters)
                                             : CheckWithoutClasses(parameters));
  // Alignment of the two sides' coordinates needs that many.
  const int64_t anchors = parameters.anchor_count;
  const int64_t fewest = int64_t{1} + parameters.settings.embedding_dim;
  if (anchors < fewest) {
    return InvalidField("anchors", absl::StrCat("must be at least embedding_dim + 1 = ", fewest,
                                                ", but are ", anchors));
  }
  PM_RETURN_IF_ERROR(Validate(parameters.cell_partitions, anchors));
  PM_RETURN_IF_ERROR(
      CheckCellCode(!parameters.cell_partitions.empty(), parameters.cell_code.has_value()));
  PM_RETURN_IF_ERROR(CheckHasCodebook(parameters.cell_code, parameters.cell_codebook.has_value()));
  if (!parameters.cell_codebook) return absl::OkStatus();
  return Validate(*parameters.cell_codebook, *parameters.cell_code, parameters.feature_dim);
}

absl::Status CheckWithoutAnchors(const PublicParameters& parameters) {
  const std::pair<absl::string_view, bool> fields[] = {
      {"slot_labels", parameters.HasClasses()},
      {"cell_partitions", !parameters.cell_partitions.empty()},
      {"cell_code", parameters.cell_code.has_value()},
      {"cell_codebook", parameters.cell_codebook.has_value()},
      {"publish_quality", parameters.publish_quality}};
  for (const auto& [field, is_given] : fields) {
    if (is_given) return InvalidField(field, "must not be given where there are no anchors");
  }
  PM_RETURN_IF_ERROR(CheckClassNames(parameters.class_names, 0));
  if (parameters.with_encrypted) return absl::OkStatus();
  return InvalidField("with_encrypted", "must be set where there are no anchors");
}

absl::Status CheckEncrypted(const PublicParameters& parameters) {
  if (!parameters.with_encrypted) {
    if (parameters.metric == Metric::kCosine) return absl::OkStatus();
    return InvalidField(
        "metric",
        "must be cosine unless with_encrypted is set: the other schemes rank by direction");
  }
  if (parameters.feature_dim > lattice::kMaxDimensions) {
    return InvalidField("feature_dim", absl::StrCat("must be at most ", lattice::kMaxDimensions,
                                                    " where with_encrypted is set, but is ",
                                                    parameters.feature_dim));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCellCode(bool has_cells, bool has_code) {
  if (has_cells == has_code) return absl::OkStatus();
  return InvalidField("cell_code", has_code ? "must not be given where there are no cells"
                                            : "must be given where there are cells, but is not");
}

std::string PublicParameters::ClassName(int64_t slot) const {
  return class_names.empty() ? absl::StrCat(slot_labels[slot]) : class_names[slot];
}

std::optional<std::string> PublicParameters::NameOf(int32_t label) const {
  if (class_names.empty()) return std::nullopt;
  int64_t at = label;
  if (HasClasses()) at = SlotOf(label).value_or(-1);
  if (at < 0 || at >= std::ssize(class_names)) return std::nullopt;
  return class_names[static_cast<size_t>(at)];
}

absl::StatusOr<int64_t> PublicParameters::SlotOf(int32_t label) const {
  if (!HasClasses()) {
    return absl::NotFoundError(
        absl::StrCat("label must not be ", label, ": the collection's anchors have no labels"));
  }
  const auto at = std::lower_bound(slot_labels.begin(), slot_labels.end(), label);
  if (at == slot_labels.end() || *at != label) {
    return absl::NotFoundError(absl::StrCat("label must be one of the collection's ",
                                            slot_labels.size(), " labels (", slot_labels.front(),
                                            " to ", slot_labels.back(), "), but is ", label));
  }
  return at - slot_labels.begin();
}

std::string DigestOf(const Anchors& anchors) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(anchors.features.size()) * sizeof(float) +
                anchors.labels.size() * sizeof(int32_t));
  for (Eigen::Index i = 0; i < anchors.features.rows(); ++i) {
    bytes.append(reinterpret_cast<const char*>(anchors.features.row(i).data()),
                 static_cast<size_t>(anchors.features.cols()) * sizeof(float));
    if (anchors.labels.empty()) continue;
    bytes.append(reinterpret_cast<const char*>(&anchors.labels[static_cast<size_t>(i)]),
                 sizeof(int32_t));
  }
  return Sha256::Of(bytes);
}

absl::StatusOr<PublicParameters> MakePublicParameters(
    std::string collection_uuid, const EmbeddingSettings& settings, const Anchors& anchors,
    std::vector<std::string> class_names, std::string extractor,
    std::vector<CellPartition> cell_partitions, std::optional<CellCode> cell_code,
    std::optional<ProductCodebook> cell_codebook) {
  PM_RETURN_IF_ERROR(Validate(settings));
  const auto rows = static_cast<int64_t>(anchors.features.rows());
  if (!anchors.labels.empty() && static_cast<int64_t>(anchors.labels.size()) != rows) {
    return InvalidField("anchor_labels",
                        absl::StrCat("must hold no label or one for each of the ", rows,
                                     " anchors, but holds ", anchors.labels.size()));
  }
  PM_RETURN_IF_ERROR(UnitRows("anchors", anchors.features).status());
  PM_RETURN_IF_ERROR(CheckExtractor(extractor));
  PublicParameters parameters;
  parameters.slot_labels = DistinctLabels(anchors.labels);
  if (parameters.slot_labels.size() == 1) {
    return InvalidField(
        "anchor_labels",
        absl::StrCat(
            "must hold at least two classes, but hold only ",
            class_names.empty() ? absl::StrCat(parameters.slot_labels.front())
                                : Printable(class_names.front()),
            ": joint finds items of the target's class, which every item would be of; "
            "encrypted and cells find the nearest ones, for which anchors have no labels"));
  }
  parameters.collection_uuid = std::move(collection_uuid);
  parameters.settings = settings;
  parameters.feature_dim = anchors.features.cols();
  parameters.extractor = std::move(extractor);
  parameters.class_names = std::move(class_names);
  parameters.anchor_count = rows;
  parameters.anchor_digest = DigestOf(anchors);
  parameters.cell_partitions = std::move(cell_partitions);
  parameters.cell_code = cell_code;
  parameters.cell_codebook = std::move(cell_codebook);
  PM_RETURN_IF_ERROR(CheckTexts(parameters.extractor, parameters.class_names));
  PM_RETURN_IF_ERROR(CheckWithAnchors(parameters));
  return parameters;
}

absl::StatusOr<PublicParameters> MakeParametersWithoutAnchors(
    std::string collection_uuid, std::string extractor, Metric metric,
    std::vector<std::string> class_names) {
  PM_RETURN_IF_ERROR(CheckExtractor(extractor));
  PublicParameters parameters;
  parameters.collection_uuid = std::move(collection_uuid);
  parameters.extractor = std::move(extractor);
  parameters.anchor_digest = DigestOf(Anchors());
  parameters.metric = metric;
  parameters.class_names = std::move(class_names);
  parameters.with_encrypted = true;
  PM_RETURN_IF_ERROR(Validate(parameters));
  return parameters;
}

std::string Fingerprint(const PublicParameters& p) {
  std::string text = "privatemail public parameters 1\n";
  AppendString("collection_uuid", p.collection_uuid, &text);
  if (p.HasAnchors()) AppendSettings(p.settings, &text);
  absl::StrAppend(&text, "feature_dim ", p.feature_dim, "\n");
  AppendString("extractor", p.extractor, &text);
  absl::StrAppend(&text, "slot_labels ", p.slot_labels.size(), "\n");
  for (const int32_t label : p.slot_labels) absl::StrAppend(&text, label, "\n");
  const size_t names = p.HasClasses() ? p.class_names.size() : 0;  // of items only: see the header
  absl::StrAppend(&text, "class_names ", names, "\n");
  for (size_t i = 0; i < names; ++i) AppendString("name", p.class_names[i], &text);
  absl::StrAppend(&text, "anchor_count ", p.anchor_count, "\n");
  AppendString("anchor_digest", p.anchor_digest, &text);
  absl::StrAppend(&text, "cell_partitions ", p.cell_partitions.size(), "\n");
  for (const CellPartition& partition : p.cell_partitions) {
    absl::StrAppend(&text, "cell_partition ", partition.cells, "\n");
    for (const int32_t cell : partition.cell_of_anchor) absl::StrAppend(&text, cell, "\n");
  }
  if (p.cell_code) absl::StrAppend(&text, "cell_code ", static_cast<int>(*p.cell_code), "\n");
  if (p.cell_codebook) AppendCodebook(*p.cell_codebook, &text);
  absl::StrAppend(&text, "publish_quality ", p.publish_quality ? 1 : 0, "\n");
  absl::StrAppend(&text, "metric ", static_cast<int>(p.metric), "\n");
  absl::StrAppend(&text, "with_encrypted ", p.with_encrypted ? 1 : 0, "\n");
  return Sha256::Of(text);
}

std::string ToHex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

absl::Status Validate(const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckTexts(parameters.extractor, parameters.class_names));
  PM_RETURN_IF_ERROR(CheckEncrypted(parameters));
  if (!parameters.HasAnchors()) return CheckWithoutAnchors(parameters);
  PM_RETURN_IF_ERROR(CheckWithAnchors(parameters));
  if (parameters.publish_quality && !parameters.cell_code) {
    return InvalidField("publish_quality", "must not be given without cells");
  }
  if (!OfferedSchemes(parameters).empty()) return absl::OkStatus();
  return InvalidField("anchor_labels",
                      "must be given unless the collection has cells or with_encrypted: it would "
                      "offer no scheme");
}

absl::Status CheckFingerprint(absl::string_view ours, absl::string_view theirs) {
  if (ours == theirs) return absl::OkStatus();
  // Do not repeat a peer's text of any length in the message.
  if (!theirs.empty() && theirs.size() != ours.size()) {
    return absl::FailedPreconditionError(absl::StrCat("fingerprint mismatch: expected ",
                                                      ours.size(), " bytes, got ", theirs.size(),
                                                      "; fetch the collection again"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("fingerprint mismatch: the collection's public parameters are ", ToHex(ours),
                   ", the request was prepared for ", theirs.empty() ? "none" : ToHex(theirs),
                   "; fetch the collection again"));
}

}  // namespace privatemail
