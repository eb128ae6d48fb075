"""langshift-lab: what the papers need and a running search does not; langshift finds it by entry points."""
