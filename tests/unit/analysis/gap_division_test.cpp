// Each instant of a gap has a cause: gaps with known parts, and the same gaps a little otherwise. All parts sum to the gap.
#include "analysis/gaps/gap_division.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "analysis/gaps/dispatch_times.h"

namespace gputrace {
namespace {

constexpr u32 kThread = 3;
constexpr u16 kLaunchCall = 7, kSyncCall = 8, kFreeCall = 9, kCopyCall = 10, kLoadCall = 11, kQueryCall = 12,
              kLibraryCall = 13;
using Kind = HostLog::Kind;
using Cause = IdleCause;
using Wanted = std::map<Cause, Nanos>;

// A gap from 100 us to 200 us; the launch of what ends it is called at 192 us, returns at 196 us, and is dispatched in 4 us
// unless said otherwise. Times are in ns.
struct Scene {
  HostLog log{8};
  OverheadLog overhead;
  HostOperation previous, next;
  DeviceOperation after;
  Waited waited;
  u32 depth = 0;
  Nanos begin = 100'000, end = 200'000, error = 100, usual = 0;
  bool joined = true;
  GapDivision division;

  Scene() { next.begin = 192'000, next.end = 196'000, next.thread = kThread, next.call = kLaunchCall; }
  void held(Nanos from, Nanos to, Cause cause = Cause::Collection, u32 thread = kThread) {
    overhead.add({from, to, thread, cause});
  }
  void did(Nanos from, Nanos to, Kind kind, u16 call, u32 origin = 0) {
    log.add(kThread, from, to, call, kind, origin);
  }
  Wanted divide(const HostOperation* before_call = nullptr) {
    IdleGap gap;
    gap.begin = begin, gap.end = end;
    divide_gap({gap, before_call, after, joined ? &next : nullptr, waited, depth, error, &overhead}, log, usual,
               division);
    const IdleParts& parts = division.parts();
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), Nanos{0}), end - begin);
    Wanted found;
    for (unsigned i = 0; i < kIdleCauses; ++i) {
      if (parts[i] != 0) found[static_cast<Cause>(i)] = parts[i];
    }
    return found;
  }
};

TEST(GapDivision, HostWhereTheThreadWasInNoCall) {
  Scene scene;
  scene.did(80'000, 84'000, Kind::Launch, kLaunchCall);
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Host, 92'000}, {Cause::Launch, 4'000}, {Cause::Dispatch, 4'000}}));
  EXPECT_EQ(scene.division.call_to_blame(), 0);
}

// Nobody reads the wait's whole length into the gap: it took 4 us of it.
TEST(GapDivision, AWaitThatReachesIntoTheGapHasItsPartOfIt) {
  for (const Nanos since : {-196'000, 64'000}) {
    Scene scene;
    scene.did(since, 104'000, Kind::Synchronization, kSyncCall);
    EXPECT_EQ(
        scene.divide(),
        (Wanted{
            {Cause::Synchronization, 4'000}, {Cause::Host, 88'000}, {Cause::Launch, 4'000}, {Cause::Dispatch, 4'000}}));
  }
  Scene over;
  over.did(-200'000, 99'950, Kind::Synchronization, kSyncCall);
  EXPECT_EQ(over.divide().count(Cause::Synchronization), 0u);
}

TEST(GapDivision, CallsOfEveryKindAndWhatLiesBetweenThem) {
  Scene scene;
  scene.did(90'000, 110'000, Kind::Synchronization, kSyncCall);
  scene.did(112'000, 120'000, Kind::Allocation, kFreeCall);
  scene.did(120'000, 135'000, Kind::Copy, kCopyCall);
  scene.did(140'000, 160'000, Kind::Module, kLoadCall);
  scene.did(160'000, 161'000, Kind::Order, 44);
  scene.did(161'000, 164'000, Kind::Launch, kLaunchCall);
  scene.did(165'000, 166'000, Kind::Other, 55);
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Synchronization, 10'000},
                                    {Cause::Host, 2'000 + 5'000 + 1'000 + 1'000 + 26'000},
                                    {Cause::Allocation, 8'000},
                                    {Cause::Copy, 15'000},
                                    {Cause::ModuleLoad, 20'000},
                                    {Cause::Launch, 4'000 + 4'000},
                                    {Cause::Dispatch, 4'000}}));
}

// What the host did longest lies between two calls that act; what was only asked in between belongs to it.
TEST(GapDivision, TheLongestPauseAndTheCallsAroundIt) {
  const auto longest = [](auto&& did) {
    Scene scene;  // which launches at 192 us, from line 9
    scene.next.stack = 9;
    did(scene);
    scene.divide();
    const HostPause& found = scene.division.longest_pause();
    return std::tuple{found.length, found.after, found.before};
  };
  using Found = std::tuple<Nanos, u32, u32>;
  EXPECT_EQ(longest([](Scene& s) { s.did(80'000, 84'000, Kind::Launch, kLaunchCall, 3); }), (Found{92'000, 3, 9}));
  EXPECT_EQ(longest([](Scene& s) {
              s.did(80'000, 101'000, Kind::Launch, kLaunchCall, 3), s.did(104'000, 105'000, Kind::Copy, kCopyCall, 4);
              s.did(140'000, 140'500, Kind::Other, 55, 5), s.did(180'000, 181'000, Kind::Launch, kLaunchCall, 6);
            }),
            (Found{35'000 + 500 + 39'500, 4, 6}));
  EXPECT_EQ(longest([](Scene& s) { s.did(80'000, 195'000, Kind::Synchronization, kSyncCall, 3); }), (Found{0, 0, 0}));
  EXPECT_EQ(longest([](Scene&) {}), (Found{92'000, 0, 9})) << "nothing is known of what came before";
  EXPECT_EQ(longest([](Scene& s) {
              s.did(80'000, 90'000, Kind::Launch, kLaunchCall, 3);
              s.held(110'000, 190'000);
            }),
            (Found{12'000, 3, 9}))
      << "what tracing took is not the program's";
}

// A thread that goes from launch to launch within kLaunchPause does nothing else.
TEST(GapDivision, TheHostsWayFromLaunchToLaunch) {
  const auto between = [](auto&& did) {
    Scene scene;  // which launches at 192 us
    did(scene);
    scene.divide();
    return scene.division.between_launches();
  };
  EXPECT_EQ(between([](Scene& s) { s.did(90'000, 93'000, Kind::Launch, kLaunchCall); }), 92'000);
  EXPECT_EQ(between([](Scene& s) { s.did(90'000, 92'000, Kind::Launch, kLaunchCall); }), 92'000);
  EXPECT_EQ(between([](Scene& s) { s.did(90'000, 91'999, Kind::Launch, kLaunchCall); }), 0) << "longer than a pause";
  EXPECT_EQ(between([](Scene& s) { s.did(90'000, 93'000, Kind::Synchronization, kSyncCall); }), 0);
  EXPECT_EQ(between([](Scene&) {}), 0) << "nothing is known of what it did before";
  EXPECT_EQ(between([](Scene& s) {
              s.did(90'000, 93'000, Kind::Launch, kLaunchCall), s.did(94'000, 95'000, Kind::Other, 55);
              s.did(130'000, 131'000, Kind::Other, 55);
            }),
            92'000)
      << "calls that neither act nor wait are the launch's preparation";
  EXPECT_EQ(between([](Scene& s) {
              s.did(90'000, 93'000, Kind::Launch, kLaunchCall), s.did(99'000, 99'500, Kind::Other, 55);
              s.log.trim(98'000);
            }),
            92'000)
      << "the launch is no longer remembered, its end is";
  EXPECT_EQ(between([](Scene& s) {
              s.did(90'000, 93'000, Kind::Launch, kLaunchCall), s.did(120'000, 130'000, Kind::Copy, kCopyCall);
            }),
            0);
  EXPECT_EQ(between([](Scene& s) {
              s.did(90'000, 93'000, Kind::Launch, kLaunchCall), s.did(120'000, 130'000, Kind::Launch, kLaunchCall);
              s.did(150'000, 160'000, Kind::Allocation, kFreeCall);
            }),
            20'000);
  EXPECT_EQ(
      between([](Scene& s) { s.did(90'000, 93'000, Kind::Launch, kLaunchCall), s.next.kind = OperationKind::Copy; }),
      0);
  EXPECT_EQ(between([](Scene& s) { s.did(90'000, 93'000, Kind::Launch, kLaunchCall), s.held(110'000, 140'000); }),
            62'000)
      << "tracing is no way of the host's";
}

TEST(GapDivision, EachCallHasItsOwnPieces) {
  Scene scene;
  scene.did(100'000, 130'000, Kind::Synchronization, kSyncCall);
  scene.did(130'000, 150'000, Kind::Synchronization, kCopyCall);
  scene.did(150'000, 175'000, Kind::Synchronization, kSyncCall);
  EXPECT_EQ(scene.divide().at(Cause::Synchronization), 75'000);
  EXPECT_EQ(scene.division.call_to_blame(), kSyncCall);
  Nanos by_sync = 0;
  for (const auto& piece : scene.division.pieces()) by_sync += piece.call == kSyncCall ? piece.length : 0;
  EXPECT_EQ(by_sync, 55'000);
}

TEST(GapDivision, PollingIsARunOfQueriesAndWhatLiesBetweenThem) {
  Scene scene;
  for (Nanos at = 101'000; at < 151'000; at += 10'000) scene.did(at, at + 1'000, Kind::Query, kQueryCall);
  EXPECT_EQ(
      scene.divide(),
      (Wanted{
          {Cause::Polling, 41'000}, {Cause::Host, 1'000 + 50'000}, {Cause::Launch, 4'000}, {Cause::Dispatch, 4'000}}));
  EXPECT_EQ(scene.division.call_to_blame(), 0);  // most of it is the host's
  Scene through_the_runtime;                     // each query within a call of the runtime
  for (Nanos at = 101'000; at < 181'000; at += 10'000) {
    through_the_runtime.did(at, at + 1'000, Kind::Query, kQueryCall);
    through_the_runtime.did(at - 500, at + 1'500, Kind::Other, 99);
  }
  EXPECT_EQ(through_the_runtime.divide().at(Cause::Polling), 72'000);
  EXPECT_EQ(through_the_runtime.division.call_to_blame(), kQueryCall);
  Scene other_calls;  // not polling: it launches between them
  for (Nanos at = 101'000; at < 181'000; at += 20'000) {
    other_calls.did(at, at + 1'000, Kind::Query, kQueryCall);
    other_calls.did(at + 5'000, at + 6'000, Kind::Launch, kLaunchCall);
  }
  EXPECT_EQ(other_calls.divide().at(Cause::Polling), 4'000);
}

TEST(GapDivision, QueriesThatAreFarApartAreNotPolling) {
  Scene scene;
  scene.end = 100'000'000, scene.next.begin = 99'990'000, scene.next.end = 99'996'000;
  scene.did(101'000, 102'000, Kind::Query, kQueryCall);
  scene.did(102'000 + HostLog::kPollPause + 1, 102'000 + HostLog::kPollPause + 1'001, Kind::Query, kQueryCall);
  EXPECT_EQ(scene.divide().at(Cause::Polling), 2'000);
}

TEST(GapDivision, ALibraryCallIsWhatItsOwnCallsDoNotTake) {
  Scene scene;
  scene.did(120'000, 124'000, Kind::Launch, kLaunchCall);
  scene.did(119'000, 125'000, Kind::Other, 99);  // the runtime's call around it
  scene.did(130'000, 140'000, Kind::Allocation, kFreeCall);
  scene.did(110'000, 150'000, Kind::Library, kLibraryCall);
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Host, 10'000 + 42'000},
                                    {Cause::Library, 9'000 + 5'000 + 10'000},
                                    {Cause::Launch, 6'000 + 4'000},
                                    {Cause::Allocation, 10'000},
                                    {Cause::Dispatch, 4'000}}));
}

TEST(GapDivision, TheLaunchItself) {
  Scene scene;
  scene.next.begin = 110'000, scene.next.end = 195'000;
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Host, 10'000}, {Cause::Launch, 85'000}, {Cause::Dispatch, 5'000}}));
  EXPECT_EQ(scene.division.call_to_blame(), kLaunchCall);
  scene.depth = LaunchTimes::kFullQueue;
  EXPECT_EQ(scene.divide().at(Cause::QueueFull), 85'000);
  scene.next.kind = OperationKind::Copy, scene.next.end = 900'000;  // a copy that the host waits for
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Host, 10'000}, {Cause::Copy, 90'000}}));
}

TEST(GapDivision, TheCallAroundTheLaunchIsAskedForNothingAfterIt) {
  Scene scene;
  scene.did(190'000, 900'000, Kind::Launch, kCopyCall);
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Host, 90'000}, {Cause::Launch, 6'000}, {Cause::Dispatch, 4'000}}));
}

TEST(GapDivision, AfterTheLaunchTheDeviceWaitsOrDispatches) {
  Scene scene;
  scene.next.begin = 10'000, scene.next.end = 14'000;
  scene.waited.until = 197'000;
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::OtherStream, 97'000}, {Cause::Dispatch, 3'000}}));
  scene.waited.until = 100'000;
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Dispatch, 100'000}}));
  scene.next.begin = 118'000, scene.next.end = 120'000, scene.waited.until = 150'000;
  EXPECT_EQ(
      scene.divide(),
      (Wanted{{Cause::Host, 18'000}, {Cause::Launch, 2'000}, {Cause::OtherStream, 30'000}, {Cause::Dispatch, 50'000}}));
}

TEST(GapDivision, BehindAHostFunctionOrAValueAllButTheUsualDispatchIsTheirs) {
  for (const auto& [behind, cause] :
       {std::pair{Behind::HostFunction, Cause::HostFunction}, std::pair{Behind::MemoryValue, Cause::MemoryValue}}) {
    Scene scene;
    scene.next.begin = 96'000, scene.next.end = 105'000;
    scene.waited = {90'000, behind}, scene.usual = 3'000;
    EXPECT_EQ(scene.divide(), (Wanted{{Cause::Launch, 5'000}, {cause, 92'000}, {Cause::Dispatch, 3'000}}));
    scene.usual = 500'000;
    EXPECT_EQ(scene.divide(), (Wanted{{Cause::Launch, 5'000}, {Cause::Dispatch, 95'000}}));
  }
}

TEST(GapDivision, TracingIsTakenFromThePartInWhichItLies) {
  Scene scene;
  scene.did(150'000, 160'000, Kind::Synchronization, kSyncCall);
  scene.held(90'000, 110'000);   // 10 us of the gap, in no call
  scene.held(155'000, 165'000);  // 5 us of the wait
  scene.held(158'000, 162'000);  // lies in the last one
  scene.held(120'000, 130'000, Cause::Collection, kThread + 1);
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Collection, 20'000},
                                    {Cause::Synchronization, 5'000},
                                    {Cause::Host, 40'000 + 27'000},
                                    {Cause::Launch, 4'000},
                                    {Cause::Dispatch, 4'000}}));
}

TEST(GapDivision, OverheadOfAnUntoldThreadCountsWithinCallsOnly) {
  Scene scene;
  scene.held(110'000, 120'000, Cause::Collection, OverheadLog::kAnyThread);
  scene.held(193'000, 195'000, Cause::Collection, OverheadLog::kAnyThread);
  EXPECT_EQ(scene.divide().at(Cause::Collection), 2'000);
}

TEST(GapDivision, TheDriversOwnOverheadIsWhatItSaysItIs) {
  for (const Cause cause : {Cause::ModuleLoad, Cause::QueueFull}) {
    Scene scene;
    scene.next.begin = 110'000, scene.next.end = 195'000;
    scene.held(112'000, 190'000, cause);
    EXPECT_EQ(scene.divide(),
              (Wanted{{Cause::Host, 10'000}, {cause, 78'000}, {Cause::Launch, 7'000}, {Cause::Dispatch, 5'000}}));
    EXPECT_EQ(scene.division.call_to_blame(), kLaunchCall);
  }
}

TEST(GapDivision, WhatAnotherDeviceHoldsIsThePeers) {
  Scene scene;
  scene.next.begin = 92'000, scene.next.end = 96'000, scene.after.device = 0;
  scene.waited.until = 197'000, scene.waited.device = 1;
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Peer, 97'000}, {Cause::Dispatch, 3'000}}));
  scene.waited.device = 0;
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::OtherStream, 97'000}, {Cause::Dispatch, 3'000}}));
}

TEST(GapDivision, InsideOneReplayOfAGraph) {
  Scene scene;
  scene.next.kind = OperationKind::Graph;
  EXPECT_EQ(scene.divide(&scene.next), (Wanted{{Cause::GraphInternal, 100'000}}));
}

TEST(GapDivision, WhatCannotBeToldIsUnknown) {
  Scene scene;
  scene.joined = false;
  EXPECT_EQ(scene.divide(), (Wanted{{Cause::Unknown, 100'000}}));
  Scene brief;  // 1.5 us between two clocks that are 2 us off: what the host did in it cannot be said
  brief.begin = 198'500, brief.error = 2'000;
  brief.next.begin = 194'500, brief.next.end = 196'501;
  EXPECT_EQ(brief.divide(), (Wanted{{Cause::Unknown, 1'500}}));
  brief.next.end = 196'500;  // but nothing, if it had launched before by more than that
  EXPECT_EQ(brief.divide(), (Wanted{{Cause::Dispatch, 1'500}}));
}

TEST(DispatchTimes, WhatLiesBeyondTenTimesTheUsualIsExact) {
  DispatchTimes times;
  EXPECT_EQ(times.usual(OperationKind::Kernel), 0);
  for (int i = 0; i < 90; ++i) times.add(OperationKind::Kernel, 2'048 + i);
  for (int i = 0; i < 10; ++i) times.add(OperationKind::Kernel, 100'000 + i);
  EXPECT_EQ(times.usual(OperationKind::Kernel), 2'048);
  const Nanos limit = times.limit(OperationKind::Kernel);
  EXPECT_EQ(limit, 20'480);
  EXPECT_EQ(times.beyond(OperationKind::Kernel, limit).count, 10u);
  EXPECT_EQ(times.beyond(OperationKind::Kernel, limit).total_ns, 10u * (100'000 - 20'480) + 45u);
  EXPECT_EQ(times.usual(OperationKind::Copy), 0);
  EXPECT_EQ(times.limit(OperationKind::Copy), 10'240);  // never below 10 us
  times.add(OperationKind::Memset, 10'240);
  EXPECT_EQ(times.beyond(OperationKind::Memset, 10'240).count, 0u);
}

}  // namespace
}  // namespace gputrace
