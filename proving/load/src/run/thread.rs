//! One thread of a run: its users and lanes on a runtime of its own.
//!
//! Invariant: the thread's CPU time is taken over exactly the measured interval, which ends early with the last of a number
//! of requests. What is still under way when the time to drain is over is left, and counted.
//! Not here: a user (`user`), a lane (`lanes`), the other threads (`run`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use experiment::certificate::Certifier;
use experiment::workload::{Load, Part, Profile, Stay};
use tokio::runtime::{LocalOptions, LocalRuntime};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout_at;

use super::control::Wishes;
use super::cpu::thread_cpu;
use super::lanes::{self, Lanes};
use super::plan::{Plan, Traffic};
use super::state::{ProfileState, Shared};
use super::timers::Timers;
use super::{LoadError, Outcome, ProfileOutcome, user};
use crate::client::Client;
use crate::observer::{Live, Observations, Records, Window};

/// Rows of exchanges wait no longer than this before they are handed on.
const HAND_ON: Duration = Duration::from_secs(1);

/// Between two looks at whether a thread comes to its turn; less than this again is no stall.
const PULSE: Duration = Duration::from_millis(20);

/// What a thread is given.
pub(super) struct Given {
    pub(super) plan: Arc<Plan>,
    pub(super) part: Part,
    /// By profile.
    pub(super) live: Vec<Arc<Live>>,
    pub(super) wishes: watch::Receiver<Wishes>,
}

/// What a thread has before it knows when to start.
struct Prepared {
    given: Given,
    client: Client,
    timers: Timers,
}

/// Gets ready, says so, waits to be told when to start, and runs to the end.
pub(super) fn run(
    given: Given,
    ready: &SyncSender<Result<(), LoadError>>,
    start: &Receiver<Instant>,
) -> Result<Outcome, LoadError> {
    let prepared = prepare(given);
    let (runtime, prepared) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            // Whoever starts the run is told, and joins nobody.
            drop(ready.send(Err(error)));
            return Err(LoadError::Panicked);
        }
    };
    drop(ready.send(Ok(())));
    // Without a start there is no run: another thread was not ready.
    let start = start.recv().map_err(|_| LoadError::Panicked)?;
    let wishes = prepared.given.wishes.clone();
    let part = prepared.given.part;
    let shared = Rc::new(shared(prepared, start));
    let (measured, cpu) = runtime.block_on(orchestrate(&shared, part, wishes))?;
    let under_way: Vec<u64> = shared
        .places
        .iter()
        .map(|place| place.under_way.get())
        .collect();
    let last = shared.window.end.saturating_duration_since(shared.start);
    let ended = shared.now().min(last);
    // Ends what is under way; it is counted already.
    drop(runtime);
    for (profile, place) in shared.places.iter().enumerate() {
        if let Some(lanes) = &place.lanes {
            lanes.tell(&shared, profile);
        }
    }
    let mut records = shared.records.borrow_mut().take();
    let records_lost = records.as_mut().map_or(0, |records| {
        records.hand_on();
        records.lost()
    });
    let places = shared.places.iter().zip(under_way);
    let mut sends = shared.sends.take();
    if let Some(sends) = &mut sends {
        sends.stalled(shared.stalled.get());
    }
    Ok(Outcome {
        profiles: places.map(|(place, left)| outcome(place, left)).collect(),
        measured,
        client_cpu: cpu,
        records_lost,
        ended,
        is_cut: shared.is_cut.get(),
        sends,
    })
}

fn prepare(given: Given) -> Result<(LocalRuntime, Prepared), LoadError> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default())?;
    let client = Client::new(given.plan.reach.clone())?;
    let timers = {
        let _within = runtime.enter();
        Timers::new()?
    };
    let prepared = Prepared {
        given,
        client,
        timers,
    };
    Ok((runtime, prepared))
}

fn shared(prepared: Prepared, start: Instant) -> Shared {
    let Prepared {
        given,
        client,
        timers,
    } = prepared;
    let plan = given.plan;
    let begin = start + plan.warm_up;
    let window = Window {
        begin,
        end: begin + plan.measure,
    };
    let wanted = given.wishes.borrow().users.clone();
    let profiles = plan.workload.profiles.iter().zip(given.live).zip(wanted);
    let places = profiles.map(|((profile, live), wanted)| place(profile, live, wanted));
    Shared {
        places: places.collect(),
        left: Cell::new(plan.most.map_or(u64::MAX, |most| share(most, given.part))),
        records: RefCell::new(plan.records.clone().map(Records::new)),
        sends: RefCell::new(
            plan.certify
                .then(|| Certifier::new(&plan.workload, given.part)),
        ),
        changed: Notify::new(),
        exhausted: Notify::new(),
        is_cut: Cell::new(false),
        owed: Cell::new(0),
        stalled: Cell::new(Duration::ZERO),
        plan: Arc::clone(&plan),
        client,
        timers,
        start,
        window,
    }
}

fn place(profile: &Profile, live: Arc<Live>, wanted: u32) -> ProfileState {
    let is_open = matches!(profile.load, Load::Open { .. });
    let leaves = matches!(
        profile.load,
        Load::Closed {
            stay: Stay::Sessions(_),
            ..
        }
    );
    ProfileState {
        seen: RefCell::new(Observations::default()),
        live,
        tally: Cell::default(),
        wanted: Cell::new(wanted),
        under_way: Cell::new(0),
        holds: leaves,
        lanes: is_open.then(Lanes::default),
    }
}

/// What of `all` falls to one part.
const fn share(all: u64, part: Part) -> u64 {
    all / part.of + if part.index < all % part.of { 1 } else { 0 }
}

fn outcome(place: &ProfileState, left: u64) -> ProfileOutcome {
    let mut observations = place.seen.borrow().clone();
    observations.left = left;
    observations.unsent = place.lanes.as_ref().map_or(0, Lanes::unsent);
    ProfileOutcome {
        observations,
        sessions: place.tally.get(),
    }
}

/// The length of the measurement, and the CPU time in it.
async fn orchestrate(
    shared: &Rc<Shared>,
    part: Part,
    wishes: watch::Receiver<Wishes>,
) -> Result<(Duration, Duration), LoadError> {
    let (done, mut users) = (Notify::new(), JoinSet::new());
    for (profile, traffic) in shared.plan.traffic.iter().enumerate() {
        begin(shared, part, (profile, traffic), &mut users);
    }
    let goes_once = |profile: &Profile| {
        let Load::Closed { stay, .. } = profile.load else {
            return false;
        };
        stay == Stay::Once
    };
    let is_once = shared.plan.workload.profiles.iter().all(goes_once);
    let all = async {
        tokio::select! {
            ended = last_of(&mut users) => {
                if ended.is_err() {
                    return Err(LoadError::Panicked);
                }
                if is_once || shared.left.get() == 0 {
                    done.notify_one();
                }
            }
            // Who still pauses would not be let send.
            () = shared.exhausted.notified() => done.notify_one(),
        }
        Ok(())
    };
    let patience = shared.window.end + shared.plan.drain;
    let cut = Notify::new();
    let to_the_end = async {
        let (measured, ended) = tokio::join!(measure(shared, &done, &cut), async {
            let ended = tokio::select! {
                ended = timeout_at(patience.into(), all) => ended.unwrap_or(Ok(())),
                () = obey(shared, wishes) => {
                    shared.is_cut.set(true);
                    Ok(())
                }
            };
            if shared.is_cut.get() || ended.is_err() {
                cut.notify_one();
            }
            ended
        });
        ended.map(|()| measured)
    };
    tokio::select! {
        error = shared.timers.run() => {
            error?;
            Err(LoadError::Panicked)
        }
        () = hand_on(shared) => Err(LoadError::Panicked),
        () = feel_the_pulse(shared) => Err(LoadError::Panicked),
        measured = to_the_end => measured,
    }
}

/// Lets the users or lanes of one profile begin.
fn begin(
    shared: &Rc<Shared>,
    part: Part,
    (profile, traffic): (usize, &Traffic),
    users: &mut JoinSet<()>,
) {
    let workload = &shared.plan.workload;
    for user in workload.users(profile, part) {
        users.spawn_local(user::live(Rc::clone(shared), profile, user));
    }
    let Some(arrivals) = workload.arrivals(profile, part) else {
        return;
    };
    users.spawn_local(lanes::release(Rc::clone(shared), profile, arrivals));
    let all = traffic.connections.max(1);
    let own = share(all as u64, part).max(1);
    for lane in 0..usize::try_from(own).unwrap_or(all) {
        let place = lane as f64 * part.of as f64 / all as f64;
        let opens = workload.ramp.mul_f64(place.min(1.0));
        users.spawn_local(lanes::live(Rc::clone(shared), profile, lane, opens));
    }
}

/// Carries out wishes, until the run is to be over.
async fn obey(shared: &Shared, mut wishes: watch::Receiver<Wishes>) {
    loop {
        let now = wishes.borrow_and_update().clone();
        if now.is_over {
            return;
        }
        for (place, wanted) in shared.places.iter().zip(now.users) {
            place.wanted.set(wanted);
        }
        shared.changed.notify_waiters();
        if wishes.changed().await.is_err() {
            // Nobody is left who could wish anything.
            return std::future::pending().await;
        }
    }
}

/// Waits for all of them; an error if one panicked.
async fn last_of(users: &mut JoinSet<()>) -> Result<(), LoadError> {
    while let Some(ended) = users.join_next().await {
        ended.map_err(|_| LoadError::Panicked)?;
    }
    Ok(())
}

/// Notes how long this thread did not come to its turn: what is read and sent late in that time looks like the subject's
/// doing.
async fn feel_the_pulse(shared: &Shared) {
    loop {
        let due = Instant::now() + PULSE;
        shared.timers.until(due).await;
        let late = due.elapsed();
        if late > PULSE {
            shared.stalled.set(shared.stalled.get() + late);
        }
    }
}

async fn hand_on(shared: &Shared) {
    loop {
        tokio::time::sleep(HAND_ON).await;
        if let Some(records) = &mut *shared.records.borrow_mut() {
            records.hand_on();
        }
    }
}

/// Takes the thread's CPU time over the measured interval.
async fn measure(shared: &Shared, done: &Notify, cut: &Notify) -> (Duration, Duration) {
    tokio::select! {
        () = shared.timers.until(shared.window.begin) => {}
        () = cut.notified() => return (Duration::ZERO, Duration::ZERO),
    }
    let (cpu, began) = (thread_cpu(), Instant::now());
    tokio::select! {
        () = shared.timers.until(shared.window.end) => {}
        () = done.notified() => {}
        () = cut.notified() => {}
    }
    (began.elapsed(), thread_cpu().saturating_sub(cpu))
}
