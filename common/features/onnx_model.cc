#include "common/features/onnx_model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digests.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "privatemail/onnx/model.pb.h"

namespace privatemail {
namespace {

constexpr int kExternal = 1;           // of Tensor.data_location
constexpr int kInt32 = 6, kInt64 = 7;  // of Tensor.data_type
constexpr int kChannels = 3;           // of an image
constexpr int kMaxSide = 1 << 20;      // larger ones are refused as options, not wrapped around

template <typename... Parts>
absl::Status BadModel(const std::string& path, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", parts...));
}

// Calls `use` with every tensor of a graph and of those within its nodes.
absl::Status ForEachTensor(onnx::Graph* graph, absl::FunctionRef<absl::Status(onnx::Tensor*)> use) {
  for (onnx::Tensor& tensor : *graph->mutable_initializer()) PM_RETURN_IF_ERROR(use(&tensor));
  for (onnx::Node& node : *graph->mutable_node()) {
    for (onnx::Attribute& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) PM_RETURN_IF_ERROR(use(attribute.mutable_t()));
      for (onnx::Tensor& tensor : *attribute.mutable_tensors()) PM_RETURN_IF_ERROR(use(&tensor));
      if (attribute.has_g()) PM_RETURN_IF_ERROR(ForEachTensor(attribute.mutable_g(), use));
      for (onnx::Graph& inner : *attribute.mutable_graphs()) {
        PM_RETURN_IF_ERROR(ForEachTensor(&inner, use));
      }
    }
  }
  return absl::OkStatus();
}

// OpenCV reads beyond the end of values that are fewer than their shape says.
absl::Status CheckValues(const std::string& path, const onnx::Tensor& tensor) {
  static const std::map<int, size_t> kBytes = {{1, 4},  {2, 1},  {3, 1}, {4, 2},  {5, 2},
                                               {6, 4},  {7, 8},  {9, 1}, {10, 2}, {11, 8},
                                               {12, 4}, {13, 8}, {16, 2}};  // onnx.proto: DataType
  const auto bytes = kBytes.find(tensor.data_type());
  if (bytes == kBytes.end()) return absl::OkStatus();  // OpenCV takes none of the others
  double expected = 1;
  for (const int64_t dim : tensor.dims()) expected *= static_cast<double>(dim);
  const int listed = tensor.float_data_size() + tensor.int32_data_size() +
                     tensor.int64_data_size() + tensor.double_data_size() +
                     tensor.uint64_data_size();
  const double got = listed > 0 ? listed
                                : static_cast<double>(tensor.raw_data().size()) /
                                      static_cast<double>(bytes->second);
  if (got == expected) return absl::OkStatus();
  return BadModel(path, "expected ", expected, " values of its weights '",
                  absl::CHexEscape(tensor.name()), "', got ", got, ": is it whole?");
}

// The files of a model's folder that hold weights.
class WeightFiles {
 public:
  explicit WeightFiles(const std::string& model_path) : model_path_(model_path) {}

  // Copies the values of an external tensor into it.
  absl::Status Inline(onnx::Tensor* tensor) {
    if (tensor->data_location() != kExternal) return absl::OkStatus();
    std::map<std::string, std::string> entries;
    for (const onnx::Entry& entry : tensor->external_data()) entries[entry.key()] = entry.value();
    const std::string name = absl::CHexEscape(tensor->name());
    size_t offset = 0, length = std::string::npos;
    if ((entries.contains("offset") && !absl::SimpleAtoi(entries["offset"], &offset)) ||
        (entries.contains("length") && !absl::SimpleAtoi(entries["length"], &length))) {
      return BadModel(model_path_, "expected numbers as offset and length of weights '", name, "'");
    }
    PM_ASSIGN_OR_RETURN(const std::string* const file, Read(name, entries["location"]));
    const size_t rest = offset <= file->size() ? file->size() - offset : 0;
    if (offset > file->size() || (length != std::string::npos && length > rest)) {
      return BadModel(model_path_, "its weights '", name, "' end beyond the ", file->size(),
                      " bytes of ", absl::CHexEscape(entries["location"]), ": is it whole?");
    }
    tensor->set_raw_data(file->substr(offset, length));
    tensor->clear_external_data();
    tensor->clear_data_location();
    bytes_ += tensor->raw_data().size();
    if (bytes_ > static_cast<size_t>(std::numeric_limits<int>::max())) {
      return BadModel(model_path_, "expected weights of less than 2 GiB");
    }
    return absl::OkStatus();
  }

  bool empty() const { return files_.empty(); }
  void AddTo(Sha256* digest) const {
    for (const auto& [location, bytes] : files_) digest->Add(bytes);
  }

 private:
  // A location is relative, and leads to no other folder: the model may be somebody else's.
  absl::StatusOr<const std::string*> Read(const std::string& tensor, const std::string& location) {
    if (const auto found = files_.find(location); found != files_.end()) return &found->second;
    const std::filesystem::path relative(location);
    if (location.empty() || relative.is_absolute() ||
        std::find(relative.begin(), relative.end(), "..") != relative.end()) {
      return BadModel(model_path_, "expected weights '", tensor,
                      "' in a file of the model's folder, got '", absl::CHexEscape(location), "'");
    }
    absl::StatusOr<std::string> bytes =
        ReadFileBytes((std::filesystem::path(model_path_).parent_path() / relative).string(),
                      std::numeric_limits<int>::max());
    if (!bytes.ok()) {
      return BadModel(model_path_, "its weights are in another file, which must be beside it: ",
                      bytes.status().message());
    }
    return &files_.emplace(location, *std::move(bytes)).first->second;
  }

  const std::string model_path_;
  std::map<std::string, std::string> files_;  // by location
  size_t bytes_ = 0;
};

// OpenCV ends the process where it looks for a weight that is not there. `inputs`: without weights.
absl::Status CheckNames(const std::string& path, const onnx::Graph& graph,
                        const std::vector<const onnx::Value*>& inputs) {
  std::set<absl::string_view> given;
  for (const onnx::Tensor& weights : graph.initializer()) given.insert(weights.name());
  for (const onnx::Value* const input : inputs) given.insert(input->name());
  for (const onnx::Node& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (input.empty() || given.contains(input)) continue;
      return BadModel(path, "a node ", absl::CHexEscape(node.op_type()), " reads '",
                      absl::CHexEscape(input),
                      "', which no input, weight or earlier node of the model gives: is it whole?");
    }
    given.insert(node.output().begin(), node.output().end());
  }
  for (const onnx::Value& output : graph.output()) {
    if (given.contains(output.name())) continue;
    return BadModel(path, "no node gives its output '", absl::CHexEscape(output.name()), "'");
  }
  return absl::OkStatus();
}

// The values of a tensor of int32 or int64; none of another one.
std::vector<int64_t> IntegersOf(const onnx::Tensor& tensor) {
  std::vector<int64_t> values(tensor.int64_data().begin(), tensor.int64_data().end());
  values.insert(values.end(), tensor.int32_data().begin(), tensor.int32_data().end());
  const auto read = [&](auto value) {
    for (size_t at = 0; at + sizeof(value) <= tensor.raw_data().size(); at += sizeof(value)) {
      std::memcpy(&value, tensor.raw_data().data() + at, sizeof(value));
      values.push_back(value);
    }
  };
  if (tensor.data_type() == kInt64) read(int64_t{});
  if (tensor.data_type() == kInt32) read(int32_t{});
  return values;
}

// OpenCV takes the nearest element for an index that is out of range. Sees indices that are
// weights, into what the model states the shape of.
absl::Status CheckIndices(const std::string& path, const onnx::Graph& graph) {
  std::map<absl::string_view, std::vector<int64_t>> shapes, integers;
  for (const auto* values : {&graph.input(), &graph.value_info()}) {
    for (const onnx::Value& value : *values) {
      std::vector<int64_t>& shape = shapes[value.name()];
      shape.clear();
      for (const onnx::Dimension& dim : value.type().tensor_type().shape().dim()) {
        shape.push_back(dim.dim_value());
      }
    }
  }
  for (const onnx::Tensor& weights : graph.initializer()) {
    shapes[weights.name()] = {weights.dims().begin(), weights.dims().end()};
    integers[weights.name()] = IntegersOf(weights);
  }
  for (const onnx::Node& node : graph.node()) {
    if (node.op_type() == "Constant" && node.output_size() == 1 && node.attribute_size() == 1) {
      integers[node.output(0)] = IntegersOf(node.attribute(0).t());
    }
    if (node.op_type() != "Gather" || node.input_size() != 2) continue;
    const std::vector<int64_t>& shape = shapes[node.input(0)];
    int64_t axis = 0;
    for (const onnx::Attribute& attribute : node.attribute()) {
      if (attribute.name() == "axis") axis = attribute.i();
    }
    if (axis < 0) axis += std::ssize(shape);
    if (axis < 0 || axis >= std::ssize(shape)) continue;  // unknown, or OpenCV refuses it
    const int64_t size = shape[static_cast<size_t>(axis)];
    for (const int64_t index : integers[node.input(1)]) {
      if (size <= 0 || (index >= -size && index < size)) continue;
      return BadModel(path, "expected indices from ", -size, " to ", size - 1, " of a node Gather ",
                      "into '", absl::CHexEscape(node.input(0)), "', got ", index);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadInput(const std::string& path, const onnx::Value& input, OnnxModel* model) {
  // These are values of TensorProto.DataType in onnx.proto. Pictures are fed as floats.
  static constexpr int kAbsent = 0, kFloat = 1, kHalf = 10, kDouble = 11;
  const int type = input.type().tensor_type().elem_type();
  if (type != kAbsent && type != kFloat && type != kHalf && type != kDouble) {
    return BadModel(path, "expected an input of floats, got '", absl::CHexEscape(input.name()),
                    "' of data type ", type, ": export it with a float input");
  }
  const auto& dims = input.type().tensor_type().shape().dim();
  if (dims.empty()) return absl::OkStatus();  // it does not say
  std::vector<int> sizes;                     // 0: not fixed
  for (const onnx::Dimension& dim : dims) {
    sizes.push_back(static_cast<int>(std::clamp<int64_t>(dim.dim_value(), 0, kMaxSide)));
  }
  const auto allows = [&](size_t at) { return sizes[at] == 0 || sizes[at] == kChannels; };
  model->channels_last = sizes.size() == 4 && sizes[1] != kChannels && sizes[3] == kChannels;
  if (sizes.size() != 4 || !allows(model->channels_last ? 3 : 1)) {
    return BadModel(path, "expected an input of batch x 3 x height x width, or batch x height x ",
                    "width x 3, got '", absl::CHexEscape(input.name()), "' of ",
                    absl::StrJoin(sizes, " x "));
  }
  model->height = sizes[model->channels_last ? 1 : 2];
  model->width = sizes[model->channels_last ? 2 : 3];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OnnxModel> ReadOnnxModel(const std::string& path) {
  OnnxModel model;
  PM_ASSIGN_OR_RETURN(model.bytes, ReadFileBytes(path));
  onnx::Model parsed;
  if (!parsed.ParseFromString(model.bytes) || parsed.graph().node().empty()) {
    return BadModel(path, "expected an ONNX model, got ", model.bytes.size(),
                    " bytes that are none");
  }
  onnx::Graph* const graph = parsed.mutable_graph();
  std::set<absl::string_view> weights;
  for (const onnx::Tensor& each : graph->initializer()) weights.insert(each.name());
  std::vector<const onnx::Value*> inputs;
  for (const onnx::Value& input : graph->input()) {
    if (!weights.contains(input.name())) inputs.push_back(&input);
  }
  PM_RETURN_IF_ERROR(CheckNames(path, *graph, inputs));
  if (inputs.size() != 1) {
    return BadModel(path, "expected one input, an image, got ", inputs.size());
  }
  PM_RETURN_IF_ERROR(ReadInput(path, *inputs[0], &model));
  for (const onnx::Value& output : graph->output()) model.outputs.push_back(output.name());
  Sha256 digest;
  digest.Add(model.bytes);
  WeightFiles files(path);
  PM_RETURN_IF_ERROR(ForEachTensor(graph, [&](onnx::Tensor* tensor) {
    PM_RETURN_IF_ERROR(files.Inline(tensor));
    return CheckValues(path, *tensor);
  }));
  PM_RETURN_IF_ERROR(CheckIndices(path, *graph));
  files.AddTo(&digest);
  model.sha256 = digest.Digest();
  // Other models keep their bytes; what is unknown above survives this.
  if (!files.empty() && (parsed.ByteSizeLong() > std::numeric_limits<int>::max() ||
                         !parsed.SerializeToString(&model.bytes))) {
    return BadModel(path, "expected less than 2 GiB with its weights");
  }
  return model;
}

}  // namespace privatemail
