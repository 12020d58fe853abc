//! A switch that never reads.
