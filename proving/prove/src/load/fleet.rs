//! A worker of a Locust master: each of the master's runs is a run of ours, with the users that the master asks for.
//!
//! Invariant: all that a run saw is told to the master before the master hears that the run has stopped. Workers of one
//! fleet draw from seeds of their own, so that they do not send the same at the same moment.
//! Not here: the protocol (`locust`), a run (`rig`).

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use experiment::random::Rng;
use load::observer::{Counters, Record};

use super::live::Live;
use super::locust::{self, Event, LocustStats, Of, Pace, Part, Seen, Worker};
use super::rig::{ActiveRun, Rig, RunOverrides};
use super::traffic::CorpusProfile;
use super::{Ended, LOOK, Options, ReplayError, tell};
use crate::interrupt::Interrupt;
use crate::text::printable;

/// After which a master that does not answer is told of.
const SILENCE: Duration = Duration::from_secs(5);
/// How long answers under way may take after a stop, whatever the master says.
const MOST_WITHIN: Duration = Duration::from_secs(600);

/// As entries of the master's statistics have it.
const METHOD: &str = "POST";

/// Works until the master quits; the worst of its runs.
pub(super) fn work(options: &Options, rig: &Rig, master: &str) -> Result<Ended, ReplayError> {
    if !rig.is_closed() {
        let says =
            "a Locust master steers users: the file of traffic must give no profile arrivals";
        return Err(ReplayError::Usage(says.into()));
    }
    let classes = classes(&rig.names())?;
    let interrupt = Interrupt::heed()?;
    let worker = Worker::join(locust::Options {
        master: master.to_owned(),
        name: options.locust_name.clone(),
        classes: classes.clone(),
        pace: Pace::default(),
    })?;
    let mut fleet = Fleet {
        options,
        rig,
        interrupt,
        worker,
        classes,
        index: std::process::id(),
        runs: 0,
        current: None,
        ended: Ended::Good,
    };
    eprintln!("joining the Locust master at {master}");
    let lost = fleet.follow()?;
    fleet.end(Duration::ZERO)?;
    let delivered = fleet.worker.leave();
    let (doubtful, dropped) = (delivered.doubtful, delivered.dropped);
    if doubtful + dropped > 0 {
        let has = delivered.confirmed + delivered.taken_for_read;
        eprintln!(
            "of what was counted the master has {has} requests, may lack {doubtful}, and lacks {dropped}"
        );
    }
    match lost {
        Some(why) => Err(ReplayError::Lost(why)),
        None => Ok(fleet.ended),
    }
}

/// The locustfile of a master whose workers replay these.
pub(super) fn locustfile(has: &[CorpusProfile]) -> Result<String, ReplayError> {
    let has: Vec<&CorpusProfile> = has.iter().filter(|profile| profile.sessions > 0).collect();
    let names: Vec<String> = has.iter().map(|profile| profile.name.clone()).collect();
    let mut text = String::from(
        "\"\"\"The users that workers of `prove load` have; a master needs to know no more of them.\"\"\"\n\n\
         from locust import User, task\n",
    );
    for (class, profile) in classes(&names)?.iter().zip(has) {
        let sessions = profile.sessions;
        let _ = write!(
            text,
            "\n\nclass {class}(User):\n    weight = {sessions}\n\n    @task\n    def replayed(self):\n        pass\n"
        );
    }
    Ok(text)
}

/// The names of Python classes, for profiles of these names.
fn classes(names: &[String]) -> Result<Vec<String>, ReplayError> {
    let mut classes: Vec<String> = Vec::new();
    for name in names {
        let class = class(name);
        if let Some(at) = classes.iter().position(|known| *known == class) {
            return Err(ReplayError::Usage(format!(
                "profiles {} and {name} would both be class {class} of a locustfile: rename one",
                names[at]
            )));
        }
        classes.push(class);
    }
    Ok(classes)
}

fn class(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let capitals = words.filter(|word| !word.is_empty()).map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_ascii_uppercase())
    });
    let class: String = capitals.collect();
    // Words of Python, and what a locustfile imports.
    let is_taken = matches!(&*class, "False" | "None" | "True" | "User");
    if class.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_taken {
        class
    } else {
        format!("Profile{class}")
    }
}

struct Fleet<'a> {
    options: &'a Options,
    rig: &'a Rig,
    interrupt: Interrupt,
    worker: Worker,
    /// By profile of the run.
    classes: Vec<String>,
    /// Of this worker, as the master counts; of a master that does not count, the number of our process.
    index: u32,
    runs: u32,
    current: Option<Current<'a>>,
    ended: Ended,
}

/// The run that goes on.
struct Current<'a> {
    begun: ActiveRun<'a>,
    live: Live,
    /// What was seen and not told yet.
    tally: Arc<Mutex<LocustStats>>,
}

impl Fleet<'_> {
    /// Does what the master says, until it quits, we are interrupted, or it is lost; why it was lost.
    fn follow(&mut self) -> Result<Option<String>, ReplayError> {
        let began = Instant::now();
        let (mut is_known, mut was_told) = (false, false);
        loop {
            let event = self.worker.next(LOOK);
            is_known |= event.is_some();
            if !is_known && !was_told && began.elapsed() > SILENCE {
                eprintln!(
                    "no answer from the master yet; trying for {} s",
                    Pace::default().give_up.as_secs()
                );
                was_told = true;
            }
            match event {
                Some(Event::Quit) => return Ok(None),
                Some(Event::Lost { why }) => return Ok(Some(why)),
                Some(event) => self.heed(event)?,
                None if self.worker.is_over() => return Ok(Some("it is gone".into())),
                None => {}
            }
            if self.interrupt.was_heard() {
                return Ok(None);
            }
            self.look()?;
        }
    }

    fn heed(&mut self, event: Event) -> Result<(), ReplayError> {
        match event {
            Event::Joined { index } => {
                self.index = index.unwrap_or_else(std::process::id);
                eprintln!("joined as worker {}", self.index);
            }
            Event::Spawn {
                users,
                host,
                new_run,
            } => {
                if new_run || self.current.is_none() {
                    self.end(Duration::ZERO)?;
                    self.begin()?;
                    self.warn_of_host(host.as_deref());
                }
                self.spawn(&users);
            }
            Event::Stop { within } => {
                self.end(within)?;
                self.worker.stopped();
            }
            Event::Warning(says) => eprintln!("warning: {}", printable(&says)),
            Event::Quit | Event::Lost { .. } => {}
        }
        Ok(())
    }

    fn warn_of_host(&self, host: Option<&str>) {
        let targets = &self.rig.run().targets;
        let host = host.filter(|host| !host.is_empty() && !targets.iter().any(|url| url == host));
        if let Some(host) = host {
            let targets = targets.join(" ");
            eprintln!(
                "warning: the master's host {} is not heeded: --target is {targets}",
                printable(host)
            );
        }
    }

    fn begin(&mut self) -> Result<(), ReplayError> {
        self.runs += 1;
        // The plan's start is some milliseconds later, which the seconds of a report do not show.
        let began = SystemTime::now();
        let tally = Arc::new(Mutex::new(LocustStats::new(began)));
        let (ours, names) = (Arc::clone(&tally), self.rig.names());
        let on_rows = move |rows: &[Record]| {
            let mut tally = lock(&ours);
            for row in rows {
                count(&mut tally, began, &names, row);
            }
        };
        let records = self
            .options
            .records
            .as_deref()
            .map(|path| numbered(path, self.runs));
        let seed = Rng::stream(
            self.rig.run().seed,
            &[u64::from(self.index), u64::from(self.runs)],
        )
        .bits();
        let begun = self.rig.begin(RunOverrides {
            records: records.as_deref(),
            on_rows: Some(Box::new(on_rows)),
            seed: Some(seed),
        })?;
        self.current = Some(Current {
            begun,
            live: Live::new(self.rig.names(), self.rig.planned_time()),
            tally,
        });
        Ok(())
    }

    /// Lets so many users be at work, and says how many these are.
    fn spawn(&self, wanted: &locust::Users) {
        let Some(current) = &self.current else { return };
        let control = current.begun.running.control();
        let mut are = locust::Users::new();
        for (profile, class) in self.classes.iter().enumerate() {
            let wanted = wanted.get(class).copied().unwrap_or(0);
            let given = control.set_users(profile, wanted);
            if given < wanted {
                eprintln!(
                    "warning: {wanted} users of {class} are asked for, and --users lets there be {given}"
                );
            }
            are.insert(class.clone(), given);
        }
        self.worker.users_are(are);
    }

    /// Tells the master what was seen, and shows it.
    fn look(&mut self) -> Result<(), ReplayError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        self.worker.add(&mut lock(&current.tally));
        current.live.show_if_due(&current.begun.running);
        if current.begun.running.is_over() {
            eprintln!(
                "warning: the run has lasted for its --duration; the master has not stopped it"
            );
            self.end(Duration::ZERO)?;
            let none = self.classes.iter().map(|class| (class.clone(), 0));
            self.worker.users_are(none.collect());
        }
        Ok(())
    }

    /// Ends the run that goes on, if one does: its users send nothing more, and answers under way may take `within`.
    fn end(&mut self, within: Duration) -> Result<(), ReplayError> {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        let running = &current.begun.running;
        let control = running.control();
        for profile in 0..self.classes.len() {
            control.set_users(profile, 0);
        }
        let began = Instant::now();
        let within = within.min(MOST_WITHIN);
        let goes_on = || !self.interrupt.was_heard() && running.counters().iter().any(is_under_way);
        while began.elapsed() < within && goes_on() {
            self.worker.add(&mut lock(&current.tally));
            std::thread::sleep(LOOK);
        }
        control.stop();
        current.live.clear();
        let (report, fault) = current.begun.finish()?;
        // The last rows were taken before the run was summed up.
        self.worker.add(&mut lock(&current.tally));
        let out = self
            .options
            .out
            .as_deref()
            .map(|path| numbered(path, self.runs));
        tell(self.options, &report, out.as_deref())?;
        self.ended = self.ended.max(report.ended());
        fault.map_or(Ok(()), Err)?;
        Ok(())
    }
}

fn lock(tally: &Mutex<LocustStats>) -> MutexGuard<'_, LocustStats> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_under_way(counters: &Counters) -> bool {
    let failed: u64 = counters.failures.iter().map(|(_, count)| count).sum();
    counters.sent > counters.answered + failed
}

/// Counts one exchange as Locust does: from the moment at which it was due, and failures among its times.
fn count(tally: &mut LocustStats, began: SystemTime, names: &[String], row: &Record) {
    let profile = usize::try_from(row.profile).ok();
    let Some(name) = profile.and_then(|at| names.get(at)) else {
        return;
    };
    let of = Of {
        method: METHOD,
        name,
    };
    let (from_due, at) = (
        |ns: u64| Duration::from_nanos(ns.saturating_sub(row.intended_ns)),
        began + Duration::from_nanos(row.ended_ns),
    );
    let error = row.failure.map(|failure| failure.to_string());
    let seen = Seen {
        at,
        time: Some(from_due(row.ended_ns)),
        bytes: row.bytes_down,
        error: error.as_deref(),
    };
    tally.request(of, &seen);
    if row.failure.is_some() {
        return;
    }
    if let Some(first) = row.first_token_ns {
        tally.part(of, Part::Ttft, at, from_due(first), 1);
    }
    if let Some(ns) = row.time_per_token_ns {
        tally.part(of, Part::Tpot, at, Duration::from_nanos(ns), 1);
    }
    if let Some(sent) = row.sent_ns {
        let service = Duration::from_nanos(row.ended_ns.saturating_sub(sent));
        tally.part(of, Part::E2e, at, service, 1);
    }
}

/// The file of the first run has the name that was asked for, those of later ones a number before their extension.
fn numbered(path: &Path, run: u32) -> PathBuf {
    if run == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = format!("{stem}-{run}");
    if let Some(extension) = path.extension() {
        let _ = write!(name, ".{}", extension.to_string_lossy());
    }
    path.with_file_name(name)
}
