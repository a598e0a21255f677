//! Changing a run while it goes on: how many users are at work, and its end.
//!
//! Invariant: a wish is an absolute number, so that none is lost between two that come together.
//! Not here: carrying it out (`thread`).

use std::sync::Arc;

use experiment::workload::Load;
use tokio::sync::watch;

use super::plan::Plan;

/// A handle on a run; clones are the same.
#[derive(Debug, Clone)]
pub struct Control {
    wishes: Arc<watch::Sender<Wishes>>,
    /// By profile.
    most: Arc<[u32]>,
}

/// What is wished of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wishes {
    /// By profile.
    pub(super) users: Vec<u32>,
    pub(super) is_over: bool,
}

impl Control {
    pub(super) fn new(plan: &Plan) -> Self {
        let users = |load: &Load| match load {
            Load::Closed { users, .. } => *users,
            Load::Open { .. } => 0,
        };
        let profiles = plan.workload.profiles.iter();
        let most: Arc<[u32]> = profiles.map(|profile| users(&profile.load)).collect();
        let at_first = plan.traffic.iter().zip(&*most);
        let at_first = at_first.map(|(traffic, most)| traffic.users_at_first.unwrap_or(*most));
        let wishes = Wishes {
            users: at_first.collect(),
            is_over: false,
        };
        let (wishes, _) = watch::channel(wishes);
        Self {
            wishes: Arc::new(wishes),
            most,
        }
    }

    pub(super) fn wishes(&self) -> watch::Receiver<Wishes> {
        self.wishes.subscribe()
    }

    /// Lets so many users of a closed profile be at work: those of the lowest numbers. How many it will be: no more than its
    /// workload has, and none where there is no such profile. Those who are under way end their exchange first.
    pub fn set_users(&self, profile: usize, users: u32) -> u32 {
        let users = users.min(self.most.get(profile).copied().unwrap_or(0));
        self.wishes.send_modify(|wishes| {
            if let Some(wish) = wishes.users.get_mut(profile) {
                *wish = users;
            }
        });
        users
    }

    /// Ends the run at once: what is under way is left, and counted as that.
    pub fn stop(&self) {
        self.wishes.send_modify(|wishes| wishes.is_over = true);
    }
}
