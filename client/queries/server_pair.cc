#include "client/queries/server_pair.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/queries/private_file.h"
#include "common/base/printable.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {
namespace {

std::string NameOfServer(const std::string& address,
                         const std::optional<ServerIdentity>& identity) {
  return identity.has_value() ? absl::StrCat("key ", identity->key)
                              : absl::StrCat("address ", address);
}

std::string RecordPath(const std::string& state_folder, const ServerPair& pair,
                       const Halves<std::optional<ServerIdentity>>& identities) {
  std::string one = NameOfServer(pair.addresses.a, identities.a);
  std::string other = NameOfServer(pair.addresses.b, identities.b);
  if (other < one) std::swap(one, other);
  const std::string digest = Sha256::Of(absl::StrCat(one, "\n", other, "\n", pair.collection_uuid));
  return absl::StrCat(state_folder, "/wrong_answer_", ToHex(digest).substr(0, 32));
}

// By keys, which other addresses do not change, and by addresses, which other keys do not.
std::array<std::string, 2> RecordPaths(const std::string& state_folder, const ServerPair& pair) {
  return {RecordPath(state_folder, pair, pair.identities), RecordPath(state_folder, pair, {})};
}

absl::Status OneServer(const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("--server and --second-server must be two servers, but both have ", what,
                   ": one server would see both halves of the query"));
}

}  // namespace

absl::Status CheckDifferentServers(const ServerPair& pair) {
  if (pair.addresses.a == pair.addresses.b) {
    return OneServer(absl::StrCat("the address ", Printable(pair.addresses.a)));
  }
  const auto& [a, b] = pair.identities;
  if (!a.has_value() || !b.has_value()) return absl::OkStatus();
  if (a->certificate == b->certificate) {
    return OneServer(absl::StrCat("the certificate ", a->certificate));
  }
  if (a->key == b->key) return OneServer(absl::StrCat("the public key ", a->key));
  return absl::OkStatus();
}

absl::Status CheckDifferentKeys(const Transport& first, const Transport& second) {
  if (!first.SharesAccessKey(second)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--key-file and --second-key-file must hold two keys, but hold one: either operator could "
      "act as you at the other; get a key from each");
}

absl::Status WithSecondFlags(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrReplaceAll(status.message(), {{"--server", "--second-server"},
                                                             {"--ca", "--second-ca"},
                                                             {"--trust", "--second-trust"},
                                                             {"--cert", "--second-cert"},
                                                             {"--key-file", "--second-key-file"}}));
}

absl::Status CheckTrusted(const std::string& state_folder, const ServerPair& pair) {
  for (const std::string& path : RecordPaths(state_folder, pair)) {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
      return absl::FailedPreconditionError(absl::StrCat(
          "an answer of servers ", Printable(pair.addresses.a), " and ",
          Printable(pair.addresses.b), " was wrong (", path,
          "), which may be an attempt to learn a query: they are not used together until you say "
          "--trust-again"));
    }
    PM_RETURN_IF_ERROR(PrivateFile::Create("record of wrong answers", path).status());
  }
  return absl::OkStatus();
}

absl::Status RecordWrongAnswer(const std::string& state_folder, const ServerPair& pair,
                               absl::string_view reason) {
  const std::string text = absl::StrCat(
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()), "\nserver A ",
      Printable(pair.addresses.a), " ", NameOfServer(pair.addresses.a, pair.identities.a),
      "\nserver B ", Printable(pair.addresses.b), " ",
      NameOfServer(pair.addresses.b, pair.identities.b), "\ncollection ",
      Printable(pair.collection_uuid), "\n", Printable(reason), "\n");
  absl::Status recorded;
  for (const std::string& path : RecordPaths(state_folder, pair)) {
    absl::StatusOr<PrivateFile> file = PrivateFile::Create("record of wrong answers", path);
    recorded.Update(file.ok() ? file->Commit(text) : file.status());
  }
  return recorded;
}

absl::Status TrustAgain(const std::string& state_folder, const ServerPair& pair) {
  for (const std::string& path : RecordPaths(state_folder, pair)) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (!error) continue;
    return absl::UnavailableError(
        absl::StrCat("--trust-again cannot remove ", path, ": ", error.message()));
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
