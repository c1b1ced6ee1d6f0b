#include "client/privacy/accounting/ledger_chain.h"

#include <array>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "privatemail/bit_source.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// A witness is stamped when it is written: a copy put back later is not taken for the work of a
// process that was killed just then.
constexpr int64_t kLongestWriteNanoseconds = 1'000'000'000;

}  // namespace

absl::StatusOr<std::string> NewLedgerName() {
  std::array<uint8_t, 16> bits;
  SecureBits source;
  PM_RETURN_IF_ERROR(source.Fill(absl::MakeSpan(bits)));
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()));
}

LedgerMatch Compare(const LedgerState& state, const LedgerWitness::Record& record) {
  if (record.ledger_id != state.id) return LedgerMatch::kForeign;
  const bool names_last = record.change == state.change && record.generation == state.generation;
  const bool names_former =
      record.change == state.former_change && record.generation == state.generation - 1;
  const int64_t stamp = record.stamped_at_nanoseconds;
  if (state.witness_stamp != 0) {
    return names_last && stamp == state.witness_stamp ? LedgerMatch::kIntact
                                                      : LedgerMatch::kForeign;
  }
  if (names_former && stamp == state.former_stamp) return LedgerMatch::kNotWitnessed;
  const bool just_written =
      std::llabs(stamp - record.written_at_nanoseconds) < kLongestWriteNanoseconds;
  // Only a loss of power takes a stamp back: the record reached the disk and its stamp did not.
  const bool stamp_was_lost = stamp == state.former_stamp;
  return names_last && !state.change.empty() && (just_written || stamp_was_lost)
             ? LedgerMatch::kNotTold
             : LedgerMatch::kForeign;
}

}  // namespace privatemail::client
