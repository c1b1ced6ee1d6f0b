// A small ONNX model, written by hand.
#ifndef PRIVATEMAIL_TESTS_TESTING_ONNX_MODEL_H_
#define PRIVATEMAIL_TESTS_TESTING_ONNX_MODEL_H_

#include <initializer_list>
#include <string>

namespace privatemail {
namespace onnx_bytes {

// Protocol buffers by hand: https://protobuf.dev/programming-guides/encoding. Lengths below 128.
inline std::string Number(int field, int value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}
inline std::string Text(int field, const std::string& bytes) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

inline std::string TensorInfo(const std::string& name, std::initializer_list<int> shape) {
  std::string dims;
  for (const int dim : shape) dims += Text(1, Number(1, dim));
  return Text(1, name) + Text(2, Text(1, Number(1, /*float*/ 1) + Text(2, dims)));
}

}  // namespace onnx_bytes

// An ONNX model (onnx.proto: ModelProto) that averages each channel of a 1 x 3 x 2 x 4 input.
inline std::string ChannelMeansModel() {
  using namespace onnx_bytes;
  const std::string node =
      Text(1, "x") + Text(2, "y") + Text(3, "pool") + Text(4, "GlobalAveragePool");
  const std::string graph = Text(1, node) + Text(2, "g") + Text(11, TensorInfo("x", {1, 3, 2, 4})) +
                            Text(12, TensorInfo("y", {1, 3, 1, 1}));
  return Number(1, /*ir_version*/ 6) + Text(8, Text(1, "") + Number(2, /*opset*/ 11)) +
         Text(7, graph);
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_ONNX_MODEL_H_
