#include "writer/redact.h"

#include <algorithm>
#include <array>

#include "base/types.h"

namespace gputrace {
namespace {

constexpr std::string_view kHidden = "***";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) { return is_digit(c) || is_lower(c) || is_upper(c) || c == '_' || c == '-'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool ends_value(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '&' || c == ',' || c == ';';
}
char lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }

// A name whose value is secret. "tokenizer" and "max_tokens" are none: only a last part that says it.
bool is_secret_name(std::string_view name) {
  std::string flat, last;
  for (char c : name) {
    if (c == '_' || c == '-') {
      last.clear();
      continue;
    }
    flat += lower(c);
    last += lower(c);
  }
  static constexpr std::array kAnywhere = {"secret", "passw",     "passphrase", "credential",
                                           "apikey", "accesskey", "privatekey", "authorization"};
  static constexpr std::array kLast = {"token",  "key", "pwd",       "pass", "auth", "jwt", "cookie",
                                       "bearer", "sig", "signature", "pin",  "pw",   "psk", "passcode"};
  for (const char* word : kAnywhere)
    if (flat.find(word) != std::string::npos) return true;
  for (const char* word : kLast)
    if (last == word) return true;
  return flat.size() > 5 && (flat.ends_with("authtoken") || flat.ends_with("accesstoken"));
}

bool is_cookie(std::string_view name) {
  return name.size() >= 6 &&
         std::equal(name.end() - 6, name.end(), "cookie", [](char a, char b) { return lower(a) == b; });
}

bool is_small_number(std::string_view value) {
  return value.size() <= 7 && std::all_of(value.begin(), value.end(), is_digit);
}

// name=value, name: value, "name": "value"
std::string hide_named_values(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view name = text.substr(i, end - i);
    out += name;
    i = end;
    std::size_t at = i;
    while (at < text.size() && (text[at] == '"' || text[at] == '\'' || text[at] == ' ')) ++at;
    if (at == text.size() || (text[at] != '=' && text[at] != ':') || text.substr(at, 3) == "://" ||
        !is_secret_name(name))
      continue;
    ++at;
    while (at < text.size() && (text[at] == '"' || text[at] == '\'' || text[at] == ' ' || text[at] == '=')) ++at;
    const char before = text[at - 1];
    const bool quoted = before == '"' || before == '\'';
    std::size_t stop = at;
    if (is_cookie(name))
      stop = text.size();  // of one "name=value; name=value"
    else if (quoted && text.find(before, at) != std::string_view::npos)
      stop = text.find(before, at);
    while (stop < text.size() && !quoted && !ends_value(text[stop])) ++stop;
    const bool scheme = stop < text.size() && text[stop] == ' ' &&
                        (stop - at == 6 || stop - at == 5);  // Authorization: Bearer XYZ, Basic XYZ
    if (scheme)
      for (++stop; stop < text.size() && !ends_value(text[stop]);) ++stop;
    if (stop == at || is_small_number(text.substr(at, stop - at))) continue;
    out += text.substr(i, at - i);
    out += kHidden;
    i = stop;
  }
  return out;
}

// scheme://user:password@host
std::string hide_url_credentials(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t colon = text.find("://");
    if (colon == std::string_view::npos) return out.append(text);
    const std::size_t begin = colon + 3;
    std::size_t end = begin;
    std::size_t at = std::string_view::npos;
    for (; end < text.size() && text[end] != '/' && text[end] != '?' && text[end] != '#' && !ends_value(text[end]);
         ++end)
      if (text[end] == '@') at = end;
    out.append(text.substr(0, begin));
    if (at != std::string_view::npos) {
      out += kHidden;
      text.remove_prefix(at);
    } else {
      text.remove_prefix(begin);
    }
  }
}

bool looks_like_key(std::string_view run) {
  static constexpr std::array kPrefixes = {
      "hf_",     "ghp_", "gho_",    "ghs_",  "ghu_",  "ghr_",     "github_pat_",    "glpat-", "gldt-", "sk-",  "sk_",
      "rk_",     "pk_",  "xoxa-",   "xoxb-", "xoxe-", "xoxp-",    "xoxr-",          "xoxs-",  "xapp-", "AKIA", "ASIA",
      "AIza",    "ya29", "GOCSPX-", "npm_",  "pypi-", "dckr_pat", "nvapi-",         "wandb_", "dop_v", "dapi", "shpat",
      "sq0atp-", "key-", "lin_api", "figd_", "r8_",   "hvs.",     "AGE-SECRET-KEY-"};
  for (const std::string_view prefix : kPrefixes)
    if (run.size() >= prefix.size() + 12 && run.starts_with(prefix)) return true;
  const bool digits = std::any_of(run.begin(), run.end(), is_digit);
  const bool lowers = std::any_of(run.begin(), run.end(), is_lower);
  const bool uppers = std::any_of(run.begin(), run.end(), is_upper);
  if (run.size() >= 32 && std::all_of(run.begin(), run.end(), is_hex)) return digits && (lowers || uppers);
  return run.size() >= 40 && digits && lowers && uppers &&
         std::count(run.begin(), run.end(), '_') + std::count(run.begin(), run.end(), '-') < 4;
}

// A secret key of AWS: 40 characters of base64, slashes among them.
bool looks_like_aws_secret(std::string_view run) {
  const auto any = [run](auto&& is) { return std::any_of(run.begin(), run.end(), is); };
  return run.size() == 40 && run.front() != '/' && any(is_digit) && any(is_lower) && any(is_upper);
}

// What follows a key's first line is the key.
std::size_t find_pem(std::string_view text) {
  const std::size_t begin = text.find("-----BEGIN ");
  return begin == std::string_view::npos || text.find("KEY", begin) == std::string_view::npos ? text.size() : begin;
}

bool is_base64(char c) { return is_digit(c) || is_lower(c) || is_upper(c) || c == '/' || c == '+'; }

// Runs of letters and digits; a JSON web token also holds dots.
std::string hide_keys(std::string_view text) {
  std::string out;
  const std::size_t pem = find_pem(text);
  for (std::size_t i = 0; i < pem;) {
    if (!is_word(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < pem && is_base64(text[end])) ++end;
    if (looks_like_aws_secret(text.substr(i, end - i))) {
      out += kHidden;
      i = end;
      continue;
    }
    end = i;
    const bool dotted = text.substr(i, 3) == "eyJ" || text.substr(i, 3) == "SG." || text.substr(i, 5) == "ya29.";
    while (end < pem && (is_word(text[end]) || text[end] == '+' || (text[end] == '=' && end - i >= 32) ||
                         (dotted && text[end] == '.')))
      ++end;
    const std::string_view run = text.substr(i, end - i);
    const bool is_token = dotted && run.size() >= 20 && std::count(run.begin(), run.end(), '.') >= 1;
    out += is_token || looks_like_key(run) ? kHidden : run;
    i = end;
  }
  return pem == text.size() ? out : out.append(kHidden);
}

}  // namespace

std::string redact(std::string_view text) { return hide_keys(hide_url_credentials(hide_named_values(text))); }

namespace {

// What an argument's own form says of the next one.
enum class Next : u8 { Plain, Secret, Login };

std::string hide_login(std::string_view login) {
  const std::size_t colon = login.find(':');
  return colon == std::string_view::npos ? redact(login) : std::string(login.substr(0, colon + 1)).append(kHidden);
}

// "-pSECRET": a letter with its value. Words that begin so are few.
bool is_password_letter(std::string_view argument) {
  if (argument.size() < 3 || argument.substr(0, 2) != "-p" || is_small_number(argument.substr(2))) return false;
  for (const std::string_view word : {"-pthread", "-pedantic", "-print", "-profile", "-port", "-plugin", "-path",
                                      "-pipe", "-pix_fmt", "-preset", "-pass"}) {
    if (argument.starts_with(word)) return false;
  }
  return true;
}

std::string redact_argument(const std::string& argument, Next& next) {
  next = Next::Plain;
  const std::size_t begin = argument.find_first_not_of('-');
  if (begin == std::string::npos) return argument;
  const bool option = begin > 0;
  const std::size_t equals = argument.find('=');
  const std::string_view name = std::string_view(argument).substr(begin, equals - begin);
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), is_word);
  if (equals != std::string::npos && word) {  // the whole rest is the value, blanks too
    const std::string_view value = std::string_view(argument).substr(equals + 1);
    if (is_secret_name(name) && !value.empty() && !is_small_number(value))
      return argument.substr(0, equals + 1).append(kHidden);
    if (option && (name == "user" || name == "proxy-user")) return argument.substr(0, equals + 1) + hide_login(value);
  }
  if (!option || equals != std::string::npos) return redact(argument);
  if (argument == "-p" || argument == "-b" || is_secret_name(name)) next = Next::Secret;
  if (argument == "-u" || argument == "-U" || argument == "--user" || argument == "--proxy-user") next = Next::Login;
  if (is_password_letter(argument)) return std::string("-p").append(kHidden);
  if (argument.starts_with("-u") && argument.find(':') != std::string::npos) return hide_login(argument);
  return redact(argument);
}

}  // namespace

std::vector<std::string> redact_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  Next next = Next::Plain;
  for (const std::string& argument : arguments) {
    const bool option = argument.size() > 1 && argument[0] == '-';
    if (next != Next::Plain && !option && !is_small_number(argument)) {
      out.push_back(next == Next::Login ? hide_login(argument) : std::string(kHidden));
      next = Next::Plain;
      continue;
    }
    out.push_back(redact_argument(argument, next));
  }
  return out;
}

// Numbers, words, lists, paths; nothing with a user, a host behind @ or what looks like a key.
std::string environment_value(std::string_view value) {
  constexpr std::size_t kMost = 1024;
  constexpr std::string_view kMarks = "_.,:;=+^%/-* ()[]|";
  const auto plain = [kMarks](char c) { return is_word(c) || kMarks.find(c) != std::string_view::npos; };
  if (value.size() > kMost || !std::all_of(value.begin(), value.end(), plain) || redact(value) != value)
    return std::string(kHidden);
  return std::string(value);
}

bool environment_allowed(std::string_view name) {
  if (is_secret_name(name)) return false;
  static constexpr std::array kExact = {"WORLD_SIZE",
                                        "LOCAL_WORLD_SIZE",
                                        "GROUP_RANK",
                                        "OMP_NUM_THREADS",
                                        "MKL_NUM_THREADS",
                                        "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF",
                                        "XLA_FLAGS",
                                        "XLA_PYTHON_CLIENT_MEM_FRACTION",
                                        "XLA_PYTHON_CLIENT_PREALLOCATE",
                                        "TF_GPU_ALLOCATOR",
                                        "TF_FORCE_GPU_ALLOW_GROWTH",
                                        "TORCHELASTIC_RESTART_COUNT",
                                        "TORCHELASTIC_RUN_ID",
                                        "NVIDIA_TF32_OVERRIDE",
                                        "NVIDIA_VISIBLE_DEVICES",
                                        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
                                        "SLURM_NTASKS",
                                        "SLURM_NNODES",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "SLURM_NODEID",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "SLURM_ARRAY_JOB_ID",
                                        "SLURM_ARRAY_TASK_ID",
                                        "PBS_JOBID",
                                        "LSB_JOBID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MV2_COMM_WORLD_RANK",
                                        "MPI_LOCALRANKID"};
  for (const char* allowed : kExact)
    if (name == allowed) return true;
  static constexpr std::array kPrefixes = {"CUDA_",     "NCCL_",  "RANK",     "LOCAL_RANK", "CUBLAS_",
                                           "CUBLASLT_", "CUDNN_", "GPUTRACE", "SIMGPU_"};
  for (const char* prefix : kPrefixes)
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace gputrace
