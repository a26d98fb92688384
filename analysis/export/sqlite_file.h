// A SQLite file that is written once, front to back: tables with their columns, rows of numbers and texts. One transaction; nothing is
// kept for a crash, since the file takes its name only when it is whole.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gputrace {

class SqliteFile {
 public:
  // One row, its values in the order of the columns. done() once, after the last one; columns without a value are NULL.
  class Row {
   public:
    Row& number(std::optional<i64> value);
    Row& text(std::string_view value);
    Row& null();
    void done();

   private:
    friend class SqliteFile;
    Row(SqliteFile& file, sqlite3_stmt* statement) : file_(file), statement_(statement) {}
    SqliteFile& file_;
    sqlite3_stmt* statement_;
    int at_ = 1;
  };

  explicit SqliteFile(const std::string& path);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  // The number by which insert() knows it. `columns`: "start INTEGER NOT NULL", …
  std::size_t table(const char* name, std::initializer_list<const char*> columns);
  Row insert(std::size_t table);
  void run(const char* sql);

  // Ends the transaction and closes.
  void close();
  // Empty: all went well so far.
  const std::string& error() const { return error_; }

 private:
  void check(int code);

  sqlite3* file_ = nullptr;
  std::vector<sqlite3_stmt*> inserts_;  // by table
  std::string error_;
};

}  // namespace gputrace
