#include "analysis/export/sqlite_file.h"

#include <sqlite3.h>

namespace gputrace {

SqliteFile::SqliteFile(const std::string& path) {
  check(
      sqlite3_open_v2(path.c_str(), &file_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr));
  run("PRAGMA page_size=32768; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
      "PRAGMA cache_size=-65536; BEGIN");
}

SqliteFile::~SqliteFile() { close(); }

std::size_t SqliteFile::table(const char* name, std::initializer_list<const char*> columns) {
  std::string create = std::string("CREATE TABLE ") + name + " (",
              insert = std::string("INSERT INTO ") + name + " VALUES (";
  const char* between = "";
  for (const char* column : columns) {
    create += between + std::string(column);
    insert += std::string(between) + "?";
    between = ", ";
  }
  run((create + ")").c_str());
  sqlite3_stmt* statement = nullptr;
  if (error_.empty()) check(sqlite3_prepare_v2(file_, (insert + ")").c_str(), -1, &statement, nullptr));
  inserts_.push_back(statement);
  return inserts_.size() - 1;
}

SqliteFile::Row SqliteFile::insert(std::size_t table) { return Row(*this, inserts_[table]); }

SqliteFile::Row& SqliteFile::Row::number(std::optional<i64> value) {
  if (value && statement_) sqlite3_bind_int64(statement_, at_, *value);
  ++at_;
  return *this;
}
SqliteFile::Row& SqliteFile::Row::text(std::string_view value) {
  if (statement_) sqlite3_bind_text(statement_, at_, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  ++at_;
  return *this;
}
SqliteFile::Row& SqliteFile::Row::null() { return ++at_, *this; }

void SqliteFile::Row::done() {
  if (!statement_ || !file_.error_.empty()) return;
  const int code = sqlite3_step(statement_);
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  if (code != SQLITE_DONE) file_.check(code);
}

void SqliteFile::run(const char* sql) {
  if (error_.empty()) check(sqlite3_exec(file_, sql, nullptr, nullptr, nullptr));
}

void SqliteFile::close() {
  if (!file_) return;
  for (sqlite3_stmt* statement : inserts_) sqlite3_finalize(statement);
  inserts_.clear();
  run("COMMIT");
  const int code = sqlite3_close(file_);
  if (code != SQLITE_OK && error_.empty()) error_ = sqlite3_errstr(code);
  file_ = nullptr;
}

void SqliteFile::check(int code) {
  if (code != SQLITE_OK && error_.empty()) error_ = file_ ? sqlite3_errmsg(file_) : sqlite3_errstr(code);
}

}  // namespace gputrace
