//! Whole runs in virtual time: recordings that are fitted and played again, soaks, crowds and campaigns.
//!
//! They take their time: of all that, only what needs nothing of the inside stands here, where the simulator is linked
//! as its users have it, optimised.
//! Not here: the parts (`src/*/tests.rs`).

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod campaign;
mod crowd;
mod fit;
mod replay;
mod soak;

use std::time::Duration;

use simulator::crowd::{Answers, Length, Talk};
use simulator::preset::Preset;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn preset() -> Preset {
    Preset::named("gpt-oss-120b.h100x4").expect("it comes with the program")
}

/// Four short questions, so that minutes take no time.
fn talk() -> Talk {
    Talk {
        shared_tokens: 160,
        first_tokens: Length::fixed(1000.0),
        turn_tokens: Length::fixed(300.0),
        output_tokens: Length::fixed(50.0),
        turns: Length::fixed(4.0),
        context_tokens: None,
        conversations: None,
        answers: Answers::Own,
    }
}
