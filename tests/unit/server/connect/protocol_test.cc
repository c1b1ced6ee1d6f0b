#include "server/connect/protocol.h"

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>

#include "privatemail/v1/collections.pb.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

using namespace server;  // NOLINT(google-build-using-namespace): one subject

const std::atomic<bool> kRunning = false;

grpc::ByteBuffer BufferOf(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<v1::UpsertItemsRequest> ParseUpsert(const std::string& json,
                                                   int64_t max_bytes = 1 << 20) {
  const auto binary =
      JsonToBinary(*v1::UpsertItemsRequest::descriptor(), BufferOf(json), max_bytes, kRunning);
  if (!binary.ok()) return binary.status();
  grpc::Slice slice;
  EXPECT_TRUE(binary->DumpToSingleSlice(&slice).ok());
  v1::UpsertItemsRequest request;
  EXPECT_TRUE(request.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  return request;
}

// JavaScript writes NaN as null. Dropped, it would shift the numbers behind it.
TEST(ConnectProtocol, NullInAnArrayIsRefused) {
  for (const char* json :
       {R"({"items":[{"id":"a","features":[0.5,null,1]}]})", R"({"items":[null]})",
        R"({"items":[{"id":"a\"]","features":[ null]}]})"}) {
    EXPECT_THAT(ParseUpsert(json), FailsWith(kInvalid, "an array must hold values, but has null"))
        << json;
  }
  ASSERT_OK_AND_ASSIGN(const auto parsed,
                       ParseUpsert(R"({"items":[{"id":"[null","payload":null,"features":[1]}]})"));
  EXPECT_EQ(parsed.items(0).id(), "[null");
}

// The table "Error Codes" of the protocol.
TEST(ConnectProtocol, CodesHaveTheNamesAndStatusesOfTheProtocol) {
  const std::map<std::string, int> expected = {
      {"canceled", 499},        {"unknown", 500},           {"invalid_argument", 400},
      {"not_found", 404},       {"deadline_exceeded", 504}, {"already_exists", 409},
      {"aborted", 409},         {"permission_denied", 403}, {"resource_exhausted", 429},
      {"out_of_range", 400},    {"unimplemented", 501},     {"failed_precondition", 400},
      {"internal", 500},        {"unavailable", 503},       {"data_loss", 500},
      {"unauthenticated", 401},
  };
  std::map<std::string, int> actual;
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status(static_cast<grpc::StatusCode>(code), "why");
    const auto error = nlohmann::json::parse(ErrorJson(status));
    EXPECT_EQ(error["message"], "why");
    actual[error["code"]] = HttpStatusOf(status);
  }
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(ErrorJson({grpc::StatusCode::UNAVAILABLE, ""}), R"({"code":"unavailable"})");
  EXPECT_EQ(ErrorJson({static_cast<grpc::StatusCode>(20), ""}), R"({"code":"unknown"})");
}

TEST(ConnectProtocol, EndOfStreamHasErrorAndMetadata) {
  EXPECT_EQ(EndStreamJson(grpc::Status::OK, ""), "{}");
  EXPECT_EQ(EndStreamJson({grpc::StatusCode::UNAVAILABLE, "overloaded: back off and retry"}, "30"),
            R"({"error":{"code":"unavailable","message":"overloaded: back off and retry"},)"
            R"("metadata":{"retry-after-ms":["30"]}})");
}

TEST(ConnectProtocol, EnvelopeIsFlagsAndBigEndianSize) {
  EXPECT_EQ(EncodeEnvelope({2, 58}), std::string("\2\0\0\0\x3a", 5));
  const Envelope envelope = DecodeEnvelope({'\1', '\x81', '\2', '\3', '\4'});
  EXPECT_EQ(envelope.flags, 1);
  EXPECT_EQ(envelope.size, 0x81020304u);
}

TEST(ConnectProtocol, ContentTypesFitTheKindsOfRpcs) {
  const auto& service = *v1::UpsertItemsRequest::descriptor()->file()->service(0);
  for (const auto& [type, unary, upload, stream] :
       {std::tuple("application/json; charset=utf-8", true, true, false),
        std::tuple("Application/Proto", true, true, false),
        std::tuple("application/connect+json", false, true, true),
        std::tuple("application/connect+proto", false, true, true)}) {
    const auto codec = ParseContentType(type);
    ASSERT_TRUE(codec.has_value()) << type;
    EXPECT_EQ(Fits(*codec, *service.FindMethodByName("CountItems")), unary) << type;
    EXPECT_EQ(Fits(*codec, *service.FindMethodByName("UpsertItems")), upload) << type;
    EXPECT_EQ(Fits(*codec, *service.FindMethodByName("BuildEmbedding")), stream) << type;
  }
  for (const char* type : {"", "text/json", "application/grpc", "application/connect+json2"}) {
    EXPECT_FALSE(ParseContentType(type).has_value()) << type;
  }
}

TEST(ConnectProtocol, TimeoutHasAtMostTenDigits) {
  EXPECT_EQ(*ParseTimeout("5000"), absl::Seconds(5));
  EXPECT_EQ(*ParseTimeout("9999999999"), absl::Milliseconds(9999999999));
  for (const char* text : {"", "-1", "+1", "1.5", "12345678901", "5s", " 5"}) {
    EXPECT_THAT(ParseTimeout(text), FailsWith(kInvalid)) << text;
  }
}

TEST(ConnectProtocol, JsonIsCanonicalAndStrict) {
  ASSERT_OK_AND_ASSIGN(const v1::UpsertItemsRequest request,
                       ParseUpsert(R"({"collection":"a","classNames":["x"],)"
                                   R"("items":[{"id":"\u00e9","features":[1,-2.5]}]})"));
  EXPECT_EQ(request.collection(), "a");
  EXPECT_EQ(request.class_names(0), "x");
  EXPECT_EQ(request.items(0).id(), "\u00e9");
  EXPECT_EQ(request.items(0).features(1), -2.5f);
  for (const char* json : {"", "{", "[]", R"({"colection":"a"})", R"({"collection":1)",
                           "{\"collection\":\"\xff\"}", R"({"items":[{"features":[1e99]}]})"}) {
    EXPECT_THAT(ParseUpsert(json), FailsWith(kInvalid, "UpsertItemsRequest")) << json;
  }
  const std::string nested(100'000, '[');
  EXPECT_THAT(ParseUpsert("{\"items\":" + nested), FailsWith(kInvalid));
  EXPECT_THAT(ParseUpsert(R"({"collection":"0123456789"})", 8), FailsWith(kExhausted));

  v1::CountItemsResponse count;
  EXPECT_EQ(
      *BinaryToJson(*count.GetDescriptor(), BufferOf(count.SerializeAsString()), 100, kRunning),
      R"({"items":"0"})");
  count.set_items(1ull << 60);
  EXPECT_EQ(
      *BinaryToJson(*count.GetDescriptor(), BufferOf(count.SerializeAsString()), 100, kRunning),
      R"({"items":"1152921504606846976"})");
  EXPECT_THAT(
      BinaryToJson(*count.GetDescriptor(), BufferOf(count.SerializeAsString()), 20, kRunning),
      FailsWith(kExhausted, "application/proto"));
}

}  // namespace
}  // namespace privatemail::testing
