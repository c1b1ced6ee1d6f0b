// Images over the network: uploads, their memory and their metrics.
#include "common/image/image_header.h"
#include "common/rpc/status.h"
#include "privatemail/v1/two_server.grpc.pb.h"
#include "server/image/image.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

DaemonOptions North() {
  DaemonOptions options;
  options.operator_name = "North";
  return options;
}

// Holds the collection fruit with an image, which calls install as that of another collection.
class TwoServerServiceTest : public ServiceTest {
 protected:
  explicit TwoServerServiceTest(const DaemonOptions& options = North())
      : ServiceTest(options),
        stub_(v1::TwoServerService::NewStub(
            Connect(daemon_->address(), grpc::InsecureChannelCredentials()))) {
    v1::CreateCollectionRequest fruit = Fruit();
    fruit.add_cells(3);
    fruit.set_cell_code(v1::CELL_CODE_SCALAR8);
    EXPECT_THAT(Create(fruit), IsOk());
    v1::UpsertItemsResponse totals;
    std::vector<Item> items = MakeItems(60, 1);
    for (Item& item : items) item.payload = "{\"file\":\"" + item.id + ".png\"}";
    EXPECT_THAT(Upsert({Message("fruit", items)}, &totals), IsOk());
    std::vector<v1::BuildEmbeddingResponse> progress;
    EXPECT_THAT(Build("fruit", &progress), IsOk());
    EXPECT_TRUE(WaitUntil([&] { return MakeImage().ok(); }));  // once cells are ready
    header_ = *ReadImageHeader(image_.header());
    for (const v1::ImageSectionHeader& section : header_.sections()) {
      bytes_ += SectionOf(section.section()).value_or("");
    }
  }

  absl::Status MakeImage() {
    v1::MakeImageRequest request;
    request.set_collection("fruit");
    grpc::ClientContext context;
    return FromGrpc(stub_->MakeImage(&context, request, &image_));
  }

  absl::StatusOr<std::string> SectionOf(v1::ImageSection section) const {
    v1::GetImageSectionRequest request;
    request.set_collection("fruit");
    request.set_digest(ImageDigest(image_.header()));
    request.set_section(section);
    grpc::ClientContext context;
    const auto reader = stub_->GetImageSection(&context, request);
    std::string bytes;
    for (v1::ImageBytes part; reader->Read(&part);) bytes += part.bytes();
    const absl::Status status = FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }

  absl::Status GetImage(const std::string& collection) const {
    v1::GetImageRequest request;
    request.set_collection(collection);
    v1::GetImageResponse response;
    grpc::ClientContext context;
    return FromGrpc(stub_->GetImage(&context, request, &response));
  }

  struct Upload {
    grpc::ClientContext context;
    v1::GetImageResponse installed;
    std::unique_ptr<grpc::ClientWriter<v1::InstallImageRequest>> writer;
    std::string collection;

    void Send(const std::string& bytes) {
      v1::InstallImageRequest message;
      message.set_collection(collection);
      message.set_bytes(bytes);
      writer->Write(message);  // the status says what went wrong
    }
    absl::Status Finish() {
      writer->WritesDone();
      return FromGrpc(writer->Finish());
    }
  };

  std::unique_ptr<Upload> Begin(const std::string& collection) const {
    auto upload = std::make_unique<Upload>();
    upload->writer = stub_->InstallImage(&upload->context, &upload->installed);
    upload->collection = collection;
    v1::InstallImageRequest message;
    message.set_collection(collection);
    message.set_header(image_.header());
    message.set_signature(image_.signature());
    message.set_signer(image_.signer());
    upload->writer->Write(message);
    return upload;
  }

  absl::Status Install(const std::string& collection, const std::string& bytes) const {
    const auto upload = Begin(collection);
    upload->Send(bytes);
    return upload->Finish();
  }

  // Leaves so much memory beside what there is.
  void LeaveMemory(int64_t bytes) {
    DaemonOptions options = daemon_->options();
    options.limits.max_resident_memory = 1;
    daemon_->Reload(options);
    const std::string refused(Begin("probe")->Finish().message());
    // Of all, with what the upload itself would take.
    const size_t at = refused.find("is at least ");
    ASSERT_NE(at, std::string::npos) << refused;
    options.limits.max_resident_memory =
        std::stoll(refused.substr(at + 12)) - Image::MemoryToCreate(header_) + bytes;
    daemon_->Reload(options);
  }

  std::unique_ptr<v1::TwoServerService::Stub> stub_;
  v1::GetImageResponse image_;
  v1::ImageHeader header_;
  std::string bytes_;  // of all sections
};

TEST_F(TwoServerServiceTest, UploadsOfSeveralImagesAtOnceShareTheLimit) {
  LeaveMemory(Image::MemoryToCreate(header_) * 3 / 2);
  std::unique_ptr<Upload> first;
  absl::Status second;
  ASSERT_TRUE(WaitUntil([&] {  // until the daemon reads the first upload's beginning first
    if (first != nullptr) first->Finish().IgnoreError();
    first = Begin("first");
    first->Send(bytes_.substr(0, bytes_.size() / 2));
    second = Begin("second")->Finish();
    return absl::IsResourceExhausted(second);
  })) << second;
  EXPECT_THAT(second, FailsWith(kExhausted, "the image of collection second"));
  EXPECT_THAT(second, FailsWith(kExhausted, "(max_resident_memory)"));
  first->context.TryCancel();
  EXPECT_THAT(first->Finish(), FailsWith(absl::StatusCode::kCancelled));
  EXPECT_TRUE(WaitUntil([&] { return Install("second", bytes_).ok(); })) << "memory stays taken";
  EXPECT_THAT(GetImage("first"), FailsWith(absl::StatusCode::kNotFound));
  EXPECT_THAT(GetImage("second"), IsOk());
}

TEST_F(TwoServerServiceTest, CopiesOfSectionsCountForTheLimit) {
  LeaveMemory(1);
  EXPECT_THAT(SectionOf(v1::IMAGE_SECTION_CODES), IsOk()) << "it is not copied";
  EXPECT_THAT(SectionOf(v1::IMAGE_SECTION_LISTS), FailsWith(kExhausted, "max_resident_memory"));
  EXPECT_THAT(SectionOf(v1::IMAGE_SECTION_PAYLOADS), FailsWith(kExhausted, "max_resident_memory"));
}

TEST_F(TwoServerServiceTest, TruncatedOrLongerUploadInstallsNothing) {
  for (size_t length = 0; length < bytes_.size(); length += 97) {
    ASSERT_THAT(Install("copy", bytes_.substr(0, length)), FailsWith(kDataLoss)) << length;
  }
  EXPECT_THAT(Install("copy", bytes_.substr(0, bytes_.size() - 1)), FailsWith(kDataLoss));
  EXPECT_THAT(Install("copy", bytes_ + "x"), FailsWith(kDataLoss, "more bytes than its header"));
  EXPECT_THAT(GetImage("copy"), FailsWith(absl::StatusCode::kNotFound));
  EXPECT_THAT(Install("copy", bytes_), IsOk());
}

// It would take memory and never be served.
TEST(TwoServerService, DaemonWithoutOperatorInstallsNothing) {
  class NoOperator : public TwoServerServiceTest {
   public:
    void TestBody() override {
      DaemonOptions options = daemon_->options();
      daemon_.reset();
      options.operator_name.clear();
      daemon_ = *DaemonServer::Start(options);
      stub_ = v1::TwoServerService::NewStub(
          Connect(daemon_->address(), grpc::InsecureChannelCredentials()));
      EXPECT_THAT(Install("copy", bytes_), FailsWith(kFailedPrecondition, "`operator` is empty"));
      EXPECT_THAT(MakeImage(), FailsWith(kFailedPrecondition, "`operator`"));
    }
  };
  NoOperator().TestBody();
}

DaemonOptions NorthWithHttp() {
  DaemonOptions options = North();
  options.http = "127.0.0.1:0";
  return options;
}

class ImageMetricsTest : public TwoServerServiceTest {
 protected:
  ImageMetricsTest() : TwoServerServiceTest(NorthWithHttp()) {}

  double MetricOf(const std::string& metric) const {
    return Metric("privatemail_image_" + metric + "{collection=\"fruit\"}");
  }
};

TEST_F(ImageMetricsTest, TellMemoryVersionAndStateOfImages) {
  EXPECT_EQ(MetricOf("bytes"), static_cast<double>(Image::MemoryToKeep(header_)));
  EXPECT_EQ(MetricOf("items_version"), static_cast<double>(header_.items_version()));
  EXPECT_EQ(MetricOf("current"), 1);
  v1::DeleteItemsRequest request;
  request.set_collection("fruit");
  for (const Item& item : MakeItems(60, 1)) request.add_ids(item.id);
  grpc::ClientContext context;
  v1::DeleteItemsResponse response;
  ASSERT_THAT(FromGrpc(collections_->DeleteItems(&context, request, &response)), IsOk());
  EXPECT_EQ(MetricOf("current"), 0);
  EXPECT_THAT(GetImage("fruit"), FailsWith(kFailedPrecondition, "all its items are deleted"));
  EXPECT_TRUE(WaitUntil([&] {
    return Metric("privatemail_requests_total{code=\"FAILED_PRECONDITION\",rpc=\"GetImage\"}") == 1;
  }));
}

}  // namespace
}  // namespace privatemail::testing
