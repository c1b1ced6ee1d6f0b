#include <algorithm>
#include <fstream>
#include <iostream>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/command.h"
#include "client/cli/images.h"
#include "client/queries/scheme.h"
#include "client/transport/upload.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/items/item_label.h"
#include "common/items/item_text.h"
#include "common/wire/item_label_proto.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client::cli {
namespace {

constexpr size_t kImagesPerUpload = 1000;      // extracted before they are sent
constexpr size_t kMaxChecked = 1000;           // ids of one GetItems call
constexpr size_t kMaxCheckedValues = 1 << 20;  // of its answer

struct IngestOptions {
  std::string name;
  std::string vectors_file;
  std::string labels_file;
  std::string payloads_file;
  std::string ids_file;
  std::string id_prefix;
  bool replace = false;
  std::string images;
  bool resume = false;
  ExtractorOptions extractor;
};

// The rows to send, as columns of equal length.
struct Rows {
  FloatMatrix features;
  std::vector<int32_t> labels;  // kNoLabel for a row without a label
  std::vector<std::string> ids;
  std::vector<std::string> payloads;  // empty: none
};

// The result of an upload.
struct IngestOutcome {
  v1::UpsertItemsResponse response;
  uint64_t passed_over = 0;            // with --resume
  std::vector<SkippedImage> rejected;  // images that could not be read
};

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be opened"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.emplace_back(absl::StripSuffix(line, "\r"));
  }
  return lines;
}

absl::Status CheckCount(const std::string& what, size_t count, Eigen::Index rows) {
  if (static_cast<Eigen::Index>(count) == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " must hold one line or value for each of the ", rows, " vectors, but holds ", count));
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

absl::StatusOr<Rows> ReadRows(const IngestOptions& options,
                              const v1::PublicParameters& parameters) {
  Rows rows;
  PM_ASSIGN_OR_RETURN(rows.features, ReadVectors(options.vectors_file));
  if (parameters.feature_dim() > 0) {
    PM_RETURN_IF_ERROR(CheckColumns("--vectors", parameters.feature_dim(), rows.features.cols()));
  }
  if (!options.labels_file.empty()) {
    PM_ASSIGN_OR_RETURN(rows.labels, ReadLabels(options.labels_file));
    PM_RETURN_IF_ERROR(CheckCount("--labels", rows.labels.size(), rows.features.rows()));
  } else if (parameters.slot_labels().empty()) {
    rows.labels.assign(static_cast<size_t>(rows.features.rows()), kNoLabel);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--labels must be given: every item of the collection has one of its ",
                     parameters.slot_labels_size(), " classes"));
  }
  if (!options.payloads_file.empty()) {
    PM_ASSIGN_OR_RETURN(rows.payloads, ReadLines(options.payloads_file));
    PM_RETURN_IF_ERROR(CheckCount("--payloads", rows.payloads.size(), rows.features.rows()));
  }
  if (options.ids_file.empty()) {
    for (Eigen::Index i = 0; i < rows.features.rows(); ++i) {
      rows.ids.push_back(absl::StrCat(options.id_prefix, i));
    }
  } else {
    PM_ASSIGN_OR_RETURN(rows.ids, ReadLines(options.ids_file));
    PM_RETURN_IF_ERROR(CheckCount("--ids", rows.ids.size(), rows.features.rows()));
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

// How many rows one GetItems call may compare.
size_t ItemsOfAnAnswer(const Rows& rows) {
  return std::clamp(kMaxCheckedValues / static_cast<size_t>(rows.features.cols()), size_t{1},
                    kMaxChecked);
}

bool IsRow(const v1::Item& item, const Rows& rows, size_t row) {
  const auto features = rows.features.row(static_cast<Eigen::Index>(row));
  const absl::StatusOr<int32_t> label = LabelFromProto(item);
  return label.ok() && *label == rows.labels[row] &&
         std::equal(item.features().begin(), item.features().end(), features.data(),
                    features.data() + features.size());
}

// Refuses a second file whose row numbers are the ids of other items. Compares rows spread over the
// file with stored items; equal ones are a repeated upload.
absl::Status CheckNothingIsReplaced(const Transport& transport, const std::string& name,
                                    const Rows& rows) {
  const size_t count = std::min(rows.ids.size(), ItemsOfAnAnswer(rows));
  v1::GetItemsRequest request;
  request.set_collection(name);
  std::unordered_map<std::string, size_t> row_of_id;
  for (size_t i = 0; i < count; ++i) {
    const size_t row = i * rows.ids.size() / count;
    request.add_ids(rows.ids[row]);
    row_of_id[rows.ids[row]] = row;
  }
  PM_ASSIGN_OR_RETURN(const v1::GetItemsResponse stored, transport.GetItems(request));
  for (const v1::Item& item : stored.items()) {
    const auto row = row_of_id.find(item.id());
    if (row == row_of_id.end() || IsRow(item, rows, row->second)) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        "collection ", name, " has another item with id ", item.id(),
        ", which is the row number here: give ids with --ids or --id-prefix, or --replace to "
        "overwrite; nothing was sent"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::UpsertItemsResponse> Send(const Transport& transport, const std::string& name,
                                             const Rows& rows,
                                             const std::function<void(int64_t)>& progress) {
  return UploadItems(transport, name,
                     {.features = rows.features.data(),
                      .feature_dim = rows.features.cols(),
                      .labels = rows.labels,
                      .ids = rows.ids,
                      .payloads = rows.payloads},
                     {.progress = progress, .warn = [](const std::string& text) { Warn(text); }});
}

// Removes the rows that the collection holds with the same content; returns their number.
absl::StatusOr<uint64_t> RemoveStored(const Transport& transport, const std::string& name,
                                      Rows* rows) {
  const size_t count = rows->ids.size();
  const size_t step = ItemsOfAnAnswer(*rows);
  std::unordered_set<std::string> stored;
  for (size_t first = 0, row = 0; first < count; first += step) {
    v1::GetItemsRequest request;
    request.set_collection(name);
    for (size_t i = first; i < std::min(count, first + step); ++i) request.add_ids(rows->ids[i]);
    PM_ASSIGN_OR_RETURN(const v1::GetItemsResponse response, transport.GetItems(request));
    for (const v1::Item& item : response.items()) {  // in the order of the ids
      while (row < count && rows->ids[row] != item.id()) ++row;
      if (row == count) break;
      if (IsRow(item, *rows, row) && item.payload().empty()) stored.insert(item.id());
    }
  }
  size_t kept = 0;
  for (size_t row = 0; row < count; ++row) {
    if (stored.contains(rows->ids[row])) continue;
    rows->features.row(static_cast<Eigen::Index>(kept)) =
        rows->features.row(static_cast<Eigen::Index>(row));
    rows->labels[kept] = rows->labels[row];
    rows->ids[kept++] = rows->ids[row];
  }
  rows->features.conservativeResize(static_cast<Eigen::Index>(kept), Eigen::NoChange);
  rows->labels.resize(kept);
  rows->ids.resize(kept);
  return stored.size();
}

void Append(const v1::UpsertItemsResponse& response, uint64_t rows_before,
            v1::UpsertItemsResponse* all) {
  all->set_inserted(all->inserted() + response.inserted());
  all->set_updated(all->updated() + response.updated());
  all->set_unchanged(all->unchanged() + response.unchanged());
  all->set_rejected(all->rejected() + response.rejected());
  for (const v1::RejectedItem& item : response.first_rejected()) {
    v1::RejectedItem* const added = all->add_first_rejected();
    *added = item;
    added->set_position(rows_before + item.position());
  }
}

// The labels of the folder's classes, whose names are those of classes of the collection. Without
// classes images have no labels: their ids name the sub-folder.
absl::StatusOr<std::vector<int32_t>> LabelsOfClasses(const ImageFolder& folder,
                                                     const v1::PublicParameters& parameters) {
  if (parameters.slot_labels().empty()) {
    return std::vector<int32_t>(folder.class_names.size(), kNoLabel);
  }
  std::vector<int32_t> labels;
  const auto& names = parameters.class_names();
  for (const std::string& name : folder.class_names) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--images: the sub-folder ", name,
                                                     " is none of the collection's ", names.size(),
                                                     " classes"));
    }
    labels.push_back(parameters.slot_labels(static_cast<int>(at - names.begin())));
  }
  return labels;
}

// Sends the features of each part before those of the next are extracted.
absl::StatusOr<IngestOutcome> IngestImages(const Transport& transport, const IngestOptions& options,
                                           const v1::PublicParameters& parameters) {
  ExtractorOptions settings = options.extractor;
  settings.collection = parameters.extractor();
  PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(settings));
  if (extractor->identity() != parameters.extractor()) {
    return absl::FailedPreconditionError(
        absl::StrCat("extractor: the collection's features come from ", parameters.extractor(),
                     ", but those of these images would come from ", extractor->identity(),
                     ", which --extractor or --model names where a collection is created"));
  }
  PM_ASSIGN_OR_RETURN(ImageFolder folder, ListImageFolder(options.images));
  std::erase_if(folder.images, [&](const FolderImage& image) {
    if (IsUtf8(image.id)) return false;
    folder.skipped.push_back({image.id, "its name is not UTF-8"});
    return true;
  });
  PM_ASSIGN_OR_RETURN(const std::vector<int32_t> labels, LabelsOfClasses(folder, parameters));
  std::vector<std::string> ids;
  for (const FolderImage& image : folder.images) ids.push_back(image.id);
  PM_RETURN_IF_ERROR(CheckTexts("id", ids));
  IngestOutcome outcome;
  uint64_t sent = 0;
  PM_RETURN_IF_ERROR(
      ExtractInParts(folder, settings, kImagesPerUpload, [&](FolderFeatures part) -> absl::Status {
        std::move(part.rejected.begin(), part.rejected.end(), std::back_inserter(outcome.rejected));
        Rows rows;
        rows.features = std::move(part.features);
        rows.ids = std::move(part.ids);
        for (const int32_t label : part.labels) {
          rows.labels.push_back(labels[static_cast<size_t>(label)]);
        }
        if (options.resume) {
          PM_ASSIGN_OR_RETURN(const uint64_t stored, RemoveStored(transport, options.name, &rows));
          outcome.passed_over += stored;
        }
        if (rows.ids.empty()) return absl::OkStatus();
        PM_ASSIGN_OR_RETURN(const v1::UpsertItemsResponse response,
                            Send(transport, options.name, rows, nullptr));
        Append(response, sent, &outcome.response);
        sent += rows.ids.size();
        return absl::OkStatus();
      }));
  ListRejected(outcome.rejected);
  return outcome;
}

absl::StatusOr<IngestOutcome> IngestVectors(const Transport& transport,
                                            const IngestOptions& options,
                                            const v1::GetCollectionResponse& collection) {
  PM_ASSIGN_OR_RETURN(const Rows rows, ReadRows(options, collection.parameters()));
  PM_RETURN_IF_ERROR(CheckTexts("id", rows.ids));
  PM_RETURN_IF_ERROR(CheckTexts("payload", rows.payloads));
  PM_RETURN_IF_ERROR(CheckDuplicates(rows.ids));
  if (options.ids_file.empty() && !options.replace && collection.items() > 0) {
    PM_RETURN_IF_ERROR(CheckNothingIsReplaced(transport, options.name, rows));
  }
  ProgressBar bar("ingest");
  const auto count = std::ssize(rows.ids);
  IngestOutcome outcome;
  PM_ASSIGN_OR_RETURN(outcome.response, Send(transport, options.name, rows,
                                             [&](int64_t sent) { bar.Show(sent, count); }));
  return outcome;
}

std::string FirstReason(const nlohmann::json& reasons) {
  return reasons.empty() ? "unknown" : reasons[0]["reason"].get<std::string>();
}

absl::Status CheckOptions(const IngestOptions& options) {
  if (options.resume && (options.images.empty() || options.extractor.features_folder.empty())) {
    return absl::InvalidArgumentError(
        "--resume needs --images and --features-folder, which keeps what an interrupted run "
        "extracted");
  }
  if (!options.id_prefix.empty() && (!options.images.empty() || !options.ids_file.empty())) {
    return absl::InvalidArgumentError(
        "--id-prefix is of no use with --ids or --images, which name the items");
  }
  const bool images = !options.images.empty(), vectors = !options.vectors_file.empty();
  if (images != vectors && !(images && !options.labels_file.empty())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("give either --vectors, with or without --labels, or --images",
                   images || vectors ? "" : "; --vectors is missing"));
}

// Says what makes the stored items findable.
std::string NextStep(const std::string& name, const v1::PublicParameters& parameters) {
  const std::string build = absl::StrCat("run `privatemail build ", name, "`");
  if (!parameters.with_encrypted()) return build + " to make them searchable\n";
  std::vector<std::string> others = OfferedSchemes(parameters);
  std::erase(others, NameOf(Scheme::kEncrypted));
  if (others.empty()) return "searches find them from now on\n";
  return absl::StrCat("searches with encrypted find them from now on; for ",
                      absl::StrJoin(others, ", "), " ", build, "\n");
}

absl::StatusOr<Result> Ingest(const Context& context, const IngestOptions& options) {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      transport.GetCollection(options.name));
  const absl::StatusOr<IngestOutcome> outcome =
      options.images.empty() ? IngestVectors(transport, options, collection)
                             : IngestImages(transport, options, collection.parameters());
  if (absl::IsUnavailable(outcome.status())) {
    return absl::UnavailableError(
        absl::StrCat(outcome.status().message(),
                     "; rows that are stored stay: run the same command again to add the others"));
  }
  PM_RETURN_IF_ERROR(outcome.status());
  const v1::UpsertItemsResponse& response = outcome->response;
  const uint64_t acknowledged = response.inserted() + response.updated() + response.unchanged();
  const uint64_t rejected = response.rejected() + outcome->rejected.size();
  nlohmann::json reasons = nlohmann::json::array();
  for (const SkippedImage& image : outcome->rejected) {
    reasons.push_back({{"id", image.id}, {"reason", image.reason}});
  }
  for (const v1::RejectedItem& item : response.first_rejected()) {
    reasons.push_back({{"row", item.position()}, {"id", item.id()}, {"reason", item.reason()}});
    std::cerr << "rejected row " << item.position() << " (" << Printable(item.id())
              << "): " << Printable(item.reason()) << "\n";
  }
  const auto listed = static_cast<uint64_t>(response.first_rejected_size());
  if (response.rejected() > listed) {
    std::cerr << "... and " << response.rejected() - listed << " more rejected rows\n";
  }
  if (acknowledged + outcome->passed_over == 0) {
    return absl::InvalidArgumentError(absl::StrCat("all ", rejected, " rows were rejected; ",
                                                   "the first: ", FirstReason(reasons)));
  }
  const std::string next = response.inserted() + response.updated() + outcome->passed_over == 0
                               ? ""
                               : NextStep(options.name, collection.parameters());
  Result result = {
      .json = {{"acknowledged", acknowledged},
               {"rejected", rejected},
               {"inserted", response.inserted()},
               {"updated", response.updated()},
               {"unchanged", response.unchanged()},
               {"reasons", reasons}},
      .text = absl::StrCat(Counted(acknowledged, "item"), " acknowledged (", response.inserted(),
                           " new, ", response.updated(), " changed, ", response.unchanged(),
                           " as before), ", rejected, " rejected\n", next),
      .exit_code = rejected > 0 ? kExitSomeRejected : 0};
  if (options.resume) {
    result.json["passed_over"] = outcome->passed_over;
    absl::StrAppend(&result.text, Counted(outcome->passed_over, "item"), " passed over\n");
  }
  return result;
}

}  // namespace

void AddIngestCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<IngestOptions>();
  CLI::App* ingest =
      AddCommand(app, "ingest",
                 "Upload gallery items. An item replaces a stored one of the same id, "
                 "payload included. Safe to repeat after an interruption");
  ingest->add_option("NAME", options->name, "The collection")->required();
  ingest->add_option("--vectors", options->vectors_file, "Gallery vectors (.npy .fvecs .csv)");
  ingest->add_option("--labels", options->labels_file,
                     "Their labels (.npy .ivecs .csv .txt); needed if the collection has classes");
  ingest->add_option("--ids", options->ids_file,
                     "Their ids, one a line; if absent the row numbers, of images class/file");
  ingest->add_option("--id-prefix", options->id_prefix,
                     "Without --ids: ids are this text and the row number");
  ingest->add_flag(
      "--replace", options->replace,
      "Without --ids: overwrite stored items of the same row numbers; otherwise refused if "
      "their vectors or labels differ");
  ingest->add_option("--payloads", options->payloads_file,
                     "One JSON text a line, returned with matches");
  ingest->add_option("--images", options->images, "Folder of images, one sub-folder a class");
  ingest->add_flag("--resume", options->resume,
                   "With --images and --features-folder: pass over images that the collection "
                   "holds with the same content");
  AddExtractorOptions(ingest, &options->extractor);
  AddFeaturesFolderOption(ingest, &options->extractor);
  ingest->footer(absl::StrCat(
      "Row numbers as ids: a second file would replace the items of the first, so up to 1,000 "
      "rows are compared with stored items before anything is sent.\n"
      "Exit code 3: some rows were rejected, the others acknowledged.\n",
      ingest->get_footer()));
  SetRun(ingest, context, options, &Ingest);
}

}  // namespace privatemail::client::cli
