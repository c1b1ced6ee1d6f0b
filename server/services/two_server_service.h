// v1.TwoServerService: searches over one image at two operators, and the images.
#ifndef PRIVATEMAIL_SERVER_SERVICES_TWO_SERVER_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_TWO_SERVER_SERVICE_H_

#include <string>

#include "privatemail/v1/two_server.grpc.pb.h"
#include "server/image/images.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Of the daemon's settings.
struct TwoServerServiceOptions {
  std::string operator_name;  // empty: this daemon serves no images
  bool allow_scores = false;
};

// Adapter from v1.TwoServerService to the images; two_server.proto lists the statuses. Thread-safe.
// Shares are used for their answer only and neither stored nor logged.
class TwoServerService final
    : public RawService<v1::TwoServerService::Service,
                        v1::TwoServerService::WithRawCallbackMethod_GetImage,
                        v1::TwoServerService::WithRawCallbackMethod_GetImageSection,
                        v1::TwoServerService::WithRawCallbackMethod_Score,
                        v1::TwoServerService::WithRawCallbackMethod_FetchLists,
                        v1::TwoServerService::WithRawCallbackMethod_MakeImage,
                        v1::TwoServerService::WithRawCallbackMethod_InstallImage> {
 public:
  // Images and dispatcher must outlive the service.
  TwoServerService(TwoServerServiceOptions options, Images* images, Dispatcher* dispatcher)
      : options_(std::move(options)), images_(images), dispatcher_(dispatcher) {}

  UnaryReactor* GetImage(RpcContext* context, const Bytes* request, Bytes* response) override;
  WriteReactor* GetImageSection(RpcContext* context, const Bytes* request) override;
  WriteReactor* Score(RpcContext* context, const Bytes* request) override;
  WriteReactor* FetchLists(RpcContext* context, const Bytes* request) override;
  UnaryReactor* MakeImage(RpcContext* context, const Bytes* request, Bytes* response) override;
  ReadReactor* InstallImage(RpcContext* context, Bytes* response) override;

 private:
  using Served = std::shared_ptr<const ServedImage>;

  // FAILED_PRECONDITION: the setting `operator` is empty.
  absl::Status CheckTakesPart() const;
  // Also errors of Images::Find.
  absl::StatusOr<Served> Find(const std::string& name) const;
  // Also FAILED_PRECONDITION: another image than `digest` is served.
  absl::StatusOr<Served> Find(const std::string& name, const std::string& digest) const;
  void Describe(const ServedImage& served, v1::GetImageResponse* response) const;
  absl::Status SendScores(const v1::ScoreRequest& request, Call& call,
                          MessageWriter<v1::ScoreResponse>& writer) const;
  absl::Status SendLists(const v1::FetchListsRequest& request, Call& call,
                         MessageWriter<v1::FetchListsResponse>& writer) const;
  absl::Status Install(Call& call, MessageReader<v1::InstallImageRequest>& reader,
                       v1::GetImageResponse* response) const;

  const TwoServerServiceOptions options_;
  Images* const images_;
  Dispatcher* const dispatcher_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_TWO_SERVER_SERVICE_H_
