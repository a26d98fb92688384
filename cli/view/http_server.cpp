#include "cli/view/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/clock.h"

namespace gputrace {
namespace {

constexpr int kTick = 200;  // ms

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Internal Server Error";
  }
}

HttpAnswer refusal(int status) {
  return {status, "text/plain; charset=utf-8", std::string(reason_of(status)) + "\n", false};
}

// Takes as long whatever the difference is.
bool same(std::string_view left, std::string_view right) {
  unsigned difference = left.size() == right.size() ? 0 : 1;
  for (std::size_t i = 0; i < right.size(); ++i)
    difference |= static_cast<unsigned>((i < left.size() ? left[i] : 0) ^ right[i]);
  return difference == 0;
}

std::string_view line_of(std::string_view& rest) {
  const std::size_t end = rest.find("\r\n");
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  return line;
}

std::map<std::string, std::string> query_of(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos) query[std::string(one.substr(0, equals))] = one.substr(equals + 1);
  }
  return query;
}

std::string bytes_of(const HttpAnswer& answer) {
  std::string bytes = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nX-Frame-Options: DENY\r\n"
      "Connection: close\r\n",
      answer.status, reason_of(answer.status), answer.type);
  if (!answer.stays_open) bytes += fmt::format("Content-Length: {}\r\n", answer.body.size());
  return bytes + "\r\n" + answer.body;
}

}  // namespace

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return "";
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string HttpServer::listen(u16 port) {
  listener_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(port);
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  socklen_t size = sizeof here;
  if (!listener_ || setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(listener_.get(), reinterpret_cast<sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(listener_.get(), static_cast<int>(kMostClients)) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0)
    return std::strerror(errno);
  port_ = ntohs(here.sin_port);
  return "";
}

std::string HttpServer::address() const { return fmt::format("http://127.0.0.1:{}/{}/", port_, token_); }

std::size_t HttpServer::pages() const {
  return static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(), [](const Client& client) { return client.stays_open; }));
}

void HttpServer::serve(const std::function<bool()>& stop) {
  std::vector<pollfd> waits;
  while (!stop()) {
    waits.clear();
    waits.push_back({listener_.get(), static_cast<short>(clients_.size() < kMostClients ? POLLIN : 0), 0});
    for (const Client& client : clients_)
      waits.push_back({client.socket.get(), static_cast<short>(client.answering ? POLLOUT : POLLIN), 0});
    if (poll(waits.data(), waits.size(), kTick) < 0 && errno != EINTR) return;
    const Nanos now = monotonic_nanos();
    std::size_t at = 1;
    for (auto client = clients_.begin(); client != clients_.end(); ++at) {
      const short happened = waits[at].revents;
      const bool keep = happened == 0 || (client->answering ? write_some(*client) : read_some(*client));
      client = keep && !is_late(*client, now) ? std::next(client) : clients_.erase(client);
    }
    if (waits[0].revents & POLLIN) accept_one();
  }
}

bool HttpServer::is_late(const Client& client, Nanos now) const {
  if (client.stays_open && !client.answering) return false;
  return now - client.since > (client.answering ? kAnswerTime : kHeadTime);
}

void HttpServer::accept_one() {
  Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  Client& client = clients_.emplace_back();
  client.socket = std::move(socket);
  client.since = monotonic_nanos();
}

bool HttpServer::read_some(Client& client) {
  char piece[4096];
  const ssize_t size = recv(client.socket.get(), piece, sizeof piece, 0);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0 || client.answered) return size != 0;  // what comes after the head is nothing to us
  client.head.append(piece, static_cast<std::size_t>(size));
  if (client.head.find("\r\n\r\n") == std::string::npos && client.head.size() <= kMostHead) return true;
  answer(client);
  return write_some(client);
}

void HttpServer::answer(Client& client) {
  const HttpAnswer made = client.head.size() > kMostHead ? refusal(431) : answer_to(client.head);
  client.head.clear();
  client.answer = bytes_of(made);
  client.answering = true, client.stays_open = made.stays_open;
  client.since = monotonic_nanos();
}

bool HttpServer::write_some(Client& client) {
  while (client.sent < client.answer.size()) {
    const ssize_t size =
        send(client.socket.get(), client.answer.data() + client.sent, client.answer.size() - client.sent, MSG_NOSIGNAL);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<std::size_t>(size);
    client.since = monotonic_nanos();
  }
  client.answering = false;
  client.answer = std::string();
  client.answered = true;
  // Closed once the client has closed too: what lay unread would make of it a reset, which takes the answer with it.
  if (!client.stays_open) shutdown(client.socket.get(), SHUT_WR);
  return true;
}

bool HttpServer::is_own_host(std::string_view host) const {
  return host == fmt::format("127.0.0.1:{}", port_) || host == fmt::format("localhost:{}", port_);
}

HttpAnswer HttpServer::answer_to(std::string_view head) const {
  if (head.find('\0') != std::string_view::npos) return refusal(400);
  std::string_view rest = head.substr(0, head.find("\r\n\r\n"));
  const std::string_view first = line_of(rest);
  const std::size_t one = first.find(' '), two = first.rfind(' ');
  if (one == std::string_view::npos || two <= one || !first.substr(two + 1).starts_with("HTTP/1.")) return refusal(400);
  int hosts = 0;
  bool own = false;
  while (!rest.empty()) {
    const std::string_view line = line_of(rest);
    const std::size_t colon = line.find(':');
    if (colon != 4 || strncasecmp(line.data(), "host", 4) != 0) continue;
    std::string_view value = line.substr(5);
    while (value.starts_with(' ')) value.remove_prefix(1);
    ++hosts;
    own = is_own_host(value);
  }
  if (hosts != 1 || !own) return refusal(403);
  std::string_view target = first.substr(one + 1, two - one - 1);
  if (!target.starts_with('/')) return refusal(400);
  target.remove_prefix(1);
  const std::string_view token = target.substr(0, target.find('/'));
  if (!same(token, token_) || target.size() <= token.size()) return refusal(403);
  if (first.substr(0, one) != "GET") return refusal(405);
  target.remove_prefix(token.size() + 1);
  HttpRequest request;
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = query_of(target.substr(question + 1));
  return handler_(request);
}

}  // namespace gputrace
