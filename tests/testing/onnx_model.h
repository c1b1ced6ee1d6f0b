// Small ONNX models, written by hand.
#ifndef PRIVATEMAIL_TESTS_TESTING_ONNX_MODEL_H_
#define PRIVATEMAIL_TESTS_TESTING_ONNX_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

namespace privatemail {
namespace onnx_bytes {

// Protocol buffers by hand: https://protobuf.dev/programming-guides/encoding.
inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
inline std::string Number(uint64_t field, uint64_t value) {
  return Varint(field << 3) + Varint(value);
}
inline std::string Text(uint64_t field, const std::string& bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + bytes;
}

inline std::string TensorInfo(const std::string& name, const std::vector<uint64_t>& shape,
                              uint64_t type = 1 /* float */) {
  std::string dims;
  for (const uint64_t dim : shape) dims += Text(1, Number(1, dim));
  return Text(1, name) + Text(2, Text(1, Number(1, type) + Text(2, dims)));
}

inline std::string Node(const std::string& operation, const std::vector<std::string>& inputs,
                        const std::string& output, const std::string& attributes = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += Text(1, input);
  return bytes + Text(2, output) + Text(3, output) + Text(4, operation) + attributes;
}

// An attribute of integers.
inline std::string Integers(const std::string& name, const std::vector<uint64_t>& values) {
  std::string bytes = Text(1, name);
  for (const uint64_t value : values) bytes += Number(8, value);
  return Text(5, bytes + Number(20, 7));
}

// Floats; content: raw_data (field 9), or external_data (13) and data_location (14).
inline std::string Weights(const std::string& name, const std::vector<uint64_t>& shape,
                           const std::string& content) {
  std::string dims;
  for (const uint64_t dim : shape) dims += Number(1, dim);
  return dims + Number(2, /*float*/ 1) + Text(8, name) + content;
}

}  // namespace onnx_bytes

// The parts of a graph (onnx.proto: GraphProto). The defaults average each channel of a 1 x 3 x 2 x
// 4 image.
struct OnnxParts {
  std::vector<std::string> nodes = {onnx_bytes::Node("GlobalAveragePool", {"x"}, "y")};
  std::vector<std::string> weights = {};
  std::vector<std::string> inputs = {onnx_bytes::TensorInfo("x", {1, 3, 2, 4})};
  std::vector<std::string> outputs = {onnx_bytes::TensorInfo("y", {1, 3, 1, 1})};
};

// onnx.proto: ModelProto.
inline std::string OnnxModelOf(const OnnxParts& parts) {
  using namespace onnx_bytes;
  std::string graph;
  for (const std::string& node : parts.nodes) graph += Text(1, node);
  graph += Text(2, "g");
  for (const std::string& weights : parts.weights) graph += Text(5, weights);
  for (const std::string& input : parts.inputs) graph += Text(11, input);
  for (const std::string& output : parts.outputs) graph += Text(12, output);
  return Number(1, /*ir_version*/ 6) + Text(8, Text(1, "") + Number(2, /*opset*/ 11)) +
         Text(7, graph);
}

inline std::string ChannelMeansModel() { return OnnxModelOf({}); }

// Ends the process that loads it with OpenCV 4.6, which divides by the number of groups.
inline std::string FatalModel() {
  using namespace onnx_bytes;
  const std::string attributes = Integers("kernel_shape", {1, 1}) +
                                 Text(5, Text(1, "group") + Number(3, 0) + Number(20, /*INT*/ 2));
  return OnnxModelOf({.nodes = {Node("Conv", {"x", "w"}, "y", attributes)},
                      .weights = {Weights("w", {1, 3, 1, 1}, Text(9, std::string(12, '\0')))}});
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_ONNX_MODEL_H_
