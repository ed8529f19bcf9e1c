"""`python -m bench [calls [--only echo,list]] [store] [content] …`: as tables."""

import argparse
from collections.abc import Callable

import anyio

from bench import artifacts, content, credentials, mail, profiles, rows, store
from bench.racing import ROUNDS

BENCHMARKS = ("calls", "store", "content", "credentials", "artifacts", "mail", "profile")


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
    run: dict[str, Callable[[], None]] = {
        "calls": lambda: rows.main(only, without, given.rounds),
        "store": lambda: store.main(given.rounds, given.many, without),
        "content": lambda: anyio.run(content.main),
        "credentials": lambda: anyio.run(credentials.main, credentials.MANY),
        "artifacts": artifacts.main,
        "mail": lambda: mail.main(without),
        "profile": lambda: profiles.main(without),
    }
    for name in BENCHMARKS:
        if name in given.what:
            run[name]()


if __name__ == "__main__":
    main()
