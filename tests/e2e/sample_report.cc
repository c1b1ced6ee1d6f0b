// Writes the sample report, for report_screenshot.py.
//
// usage: sample_report DIRECTORY
#include "tests/testing/sample_report.h"

#include <iostream>

#include "client/evaluation/report/write_report.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: sample_report DIRECTORY\n";
    return 2;
  }
  const absl::Status status = privatemail::WriteReport(arguments[1], privatemail::SampleReport());
  if (status.ok()) return 0;
  std::cerr << "sample_report: " << status.message() << "\n";
  return 1;
}
