#include "client/cli/faiss_index.h"

#include <faiss/IVFlib.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexNSG.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/index_io.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/file_trial.h"
#include "common/base/input_file.h"
#include "common/base/matrix.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

constexpr char kExpected[] = "an index file that FAISS can read";
constexpr int64_t kRowsPerBlock = 1024;

// "Error in FUNCTION at FILE.cpp:LINE: Error: 'CONDITION' failed: TEXT" without the names of
// sources of FAISS.
std::string TextOf(const faiss::FaissException& error) {
  absl::string_view text = error.msg;
  for (const absl::string_view before : {".cpp:", ".h:", ": ", "failed: "}) {
    const size_t at = text.find(before);
    if (at != absl::string_view::npos) text.remove_prefix(at + before.size());
  }
  if (absl::StartsWith(text, "read error")) return "it ends before its data does";
  if (absl::StartsWith(text, "Error: '")) return "its parts contradict each other";
  return std::string(text);
}

template <typename Function>
absl::Status Catching(const std::string& path, const Function& function) {
  try {
    return function();
  } catch (const faiss::FaissException& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected ", kExpected,
                     " whose vectors can be reconstructed, but: ", TextOf(error)));
  } catch (const std::bad_alloc&) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected ", kExpected, ", got one that needs far more memory than its size"));
  } catch (const std::length_error&) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected ", kExpected, ", got one with impossible sizes"));
  }
}

bool IsExact(const faiss::Index* index) {
  if (const auto* transform = dynamic_cast<const faiss::IndexPreTransform*>(index)) {
    return IsExact(transform->index);
  }
  if (const auto* refine = dynamic_cast<const faiss::IndexRefine*>(index)) {
    return IsExact(refine->refine_index);
  }
  if (const auto* graph = dynamic_cast<const faiss::IndexHNSW*>(index)) {
    return IsExact(graph->storage);
  }
  if (const auto* graph = dynamic_cast<const faiss::IndexNSG*>(index)) {
    return IsExact(graph->storage);
  }
  return dynamic_cast<const faiss::IndexFlat*>(index) != nullptr ||
         dynamic_cast<const faiss::IndexIVFFlat*>(index) != nullptr;
}

// The ids of all lists, ascending.
std::vector<int64_t> IdsOf(const faiss::IndexIVF& index) {
  std::vector<int64_t> ids;
  for (size_t list = 0; list < index.nlist; ++list) {
    faiss::InvertedLists::ScopedIds some(index.invlists, list);
    ids.insert(ids.end(), some.get(), some.get() + index.invlists->list_size(list));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool AreRowNumbers(const std::vector<int64_t>& ids) {
  for (size_t row = 0; row < ids.size(); ++row) {
    if (ids[row] != static_cast<int64_t>(row)) return false;
  }
  return true;
}

TrialLimits LimitsOf(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  // Maps of ids take a multiple of their bytes in the file.
  return {.bytes = (uint64_t{256} << 20) + (error ? 0 : 8 * size),
          .seconds = static_cast<unsigned>(120 + (error ? 0 : size >> 24))};
}

}  // namespace

FaissIndex::FaissIndex(std::unique_ptr<faiss::Index> index)
    : index_(std::move(index)), vectors_(index_.get()) {
  if (const auto* map = dynamic_cast<const faiss::IndexIDMap*>(vectors_)) {
    vectors_ = map->index;
    ids_ = map->id_map;
    FAISS_THROW_IF_NOT_MSG(std::ssize(ids_) == vectors_->ntotal,
                           "the map has another number of ids than the index below it has vectors");
  }
  faiss::IndexIVF* const lists =
      faiss::ivflib::try_extract_index_ivf(const_cast<faiss::Index*>(vectors_));
  if (lists == nullptr) return;
  // The map in the file may be damaged, and most files have none.
  lists->set_direct_map_type(faiss::DirectMap::NoMap);
  std::vector<int64_t> ids = IdsOf(*lists);
  FAISS_THROW_IF_NOT_MSG(std::ssize(ids) == lists->ntotal,
                         "its lists have another number of vectors than it states");
  if (AreRowNumbers(ids)) {
    lists->set_direct_map_type(faiss::DirectMap::Array);
    return;
  }
  FAISS_THROW_IF_NOT_MSG(ids_.empty(), "the index below its map has ids of its own");
  lists->set_direct_map_type(faiss::DirectMap::Hashtable);
  ids_ = std::move(ids);
  ids_are_keys_ = true;
}

absl::StatusOr<FaissIndex> FaissIndex::Open(const std::string& path,
                                            std::vector<std::string> trial) {
  if (path == kStandardInput)
    return absl::InvalidArgumentError("FAISS reads no standard input (-)");
  PM_RETURN_IF_ERROR(InputFile::Open(path).status());  // its own errors for what is no file
  if (!trial.empty()) {
    trial.push_back(path);
    PM_RETURN_IF_ERROR(TryInChild(trial, LimitsOf(path).seconds, path, kExpected));
  }
  std::optional<FaissIndex> index;
  PM_RETURN_IF_ERROR(Catching(path, [&] {
    std::unique_ptr<faiss::Index> read(faiss::read_index(path.c_str()));
    if (read->ntotal < 1 || read->d < 1) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": the index has no vectors"));
    }
    index = FaissIndex(std::move(read));
    // An index that cannot reconstruct one vector can reconstruct none.
    index->Copy(0, 1, std::vector<float>(static_cast<size_t>(index->cols())).data());
    return absl::OkStatus();
  }));
  return *std::move(index);
}

int64_t FaissIndex::rows() const { return vectors_->ntotal; }
int64_t FaissIndex::cols() const { return vectors_->d; }

void FaissIndex::Copy(int64_t first, int64_t count, float* out) const {
  for (int64_t row = first; row < first + count; ++row, out += cols()) {
    vectors_->reconstruct(ids_are_keys_ ? ids_[static_cast<size_t>(row)] : row, out);
  }
}

std::optional<Metric> FaissIndex::metric() const {
  if (vectors_->metric_type == faiss::METRIC_INNER_PRODUCT) return Metric::kDot;
  if (vectors_->metric_type == faiss::METRIC_L2) return Metric::kEuclidean;
  return std::nullopt;
}

bool FaissIndex::is_exact() const { return IsExact(vectors_); }

int TryFaissIndex(const std::string& path) {
  return ReportTrial(LimitsOf(path), [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const FaissIndex index, FaissIndex::Open(path, {}));
    FloatMatrix block(kRowsPerBlock, index.cols());
    return Catching(path, [&] {
      for (int64_t row = 0; row < index.rows(); row += kRowsPerBlock) {
        index.Copy(row, std::min(kRowsPerBlock, index.rows() - row), block.data());
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace privatemail::client::cli
