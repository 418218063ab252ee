//! The turns of a long run, faults included, from a seed.
