#include "writer/redact.h"

#include <algorithm>
#include <array>

#include "base/types.h"
#include "writer/secret_words.h"

namespace gputrace {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool ends_value(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '&' || c == ',' || c == ';';
}
char lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }

}  // namespace

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
  return flat.ends_with("authtoken") || flat.ends_with("accesstoken") || flat.ends_with("accountkey");
}

namespace {

bool is_cookie(std::string_view name) {
  return name.size() >= 6 &&
         std::equal(name.end() - 6, name.end(), "cookie", [](char a, char b) { return lower(a) == b; });
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

// Addresses that are secrets: whoever knows one may post there.
std::string hide_webhooks(std::string_view text) {
  std::string out(text);
  for (const std::string_view hook : {"hooks.slack.com/", "/api/webhooks/"}) {
    for (std::size_t at = 0; (at = out.find(hook, at)) != std::string::npos;) {
      at += hook.size();
      std::size_t end = at;
      while (end < out.size() && !ends_value(out[end])) ++end;
      out.replace(at, end - at, kHidden);
    }
  }
  return out;
}

bool looks_like_key(std::string_view run) {
  static constexpr std::array kPrefixes = {
      "hf_",   "ghp_",  "gho_",  "ghs_",  "ghu_",    "ghr_",  "github_pat_", "glpat-", "gldt-",          "glsa_",
      "glc_",  "sk-",   "sk_",   "rk_",   "pk_",     "xoxa-", "xoxb-",       "xoxc-",  "xoxd-",          "xoxe-",
      "xoxp-", "xoxr-", "xoxs-", "xapp-", "AKIA",    "ASIA",  "AIza",        "ya29",   "GOCSPX-",        "npm_",
      "pypi-", "dckr_", "dop_v", "dapi",  "nvapi-",  "shpat", "sq0atp-",     "wandb_", "lin_api",        "figd_",
      "key-",  "r8_",   "pul-",  "ntn_",  "sntrys_", "ATATT", "secret_",     "whsec_", "AGE-SECRET-KEY-"};
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

// Google's refresh tokens.
bool looks_like_refresh_token(std::string_view run) { return run.size() >= 30 && run.starts_with("1//0"); }

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
    const bool refresh = looks_like_refresh_token(text.substr(i, end - i));
    if (refresh || looks_like_aws_secret(text.substr(i, end - i))) {
      out += kHidden;
      while (refresh && end < pem && is_word(text[end])) ++end;
      i = end;
      continue;
    }
    end = i;
    bool dotted = false;
    for (const std::string_view begin : {"eyJ", "SG.", "ya29.", "hvs.", "hvb."})
      dotted = dotted || text.substr(i, begin.size()) == begin;
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

std::string redact(std::string_view text) {
  return hide_keys(hide_webhooks(hide_url_credentials(hide_named_values(text))));
}

}  // namespace gputrace
