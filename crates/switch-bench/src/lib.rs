//! A benchmark of Urtica's switch: how fast it forwards packets from memory, on one core and without a network.
//!
//! **Why a separate crate.** Programs and tests run measurements, too, and each measurement has a typed result.
//!
//! - [`measure_rates`] forwards the packets of a [`Case`] by each [`Form`] of a [`Plan`], and returns a [`Rate`] for each.
//! - [`measure_load`] times the loading of entries into a switch, and returns a [`Load`].
//!
//! ```text
//! point        one case, forwarded by each form alternately; sample: whether the right frames leave
//! ├ measure    the measured loop; measured_core: who runs where
//! ├ forwarder  the forms: the whole switch, and parts of it
//! ├ updates    changes of routes while packets are forwarded
//! └ case       entries and packets; replay: packets from memory; workload: pipelines, ClassBench's rule sets, packets
//! load         loading of entries over OpenFlow
//! record       results, as rows of a table and as JSON
//! ```
//!
//! **Features.** `args` (off by default): [`Form`], [`Loading`] and [`Trace`] as values of options, by `clap`.
//!
//! ```no_run
//! use urtica_switch_bench::{Case, MeasuredCore, Plan, Trace, Workload, measure_rates};
//!
//! # fn main() -> Result<(), urtica_switch_bench::Error> {
//! let plan = Plan::new(MeasuredCore::take(1)?);
//! for rate in measure_rates(&plan, &Case::of(Workload::L3, 1000, Trace::Uniform)?)? {
//!     println!("{}: {:.2} Mpps", rate.form, rate.figures.mpps);
//! }
//! # Ok(())
//! # }
//! ```

mod case;
mod error;
mod forwarder;
mod load;
mod measure;
mod measured_core;
mod point;
mod record;
mod replay;
mod sample;
mod updates;
mod workload;

pub use case::Case;
pub use error::{CaptureError, Error};
pub use forwarder::{Form, Loading};
pub use load::{MAX_ENTRIES, measure_load};
pub use measured_core::{MeasuredCore, has_cycle_counter};
pub use point::{Plan, measure_rates};
pub use record::{
    BurstCycles, Cycles, Effects, Figures, Load, Rate, Record, Setting, UpdateFigures,
};
pub use workload::{
    ClassBench, Extras, MAX_FLOWS, ParseWorkloadError, Trace, Workload, write_flows, write_pcap,
};
