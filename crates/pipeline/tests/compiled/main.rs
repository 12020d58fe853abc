//! The compiled form against the plain one: the same packets, the same outcome, the same counters.

mod action_sets;
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
