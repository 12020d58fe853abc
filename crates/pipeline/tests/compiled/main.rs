//! Differential tests of the compiled form against the plain form: equal packets have equal outcomes and counters.

mod action_sets;
mod carried_queues;
mod carried_sets;
mod deferred;
mod groups;
mod meters;
mod odd_frames;
mod planned_beside;
mod random;
mod rule_sets;
mod support;
mod templates;
mod threads;
