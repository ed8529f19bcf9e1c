"""`python -m bench`: every benchmark, as one table of ratios."""

import anyio

from bench import mcp_calls


def main() -> None:
    print("CPU of one request, everything checked and audited, beside the bare SDK\n")
    print(f"{'':24}{'toolgate µs':>12}{'bare SDK µs':>13}{'ratio':>8}")
    for what, ours, theirs in anyio.run(mcp_calls.measure):
        print(f"{what:24}{ours:>12.0f}{theirs:>13.0f}{ours / theirs:>8.2f}")


if __name__ == "__main__":
    main()
