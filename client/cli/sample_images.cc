#include "client/samples/sample_images.h"

#include <iostream>

#include "client/cli/command.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

absl::Status Paint(const Context& context, const SampleImageOptions& options) {
  {
    ProgressBar bar("painting");
    PM_RETURN_IF_ERROR(
        WriteSampleImages(options, [&](int done, int total) { bar.Show(done, total); }));
  }
  Answer(context,
         {{"out", options.out_dir}, {"classes", options.classes}, {"per_class", options.per_class}},
         [&] {
           std::cout << "painted " << options.classes << " species, "
                     << Counted(static_cast<uint64_t>(options.per_class), "picture") << " each, in "
                     << options.out_dir << "\n";
         });
  return absl::OkStatus();
}

}  // namespace

void AddSampleImagesCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<SampleImageOptions>();
  CLI::App* paint =
      AddCommand(app, "sample-images", "Paint pictures of invented birds to try the service on");
  paint->add_option("--out", options->out_dir, "Folder to make")->required();
  paint->add_option("--classes", options->classes, "Species")->capture_default_str();
  paint->add_option("--per-class", options->per_class, "Pictures of each")->capture_default_str();
  paint->add_option("--seed", options->seed, "Other seeds invent other species")
      ->capture_default_str();
  paint->add_option("--size", options->size, "Pixels of a side")->capture_default_str();
  paint->callback([&context, options] {
    context.run = [&context, options] { return Paint(context, *options); };
  });
}

}  // namespace privatemail::client::cli
