// `privatemail image` and `mirror`: images for searches of two operators.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/queries/server_pair.h"
#include "common/base/printable.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "common/wire/codec.h"

namespace privatemail::client::cli {
namespace {

struct MakeOptions {
  std::string name;
  uint32_t list_items = 200;
  bool with_scores = false;
};

struct MirrorOptions {
  std::string name;
  SecondServer second;
  std::string pin;
  double every_seconds = 0;
};

nlohmann::json ImageJson(const v1::GetImageResponse& image, const v1::ImageHeader& header) {
  nlohmann::json partitions = nlohmann::json::array();
  for (const v1::ListGroup& group : header.partitions()) {
    partitions.push_back(
        {{"lists", group.lists()}, {"items", group.rows()}, {"list_bytes", group.list_bytes()}});
  }
  return {{"digest", ToHex(ImageDigest(image.header()))},
          {"operator", image.operator_name()},
          {"items", header.items()},
          {"items_version", header.items_version()},
          {"partitions", partitions},
          {"payload_lists", header.payloads().lists()},
          {"payload_list_bytes", header.payloads().list_bytes()},
          {"has_scores", header.has_scores()},
          {"allows_scores", image.allows_scores()},
          {"signer", ToHex(image.signer())}};
}

absl::StatusOr<Result> Describe(const std::string& name, const v1::GetImageResponse& image) {
  PM_ASSIGN_OR_RETURN(const v1::ImageHeader header, ReadImageHeader(image.header()));
  std::string text =
      absl::StrCat("image ", ToHex(ImageDigest(image.header())), " of ", name, ", ",
                   Counted(header.items(), "item"), ", served by ",
                   Printable(image.operator_name()), "\nsigned by ", ToHex(image.signer()), "\n");
  for (int i = 0; i < header.partitions_size(); ++i) {
    const v1::ListGroup& group = header.partitions(i);
    absl::StrAppend(&text, "partition ", i, ": ", group.lists(), " lists of ", group.rows(),
                    " items, ", group.list_bytes(), " bytes each\n");
    const uint64_t places = uint64_t{group.lists()} * group.rows();
    if (places < header.items()) {
      absl::StrAppend(&text, "  at least ", header.items() - places, " of the ", header.items(),
                      " items are in none of them: lists never find these\n");
    }
  }
  absl::StrAppend(&text, "scores: ",
                  !header.has_scores()    ? "none"
                  : image.allows_scores() ? "allowed"
                                          : "not allowed by this operator",
                  "\n");
  return Result{.json = ImageJson(image, header), .text = text};
}

absl::StatusOr<Result> Make(const Context& context, const MakeOptions& options) {
  if (options.list_items == 0) {  // which would be the server's default
    return absl::InvalidArgumentError("--list-items must be at least 1, but is 0");
  }
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  v1::MakeImageRequest request;
  request.set_collection(options.name);
  request.set_list_items(options.list_items);
  request.set_with_scores(options.with_scores);
  PM_ASSIGN_OR_RETURN(const v1::GetImageResponse image, transport.MakeImage(request));
  return Describe(options.name, image);
}

absl::StatusOr<Result> Info(const Context& context, const MakeOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const ImageAnswer served, transport.GetImage(options.name));
  return Describe(options.name, served.image);
}

absl::Status CheckPin(const v1::GetImageResponse& image, const std::string& pin) {
  if (ToHex(image.signer()) != absl::AsciiStrToLower(pin)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the image is signed by ", ToHex(image.signer()), ", not by the key that --pin names, ",
        pin, ": ask its operator for the key, by another way than this server"));
  }
  return CheckImageSignature(ImageDigest(image.header()), image.signer(), image.signature());
}

absl::StatusOr<std::vector<std::string>> FetchSections(const Transport& from,
                                                       const std::string& name,
                                                       const v1::GetImageResponse& image) {
  PM_ASSIGN_OR_RETURN(const v1::ImageHeader header, ReadImageHeader(image.header()));
  std::vector<std::string> sections;
  for (const v1::ImageSectionHeader& section : header.sections()) {
    v1::GetImageSectionRequest request;
    request.set_collection(name);
    request.set_digest(ImageDigest(image.header()));
    request.set_section(section.section());
    PM_ASSIGN_OR_RETURN(std::string bytes, from.GetImageSection(request, section.bytes()));
    if (Sha256::Of(bytes) != section.sha256()) {
      return absl::DataLossError(absl::StrCat("section ", section.section(),
                                              " does not have the digest of the image's header"));
    }
    sections.push_back(std::move(bytes));
  }
  return sections;
}

absl::Status OfServer(const Transport& server, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("server ", Printable(server.server()), ": ", status.message()));
}

// As a search of the two would check them.
absl::Status CheckTwoOperators(const Transport& from, const ImageAnswer& source,
                               const Transport& to, const ImageAnswer& copy) {
  PM_RETURN_IF_ERROR(CheckDifferentServers({.addresses = {from.server(), to.server()},
                                            .identities = {source.identity, copy.identity},
                                            .collection_uuid = ""}));
  return CheckDifferentOperators({source.image.operator_name(), copy.image.operator_name()});
}

// Whether there was something to copy. Errors of a server name it.
absl::StatusOr<bool> MirrorOnce(const Transport& from, const Transport& to,
                                const MirrorOptions& options) {
  const absl::StatusOr<ImageAnswer> source = from.GetImage(options.name);
  if (!source.ok()) return OfServer(from, source.status());
  PM_RETURN_IF_ERROR(CheckPin(source->image, options.pin));
  const absl::StatusOr<ImageAnswer> copy = to.GetImage(options.name);
  if (!copy.ok() && !absl::IsNotFound(copy.status())) {
    return OfServer(to, WithSecondFlags(copy.status()));
  }
  if (copy.ok()) PM_RETURN_IF_ERROR(CheckTwoOperators(from, *source, to, *copy));
  if (copy.ok() && copy->image.header() == source->image.header()) return false;
  const absl::StatusOr<std::vector<std::string>> sections =
      FetchSections(from, options.name, source->image);
  if (!sections.ok()) return OfServer(from, sections.status());
  const absl::StatusOr<v1::GetImageResponse> installed =
      to.InstallImage(options.name, source->image, *sections);
  if (!installed.ok()) return OfServer(to, WithSecondFlags(installed.status()));
  if (copy.ok()) return true;
  // A server without an image does not say who it is.
  const absl::StatusOr<ImageAnswer> first_copy = to.GetImage(options.name);
  if (!first_copy.ok()) return OfServer(to, WithSecondFlags(first_copy.status()));
  PM_RETURN_IF_ERROR(CheckTwoOperators(from, *source, to, *first_copy));
  return true;
}

absl::Status CheckOptions(const MirrorOptions& options) {
  const std::string& pin = options.pin;
  if (pin.size() != 2 * kSignerBytes ||
      !std::all_of(pin.begin(), pin.end(), absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError(absl::StrCat("--pin must be a key of ", 2 * kSignerBytes,
                                                   " hex digits, but is \"", Printable(pin), "\""));
  }
  constexpr double kShortest = 0.1, kLongest = 1e6;
  const double every = options.every_seconds;
  if (every == 0 || (every >= kShortest && every <= kLongest)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--every must be 0 or between ", kShortest,
                                                 " and ", kLongest, " seconds, but is ", every));
}

absl::Status Mirror(const Context& context, const MirrorOptions& options) {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  PM_ASSIGN_OR_RETURN(const Transport from, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const Transport to, ConnectSecond(context, options.second));
  PM_RETURN_IF_ERROR(CheckDifferentKeys(from, to));
  absl::Time behind_since = absl::InfiniteFuture();
  while (true) {
    const absl::Time begun = absl::Now();
    behind_since = std::min(behind_since, begun);
    const absl::StatusOr<bool> copied = MirrorOnce(from, to, options);
    if (!copied.ok() && options.every_seconds == 0) return copied.status();
    const double seconds = absl::ToDoubleSeconds(absl::Now() - behind_since);
    if (!copied.ok()) {
      Warn(absl::StrCat("the copy may have been out of date for ", seconds,
                        " s: ", copied.status().message()));
    } else {
      behind_since = absl::InfiniteFuture();
    }
    if (copied.ok() && (*copied || options.every_seconds == 0)) {
      Print({.json = {{"collection", options.name}, {"copied", *copied}, {"seconds", seconds}},
             .text = *copied ? absl::StrCat("copied the image of ", options.name, " in ", seconds,
                                            " s\n")
                             : absl::StrCat("the copy of ", options.name, " is up to date\n")},
            context.json);
    }
    if (options.every_seconds == 0) return absl::OkStatus();
    absl::SleepFor(absl::Seconds(options.every_seconds));
  }
}

void AddName(CLI::App* command, std::string* name) {
  command->add_option("NAME", *name, "The collection")->required();
}

}  // namespace

void AddImageCommands(CLI::App& app, Context& context) {
  CLI::App* image = AddCommand(app, "image", "Images for searches that ask two operators");
  image->require_subcommand(1);
  auto options = std::make_shared<MakeOptions>();
  CLI::App* make = AddCommand(*image, "make",
                              "Make the image of a collection's cells, which a second operator "
                              "copies with `privatemail mirror`");
  AddName(make, &options->name);
  make->add_option("--list-items", options->list_items,
                   "Items of every list; a search fetches whole lists")
      ->capture_default_str();
  make->add_flag("--with-scores", options->with_scores,
                 "Allow exact searches, whose answers let searchers compute the vectors; the "
                 "daemon must run with --allow-scores");
  SetRun(make, context, options, &Make);
  CLI::App* info = AddCommand(*image, "info", "Show the image that a server has");
  AddName(info, &options->name);
  SetRun(info, context, options, &Info);

  auto mirror_options = std::make_shared<MirrorOptions>();
  CLI::App* mirror = AddCommand(app, "mirror", "Copy an image from --server to --second-server");
  AddName(mirror, &mirror_options->name);
  AddSecondServer(mirror, "", &mirror_options->second);
  mirror
      ->add_option("--pin", mirror_options->pin,
                   "Key that must have signed the image, 64 hex digits, as its maker tells it "
                   "(`privatemail image info`) on another way than this one")
      ->required();
  mirror
      ->add_option("--every", mirror_options->every_seconds,
                   "Look for a new image every so many seconds; 0: once")
      ->capture_default_str();
  mirror->footer(absl::StrCat(
      "Needs a key with scope write at both servers. Every byte is checked against the pinned "
      "signature before it is installed.\n",
      mirror->get_footer()));
  SetRun(mirror, context, mirror_options, &Mirror);
}

}  // namespace privatemail::client::cli
