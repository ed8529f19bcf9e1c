"""`python -m bench [calls [--only echo,list]] [store] [content] …`: as tables."""

import argparse

import anyio

from bench import artifacts, content, credentials, rows, store
from bench.racing import ROUNDS

BENCHMARKS = ("calls", "store", "content", "credentials", "artifacts")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("what", nargs="*", default=["calls"], help=", ".join(BENCHMARKS))
    parser.add_argument("--only", help=f"parts of calls: {','.join(rows.PARTS)}")
    parser.add_argument("--without", default="", help="sdk,fastmcp,toolbox,postgresql")
    parser.add_argument("--many", type=int, default=store.MANY, help="documents in store")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"unless given, {ROUNDS}")
    given = parser.parse_args()
    if unknown := set(given.what) - set(BENCHMARKS):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    only = given.only.split(",") if given.only else list(rows.PARTS)
    if unknown := set(only) - set(rows.PARTS):
        parser.error(f"calls has no part {', '.join(sorted(unknown))}")
    without = [one for one in given.without.lower().split(",") if one]
    if "calls" in given.what:
        rows.main(only, without, given.rounds)
    if "store" in given.what:
        store.main(given.rounds, given.many, without)
    if "content" in given.what:
        anyio.run(content.main)
    if "credentials" in given.what:
        anyio.run(credentials.main, credentials.MANY)
    if "artifacts" in given.what:
        artifacts.main()


if __name__ == "__main__":
    main()
