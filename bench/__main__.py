"""`python -m bench [mcp] [content] [credentials]`: benchmarks, as tables."""

import sys

import anyio

from bench import content, credentials, mcp_calls


def main(wanted: list[str]) -> None:
    if "mcp" in wanted:
        _calls()
    if "content" in wanted:
        anyio.run(content.main)
    if "credentials" in wanted:
        anyio.run(credentials.main, credentials.MANY)


def _calls() -> None:
    print("CPU of one request, everything checked and audited, beside the bare SDK\n")
    print(f"{'':24}{'toolgate µs':>12}{'bare SDK µs':>13}{'ratio':>8}")
    for what, ours, theirs in anyio.run(mcp_calls.measure):
        print(f"{what:24}{ours:>12.0f}{theirs:>13.0f}{ours / theirs:>8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["mcp"])
