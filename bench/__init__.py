"""Side-by-side benchmarks; `make bench` prints them as ratios of one run."""
