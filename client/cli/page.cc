// `privatemail page`: a web page on this machine.

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/page_endpoints.h"
#include "client/files/private_file.h"
#include "client/page/local_server.h"
#include "common/base/status_macros.h"
#include "privatemail/state_folder.h"

namespace privatemail::client::cli {
namespace {

struct PageCommandOptions {
  PageOptions page;
  bool no_browser = false;
  uint16_t published_port = 0;
};

// A file instead of an argument: process lists show arguments to every user.
absl::Status WriteRedirect(const Context& context, const std::string& path,
                           const LocalServer& server) {
  PM_RETURN_IF_ERROR(CreateStateFolder(context.state_folder));
  PM_ASSIGN_OR_RETURN(const auto file, PrivateFile::Create("--state", path));
  return file->Commit(absl::StrCat(
      "<!doctype html><meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" "
      "content=\"0;url=",
      server.EntryAddress(), "\"><title>PrivateMail</title>\n"));
}

void StartBrowser(const std::string& file) {
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0);
  }
  std::string program = "xdg-open", argument = file;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, program.c_str(), &actions, &attributes, arguments, environ) != 0) {
    Warn("no browser can be started (xdg-open): open the file in one");
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
}

absl::Status RunPage(const Context& context, const PageCommandOptions& options) {
  // Before the first thread, so that all of them leave these signals to sigwait.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  PM_ASSIGN_OR_RETURN(const auto page, Page::Create(context, options.page));
  const std::string redirect =
      std::filesystem::absolute(absl::StrCat(context.state_folder, "/page-", ::getpid(), ".html"));
  const auto respond = [&](const PageRequest& request) {
    ::unlink(redirect.c_str());  // its token was used
    return page->Respond(request);
  };
  PM_ASSIGN_OR_RETURN(const auto server, LocalServer::Start(respond, options.published_port));
  if (options.published_port != 0) {
    // No browser of the user reads a file of the container. Who reads its log may also enter it.
    Print({.json = {{"address", server->origin()}, {"entry", server->EntryAddress()}},
           .text = absl::StrCat("the page is here, for the first browser that opens it:\n  ",
                                server->EntryAddress(), "\n")},
          context.json);
  } else {
    PM_RETURN_IF_ERROR(WriteRedirect(context, redirect, *server));
    Print({.json = {{"address", server->origin()}, {"file", redirect}},
           .text =
               absl::StrCat("the page is at ", server->origin(), ", for the browser that opens\n  ",
                            redirect, "\nend it with Ctrl-C\n")},
          context.json);
    if (!options.no_browser) StartBrowser(redirect);
  }
  int signal = 0;
  ::sigwait(&ends, &signal);
  ::unlink(redirect.c_str());
  // Destroying the server would wait for its calls. They end as by a kill, against which the ledger
  // and all files are safe.
  std::_Exit(0);
}

}  // namespace

void AddPageCommand(CLI::App& app, Context& context) {
  const auto [page, options] = AddCommand(
      app, context, "page",
      "Serve a web page on this machine, for you alone, and open it: drop a picture, see the most "
      "similar ones, and what the server saw",
      &RunPage);
  page->add_option(
      "--collection", options->page.collection,
      "The collection to begin with; if absent the first that can be searched, those of "
      "pictures before others");
  page->add_option(
      "--pictures", options->page.pictures,
      "The gallery's pictures on this machine, to show matches and to search from them");
  page->add_flag("--no-browser", options->no_browser, "Only name the file that opens the page");
  page->add_option("--published-port", options->published_port,
                   "In a container: listen on this port of every address and print the address "
                   "that opens the page once. Publish the port as the same one of 127.0.0.1")
      ->check(CLI::Range(1, 65535));
  AddExtractorOptions(page, &options->page.extractor);
}

}  // namespace privatemail::client::cli
