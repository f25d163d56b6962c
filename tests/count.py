#!/usr/bin/env python3
"""count.py TESTLOG.json...: counts single tests over the runs that Meson logged.

Says which were skipped and which failed and how, then "N passed, N failed[, N skipped]" alone on
a line. A test that ran in several builds counts once: failed if it failed in any, passed if it
passed in one. A program that ended badly without a failed test of its own counts as one failure,
and so does a log that isn't there, as when a build failed.
Exit status: 0 only if something passed and nothing failed.
"""
import json
import os
import re
import sys

RANK = {"skipped": 0, "passed": 1, "failed": 2}
DETAIL_LINES_MAX = 40
TAP = re.compile(r"^(not )?ok\b(?: +\d+)?(?: +-)? *(.*?)(?: +# *SKIP\b *(.*))?$", re.IGNORECASE)


def tests_of_tap(program, lines):
    """The single tests of one program's TAP, as [name, verdict, detail]."""
    tests = []
    for line in lines:
        match = TAP.match(line)
        if match:
            negative, name, skip = match.groups()
            name = f"{program}: " + re.sub(r"\s*\([\d.]+s\)$", "", name).strip()
            verdict = "failed" if negative else "passed" if skip is None else "skipped"
            tests.append([name, verdict, skip or ""])
        elif tests and tests[-1][1] == "failed":
            tests[-1][2] += line.rstrip() + "\n"
    return tests


def tests_of(run):
    """The single tests of one entry of the log. Without TAP, a program is a test."""
    program = run["name"].split(":")[-1]  # with its suite: names are told apart by that
    lines = (run.get("stdout") or "").splitlines()
    ended = run["result"]
    if any(re.match(r"1\.\.\d+", line) for line in lines):
        tests = tests_of_tap(program, lines)
    elif ended == "SKIP":
        return [[program, "skipped", lines[-1] if lines else ""]]
    elif ended == "OK":
        return [[program, "passed", ""]]
    else:
        tests = []
    if ended not in ("OK", "SKIP"):
        said = [] if tests else lines[-DETAIL_LINES_MAX:]
        said += (run.get("stderr") or "").splitlines()[-DETAIL_LINES_MAX:]
        said = "\n".join(said)
        failed = [test for test in tests if test[1] == "failed"]
        if failed:
            failed[-1][2] += said
        else:
            tests.append([program + ": the program as a whole", "failed", f"{ended}\n{said}"])
    return tests


def read_log(path):
    if not os.path.exists(path):
        return [[os.path.dirname(os.path.dirname(path)), "failed", "not built or not run"]]
    with open(path, encoding="utf-8") as log:
        return [test for line in log for test in tests_of(json.loads(line))]


def main(paths):
    worst = {}
    for path in paths:
        for name, verdict, detail in read_log(path):
            if name not in worst or RANK[verdict] > RANK[worst[name][0]]:
                worst[name] = (verdict, detail)
    for name, (verdict, detail) in worst.items():
        if verdict == "skipped":
            print("SKIPPED", name, f"({detail})" if detail else "")
    for name, (verdict, detail) in worst.items():
        if verdict == "failed":
            print("FAILED", name)
            print("".join(f"    {line}\n" for line in detail.splitlines()), end="")
    count = [verdict for verdict, _ in worst.values()].count
    skipped = f", {count('skipped')} skipped" if count("skipped") else ""
    print(f"{count('passed')} passed, {count('failed')} failed{skipped}")
    return 0 if count("passed") and not count("failed") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
