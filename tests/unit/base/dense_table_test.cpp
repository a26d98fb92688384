#include "base/dense_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace gputrace {
namespace {

struct Entry {
  u64 key, value;
};
using Table = DenseTable<Entry, 64, 48>;

const Entry* find(const Table& table, u64 key, u64 hash) {
  return table.find(hash, [&](const Entry& entry) { return entry.key == key; });
}

TEST(DenseTable, FindsWhatWasAddedWhateverItsHash) {
  for (const u64 spread : {u64{0}, u64{1}, u64{0x9e3779b97f4a7c15}}) {  // 0: all in one place
    const auto table = std::make_unique<Table>();                       // zeroed
    for (u64 key = 0; key < 48; ++key) {
      EXPECT_EQ(find(*table, key, key * spread), nullptr);
      Entry* const entry = table->next();
      ASSERT_NE(entry, nullptr);
      *entry = {key, key + 1000};
      EXPECT_EQ(table->add(key * spread), entry);
    }
    EXPECT_EQ(table->next(), nullptr) << "full";
    for (u64 key = 0; key < 48; ++key) {
      ASSERT_NE(find(*table, key, key * spread), nullptr);
      EXPECT_EQ(find(*table, key, key * spread)->value, key + 1000);
    }
    EXPECT_EQ(find(*table, 48, 0), nullptr);
  }
}

// What was taken and not added is given again.
TEST(DenseTable, AnEntryIsThereWhenItIsAdded) {
  const auto table = std::make_unique<Table>();
  *table->next() = {1, 1};
  EXPECT_EQ(find(*table, 1, 5), nullptr);
  *table->next() = {2, 2};
  table->add(5);
  EXPECT_EQ(find(*table, 1, 5), nullptr);
  ASSERT_NE(find(*table, 2, 5), nullptr);
}

TEST(DenseTable, OthersFindWholeEntriesWhileItGrows) {
  const auto table = std::make_unique<DenseTable<Entry, 1u << 14, 12'000>>();
  std::atomic<bool> done{false};
  std::atomic<u64> torn{0}, found{0};
  std::thread reader([&] {
    for (bool last = false; !last;) {  // once more when all are there
      last = done.load(std::memory_order_acquire);
      for (u64 key = 0; key < 12'000; key += 97) {
        const Entry* const entry = table->find(key * 31, [&](const Entry& each) { return each.key == key + 1; });
        found += entry != nullptr;
        torn += entry && entry->value != key * 3;
      }
    }
  });
  for (u64 key = 0; key < 12'000; ++key) {
    *table->next() = {key + 1, key * 3};
    table->add(key * 31);
  }
  done.store(true, std::memory_order_release);
  reader.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_GE(found.load(), 12'000u / 97);
  EXPECT_NE(table->find(11'999 * 31, [](const Entry& each) { return each.key == 12'000; }), nullptr);
}

}  // namespace
}  // namespace gputrace
