#include <iomanip>
#include <iostream>

#include "client/cli/command.h"
#include "client/cli/last_release.h"
#include "client/cli/query_outcome.h"
#include "client/cli/query_targets.h"
#include "client/retrieval_client.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/protocol/public_parameters.h"

namespace privatemail::cli {
namespace {

// The same bytes tell the server nothing new, so nothing is charged. Which slot is read is decided
// here, and the answer is checked for every slot alike.
absl::Status Resend(const Context& context, const std::string& label_text) {
  PM_ASSIGN_OR_RETURN(const LastRelease last, LoadLastRelease(context.state_folder));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  PM_ASSIGN_OR_RETURN(const int32_t label, LabelFrom(label_text, parameters));
  PM_ASSIGN_OR_RETURN(const int64_t slot, parameters.SlotOf(label));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::RetrieveResponse response, transport.Retrieve(last.request));
  const Asked asked{last.request.k(), last.request.with_payloads(), last.request.with_alignment()};
  PM_ASSIGN_OR_RETURN(const QueryResult result, ReadAnswer(parameters, slot, asked, response));
  Answer(context,
         {{"collection", last.request.collection()},
          {"label", label},
          {"class", parameters.ClassName(slot)},
          {"matches", ToJson(result.matches)},
          {"truncated", result.truncated},
          {"spent", ToJson(Budget{})},
          {"alignment", {{"relative_residual", result.relative_residual}}},
          {"embedding_version", result.embedding_version}},
         [&] {
           std::cout << "collection " << Printable(last.request.collection()) << "   class "
                     << Printable(parameters.ClassName(slot)) << "\n";
           for (size_t i = 0; i < result.matches.size(); ++i) {
             std::cout << std::setw(4) << i + 1 << "  " << Printable(result.matches[i].id) << "\n";
           }
           std::cout << "  spent nothing: the bytes are those of the last release\n";
         });
  return absl::OkStatus();
}

}  // namespace

void AddResendCommand(CLI::App& app, Context& context) {
  auto label = std::make_shared<std::string>();
  CLI::App* resend =
      AddCommand(app, "resend", "Send the last release again, at no cost, and read one class");
  resend->add_option("--label", *label, "The class whose matches to read; the server is not told")
      ->required();
  resend->callback(
      [&context, label] { context.run = [&context, label] { return Resend(context, *label); }; });
}

}  // namespace privatemail::cli
