//! What an exchange was like, from the bytes as they came: times, events, failures, counts.
//!
//! Invariant: nothing is decoded but one usage object, and that after its answer has ended; nothing is allocated for a
//! chunk; what is kept of an answer is the event that is not whole yet and that one object, both bounded.
//! Not here: sockets (`client`), when to send (`run`), statistics over runs (`experiment`).

mod event;
mod events;
mod exchange;
mod expected;
mod live;
mod observations;
mod record;
mod usage;

pub use event::{Finish, Meaning, Output};
pub use events::Events;
pub use exchange::{Answers, ExchangeObserver, ExchangeTimes, ObserveOptions, ObserverBuffers};
pub use live::{Buckets, Counters, Live};
pub use observations::{Measure, Observations, Quantiles, Window};
pub use record::{BATCH, Record, Records};
pub use usage::Usage;
