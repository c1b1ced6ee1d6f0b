// Cells queries per second over TLS; baseline: a server that sends as many bytes from memory.
//
// usage: cells_serving_benchmark ITEMS
//        cells_serving_benchmark echo CERTIFICATE KEY BYTES    runs the baseline
//
// A hundredth of the items is returned, in codes of 32 bytes, to 16 connections; the servers take
// turns.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/benchmarks/measure.h"
#include "tests/benchmarks/serving_load.h"
#include "tests/e2e/service.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

constexpr int kClassesOfRows = 20;
constexpr int kAnchors = 1000;
constexpr int kFeaturesOfRows = 16;  // in half precision: 32 bytes
constexpr uint32_t kCells = 30;
constexpr size_t kChunkBytes = 1 << 19;  // as the daemon's

// Answers with `bytes` bytes from one repeated piece of memory.
class Memory final : public v1::RetrievalService::WithRawCallbackMethod_RetrieveCells<
                         v1::RetrievalService::Service> {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* RetrieveCells(
      grpc::CallbackServerContext* /*context*/, const grpc::ByteBuffer* /*request*/) override {
    return new Sender(*this);
  }

 private:
  class Sender final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
   public:
    explicit Sender(const Memory& memory) : memory_(memory), left_(memory.bytes_) { Next(); }

   private:
    void Next() {
      if (left_ == 0) return Finish(grpc::Status::OK);
      const bool whole = left_ >= kChunkBytes;
      bytes_ = whole ? memory_.chunk_ : Piece(left_);
      left_ -= whole ? kChunkBytes : left_;
      StartWrite(&bytes_);
    }
    void OnWriteDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      Next();
    }
    void OnDone() override { delete this; }

    const Memory& memory_;
    size_t left_;
    grpc::ByteBuffer bytes_;
  };

  static grpc::ByteBuffer Piece(size_t bytes) {
    const grpc::Slice slice(std::string(bytes, 'x'));
    return grpc::ByteBuffer(&slice, 1);
  }

  const size_t bytes_;
  const grpc::ByteBuffer chunk_ = Piece(kChunkBytes);
};

void Fill(const AdminClient& admin, int items) {
  v1::CreateCollectionRequest create = NewThingsOf(kAnchors, kFeaturesOfRows, kClassesOfRows);
  create.add_cells(kCells);
  create.set_cell_code(v1::CELL_CODE_FLOAT16);
  if (!admin.CreateCollection(create).ok()) std::abort();
  Upload(admin, "things", SeparatedClasses(items, 2, kFeaturesOfRows).vectors, kClassesOfRows);
  Build(admin, "things");
}

// Returns the seconds until the cells are ready.
double WaitForCells(const AdminClient& admin) {
  const auto start = std::chrono::steady_clock::now();
  if (!WaitUntil(
          [&] { return admin.GetCollection("things")->cells_status() == v1::CELLS_STATUS_READY; },
          std::chrono::hours(1))) {
    std::abort();
  }
  return SecondsSince(start);
}

int Measure(const char* self, int items) {
  const TemporaryFolder folder;
  const auto daemon = StartDaemon(folder);
  const AdminClient admin = *AdminClient::Create(AdminOf(*daemon));
  Fill(admin, items);
  std::printf("cells of %d items: ready %.0f s after the embedding\n", items, WaitForCells(admin));

  v1::RetrieveCellsRequest request;
  request.set_collection("things");
  request.set_fingerprint(admin.GetCollection("things")->fingerprint());
  request.add_cells(3);
  request.set_epsilon(2);
  request.set_items(static_cast<uint32_t>(std::max(1, items / 100)));
  const grpc::ByteBuffer bytes = BytesOf(request);
  const auto ask = [&, key = AdminKey(folder)](Caller& caller) {
    return caller.Stream("/privatemail.v1.RetrievalService/RetrieveCells", key, bytes);
  };
  const std::string certificate = Text(daemon->certificate());
  const Served ours{daemon->address(), daemon->program().pid(), certificate};
  size_t answer_bytes = 0;
  Caller(ours.address, certificate)
      .Stream("/privatemail.v1.RetrievalService/RetrieveCells", AdminKey(folder), bytes,
              &answer_bytes);
  Program memory({self, "echo", daemon->certificate(), folder / "data/tls/server.key",
                  std::to_string(answer_bytes)});
  const Served theirs{AddressOf(&memory), memory.pid(), certificate};
  const auto [cells, sent] = LoadInTurns(ours, theirs, ask);
  std::printf(
      "answering for a cell, TLS, %d callers, n %d, %u items of 32 bytes, %zu bytes: %.0f a "
      "second, p50 %.1f ms, p99 %.1f ms; the same bytes from memory: %.0f a second\n",
      kCallers, items, request.items(), answer_bytes, cells.rate, 1e3 * cells.p50, 1e3 * cells.p99,
      sent.rate);
  std::printf("processor time of a call: %.0f us, from memory %.0f us: %.2f times (target 1.5)\n",
              1e6 * cells.processor, 1e6 * sent.processor, cells.processor / sent.processor);
  return 0;
}

}  // namespace
}  // namespace privatemail::e2e

int main(int argc, char** argv) {
  using namespace privatemail::e2e;
  return RunBenchmark<Memory>(argc, argv, &Measure);
}
