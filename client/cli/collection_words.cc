#include "client/cli/collection_words.h"

#include <iostream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "common/base/printable.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client::cli {
namespace {

std::vector<uint32_t> CellCounts(const v1::PublicParameters& p) {
  std::vector<uint32_t> counts;
  for (const v1::CellPartition& partition : p.cell_partitions())
    counts.push_back(partition.cells());
  return counts;
}

// Null where the code has no codebook: then it is off by what its name says.
nlohmann::json ErrorOf(const v1::PublicParameters& p) {
  if (!p.has_cell_codebook()) return nullptr;
  return p.cell_codebook().relative_squared_error();
}

std::string SentAs(const v1::PublicParameters& p) {
  if (p.cell_code() == v1::CELL_CODE_NONE) return "coordinates of the embedding (code none)";
  if (!p.has_cell_codebook()) return CodeName(p.cell_code());
  return absl::StrFormat("%s (relative squared error %.2g on the anchors)", CodeName(p.cell_code()),
                         p.cell_codebook().relative_squared_error());
}

}  // namespace

std::string CodeName(v1::CellCode code) {
  for (const auto& [name, known] : kCellCodeNames) {
    if (ToProto(*known) == code) return name;
  }
  return "";
}

nlohmann::json ToJson(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  return {
      {"name", c.name()},
      {"uuid", p.collection_uuid()},
      {"digest", absl::BytesToHexString(c.fingerprint())},
      {"items", c.items()},
      {"embedded", c.embedded_items()},
      {"version", c.embedding_version()},
      {"changes_since_embedding", c.changes_since_embedding()},
      {"index", c.index()},
      {"classes", p.slot_labels_size()},
      {"anchors", p.anchor_count()},
      {"feature_dim", p.feature_dim()},
      {"embedding_dim", p.settings().embedding_dim()},
      {"kernel_bandwidth", p.settings().kernel_bandwidth()},
      {"alpha", p.settings().alpha()},
      {"kernel", v1::Kernel_Name(p.settings().kernel())},
      {"label_graph", v1::LabelGraph_Name(p.settings().label_graph())},
      {"steps", p.settings().steps()},
      {"start_stddev", p.settings().start_stddev()},
      {"normalise", p.settings().normalise()},
      {"cells", CellCounts(p)},
      {"cell_code", CodeName(p.cell_code())},
      {"cell_code_error", ErrorOf(p)},
      {"cells_state", c.cells()},
      {"cells_ready", c.cells_ready()},
      {"extractor", p.extractor()},
      {"class_names", std::vector<std::string>(p.class_names().begin(), p.class_names().end())}};
}

void Print(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  const v1::EmbeddingSettings& s = p.settings();
  std::cout << Printable(c.name()) << "  " << Counted(c.items(), "item") << ", "
            << c.embedded_items() << " embedded (version " << c.embedding_version() << "), "
            << p.slot_labels_size() << " classes, " << Counted(p.anchor_count(), "anchor") << ", "
            << p.feature_dim() << " -> " << s.embedding_dim() << " dimensions\n";
  if (c.has_changes() && c.changes_since_embedding() > 0) {
    std::cout << "  not embedded yet: " << c.changes().inserted() << " inserted, "
              << c.changes().updated() << " updated (found as they were), " << c.changes().deleted()
              << " deleted (not found any more): privatemail build " << Printable(c.name()) << "\n";
  }
  if (!c.index().empty()) std::cout << "  index " << Printable(c.index()) << "\n";
  std::cout << "  uuid " << Printable(p.collection_uuid()) << "\n  digest "
            << absl::BytesToHexString(c.fingerprint()) << "\n  extractor "
            << Printable(p.extractor()) << "\n  kernel " << v1::Kernel_Name(s.kernel())
            << ", bandwidth " << s.kernel_bandwidth() << "; label graph "
            << v1::LabelGraph_Name(s.label_graph()) << ", alpha " << s.alpha() << "; "
            << Counted(s.steps(), "step") << ", start stddev " << s.start_stddev()
            << (s.normalise() ? "" : ", not normalised") << "\n";
  if (p.cell_partitions().empty()) return;
  std::cout << "  cells " << absl::StrJoin(CellCounts(p), ", ") << ", items as " << SentAs(p)
            << " for whoever may search"
            << (c.cells().empty() ? "" : absl::StrCat("; ", Printable(c.cells()))) << "\n";
}

}  // namespace privatemail::client::cli
