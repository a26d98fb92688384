// nvtx_window SCRIPT: words that are done in turn, for tests of the window:
//   cuda        the first CUDA call, and all that a launch needs
//   N           a launch with grid N
//   +NAME[@D]   push        -NAME[@D]   pop (in that domain)
//   [NAME[@D]   start       ]NAME       end of the range of that name
//   (...)       the words between are done by a thread of their own, while this one waits
//   {...}       by a child of fork, while this process waits
//   ~N          sleeps N ms
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/programs/drv_calls.h"

namespace {

std::unique_ptr<Session> session;
std::map<std::string, nvtxDomainHandle_t> domains;
std::map<std::string, nvtxRangeId_t> started;

struct Range {
  std::string name;
  nvtxDomainHandle_t domain = nullptr;
};

Range range_of(const std::string& word) {
  const std::size_t at = word.find('@');
  if (at == std::string::npos) return {word.substr(1), nullptr};
  const std::string domain = word.substr(at + 1);
  if (!domains.count(domain)) domains[domain] = nvtxDomainCreateA(domain.c_str());
  return {word.substr(1, at - 1), domains[domain]};
}

nvtxEventAttributes_t message(const std::string& text) {
  nvtxEventAttributes_t all{};
  all.version = NVTX_VERSION;
  all.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  all.messageType = NVTX_MESSAGE_TYPE_ASCII;
  all.message.ascii = text.c_str();
  return all;
}

void run(const std::vector<std::string>& words, std::size_t& at) {
  Work work;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    const Range range = range_of(word);
    const nvtxEventAttributes_t all = message(range.name);
    switch (word[0]) {
      case 'c': {
        static const Calls calls = linked_calls();
        session = std::make_unique<Session>(calls);
        break;
      }
      case '+':
        range.domain ? nvtxDomainRangePushEx(range.domain, &all) : nvtxRangePushA(range.name.c_str());
        break;
      case '-':
        range.domain ? nvtxDomainRangePop(range.domain) : nvtxRangePop();
        break;
      case '[':
        started[range.name] =
            range.domain ? nvtxDomainRangeStartEx(range.domain, &all) : nvtxRangeStartA(range.name.c_str());
        break;
      case ']':
        nvtxRangeEnd(started[range.name]);
        break;
      case '(': {
        std::thread thread([&] {
          if (session) session->enter();
          run(words, ++at);
        });
        thread.join();
        break;
      }
      case '{':
        if (const pid_t child = fork(); child == 0) {
          run(words, ++at);
          _exit(0);
        } else {
          waitpid(child, nullptr, 0);
          while (words[at] != "}") ++at;
        }
        break;
      case ')':
      case '}':
        return;
      case '~':
        usleep(static_cast<unsigned>(std::stoul(word.substr(1))) * 1000);
        break;
      default:
        session->launch(&work, static_cast<unsigned>(std::stoul(word)));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t at = 0;
  run(std::vector<std::string>(argv + 1, argv + argc), at);
  std::puts("done");
  return 0;
}
