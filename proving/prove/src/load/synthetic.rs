//! `prove synthetic-worker`: a worker of a Locust master whose users ask nobody.
//!
//! Each user makes an observation in every interval, by a formula; what was made is printed as a line of JSON when a
//! run stops and when the worker ends, so that the master's own statistics can be held against it.
//! Invariant: what is printed is counted apart from what is reported.
//! Not here: load, figures about anything.

use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use serde_json::{Value, json};

use super::locust::{Event, JoinError, LocustStats, Of, Options, Pace, Part, Seen, Users, Worker};

/// Most observations that are made up at once when the worker was held up.
const MOST_BEHIND: u32 = 100;

/// Joins a Locust master with users that ask nobody.
#[derive(Debug, Args)]
pub(crate) struct SyntheticWorker {
    /// HOST:PORT of the master.
    #[arg(long, default_value = "127.0.0.1:5557")]
    master: String,
    /// How the worker is called.
    #[arg(long, default_value = "synthetic")]
    name: String,
    /// The classes of users, as the master's locustfile declares them.
    #[arg(long, value_delimiter = ',', required = true)]
    classes: Vec<String>,
    /// Between two observations of a user.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    interval_ms: u64,
    /// Seconds without a word from the master after which it is lost.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    silence_seconds: u64,
}

/// Works until the master quits or is lost; whether it was the former.
pub(crate) fn work(options: &SyntheticWorker) -> Result<bool, JoinError> {
    let pace = Pace {
        silence: Duration::from_secs(options.silence_seconds),
        ..Pace::default()
    };
    let worker = Worker::join(Options {
        master: options.master.clone(),
        name: options.name.clone(),
        classes: options.classes.clone(),
        pace,
    })?;
    let interval = Duration::from_millis(options.interval_ms);
    let mut run = Run::new();
    let mut due = Instant::now() + interval;
    let mut quit = false;
    while !quit && !worker.is_over() {
        let patience = due.saturating_duration_since(Instant::now());
        if let Some(event) = worker.next(patience) {
            quit = matches!(event, Event::Quit);
            run.heed(event, &worker);
        }
        for _ in 0..MOST_BEHIND {
            if Instant::now() < due {
                break;
            }
            due += interval;
            run.observe(SystemTime::now());
        }
        worker.add(&mut run.unreported);
    }
    // Why it was lost, if it was.
    while let Some(event) = worker.next(Duration::ZERO) {
        run.heed(event, &worker);
    }
    run.users.clear();
    let delivered = worker.leave();
    let told = json!({
        "confirmed": delivered.confirmed,
        "taken_for_read": delivered.taken_for_read,
        "doubtful": delivered.doubtful,
        "dropped": delivered.dropped,
    });
    println!(
        "{}",
        json!({ "event": "end", "seen": run.told(), "delivered": told })
    );
    Ok(quit)
}

struct Run {
    users: Users,
    /// Of this run.
    seen: LocustStats,
    unreported: LocustStats,
    count: u64,
}

impl Run {
    fn new() -> Self {
        let now = SystemTime::now();
        Self {
            users: Users::new(),
            seen: LocustStats::new(now),
            unreported: LocustStats::new(now),
            count: 0,
        }
    }

    fn heed(&mut self, event: Event, worker: &Worker) {
        match event {
            Event::Joined { index } => println!("{}", json!({ "event": "joined", "index": index })),
            Event::Spawn {
                users,
                host,
                at,
                new_run,
            } => {
                if new_run {
                    let now = SystemTime::now();
                    (self.seen, self.unreported) = (LocustStats::new(now), LocustStats::new(now));
                }
                let late = SystemTime::now().duration_since(at).unwrap_or_default();
                let late_ms = u64::try_from(late.as_millis()).unwrap_or(u64::MAX);
                let line = json!({ "event": "spawn", "users": users, "host": host, "new_run": new_run, "late_ms": late_ms });
                println!("{line}");
                self.users.clone_from(&users);
                worker.users_are(users);
            }
            Event::Ramped { users } => println!("{}", json!({ "event": "ramped", "users": users })),
            Event::Stop { within } => {
                self.users.clear();
                worker.add(&mut self.unreported);
                worker.stopped();
                let line =
                    json!({ "event": "stop", "within_s": within.as_secs(), "seen": self.told() });
                println!("{line}");
            }
            Event::Quit => println!("{}", json!({ "event": "quit" })),
            Event::Lost { why } => println!("{}", json!({ "event": "lost", "why": why })),
            Event::Warning(says) => eprintln!("warning: {says}"),
        }
    }

    /// One observation of each user.
    fn observe(&mut self, now: SystemTime) {
        for (class, users) in &self.users {
            let name = format!("/synthetic/{class}");
            let of = Of {
                method: "POST",
                name: &name,
            };
            for _ in 0..*users {
                self.count += 1;
                for tally in [&mut self.seen, &mut self.unreported] {
                    observation(self.count, of, now, tally);
                }
            }
        }
    }

    fn told(&self) -> Value {
        let entries = self.seen.entries().map(|(name, method, counts)| {
            let told = json!({
                "name": name,
                "method": method,
                "requests": counts.requests,
                "failures": counts.failures,
                "untimed": counts.untimed,
                "bytes": counts.bytes,
                "sum_us": counts.sum_us,
                "min_us": counts.min_us,
                "max_us": counts.max_us,
            });
            told
        });
        let errors = self
            .seen
            .errors()
            .map(|(of, error)| json!({ "name": of.name, "error": of.error, "count": error.count }));
        json!({
            "requests": self.seen.total().requests,
            "entries": entries.collect::<Vec<_>>(),
            "errors": errors.collect::<Vec<_>>(),
        })
    }
}

/// The `count`-th observation: every tenth fails, and some of these have no time.
fn observation(count: u64, of: Of<'_>, at: SystemTime, tally: &mut LocustStats) {
    let time = Duration::from_micros(1 + count * 7919 % 997_000);
    let failure = format!("synthetic failure {}", count % 3);
    let failed = count.is_multiple_of(10);
    let seen = Seen {
        at,
        time: (!count.is_multiple_of(30)).then_some(time),
        bytes: count % 4096,
        error: failed.then_some(failure.as_str()),
    };
    tally.request(of, &seen);
    if !failed {
        tally.part(of, Part::Ttft, at, time / 4, 1);
        tally.part(of, Part::Tpot, at, time / 40, 30);
        tally.part(of, Part::E2e, at, time, 1);
    }
}
