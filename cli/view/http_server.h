// A small HTTP server for one reader on this machine: GET only, on the loopback, for those alone who know its token.
//   · Who may ask: the path begins with the token, and Host names this server by a loopback name (a page of elsewhere that has its name resolved
//     to 127.0.0.1 sends another). Everything else gets 403 or 400 and is closed.
//   · Nobody holds it up: heads of at most kMostHead bytes within kHeadTime, kMostClients at a time, answers as fast as the client reads them, but
//     for at most kAnswerTime without a byte taken.
//   · One thread. While an answer is made nobody else is served.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/types.h"

namespace gputrace {

struct HttpRequest {
  std::string path;  // below the token: "", "events"
  std::map<std::string, std::string> query;
};
struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  bool stays_open = false;  // nothing more is sent; the connection tells that the page is there
};

class HttpServer {
 public:
  static constexpr std::size_t kMostHead = 8192, kMostClients = 32;
  static constexpr Nanos kHeadTime = 10'000'000'000, kAnswerTime = 30'000'000'000;

  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  HttpServer(std::string token, Handler handler) : token_(std::move(token)), handler_(std::move(handler)) {}

  // Empty, or why it cannot listen. Port 0: any that is free.
  std::string listen(u16 port);
  u16 port() const { return port_; }
  // "http://127.0.0.1:PORT/TOKEN/"
  std::string address() const;

  // Serves until `stop` is true, which is asked at least every 200 ms.
  void serve(const std::function<bool()>& stop);
  std::size_t pages() const;  // connections that stay open
  bool idle() const { return clients_.empty(); }

 private:
  struct Client {
    Fd socket;
    std::string head, answer;
    std::size_t sent = 0;
    Nanos since = 0;  // accepted, or the last byte that it took
    bool answering = false, stays_open = false, answered = false;
  };

  void accept_one();
  bool read_some(Client& client);   // false: it is to be closed
  bool write_some(Client& client);  // likewise
  bool is_late(const Client& client, Nanos now) const;
  void answer(Client& client);
  HttpAnswer answer_to(std::string_view head) const;
  bool is_own_host(std::string_view host) const;

  const std::string token_;
  const Handler handler_;
  Fd listener_;
  u16 port_ = 0;
  std::list<Client> clients_;
};

// 128 bits that nobody guesses, as hexadecimal digits; empty: the system gives none.
std::string random_token();

}  // namespace gputrace
