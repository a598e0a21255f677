//! Times that things may take: those of a backend, and which of them contradict each other.
//!
//! Not here: how long a call may take in all, which nothing bounds (an answer may be a long stream).

use policy::snapshot::{Bounds, Timeouts};

use super::set;
use crate::schema::{self, Backend};

impl super::Lowering<'_> {
    pub(super) fn timeouts(&mut self, written: &Backend) -> Timeouts {
        let mut timeouts = Timeouts::default();
        let Some(written) = written.timeouts.get() else {
            return timeouts;
        };
        set(&written.connect, &mut timeouts.connect, |of| of.0);
        set(&written.first_byte, &mut timeouts.first_byte, |of| of.0);
        set(&written.idle, &mut timeouts.idle, |of| of.0);
        if let Some(at) = written.connect.get()
            && timeouts.connect > timeouts.first_byte
        {
            let says = format!(
                "{} is longer than `first_byte`: an address that nobody answers at is waited for longer than an answer",
                at.shown
            );
            let hint = "write a shorter one: another address is tried only then";
            self.warn(&at.place, says, hint);
        }
        timeouts
    }

    /// Notes times of a request's body of which one is never reached.
    pub(super) fn check_times(&mut self, written: &schema::Bounds, bounds: &Bounds) {
        let ends = bounds.body_time;
        if let Some(at) = written.body_idle.get()
            && bounds.body_idle > ends
        {
            let says = format!(
                "{} is longer than `body_time`, {ends:?}, which ends a body before it",
                at.shown
            );
            self.warn(
                &at.place,
                says,
                "write a shorter one, or a longer `body_time`",
            );
        } else if let Some(at) = written.body_time.get()
            && bounds.body_idle > ends
        {
            let says = format!(
                "{} is shorter than `body_idle`, {:?}, which is never reached",
                at.shown, bounds.body_idle
            );
            self.warn(
                &at.place,
                says,
                "write a longer one, or a shorter `body_idle`",
            );
        }
    }
}
