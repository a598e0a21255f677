//! The CPU time of the calling thread, to the nanosecond where the kernel keeps it.
//!
//! Not here: the CPU time of other processes (`prove`).

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time the calling thread has used, user and system.
#[must_use]
pub fn thread_cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        spent.tv_sec.unsigned_abs(),
        u32::try_from(spent.tv_nsec).unwrap_or(0),
    )
}
