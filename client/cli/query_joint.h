// `privatemail query --scheme joint`: private queries with a slot for each class.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_JOINT_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_JOINT_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/query_targets.h"
#include "privatemail/joint_client.h"

namespace privatemail::client::cli {

// Options as given on the command line. Texts are parsed into `query` by QueryJoint.
struct JointQuery {
  std::string collection;
  TargetOptions targets;
  QueryOptions query;
  std::optional<double> delta;
  std::optional<double> radius;
  std::string mechanism = "gaussian";
  std::string post_process = "client";
  std::string dummies_file;
  std::string dummy_labels_file;
  std::string filter;  // JSON; empty: none
  std::string compare_images;
  std::string report_file;
  std::string classes = "auto";  // without labels: classes to read matches of, a number or auto
  bool accept_misalignment = false;
};

// Queries for each target in turn and prints each answer. Failures that this machine can detect
// come before the first charge.
absl::Status QueryJoint(const Context& context, JointQuery options);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_JOINT_H_
