//! One user of a closed loop: it asks, waits for the whole answer, thinks, and asks again.
//!
//! Not here: what it asks and when (`experiment::workload`), an exchange (`state`).

use std::rc::Rc;
use std::time::Instant;

use experiment::workload::{SessionCounts, User};

use super::state::Shared;

pub(super) async fn live(shared: Rc<Shared>, profile: usize, mut user: User) {
    let (number, place) = (user.number(), &shared.places[profile]);
    let mut from = user.comes_in();
    let mut told = SessionCounts::default();
    shared.timers.until(shared.start + from).await;
    let mut sender = shared.sender(profile, number);
    if !stays(&shared, profile, number, &mut from).await {
        return;
    }
    place.live.came();
    while let Some(mut turn) = user.next(from, &shared.sessions(profile)) {
        let mut drawn = shared.drawn(profile, number, turn.due);
        let mut due = shared.start + turn.due.at;
        if turn.due.at > from && due < shared.window.end {
            shared.timers.until(due).await;
        }
        if !place.wants(number) {
            place.live.left();
            drawn.withdraw();
            if !stays(&shared, profile, number, &mut turn.due.at).await {
                return;
            }
            place.live.came();
            due = shared.start + turn.due.at;
            // It asks when it is back, which is no gap of its law.
            turn.due.drawn = false;
            drawn = shared.drawn(profile, number, turn.due);
        }
        if !shared.may_send(profile, due) {
            break;
        }
        // A session whose first turn is never sent was not begun.
        place.tell(&mut told, user.tally());
        let (is_good, ended) = shared.ask(&mut sender, drawn, (number, &turn)).await;
        if !is_good {
            user.abandon();
            place.tell(&mut told, user.tally());
        }
        from = ended;
    }
    place.live.left();
}

/// Waits until the user is wished for, and says then when that was; false where that was not to be.
async fn stays(shared: &Shared, profile: usize, number: u64, at: &mut std::time::Duration) -> bool {
    let place = &shared.places[profile];
    while !place.wants(number) {
        tokio::select! {
            () = shared.changed.notified() => {}
            () = shared.timers.until(shared.window.end) => return false,
        }
        *at = Instant::now().saturating_duration_since(shared.start);
    }
    true
}
