#include "server/daemon/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/services/log.h"

namespace privatemail::server {
namespace {

// Open files besides connections: store (with its pool of PostgreSQL connections), monitors, logs,
// gRPC.
constexpr int64_t kReservedFiles = 256;

using Clock = std::chrono::steady_clock;

// Connections keeps a duplicate of each.
constexpr int64_t kFilesPerConnection = 2;

// Connections of proxies. Each waits for milliseconds.
constexpr size_t kMaxWaiting = 1024;
constexpr int kAdmitMilliseconds = 20;

rlim_t RequiredFiles(int64_t max_connections) {
  return static_cast<rlim_t>(kFilesPerConnection * max_connections + kReservedFiles);
}

rlimit OpenFileLimits() {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  return files;
}

absl::Status TooManyConnectionsError(int64_t max_connections) {
  return absl::FailedPreconditionError(absl::StrCat(
      "max_connections is ", max_connections, ", which takes ", RequiredFiles(max_connections),
      " open files, but this process may have ", OpenFileLimits().rlim_max,
      ": lower it, or raise the limit (ulimit -n, LimitNOFILE= of systemd)"));
}

absl::Status RaiseOpenFileLimit(int64_t max_connections) {
  PM_RETURN_IF_ERROR(CheckOpenFiles(max_connections));
  rlimit files = OpenFileLimits();
  files.rlim_cur = std::max(files.rlim_cur, RequiredFiles(max_connections));
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0 ? absl::OkStatus()
                                                 : TooManyConnectionsError(max_connections);
}

// True: its caller has ended it.
bool CloseIfEnded(int socket) {
  pollfd ended = {socket, POLLRDHUP, 0};
  if (::poll(&ended, 1, 0) <= 0) return false;
  ::close(socket);
  return true;
}

}  // namespace

absl::Status CheckOpenFiles(int64_t max_connections) {
  const bool possible = OpenFileLimits().rlim_max >= RequiredFiles(max_connections);
  return possible ? absl::OkStatus() : TooManyConnectionsError(max_connections);
}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(ListeningSockets sockets,
                                                          int64_t max_connections,
                                                          Listeners listeners,
                                                          Connections* connections,
                                                          std::function<void()> on_refused) {
  PM_RETURN_IF_ERROR(RaiseOpenFileLimit(max_connections));
  auto acceptor = std::unique_ptr<Acceptor>(new Acceptor(std::move(sockets), max_connections,
                                                         std::move(listeners), connections,
                                                         std::move(on_refused)));
  acceptor->stop_ = ::eventfd(0, EFD_CLOEXEC);
  if (acceptor->stop_ < 0) {
    return absl::InternalError(absl::StrCat("cannot create an eventfd: ", std::strerror(errno)));
  }
  try {
    acceptor->thread_ = std::thread([acceptor = acceptor.get()] { acceptor->Run(); });
  } catch (const std::system_error& error) {
    return absl::InternalError(absl::StrCat("cannot start a thread: ", error.what()));
  }
  return acceptor;
}

Acceptor::Acceptor(ListeningSockets sockets, int64_t max_connections, Listeners listeners,
                   Connections* connections, std::function<void()> on_refused)
    : sockets_(std::move(sockets)),
      max_connections_(max_connections),
      listeners_(std::move(listeners)),
      connections_(connections),
      on_refused_(std::move(on_refused)) {}

Acceptor::~Acceptor() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof(one));
    thread_.join();
  }
  if (stop_ >= 0) ::close(stop_);
  for (const Accepted& one : waiting_) ::close(one.socket);
}

void Acceptor::Run() {
  std::vector<pollfd> events;
  for (const int socket : sockets_.sockets()) events.push_back({socket, POLLIN, 0});
  events.push_back({stop_, POLLIN, 0});
  while (true) {
    std::optional<std::chrono::milliseconds> next_look;
    if (connections_ != nullptr) next_look = connections_->NextLook();
    int wait = next_look.has_value() ? static_cast<int>(next_look->count()) : -1;
    if (!waiting_.empty()) wait = kAdmitMilliseconds;              // other threads free slots
    if (::poll(events.data(), events.size(), wait) < 0) continue;  // interrupted
    if (events.back().revents != 0) return;
    try {
      // A flood of connections wakes this thread for each of them.
      const bool due = next_look.has_value() && Clock::now() - looked_at_ >= *next_look;
      if (due) EndExcessive();
      AdmitWaiting();
      for (const pollfd& event : events) {
        if (event.revents != 0) Accept(event.fd);
      }
    } catch (const std::exception& error) {  // out of memory: the next one may succeed
      OnRefused(error.what());
    }
  }
}

void Acceptor::Accept(int socket) {
  sockaddr_storage peer = {};
  socklen_t length = sizeof(peer);
  const int connection =
      ::accept4(socket, reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    const bool gone = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    // The system is out of files or memory: retrying at once would fail again.
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return;
  }
  // The kernel assigns the lowest free descriptor, so this one tells the number of open files.
  const int64_t files = connections_ == nullptr ? 1 : kFilesPerConnection;
  if (connection >= files * max_connections_ + kReservedFiles) {
    ::close(connection);
    OnRefused(absl::StrCat("there are too many connections (max_connections ", max_connections_,
                           "): more are closed"));
    return;
  }
  const Accepted accepted = {connection, socket, peer};
  if (!Admit(accepted)) Wait(accepted);
}

bool Acceptor::Admit(const Accepted& accepted) {
  absl::StatusOr<size_t> slot = 0;
  if (connections_ != nullptr) {
    slot = connections_->Add(accepted.socket, accepted.peer, Clock::now());
  }
  if (absl::IsUnavailable(slot.status())) return false;
  if (!slot.ok()) {
    ::close(accepted.socket);
    OnRefused(slot.status().message());
    return true;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = accepted.listening;
  parameters.fd = accepted.socket;
  listeners_[*slot]->HandleNewConnection(&parameters);
  return true;
}

void Acceptor::Wait(const Accepted& accepted) {
  if (waiting_.size() >= kMaxWaiting) {
    std::erase_if(waiting_, [](const Accepted& one) { return CloseIfEnded(one.socket); });
  }
  if (waiting_.size() >= kMaxWaiting) {
    ::close(accepted.socket);
    OnRefused("proxies have too many connections whose first call has not begun: they are closed");
    return;
  }
  waiting_.push_back(accepted);
}

void Acceptor::AdmitWaiting() {
  while (!waiting_.empty()) {
    const Accepted& first = waiting_.front();
    if (!CloseIfEnded(first.socket) && !Admit(first)) return;
    waiting_.pop_front();
  }
}

void Acceptor::EndExcessive() {
  looked_at_ = Clock::now();
  const int64_t ended = connections_->EndExcessive(looked_at_);
  for (int64_t i = 0; i < ended; ++i) {
    OnRefused("connections showed no valid key in time, or cost too much: they are ended");
  }
}

void Acceptor::OnRefused(absl::string_view why) {
  on_refused_();
  const auto now = Clock::now();
  if (now < next_warning_) return;
  next_warning_ = now + std::chrono::minutes(1);
  Log(LogLevel::kWarning, why);
}

}  // namespace privatemail::server
