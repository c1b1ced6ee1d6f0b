#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/collection.h"
#include "client/cli/command.h"
#include "client/cli/faiss_index.h"
#include "client/cli/images.h"
#include "client/cli/values.h"
#include "client/schemes/class_labels.h"
#include "client/transport/upload.h"
#include "common/base/field_error.h"
#include "common/base/input_file.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/setting_names.h"
#include "common/features/vector_file.h"
#include "common/items/item_checks.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client::cli {
namespace {

constexpr size_t kImagesPerUpload = 1000;      // extracted before they are sent
constexpr size_t kMaxChecked = 1000;           // ids of one GetItems call
constexpr size_t kMaxCheckedValues = 1 << 20;  // of its answer

struct IngestOptions {
  std::string name;
  std::string vectors_file;
  std::string faiss_file;
  std::string labels_file;
  std::string payloads_file;
  std::string ids_file;
  std::string id_prefix;
  bool replace = false;
  bool dry_run = false;
  std::string images;
  ExtractorOptions extractor;
};

// The rows to send, as columns of equal length.
struct Rows {
  int64_t count = 0, dim = 0;
  std::function<void(int64_t first, int64_t count, float* out)> copy_features;
  std::vector<int32_t> labels = {};           // kNoLabel for a row without a label
  std::vector<std::string> class_names = {};  // that the collection has with them; empty: as before
  std::vector<std::string> ids = {};
  bool ids_are_given = true;               // by --ids or an index of FAISS
  std::vector<std::string> payloads = {};  // empty: none

  ItemColumns Columns() const {
    return {.copy_features = copy_features,
            .feature_dim = dim,
            .labels = labels,
            .ids = ids,
            .payloads = payloads,
            .class_names = class_names};
  }
};

// The result of an upload.
struct IngestOutcome {
  v1::UpsertItemsResponse response = {};
  std::vector<MalformedRows> malformed = {};  // rows that were not sent
  std::vector<SkippedImage> rejected = {};    // images that could not be read
  std::vector<std::string> new_classes = {};  // names that the collection did not have
  int64_t sendable = 0;                       // rows that are not malformed
};

absl::Status CheckCount(const std::string& what, size_t count, int64_t rows) {
  if (static_cast<int64_t>(count) == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " must hold one line or value for each of the ", rows, " vectors, but holds ", count));
}

absl::Status CheckLines(const std::string& what, const std::vector<std::string>& lines,
                        int64_t rows) {
  const bool is_array = absl::StartsWith(lines.front(), "[");
  return WithNote(CheckCount(what, lines.size(), rows),
                  is_array ? ": its elements must stand on a line each, without brackets" : "");
}

// Protobuf refuses strings that are not UTF-8.
absl::Status CheckTexts(const char* field, const std::vector<std::string>& texts) {
  for (size_t row = 0; row < texts.size(); ++row) {
    if (IsUtf8(texts[row])) continue;
    return absl::InvalidArgumentError(absl::StrCat("row ", row, ": ", field,
                                                   " must be UTF-8, but its ", texts[row].size(),
                                                   " bytes are not; nothing was sent"));
  }
  return absl::OkStatus();
}

absl::Status CheckOneStandardInput(const IngestOptions& options) {
  int count = 0;
  for (const std::string& file :
       {options.vectors_file, options.labels_file, options.payloads_file, options.ids_file}) {
    count += file == kStandardInput ? 1 : 0;
  }
  if (count <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError("only one file can be standard input (-)");
}

// Names the differences between the index and the collection.
void WarnOfIndex(const FaissIndex& index, const std::string& path,
                 const PublicParameters& parameters) {
  if (!index.is_exact()) {
    Warn(absl::StrCat(path, " is quantized: the items are the vectors that its code keeps"));
  }
  if (index.metric() == parameters.metric) return;
  const std::string metric = index.metric().has_value()
                                 ? absl::StrCat("by ", NameIn(kMetricNames, *index.metric()))
                                 : "by a metric that collections do not have";
  Warn(absl::StrCat(path, " ranks ", metric, ", but the collection by ",
                    NameIn(kMetricNames, parameters.metric),
                    ": the nearest items are the same only if all vectors have the same norm"));
}

absl::Status CheckDimension(const std::string& file, const PublicParameters& parameters,
                            int64_t dimension) {
  if (parameters.feature_dim == 0) return absl::OkStatus();  // the first item fixes it
  return CheckColumns(file, parameters.feature_dim, dimension);
}

// Vectors and, of an index or a table that has them, ids.
absl::StatusOr<Rows> ReadVectorRows(const IngestOptions& options,
                                    const PublicParameters& parameters) {
  Rows rows;
  const auto take = [&](auto file) {
    const auto shared = std::make_shared<const decltype(file)>(std::move(file));
    rows.count = shared->rows();
    rows.dim = shared->cols();
    rows.copy_features = [shared](int64_t first, int64_t count, float* out) {
      shared->Copy(first, count, out);
    };
  };
  const auto add_ids = [&](const auto& ids) {
    for (const auto& id : ids) rows.ids.push_back(absl::StrCat(options.id_prefix, id));
  };
  if (options.faiss_file.empty()) {
    PM_ASSIGN_OR_RETURN(VectorFile file, VectorFile::Open(options.vectors_file));
    add_ids(file.ids());
    PM_RETURN_IF_ERROR(CheckDimension("--vectors", parameters, file.cols()));
    take(std::move(file));
  } else {
    PM_ASSIGN_OR_RETURN(FaissIndex index,
                        FaissIndex::Open(options.faiss_file, {"/proc/self/exe", kTryFaissIndex}));
    add_ids(index.ids());
    PM_RETURN_IF_ERROR(CheckDimension(options.faiss_file, parameters, index.cols()));
    WarnOfIndex(index, options.faiss_file, parameters);
    take(std::move(index));
  }
  return rows;
}

absl::StatusOr<Rows> ReadRows(const IngestOptions& options, const PublicParameters& parameters,
                              bool has_items) {
  PM_RETURN_IF_ERROR(CheckOneStandardInput(options));
  PM_ASSIGN_OR_RETURN(Rows rows, ReadVectorRows(options, parameters));
  if (!options.labels_file.empty()) {
    PM_ASSIGN_OR_RETURN(const LabelColumn column, ReadLabels(options.labels_file, rows.count));
    if (std::ssize(column) == rows.count + 1 && !column.names.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--labels must hold one label for each of the ", rows.count,
          " vectors, but holds one more: a first line is a label, too, unless it is "
          "\"label\", \"labels\" or, in a .csv file, a text that no other line repeats"));
    }
    PM_RETURN_IF_ERROR(CheckCount("--labels", column.size(), rows.count));
    PM_ASSIGN_OR_RETURN(NamedLabels named,
                        LabelsOfItems(absl::StrCat("--labels ", options.labels_file), column,
                                      parameters, has_items));
    rows.labels = std::move(named.labels);
    if (!parameters.HasClasses()) rows.class_names = std::move(named.class_names);
  } else if (!parameters.HasClasses()) {
    rows.labels.assign(static_cast<size_t>(rows.count), kNoLabel);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--labels must be given: every item of the collection has one of its ",
                     parameters.slot_labels.size(), " labels"));
  }
  if (!options.payloads_file.empty()) {
    PM_ASSIGN_OR_RETURN(rows.payloads, ReadLines("--payloads", options.payloads_file));
    PM_RETURN_IF_ERROR(CheckLines("--payloads", rows.payloads, rows.count));
  }
  if (options.ids_file.empty()) {
    rows.ids_are_given = !options.faiss_file.empty() && !rows.ids.empty();
    for (int64_t i = std::ssize(rows.ids); i < rows.count; ++i) {
      rows.ids.push_back(absl::StrCat(options.id_prefix, i));
    }
  } else {
    PM_ASSIGN_OR_RETURN(rows.ids, ReadLines("--ids", options.ids_file));
    if (std::ssize(rows.ids) == rows.count + 1 && IsIdColumn(rows.ids.front())) {
      rows.ids.erase(rows.ids.begin());  // the header of a column
    }
    PM_RETURN_IF_ERROR(CheckLines("--ids", rows.ids, rows.count));
  }
  return rows;
}

absl::Status CheckDuplicates(const std::vector<std::string>& ids) {
  std::unordered_map<std::string, size_t> row_of_id;
  for (size_t row = 0; row < ids.size(); ++row) {
    const auto [former, added] = row_of_id.try_emplace(ids[row], row);
    if (added) continue;
    return absl::InvalidArgumentError(absl::StrCat("row ", row, ": id ", ids[row],
                                                   " is the id of row ", former->second,
                                                   ", too; nothing was sent"));
  }
  return absl::OkStatus();
}

// Whether the item is the row's, and loses no payload to it.
bool IsRow(const v1::Item& item, const Rows& rows, size_t row) {
  std::vector<float> features(static_cast<size_t>(rows.dim));
  rows.copy_features(static_cast<int64_t>(row), 1, features.data());
  const absl::StatusOr<int32_t> label = LabelFromProto(item);
  const bool has_payload = row < rows.payloads.size() && !rows.payloads[row].empty();
  return label.ok() && *label == rows.labels[row] && (has_payload || item.payload().empty()) &&
         std::equal(item.features().begin(), item.features().end(), features.begin(),
                    features.end());
}

// Refuses a second file whose row numbers are the ids of other items, or which would remove their
// payloads. Compares rows spread over the file with stored items; equal ones are a repeated upload.
absl::Status CheckNothingIsReplaced(const AdminClient& admin, const std::string& name,
                                    const Rows& rows) {
  const size_t count =
      std::min({rows.ids.size(), kMaxChecked,
                std::max(kMaxCheckedValues / static_cast<size_t>(rows.dim), size_t{1})});
  v1::GetItemsRequest request;
  request.set_collection(name);
  std::unordered_map<std::string, size_t> row_of_id;
  for (size_t i = 0; i < count; ++i) {
    const size_t row = i * rows.ids.size() / count;
    request.add_ids(rows.ids[row]);
    row_of_id[rows.ids[row]] = row;
  }
  PM_ASSIGN_OR_RETURN(const v1::GetItemsResponse stored, admin.GetItems(request));
  for (const v1::Item& item : stored.items()) {
    const auto row = row_of_id.find(item.id());
    if (row == row_of_id.end() || IsRow(item, rows, row->second)) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        "collection ", name, " has an item with id ", item.id(), ", the id of row ", row->second,
        " here, and with other features, another label or a payload that this file does not have: "
        "give ids with --ids or another --id-prefix, or --replace to overwrite; nothing was sent"));
  }
  return absl::OkStatus();
}

// names: those of the collection first.
std::vector<std::string> NewClasses(const std::vector<std::string>& names,
                                    const PublicParameters& parameters) {
  const size_t known = std::min(names.size(), parameters.class_names.size());
  return {names.begin() + static_cast<ptrdiff_t>(known), names.end()};
}

absl::StatusOr<v1::UpsertItemsResponse> Send(const AdminClient& admin, const std::string& name,
                                             const Rows& rows,
                                             const std::vector<MalformedRows>& malformed,
                                             const std::function<void(int64_t)>& progress) {
  return UploadItems(admin, name, rows.Columns(), malformed,
                     {.progress = progress, .warn = [](const std::string& text) { Warn(text); }});
}

int64_t RowsOf(const std::vector<MalformedRows>& malformed) {
  int64_t rows = 0;
  for (const MalformedRows& one : malformed) rows += std::ssize(one.rows);
  return rows;
}

void Append(const v1::UpsertItemsResponse& response, uint64_t rows_before,
            v1::UpsertItemsResponse* all) {
  all->set_inserted(all->inserted() + response.inserted());
  all->set_updated(all->updated() + response.updated());
  all->set_unchanged(all->unchanged() + response.unchanged());
  all->set_rejected(all->rejected() + response.rejected());
  all->set_stripped(all->stripped() + response.stripped());
  for (const v1::RejectedItem& item : response.first_rejected()) {
    v1::RejectedItem* const added = all->add_first_rejected();
    *added = item;
    added->set_position(rows_before + item.position());
  }
}

// The labels of the folder's classes, by name.
absl::StatusOr<NamedLabels> LabelsOfClasses(const ImageFolder& folder,
                                            const PublicParameters& parameters, bool has_items) {
  LabelColumn column;
  for (const std::string& name : folder.class_names) {
    column.names.push_back(IsUtf8(name) ? name : "");  // without images now
  }
  if (column.names.empty()) return NamedLabels();
  if (has_items && !parameters.HasClasses() && parameters.class_names.empty()) {
    Warn(
        "the sub-folders give no labels, since the collection has items but no names of labels: a "
        "collection without items would take them");
    return NamedLabels{std::vector<int32_t>(column.size(), kNoLabel), {}};
  }
  return LabelsOfItems("the sub-folders of --images", column, parameters, has_items);
}

// Sends the features of each part before those of the next are extracted.
absl::StatusOr<IngestOutcome> IngestImages(const AdminClient& admin, const IngestOptions& options,
                                           const v1::GetCollectionResponse& collection) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(collection.parameters()));
  ExtractorOptions settings = options.extractor;
  settings.collection = parameters.extractor;
  PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(settings));
  if (extractor->identity() != parameters.extractor) {
    return absl::FailedPreconditionError(
        absl::StrCat("extractor: the collection's features come from ", parameters.extractor,
                     ", but those of these images would come from ", extractor->identity(),
                     "; no image was read. `privatemail collection create NAME ",
                     settings.model.empty() ? absl::StrCat("--extractor ", extractor->identity())
                                            : absl::StrCat("--model ", settings.model),
                     "` makes a collection for them"));
  }
  PM_RETURN_IF_ERROR(CheckDimension("--images", parameters, extractor->dim()));
  PM_ASSIGN_OR_RETURN(ImageFolder folder, ListImageFolder(options.images));
  if (parameters.HasClasses()) PM_RETURN_IF_ERROR(RequireClasses(options.images, &folder));
  std::erase_if(folder.images, [&](const FolderImage& image) {
    if (IsUtf8(image.id)) return false;
    folder.skipped.push_back({image.id, "its name is not UTF-8"});
    return true;
  });
  PM_ASSIGN_OR_RETURN(const NamedLabels named,
                      LabelsOfClasses(folder, parameters, collection.items() > 0));
  IngestOutcome outcome{.new_classes = NewClasses(named.class_names, parameters)};
  uint64_t sent = 0;
  PM_RETURN_IF_ERROR(
      ExtractInParts(folder, settings, kImagesPerUpload, [&](FolderFeatures part) -> absl::Status {
        std::move(part.rejected.begin(), part.rejected.end(), std::back_inserter(outcome.rejected));
        if (part.ids.empty()) return absl::OkStatus();
        const FloatMatrix& features = part.features;
        Rows rows{.count = features.rows(),
                  .dim = features.cols(),
                  .copy_features =
                      [&](int64_t first, int64_t count, float* out) {
                        std::copy_n(features.data() + first * features.cols(),
                                    count * features.cols(), out);
                      },
                  .ids = std::move(part.ids)};
        for (const int32_t label : part.labels) {
          rows.labels.push_back(label == kNoClass ? kNoLabel
                                                  : named.labels[static_cast<size_t>(label)]);
        }
        if (!parameters.HasClasses()) rows.class_names = named.class_names;
        PM_ASSIGN_OR_RETURN(const v1::UpsertItemsResponse response,
                            Send(admin, options.name, rows, {}, nullptr));
        Append(response, sent, &outcome.response);
        sent += rows.ids.size();
        return absl::OkStatus();
      }));
  return outcome;
}

absl::StatusOr<IngestOutcome> IngestVectors(const AdminClient& admin, const IngestOptions& options,
                                            const v1::GetCollectionResponse& collection) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(collection.parameters()));
  PM_ASSIGN_OR_RETURN(const Rows rows, ReadRows(options, parameters, collection.items() > 0));
  PM_RETURN_IF_ERROR(CheckTexts("id", rows.ids));
  PM_RETURN_IF_ERROR(CheckTexts("payload", rows.payloads));
  PM_RETURN_IF_ERROR(CheckDuplicates(rows.ids));
  if (!rows.ids_are_given && !options.replace && collection.items() > 0) {
    PM_RETURN_IF_ERROR(CheckNothingIsReplaced(admin, options.name, rows));
  }
  IngestOutcome outcome{.malformed = FindMalformed(rows.Columns(), parameters),
                        .new_classes = NewClasses(rows.class_names, parameters)};
  const int64_t count = outcome.sendable = std::ssize(rows.ids) - RowsOf(outcome.malformed);
  if (options.dry_run || count == 0) return outcome;
  ProgressBar bar("ingest");
  PM_ASSIGN_OR_RETURN(outcome.response, Send(admin, options.name, rows, outcome.malformed,
                                             [&](int64_t sent) { bar.Show(sent, count); }));
  return outcome;
}

// Malformed rows, and those that the server refused, by their reasons.
std::vector<MalformedRows> RejectedRows(const IngestOutcome& outcome) {
  std::vector<MalformedRows> groups = outcome.malformed;
  for (const v1::RejectedItem& item : outcome.response.first_rejected()) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& one) { return one.reason == item.reason(); });
    if (group == groups.end()) {
      group = groups.insert(
          groups.end(), {.field = {}, .reason = item.reason(), .rows = {}, .first_id = item.id()});
    }
    group->rows.push_back(static_cast<int64_t>(item.position()));
  }
  return groups;
}

// A line for each reason. reasons: JSON; that of a picture stands for all that share it.
std::string ReasonsText(const nlohmann::json& reasons) {
  std::map<std::string, size_t> pictures;
  for (const nlohmann::json& one : reasons) {
    if (!one.contains("rows")) ++pictures[one["reason"].get<std::string>()];
  }
  std::vector<std::string> lines;
  for (const nlohmann::json& one : reasons) {
    size_t alike = 1;
    if (!one.contains("rows")) alike = std::exchange(pictures[one["reason"]], 0);
    if (alike == 0) continue;
    lines.push_back(absl::StrCat("  ", Printable(one["what"].get<std::string>())));
    if (alike > 1) absl::StrAppend(&lines.back(), " (and ", alike - 1, " more pictures)");
  }
  constexpr size_t kMaxShown = 4;
  if (const size_t all = lines.size(); all > kMaxShown) {
    lines.resize(kMaxShown);
    lines.push_back(absl::StrCat("  and ", all - kMaxShown, " more reasons, which -v lists"));
  }
  return absl::StrJoin(lines, "\n") + "\n";
}

absl::StatusOr<Result> Ingest(const Context& context, const IngestOptions& options) {
  if (options.images.empty() && options.vectors_file.empty() && options.faiss_file.empty()) {
    return absl::InvalidArgumentError("--vectors, --from-faiss or --images must be given");
  }
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      admin.GetCollection(options.name));
  const absl::StatusOr<IngestOutcome> outcome = options.images.empty()
                                                    ? IngestVectors(admin, options, collection)
                                                    : IngestImages(admin, options, collection);
  if (absl::IsUnavailable(outcome.status())) {
    return absl::UnavailableError(
        absl::StrCat(outcome.status().message(),
                     "; rows that are stored stay: run the same command again to add the others"));
  }
  PM_RETURN_IF_ERROR(outcome.status());
  const v1::UpsertItemsResponse& response = outcome->response;
  const uint64_t acknowledged = response.inserted() + response.updated() + response.unchanged();
  const uint64_t rejected = response.rejected() + outcome->rejected.size() +
                            static_cast<uint64_t>(RowsOf(outcome->malformed));
  nlohmann::json reasons = nlohmann::json::array();
  for (const MalformedRows& one : RejectedRows(*outcome)) {
    reasons.push_back({{"reason", one.reason},
                       {"rows", one.rows.size()},
                       {"row", one.rows.front()},
                       {"id", one.first_id},
                       {"what", one.ToString()}});
  }
  for (const SkippedImage& image : outcome->rejected) {
    const std::string path = image.id + ": ";  // with it begins the reason, below the folder
    const size_t at = image.reason.find(path);
    const std::string reason = image.reason.substr(at == std::string::npos ? 0 : at + path.size());
    reasons.push_back({{"id", image.id}, {"reason", reason}, {"what", path + reason}});
  }
  if (acknowledged == 0 && !options.dry_run) {
    return absl::InvalidArgumentError(
        absl::StrCat("all ", rejected, " rows were rejected; the first: ",
                     reasons.empty() ? "unknown" : reasons[0].value("reason", ""),
                     outcome->malformed.empty() ? "" : "; nothing was sent"));
  }
  const int exit_code = rejected > 0 ? kExitPartly : 0;
  const Columns columns = {{"reasons", {"what"}}};
  std::string rest;
  if (rejected > 0) {
    const char* const plural = rejected == 1 ? "" : "s";
    const char* const were = options.dry_run ? " would be" : rejected == 1 ? " was" : " were";
    absl::StrAppend(&rest, rejected, options.images.empty() ? " row" : " picture", plural, were,
                    " rejected:\n", ReasonsText(reasons));
  }
  if (!outcome->new_classes.empty()) {
    rest += Render({{"new_labels", outcome->new_classes}}, {}, /*rounded=*/true);
  }
  if (options.dry_run) {
    return Result{.json = {{"dry_run", true},
                           {"rejected", rejected},
                           {"new_classes", outcome->new_classes},
                           {"reasons", reasons}},
                  .text = absl::StrCat("nothing was sent: ", outcome->sendable,
                                       " rows can be stored\n", rest),
                  .exit_code = exit_code,
                  .columns = columns};
  }
  const bool changed = response.inserted() + response.updated() > 0;
  Result result{.json = {{"acknowledged", acknowledged},
                         {"rejected", rejected},
                         {"inserted", response.inserted()},
                         {"updated", response.updated()},
                         {"unchanged", response.unchanged()},
                         {"reasons", reasons}},
                .text = absl::StrCat(acknowledged, " items are stored: ", response.inserted(),
                                     " new, ", response.updated(), " changed, ",
                                     response.unchanged(), " as before\n", rest),
                .exit_code = exit_code,
                .hint = changed ? BuildHint(collection) : "",
                .columns = columns};
  if (const std::string warning = StrippedText(response); !warning.empty()) {
    Warn(warning);
  }
  if (!outcome->new_classes.empty()) result.json["new_classes"] = outcome->new_classes;
  return result;
}

}  // namespace

void AddIngestCommand(CLI::App& app, Context& context) {
  const auto [ingest, options] =
      AddCommand(app, context, "ingest",
                 "Upload gallery items; each replaces the stored one of the same id as a whole. "
                 "Without --payloads or --labels, the stored payload or label is lost. Safe to "
                 "repeat after an interruption",
                 &Ingest);
  ingest->add_option("NAME", options->name, "The collection")->required();
  CLI::Option* vectors = ingest->add_option("--vectors", options->vectors_file,
                                            "Gallery vectors (.npy .npz .fvecs .csv)");
  CLI::Option* images =
      ingest
          ->add_option("--images", options->images,
                       "Folder of images. Those of a sub-folder have its name as their label")
          ->excludes(vectors);
  ingest
      ->add_option("--from-faiss", options->faiss_file,
                   "Index that FAISS wrote. Its vectors, and their ids if it has some; of a "
                   "quantized one the vectors that its code keeps")
      ->excludes(vectors, images);
  ingest
      ->add_option("--labels", options->labels_file,
                   "Their labels, numbers or names (.npy .npz .ivecs .csv .txt). Needed if the "
                   "collection's anchors have labels. Integers are numbers of labels, text is "
                   "names; if its labels have names, .csv and .txt hold names alone. Names that a "
                   "collection without labelled anchors does not have are added to it")
      ->excludes(images);
  CLI::Option* ids =
      ingest
          ->add_option(
              "--ids", options->ids_file,
              "Their ids, one a line; row numbers if absent. Of an index those that it has, "
              "of images file or label/file")
          ->excludes(images);
  ingest
      ->add_option("--id-prefix", options->id_prefix,
                   "Without --ids: ids are this text and the id of the index or the row number")
      ->excludes(images)
      ->excludes(ids);
  ingest
      ->add_flag("--dry-run", options->dry_run,
                 "Check the files, and send nothing. Prints which rows would be rejected")
      ->excludes(images);
  ingest->add_flag("--replace", options->replace,
                   "Without --ids: overwrite items of the same row numbers. Otherwise refused if "
                   "their vectors or labels differ");
  ingest
      ->add_option("--payloads", options->payloads_file,
                   "One JSON text a line, returned with matches")
      ->excludes(images);
  AddExtractorOptions(ingest, &options->extractor);
  AddFeaturesFolderOption(ingest, &options->extractor);
  MarkRare(ingest, {"--id-prefix", "--features-folder"});
  ingest->footer(absl::StrCat(
      "Row numbers or the index of a table as ids: a second file would replace the items of the "
      "first, so up to 1,000 rows are compared with stored items before anything is sent.\n"
      "One of the files may be - for standard input.\n"
      "Exit code 3: some rows were rejected, the others acknowledged.\n",
      ingest->get_footer()));
}

}  // namespace privatemail::client::cli
