// Where a trace goes, what it is called, and what it may say about its process.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/clock.h"
#include "tests/unit/trace/helpers.h"
#include "writer/confine.h"
#include "writer/output.h"
#include "writer/process_info.h"
#include "writer/redact.h"

namespace gputrace::test {
namespace {

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables](std::string_view name) {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::string() : found->second;
  };
}

OutputNames names() {
  OutputNames n;
  n.host = "node7";
  n.executable = "python3.11";
  n.job = "8123";
  n.start = "20261120-181045";
  n.pid = 99;
  n.random_id = 0xabcdef0123456789;
  return n;
}

TEST(Output, ExpandsTokens) {
  OutputNames n = names();
  const auto environment = environment_of({{"USER", "ann/../x\n"}, {"A B", "c"}});
  EXPECT_EQ(expand_tokens("/s/%h-%p-%j-%e-%t-%n", n, environment, 3), "/s/node7-99-8123-python3.11-20261120-181045-3");
  EXPECT_EQ(expand_tokens("[%r][%l]", n, environment, 1), "[][]");
  n.rank = "12";
  n.local_rank = "4";
  EXPECT_EQ(expand_tokens("%r.%l", n, environment, 1), "12.4");
  EXPECT_EQ(expand_tokens("%q{USER}/%q{NONE}/%q{A B}", n, environment, 1), "ann_.._x_//c");
  EXPECT_EQ(expand_tokens("100%% %z %", n, environment, 1), "100% %z %");
  EXPECT_EQ(expand_tokens("%q{open", n, environment, 1), "%q{open");
}

TEST(Output, NamesTheFile) {
  OutputNames n = names();
  EXPECT_EQ(trace_name(n), "python3.11-node7-99-23456789");
  n.rank = "3";
  EXPECT_EQ(trace_name(n), "rank0003-python3.11-node7-99-23456789");
  n.rank.clear();
  n.executable = "../a b\n";
  EXPECT_EQ(trace_name(n), "_.._a b_-node7-99-23456789");
  n.executable.assign(1000, 'x');
  n.host.assign(1000, 'y');
  EXPECT_LE(trace_name(n).size(), 200u);
}

TEST(Output, MakesDirectoriesForTheUserAlone) {
  TemporaryDirectory temporary;
  ::umask(0);
  auto opened = open_output(temporary.file("a/b c/%j"), names(), environment_of({}));
  ::umask(022);
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  EXPECT_EQ(opened.value().path, temporary.file("a/b c/8123"));
  for (const char* part : {"a", "a/b c", "a/b c/8123"}) {
    struct stat status {};
    ASSERT_EQ(::stat(temporary.file(part).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u) << part;
  }
  EXPECT_TRUE(open_output(temporary.file("a/b c/%j/"), names(), environment_of({})).ok())
      << "one that exists is added to";
}

TEST(Output, NumbersMakeTheNameNew) {
  TemporaryDirectory temporary;
  for (const char* expected : {"run1", "run2", "run3"}) {
    auto opened = open_output(temporary.file("run%n"), names(), environment_of({}));
    ASSERT_TRUE(opened.ok());
    EXPECT_EQ(opened.value().path, temporary.file(expected));
  }
}

TEST(Output, SaysWhatIsWrong) {
  TemporaryDirectory temporary;
  write_file(temporary.file("file"), {1});
  auto refused = open_output(temporary.file("file"), names(), environment_of({}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what,
            temporary.file("file") + " is not a directory; tracing is off, your program continues");
  EXPECT_FALSE(open_output(temporary.file("file/below"), names(), environment_of({})).ok());
  EXPECT_FALSE(open_output("/proc/nothing/here", names(), environment_of({})).ok());
}

TEST(Output, ParsesSizes) {
  EXPECT_EQ(parse_bytes("10G"), 10ull << 30);
  EXPECT_EQ(parse_bytes("64K"), 65536u);
  EXPECT_EQ(parse_bytes("1.5MiB"), 1572864u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  for (const char* bad : {"", "x", "-1", "10Q", "1e300", "10 G x", "nan"}) EXPECT_EQ(parse_bytes(bad), 0u) << bad;
}

TEST(Host, FindsRanks) {
  EXPECT_EQ(find_rank(environment_of({{"RANK", "5"}, {"OMPI_COMM_WORLD_RANK", "6"}})), "5");
  EXPECT_EQ(find_rank(environment_of({{"PMI_RANK", "7"}})), "7");
  EXPECT_EQ(find_rank(environment_of({{"RANK", "x"}, {"PMIX_RANK", "8"}})), "8");
  EXPECT_EQ(find_rank(environment_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}})), "");
  EXPECT_EQ(find_rank(environment_of({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}})), "3");
  EXPECT_EQ(find_local_rank(environment_of({{"LOCAL_RANK", "2"}})), "2");
  EXPECT_EQ(find_local_rank(environment_of({})), "");
}

TEST(Host, FindsFoldersOfPackages) {
  TemporaryDirectory temporary;
  for (const char* const made : {"deps", "deps/thing", "deps/thing-1.0.dist-info", "source", "source/mine.egg-info"})
    ASSERT_EQ(::mkdir(temporary.file(made).c_str(), 0700), 0) << made;
  const std::string deps_path = temporary.file("deps"), source = temporary.file("source");
  const auto found = [&](const std::string& path) { return package_folders(path); };
  const std::vector<std::string> deps{deps_path};
  EXPECT_EQ(found(source + ":" + deps_path + "/"), deps);
  EXPECT_EQ(found(":deps:/:" + temporary.file("none") + ":" + deps_path), deps);
  EXPECT_TRUE(found("").empty());
  EXPECT_TRUE(found(source).empty()) << "a checkout";
  std::string many;
  for (int i = 0; i < 40; ++i) many += deps_path + ":";
  EXPECT_EQ(found(many).size(), kMostPackageFolders);
}

TEST(Host, FindsTheJob) {
  EXPECT_EQ(find_job(environment_of({{"SLURM_JOB_ID", "123"}}), ::getpid()), "123");
  EXPECT_EQ(find_job(environment_of({{"TORCHELASTIC_RUN_ID", "none"}, {"GPUTRACE_RUN_START", "20261120-181045"}}),
                     ::getpid()),
            "20261120-181045");
  const std::string start = find_job(environment_of({}), ::getpid());
  ASSERT_EQ(start.size(), 15u);
  EXPECT_LE(start, format_utc(realtime_nanos()));
  EXPECT_GE(start, format_utc(realtime_nanos() - 600'000'000'000));
  EXPECT_EQ(format_utc(0), "19700101-000000");
  const ProcessStat own = process_stat(::getpid());
  EXPECT_TRUE(own.known);
  EXPECT_EQ(own.parent, ::getppid());
  EXPECT_GT(own.start_time, 0u);
  EXPECT_FALSE(process_stat(0x3fffffff).known);
}

TEST(Redact, HidesSecretsAndNothingElse) {
  for (const auto& [given, expected] : std::vector<std::pair<std::string, std::string>>{
           {"--token=abc", "--token=***"},
           {"HF_TOKEN=abcdef", "HF_TOKEN=***"},
           {"--db-password='p w'", "--db-password='***'"},
           {"Cookie: session=abc; theme=dark", "Cookie: ***"},
           {"wJalrXUtnFEMI/K7MDENG/bPxRfiCY8XAMPLEKEY", "***"},
           {"-----BEGIN RSA PRIVATE KEY-----\nMIIEow", "***"},
           {"https://ann:pw@host/x?api_key=12345678z&a=b", "https://***@host/x?api_key=***&a=b"},
           {"Authorization: Bearer abc.def", "Authorization: ***"},
           {"{\"secret\": \"v\", \"n\": 1}", "{\"secret\": \"***\", \"n\": 1}"},
           {"x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4 y", "x *** y"},
           {"ghp_0123456789abcdefABCDEF0123456789abcd", "***"},
           {"0123456789abcdef0123456789abcdef", "***"},
           {"--lr=0.001", "--lr=0.001"},
           {"--max-tokens=4096", "--max-tokens=4096"},
           {"--max-token=4096", "--max-token=4096"},
           {"--tokenizer=gpt2-medium-long-name", "--tokenizer=gpt2-medium-long-name"},
           {"/data/experiments/run_2026/checkpoint-000100/model.safetensors",
            "/data/experiments/run_2026/checkpoint-000100/model.safetensors"},
           {"https://host/path@2", "https://host/path@2"},
           {"s3://bucket/key/name", "s3://bucket/key/name"},
           {"", ""}}) {
    EXPECT_EQ(redact(given), expected);
  }
  const std::vector<std::string> arguments = {"train.py", "--api-key", "abcdef-ghi", "--token",
                                              "--epochs", "3",         "-p",         "8080"};
  const std::vector<std::string> expected = {"train.py", "--api-key", "***", "--token", "--epochs", "3", "-p", "8080"};
  EXPECT_EQ(redact_arguments(arguments), expected);
  for (const auto& [given, wanted] : std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
           {{"-p", "hunter2"}, {"-p", "***"}},
           {{"-phunter2"}, {"-p***"}},
           {{"-p8080", "-pthread"}, {"-p8080", "-pthread"}},
           {{"--pw", "x y"}, {"--pw", "***"}},
           {{"--password=x y z"}, {"--password=***"}},
           {{"-u", "ann:x"}, {"-u", "ann:***"}},
           {{"-uann:x"}, {"-uann:***"}},
           {{"--user=ann:x"}, {"--user=ann:***"}},
           {{"-u", "train.py"}, {"-u", "train.py"}},
           {{"-H", "Cookie: a=b; c=d"}, {"-H", "Cookie: ***"}},
           {{"--cookie", "a=b"}, {"--cookie", "***"}},
           {{"sh", "mysql -u ann  -phunter2 base"}, {"sh", "mysql -u ann  -p*** base"}},
           {{"sh", "run --password 'a b' -x"}, {"sh", "run --password *** -x"}},
           {{"echo -n done"}, {"echo -n done"}}}) {
    EXPECT_EQ(redact_arguments(given), wanted) << given[0];
  }
}

// Shapes of the well-known services, put together here so that no scanner finds them.
TEST(Redact, HidesTheTokensOfServices) {
  const std::string body = "0123456789abcdefABCDEF0123456789abcd";
  for (const char* prefix :
       {"AKIA", "npm_",   "pypi-", "dckr_pat_", "AIza",    "xoxb-", "xoxp-",  "xapp-", "SG.",     "hf_",
        "ghp_", "glpat-", "sk-",   "sk_live_",  "GOCSPX-", "ya29.", "nvapi-", "dapi",  "dop_v1_", "shpat_"}) {
    const std::string text =
        "fetch " + std::string(prefix) + body + (std::string(prefix) == "SG." ? ".tail" : "") + " now";
    EXPECT_EQ(redact(text).find(body), std::string::npos) << prefix;
    EXPECT_EQ(redact(text).substr(0, 6), "fetch ");
  }
}

TEST(Redact, ChecksTheValuesOfVariables) {
  for (const char* kept : {"0,1", "INFO", "GPU-8e3ab5f1-0c1d", "=mlx5_0:1,mlx5_1:1", "/usr/local/cuda/lib64",
                           "max_split_size_mb:128", "--xla_gpu_autotune_level=2", "^docker0,lo"})
    EXPECT_EQ(environment_value(kept), kept);
  for (const char* hidden : {"ann:hunter2@host", "http://ann:pw@host/", "password=x", "\"quoted\"", "a\nb"})
    EXPECT_EQ(environment_value(hidden), "***") << hidden;
}

TEST(Output, IsNotWhereOthersReach) {
  TemporaryDirectory temporary;
  const std::string open_to_all = temporary.file("open"), link = temporary.file("link"), own = temporary.file("own");
  ASSERT_EQ(::mkdir(open_to_all.c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(own.c_str(), 0700), 0);
  for (const mode_t mode : {0777u, 0720u, 01777u}) {
    ASSERT_EQ(::chmod(open_to_all.c_str(), mode), 0);
    EXPECT_FALSE(open_output(open_to_all, names(), environment_of({})).ok());
    auto shared = open_output(open_to_all, names(), environment_of({{"GPUTRACE_ALLOW_SHARED_DIR", "1"}}));
    ASSERT_TRUE(shared.ok());
    EXPECT_TRUE(shared.value().shared);
    EXPECT_TRUE(open_output(open_to_all + "/below", names(), environment_of({})).ok())
        << "its own directory in one of all";
    ASSERT_EQ(::rmdir((open_to_all + "/below").c_str()), 0);
  }
  ASSERT_EQ(::symlink(own.c_str(), link.c_str()), 0);
  EXPECT_TRUE(open_output(link, names(), environment_of({})).ok()) << "a link of one's own";
  if (::geteuid() != 0) return;  // the rest needs a second user
  ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(open_output(link, names(), environment_of({})).ok());
  EXPECT_FALSE(open_output(link + "/below", names(), environment_of({{"GPUTRACE_ALLOW_SHARED_DIR", "1"}})).ok());
  EXPECT_NE(::access((own + "/below").c_str(), F_OK), 0) << "nothing was made behind it";
  ASSERT_EQ(::chown(own.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(open_output(own, names(), environment_of({})).ok()) << "root may use one that a single user owns";
}

// What the sidecar must never do, by whatever table of calls.
TEST(Confine, RefusesWhatReachesBeyondItsFiles) {
  const pid_t child = ::fork();
  if (child == 0) {
    confine();
    int bad = 0;
    const auto refused = [&bad](long result) { bad += !(result == -1 && errno == EPERM); };
    char* const nothing[] = {nullptr};
    refused(::execve("/bin/true", nothing, nothing));
    refused(::syscall(SYS_socket, 1, 1, 0));
    refused(::syscall(SYS_ptrace, 16, ::getppid(), 0, 0));
    int word = 7, copy = 0;
    const iovec here{&copy, sizeof copy}, there{&word, sizeof word};
    refused(::process_vm_readv(::getpid(), &here, 1, &there, 1, 0));
    refused(::process_vm_writev(::getpid(), &here, 1, &there, 1, 0));
    refused(::syscall(SYS_io_uring_setup, 1, nullptr));
    refused(::syscall(SYS_symlinkat, "a", -1, "b"));
    refused(::syscall(SYS_getpid | 0x40000000));
#ifdef __x86_64__
    long answer = 20;  // getpid of the other table
    asm volatile("int $0x80" : "+a"(answer) : : "memory", "r8", "r9", "r10", "r11");
    bad += answer != -EPERM;
#endif
    ::_exit(bad);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Where lines of the program are sampled.
TEST(Confine, MayReadOtherProcessesAndNotWriteThem) {
  const pid_t child = ::fork();
  if (child == 0) {
    confine(-1, true);
    int word = 7, copy = 0;
    const iovec here{&copy, sizeof copy}, there{&word, sizeof word};
    const bool reads = ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == sizeof word && copy == 7;
    const bool writes = ::process_vm_writev(::getpid(), &here, 1, &there, 1, 0) != -1 || errno != EPERM;
    const bool traces = ::syscall(SYS_ptrace, 16, ::getppid(), 0, 0) != -1 || errno != EPERM;
    ::_exit(!reads + 2 * writes + 4 * traces);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Redact, AllowsFewVariables) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "RANK", "WORLD_SIZE", "OMP_NUM_THREADS",
                           "PYTORCH_CUDA_ALLOC_CONF", "SLURM_JOB_ID", "GPUTRACE_BUFFER"})
    EXPECT_TRUE(environment_allowed(name)) << name;
  for (const char* name : {"AWS_SECRET_ACCESS_KEY", "HOME", "PATH", "HF_TOKEN", "NCCL_SECRET", "CUDA_API_KEY",
                           "LD_PRELOAD", "SLURM_JWT", "CUDA_LOGIN", "NCCL_COMM_ID", "RANK_OF", "GPUTRACE_NOTHING"})
    EXPECT_FALSE(environment_allowed(name)) << name;
}

TEST(ProcessInfo, RedactsArgumentsAndKeepsTheRest) {
  InfoLines lines = parse_info(
      "executable\t/usr/bin/python3\nargv\tpython3\x1f--token=abc\x1fx\\ty\nnot a line\noption.collect\tapi\n");
  ASSERT_EQ(lines.size(), 3u);
  redact_info(lines);
  EXPECT_EQ(lines[1].second, "python3\x1f--token=***\x1fx\ty");
  EXPECT_EQ(format_info(lines),
            "executable\t/usr/bin/python3\nargv\tpython3\x1f--token=***\x1fx\\ty\noption.collect\tapi\n");
  EXPECT_EQ(find_info(lines, "option.collect"), "api");
  SegmentHeader header{};
  header.pid = 77;
  header.anchor.realtime_ns = 1'000'000'000;
  const OutputNames n = name_output(lines, header, environment_of({{"RANK", "2"}, {"SLURM_JOB_ID", "9"}}));
  EXPECT_EQ(n.executable, "python3");
  EXPECT_EQ(n.rank, "2");
  EXPECT_EQ(n.job, "9");
  EXPECT_EQ(n.start, "19700101-000001");
  std::string secret = "NCCL_NET_KEY=hunter2", allowed = "NCCL_DEBUG=INFO";
  char* variables[] = {secret.data(), allowed.data(), nullptr};
  add_host_info(lines, header, n, environment_of({}), variables);
  const std::string text = format_info(lines);
  EXPECT_NE(text.find("env.NCCL_DEBUG\tINFO\n"), std::string::npos);
  EXPECT_EQ(text.find("hunter2"), std::string::npos);
  EXPECT_NE(text.find("rank\t2\n"), std::string::npos);
}

}  // namespace
}  // namespace gputrace::test
