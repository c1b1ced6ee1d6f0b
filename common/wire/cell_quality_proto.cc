#include "common/wire/cell_quality_proto.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr double kHundredths = 100, kThousandths = 1000;

char ToByte(double share, double unit) {
  return static_cast<char>(static_cast<unsigned char>(std::lround(share * unit)));
}

double FromByte(char byte, double unit) {
  return static_cast<double>(static_cast<unsigned char>(byte)) / unit;
}

void EncodeCurves(const std::vector<MeasuredQuality>& means, v1::QualityCurves* proto) {
  for (const auto& [fidelity, recall] : means) {
    proto->mutable_fidelity()->push_back(ToByte(fidelity.value, kHundredths));
    proto->mutable_fidelity_error()->push_back(ToByte(fidelity.standard_error, kThousandths));
    proto->mutable_recall()->push_back(ToByte(recall.value, kHundredths));
    proto->mutable_recall_error()->push_back(ToByte(recall.standard_error, kThousandths));
  }
}

absl::StatusOr<std::vector<MeasuredQuality>> DecodeCurves(absl::string_view field,
                                                          const v1::QualityCurves& proto) {
  const size_t count = proto.fidelity().size();
  for (const std::string* bytes :
       {&proto.fidelity_error(), &proto.recall(), &proto.recall_error()}) {
    if (bytes->size() == count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have curves of ", count, " bytes, but one has ", bytes->size()));
  }
  std::vector<MeasuredQuality> means;
  for (size_t i = 0; i < count; ++i) {
    means.push_back({.fidelity = {FromByte(proto.fidelity()[i], kHundredths),
                                  FromByte(proto.fidelity_error()[i], kThousandths)},
                     .recall = {FromByte(proto.recall()[i], kHundredths),
                                FromByte(proto.recall_error()[i], kThousandths)}});
  }
  return means;
}

}  // namespace

void ToProto(const CellQuality& quality, v1::CellQuality* proto) {
  proto->set_queries(static_cast<uint32_t>(quality.queries));
  proto->mutable_items()->Assign(quality.items.begin(), quality.items.end());
  proto->mutable_epsilons()->Assign(quality.epsilons.begin(), quality.epsilons.end());
  for (const PartitionQuality& partition : quality.partitions) {
    v1::PartitionQuality* one = proto->add_partitions();
    EncodeCurves(partition.own, one->mutable_own());
    EncodeCurves(partition.other, one->mutable_other());
  }
}

absl::StatusOr<CellQuality> FromProto(const v1::CellQuality& proto, size_t partitions) {
  CellQuality quality{.queries = proto.queries(),
                      .items = {proto.items().begin(), proto.items().end()},
                      .epsilons = {proto.epsilons().begin(), proto.epsilons().end()},
                      .partitions = {}};
  for (const v1::PartitionQuality& partition : proto.partitions()) {
    PartitionQuality& one = quality.partitions.emplace_back();
    PM_ASSIGN_OR_RETURN(one.own, DecodeCurves("quality.partitions.own", partition.own()));
    PM_ASSIGN_OR_RETURN(one.other, DecodeCurves("quality.partitions.other", partition.other()));
  }
  PM_RETURN_IF_ERROR(Validate(quality, partitions));
  return quality;
}

}  // namespace privatemail
