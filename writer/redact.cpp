#include "writer/redact.h"

#include <algorithm>
#include <array>

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
  static constexpr std::array kLast = {"token",  "key",    "pwd", "pass",      "auth", "jwt",
                                       "cookie", "bearer", "sig", "signature", "pin"};
  for (const char* word : kAnywhere)
    if (flat.find(word) != std::string::npos) return true;
  for (const char* word : kLast)
    if (last == word) return true;
  return flat.size() > 5 && (flat.ends_with("authtoken") || flat.ends_with("accesstoken"));
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
    std::size_t stop = at;
    while (stop < text.size() && !ends_value(text[stop])) ++stop;
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
  static constexpr std::array kPrefixes = {"hf_",   "ghp_",  "gho_", "ghs_", "github_pat_", "glpat-", "sk-",
                                           "xoxb-", "xoxp-", "AKIA", "ASIA", "AIza",        "nvapi-", "wandb_"};
  for (const std::string_view prefix : kPrefixes)
    if (run.size() >= prefix.size() + 12 && run.starts_with(prefix)) return true;
  const bool digits = std::any_of(run.begin(), run.end(), is_digit);
  const bool lowers = std::any_of(run.begin(), run.end(), is_lower);
  const bool uppers = std::any_of(run.begin(), run.end(), is_upper);
  if (run.size() >= 32 && std::all_of(run.begin(), run.end(), is_hex)) return digits && (lowers || uppers);
  return run.size() >= 40 && digits && lowers && uppers &&
         std::count(run.begin(), run.end(), '_') + std::count(run.begin(), run.end(), '-') < 4;
}

// Runs of letters and digits; a JSON web token also holds dots.
std::string hide_keys(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    const bool jwt = text.substr(i, 3) == "eyJ";
    while (end < text.size() &&
           (is_word(text[end]) || text[end] == '+' || (text[end] == '=' && end - i >= 32) || (jwt && text[end] == '.')))
      ++end;
    const std::string_view run = text.substr(i, end - i);
    const bool is_jwt = jwt && run.size() >= 20 && std::count(run.begin(), run.end(), '.') == 2;
    out += is_jwt || looks_like_key(run) ? kHidden : run;
    i = end;
  }
  return out;
}

}  // namespace

std::string redact(std::string_view text) { return hide_keys(hide_url_credentials(hide_named_values(text))); }

std::vector<std::string> redact_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  bool hide_next = false;
  for (const std::string& argument : arguments) {
    const bool option = argument.size() > 1 && argument[0] == '-';
    if (hide_next && !option && !is_small_number(argument))
      out.emplace_back(kHidden);
    else
      out.push_back(redact(argument));
    hide_next = option && argument.find('=') == std::string::npos &&
                is_secret_name(argument.substr(
                    argument.find_first_not_of('-') == std::string::npos ? 0 : argument.find_first_not_of('-')));
  }
  return out;
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
