#include "server/daemon/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/daemon/open_files.h"
#include "server/services/log.h"

namespace privatemail::server {

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(
    ListeningSockets sockets, int64_t max_connections,
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server,
    std::function<void()> refused) {
  PM_RETURN_IF_ERROR(AllowOpenFiles(max_connections));
  auto acceptor = std::unique_ptr<Acceptor>(
      new Acceptor(std::move(sockets), max_connections, std::move(server), std::move(refused)));
  acceptor->stop_ = ::eventfd(0, EFD_CLOEXEC);
  if (acceptor->stop_ < 0) {
    return absl::InternalError(absl::StrCat("cannot make an event: ", std::strerror(errno)));
  }
  try {
    acceptor->thread_ = std::thread([acceptor = acceptor.get()] { acceptor->Run(); });
  } catch (const std::system_error& error) {
    return absl::InternalError(absl::StrCat("cannot start a thread: ", error.what()));
  }
  return acceptor;
}

Acceptor::Acceptor(ListeningSockets sockets, int64_t max_connections,
                   std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server,
                   std::function<void()> refused)
    : sockets_(std::move(sockets)),
      max_connections_(max_connections),
      server_(std::move(server)),
      refused_(std::move(refused)) {}

Acceptor::~Acceptor() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof(one));
    thread_.join();
  }
  if (stop_ >= 0) ::close(stop_);
}

void Acceptor::Run() {
  std::vector<pollfd> events;
  for (const int socket : sockets_.sockets()) events.push_back({socket, POLLIN, 0});
  events.push_back({stop_, POLLIN, 0});
  while (true) {
    if (::poll(events.data(), events.size(), -1) < 0) continue;  // interrupted
    if (events.back().revents != 0) return;
    for (const pollfd& event : events) {
      if (event.revents != 0) Accept(event.fd);
    }
  }
}

void Acceptor::Accept(int socket) {
  const int connection = ::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    const bool gone = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    // The system as a whole has no more files or memory: asking at once would ask in vain.
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return;
  }
  // The lowest free number is given, so that this one tells how many files are open.
  if (connection >= max_connections_ + kOwnOpenFiles) {
    ::close(connection);
    Refused();
    return;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = socket;
  parameters.fd = connection;
  server_->HandleNewConnection(&parameters);
}

void Acceptor::Refused() {
  refused_();
  const auto now = std::chrono::steady_clock::now();
  if (now < warn_again_) return;
  warn_again_ = now + std::chrono::minutes(1);
  Log(LogLevel::kWarning, absl::StrCat("there are too many connections (max_connections ",
                                       max_connections_, "): more are closed"));
}

}  // namespace privatemail::server
