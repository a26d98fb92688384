"""Each finding has a program that triggers it and one that is like it and must not: the table below names both for every finding that
analysis/findings declares, and the test of that name speaks of it."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, check, finish  # noqa: E402

# Pairs of one folder: programs with a cause, and programs that only look as if they had one.
PLANTED = ('Gains.AreWhatTheProgramWithoutTheCauseTakesLess', 'Gains.NothingIsPromisedForWhatCostsNothing')
TESTS = {  # finding: what triggers it, its look-alike (a name without a dot: a test of tests/e2e)
    'damaged-file': ('Findings.ADamagedFileIsAProblem', 'Findings.ATraceWithoutAnEndIsSaidAndIsNotCalledDamaged'),
    'unfinished-file': ('Findings.ATraceWithoutAnEndIsSaidAndIsNotCalledDamaged', 'Findings.AllSeenIsNothingDropped'),
    'unread-file': ('FindingRules.AFileThatCouldNotBeReadIsSaid', 'FindingRules.AFileThatCouldNotBeReadIsSaid'),
    'dropped-records': ('Findings.DroppedRecordsComeWithABufferThatFits', 'Findings.AllSeenIsNothingDropped'),
    'call-in-flight': ('Findings.TheCallThatItDiedInIsNamedTheInnermostOne', 'Findings.ACallOfAProcessThatStillRunsIsNoDeathInIt'),
    'first-failure': ('Findings.TheOneThatFailedFirst', 'Findings.TheOneThatFailedFirst'),
    'no-cuda-call': ('Findings.NoCudaCall', 'FindingRules.NoCudaCallIsSaidOnlyWhereCallsWereCollected'),
    'nothing-launched': ('Findings.CallsThatGiveNoDeviceAnything', 'Findings.CallsThatGiveNoDeviceAnything'),
    'call-errors': ('Findings.ErrorsAreSaidOnceAtDriverLevel', 'Findings.AnAnswerIsNoError'),
    'environment-variables': ('Findings.VariablesThatSlowItDown', 'Findings.VariablesThatSlowItDown'),
    'out-of-memory': ('test_refused', 'test_refused'),
    'synchronous-copies': PLANTED,
    'allocation-in-loop': PLANTED,
    'memory-growth': ('MemoryFindings.MemoryThatGrowsWithoutEnd', 'MemoryFindings.MemoryThatGrowsWithoutEnd'),
    'foreign-device': ('MemoryFindings.MemoryOfADeviceOnWhichAnotherComputes', 'MemoryFindings.MemoryOfADeviceOnWhichAnotherComputes'),
    'pageable-async-copies': PLANTED,
    'recompilation': ('Samples.ALoopThatCompilesAgainAndAgain', 'Samples.WhatCompilesOnceOrRunsCompiledCodeIsLeftAlone'),
    'launch-bound': PLANTED,
    'short-kernels': ('LaunchFindings.LaunchBoundAndShortKernels', PLANTED[1]),
    'anomaly-detection': ('FrameworkFindings.AnomalyDetectionThatWasLeftOn', 'FrameworkFindings.AnomalyDetectionThatWasLeftOn'),
    'needless-synchronization': PLANTED,
    'result-waits': PLANTED,
    'polling': PLANTED,
    'synchronous-memsets': PLANTED,
    'exposed-copies': PLANTED,
    'host-functions': PLANTED,
    'code-loading': PLANTED,
    'busy-processors': ('DeviceFindings.AHostThatWaitsForAProcessor', 'DeviceFindings.AHostThatWaitsForAProcessor'),
    'idle-gaps': PLANTED,
    'input-bound': ('Findings.InputBound', 'Findings.InputBound'),
    'graph-candidates': PLANTED,
    'fp32-matmul': ('TensorCoreFindingTest.Fp32ProductsWhereTf32IsOff', 'TensorCoreFindingTest.ANameThatTheCodeContradictsGetsNoAdvice'),
    'no-tensor-cores': ('TensorCoreFindingTest.HalfPrecisionWithoutMatrixInstructions', 'TensorCoreFindingTest.Fp32ProductsWhereTf32IsOff'),
    'matmul-dimensions': ('TensorCoreFindingTest.DimensionsThatAreNoMultiples', 'TensorCoreFindingTest.DimensionsThatAreNoMultiples'),
    'layout-conversions': PLANTED,
    'wave-quantization': PLANTED,
    'tile-quantization': ('TensorCoreFindingTest.TilesOverTheEdge', 'TensorCoreFindingTest.TilesOverTheEdge'),
    'collective-wait': ('test_ranks_are_matched', 'test_ranks_are_matched'),
    'needless-reductions': ('Ranks.GradientsThatAreAddedUpForNothing', 'Ranks.GradientsThatAreAddedUpForNothing'),
    'straggler': ('Ranks.AFindingNamesIt', 'Ranks.AFindingNamesIt'),
    'slow-collection-start': ('Findings.SlowCollectionStart', 'Findings.SlowCollectionStart'),
    'option': ('Findings.AnOptionThatWasNotUnderstood', 'Findings.AnOptionThatWasNotUnderstood'),
}
ABSENT = re.compile(r'nullptr|EXPECT_FALSE|int\(slow\)|check\(not |not in ')  # how a test says that there is none


def declared():
    ids = set()
    for path in sorted(glob.glob(os.path.join(SOURCE, 'analysis', 'findings', '**', '*.cpp'), recursive=True)):
        with open(path, encoding='utf-8') as file:
            for part in re.findall(r'\.findings =\s*\{(.*?)\},\n    \.', file.read(), re.S):
                ids |= set(re.findall(r'\{"([a-z0-9-]+)",', part))
    return ids


def bodies():
    """What stands in each test, with the table that it walks through."""
    found = {}
    for folder, _, names in os.walk(os.path.join(SOURCE, 'tests')):
        for name in names:
            if not name.endswith('_test.cpp') and not (name.startswith('test_') and name.endswith('.py')):
                continue
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                text = file.read()
            tables = {table: text[at:text.index('\n};', at)] for table, at in ((m[1], m.start()) for m in re.finditer(r'const Pair (k\w+)\[\] = \{', text))}
            for test in re.finditer(r'^TEST\((\w+), (\w+)\) \{\n(.*?)^\}', text, re.M | re.S):
                found[f'{test[1]}.{test[2]}'] = test[3] + ''.join(body for table, body in tables.items() if table in test[3])
            for test in re.finditer(r'^def (test_\w+)\(.*?\):\n(.*?)(?=^\S|\Z)', text, re.M | re.S):
                found[test[1]] = test[2]
    return found


def main():
    ids, tests = declared(), bodies()
    check('there are findings', len(ids) > 25, ids)
    check('the table names every finding', not ids - set(TESTS), sorted(ids - set(TESTS)))
    check('the table names no finding that there is not', not set(TESTS) - ids, sorted(set(TESTS) - ids))
    for finding, (trigger, alike) in TESTS.items():
        for what, name in (('trigger', trigger), ('look-alike', alike)):
            check(f'{finding}: {what} {name} speaks of it', re.search(f'["\']{finding}["\']', tests.get(name, '')), name in tests)
        check(f'{finding}: {alike} expects that it is not there', ABSENT.search(tests.get(alike, '')))
    finish()


main()
