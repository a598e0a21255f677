//! Who sends what, when: the profiles of a corpus, as a workload.
//!
//! What a file of traffic says of a profile goes before the command line, and that before what the corpus suggests.
//! Invariant: a profile that is named and that the corpus has not is refused; one that gets no users is told of.
//! Not here: laws (`experiment::arrivals`), sending (`load`, the crate).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::arrivals::{Mmpp, Process, Scope, Spec, TraceError};
use experiment::workload::{Enter, Load, Profile, Stay, Workload, apportion};
use load::observer::Answers;
use load::run::Traffic;
use load::source::{Head, HeadError, Secret};
use serde::Deserialize;

use super::ReplayError;
use super::steered::Said;

/// The mean pause that is drawn where nothing was recorded and nothing was asked for: 190 users who wait 14.29 s for each
/// answer and ask 8.7 times a second together pause for 190 / 8.7 - 14.29 s, as in the white paper's soak.
const THINK_S: f64 = 7.55;
/// The header that tells a gateway whose traffic it is.
pub(crate) const WORKLOAD_HEADER: &str = "x-workload-app";

/// What is asked of all profiles.
#[derive(Debug, Clone, Default)]
pub(super) struct TrafficRequest {
    pub(super) seed: u64,
    pub(super) ramp: Duration,
    pub(super) users: Users,
    /// Session starts a second of all profiles together: an open loop.
    pub(super) rate: Option<f64>,
    /// By profile, or for all.
    pub(super) think: Vec<(Option<String>, Spec)>,
    pub(super) arrivals: Vec<(Option<String>, Spec)>,
    pub(super) scope: Option<Scope>,
    /// Every session once, without pauses unless they are asked for.
    pub(super) once: bool,
    /// Sessions of a profile that may be under way at once, in an open loop.
    pub(super) connections: usize,
    /// Lines of headers of every request.
    pub(super) headers: Vec<(String, Value)>,
    /// What a good answer is.
    pub(super) answers: Answers,
    pub(super) path: String,
}

/// How many users there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Users {
    /// So many of all closed profiles, at work from the start.
    Together(u32),
    /// At most so many of each, and none before somebody asks for them.
    OfEach(u32),
}

impl Default for Users {
    fn default() -> Self {
        Self::Together(0)
    }
}

/// The value of a header.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Plain(String),
    Secret(Secret),
}

/// What the corpus has.
#[derive(Debug, Clone)]
pub(super) struct CorpusProfile {
    pub(super) name: String,
    pub(super) sessions: u64,
    /// Requests that are not the first of their session.
    pub(super) later: u64,
    /// Those among them with a recorded pause.
    pub(super) with_pauses: u64,
}

/// A file of traffic.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    profile: Vec<FileProfile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileProfile {
    name: String,
    /// Of all users; unless said, in proportion to the sessions.
    weight: Option<f64>,
    users: Option<u32>,
    think: Option<Spec>,
    arrivals: Option<Spec>,
    scope: Option<Scope>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// What a run is made of.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) workload: Workload,
    pub(super) traffic: Vec<Traffic>,
    /// By the run's profile: the corpus's.
    pub(super) profiles: Vec<usize>,
    /// Profiles of the corpus that get no traffic.
    pub(super) left_out: Vec<String>,
}

impl File {
    /// Reads a file of traffic.
    pub(super) fn read(path: &Path) -> Result<Self, ReplayError> {
        let text = crate::files::read(path).map_err(ReplayError::Input)?;
        let fault = |error| ReplayError::Usage(format!("{}: {error}", path.display()));
        toml::from_str(&text).map_err(fault)
    }

    /// What is said elsewhere than in a file.
    pub(super) fn of(said: &[Said]) -> Self {
        let profile = said.iter().map(|said| FileProfile {
            name: said.name.clone(),
            weight: said.weight,
            users: None,
            think: said.think.clone(),
            arrivals: None,
            scope: said.scope,
            headers: said.headers.iter().cloned().collect(),
        });
        Self {
            profile: profile.collect(),
        }
    }

    fn profile(&self, name: &str) -> Option<&FileProfile> {
        self.profile.iter().find(|profile| profile.name == name)
    }
}

/// The workload, and the heads of its requests. Traces are read relative to `base`.
pub(super) fn plan(
    asked: &TrafficRequest,
    file: &File,
    base: &Path,
    has: &[CorpusProfile],
) -> Result<Planned, ReplayError> {
    check_names(asked, file, has)?;
    let profiles = has.iter().map(|has| OneProfile {
        asked,
        said: file.profile(&has.name),
        base,
        has,
    });
    let profiles: Vec<OneProfile<'_>> = profiles.collect();
    let kinds = profiles.iter().map(OneProfile::kind);
    let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
    let share = |of: Kind| -> Result<Vec<f64>, ReplayError> {
        let pairs = profiles.iter().zip(&kinds);
        let weights = pairs.map(|(profile, kind)| {
            if *kind == of {
                profile.weight()
            } else {
                Ok(0.0)
            }
        });
        weights.collect()
    };
    let users = match asked.users {
        Users::Together(users) => apportion(users, &share(Kind::Users)?),
        Users::OfEach(most) => vec![most; has.len()],
    };
    let rates = share(Kind::Rate)?;
    let all: f64 = rates.iter().sum();
    let mut planned = Planned {
        workload: Workload {
            seed: asked.seed,
            ramp: asked.ramp,
            profiles: Vec::new(),
        },
        traffic: Vec::new(),
        profiles: Vec::new(),
        left_out: Vec::new(),
    };
    for (at, (one, kind)) in profiles.iter().zip(kinds).enumerate() {
        let (profile, said) = (one.has, one.said);
        let load = match kind {
            // Every session is every profile's.
            Kind::Users if asked.once => one.closed(users[at].max(1))?,
            Kind::Users => one.closed(users[at])?,
            Kind::FixedUsers(users) => one.closed(users)?,
            Kind::Arrivals => Some(one.open(None)?),
            Kind::Rate => {
                let rate = asked.rate.map(|rate| rate * rates[at] / all);
                (profile.sessions > 0).then(|| one.open(rate)).transpose()?
            }
        };
        let Some(load) = load.filter(|_| profile.sessions > 0) else {
            planned.left_out.push(profile.name.clone());
            continue;
        };
        planned.workload.profiles.push(Profile {
            name: profile.name.clone(),
            load,
            scope: said
                .and_then(|said| said.scope)
                .or(asked.scope)
                .unwrap_or_default(),
        });
        planned.traffic.push(Traffic {
            head: head(asked, said, &profile.name)?,
            answers: asked.answers,
            expects: None,
            connections: asked.connections,
            users_at_first: matches!(asked.users, Users::OfEach(_)).then_some(0),
            request_id: None,
        });
        planned.profiles.push(at);
    }
    if planned.profiles.is_empty() {
        let says =
            "no profile of the corpus gets users or arrivals: ask for more --users, or a --rate";
        return Err(ReplayError::Usage(says.into()));
    }
    let checked = planned.workload.check();
    checked.map_err(|error| ReplayError::Usage(error.to_string()))?;
    Ok(planned)
}

impl Planned {
    /// Sessions that are begun in such a time, whatever the target does: one of each user, and those that arrive.
    pub(super) fn sessions_at_least(&self, time: Duration) -> u64 {
        let of = |profile: &Profile| match &profile.load {
            Load::Closed { users, .. } => f64::from(*users),
            Load::Open { arrivals, .. } => arrivals.rate().unwrap_or(0.0) * time.as_secs_f64(),
        };
        self.workload.profiles.iter().map(of).sum::<f64>() as u64
    }
}

fn check_names(
    asked: &TrafficRequest,
    file: &File,
    has: &[CorpusProfile],
) -> Result<(), ReplayError> {
    let of_options = asked.think.iter().chain(&asked.arrivals);
    let named = of_options.filter_map(|(name, _)| name.as_deref());
    let named = named.chain(file.profile.iter().map(|profile| profile.name.as_str()));
    let known = |name: &str| has.iter().any(|profile| profile.name == name);
    for name in named {
        if !known(name) {
            let all: Vec<&str> = has.iter().map(|profile| profile.name.as_str()).collect();
            return Err(ReplayError::Usage(format!(
                "the corpus has no profile {name}; it has {}",
                all.join(", ")
            )));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    let twice = file
        .profile
        .iter()
        .find(|profile| !seen.insert(&profile.name));
    twice.map_or(Ok(()), |profile| {
        let says = format!("the file of traffic has profile {} twice", profile.name);
        Err(ReplayError::Usage(says))
    })
}

/// What is known of one profile.
struct OneProfile<'a> {
    asked: &'a TrafficRequest,
    said: Option<&'a FileProfile>,
    base: &'a Path,
    has: &'a CorpusProfile,
}

/// How the traffic of a profile comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its share of all users.
    Users,
    /// As many users as the file says.
    FixedUsers(u32),
    /// At the rate of its own arrivals.
    Arrivals,
    /// At its share of the rate of all.
    Rate,
}

impl OneProfile<'_> {
    /// What the file says goes before the options.
    fn kind(&self) -> Result<Kind, ReplayError> {
        let asked = self.asked;
        let of_file = self
            .said
            .map(|said| (said.users, said.arrivals.is_some(), said.weight));
        let is_open =
            asked.rate.is_some() || for_profile(&asked.arrivals, &self.has.name).is_some();
        let kind = match of_file {
            Some((Some(_), true, _)) => {
                Err("users are a closed loop and arrivals an open one: name one")
            }
            Some((Some(_), _, Some(_))) => {
                Err("users are said, so that a weight says nothing: name one")
            }
            Some((Some(users), ..)) => Ok(Kind::FixedUsers(users)),
            Some((None, true, Some(_))) => {
                Err("arrivals have a rate, so that a weight says nothing: name one")
            }
            Some((None, true, None)) => Ok(Kind::Arrivals),
            Some((None, false, _)) | None if asked.rate.is_some() => Ok(Kind::Rate),
            Some((None, false, _)) | None if is_open => Ok(Kind::Arrivals),
            Some((None, false, _)) | None => Ok(Kind::Users),
        };
        match kind {
            Ok(Kind::Arrivals | Kind::Rate) if asked.once => Err(self
                .fault("with --once users send the sessions: take its arrivals out of the file")),
            kind => kind.map_err(|says| self.fault(says)),
        }
    }

    /// Of users or of the rate, beside those of the others.
    fn weight(&self) -> Result<f64, ReplayError> {
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 sessions")]
        let sessions = self.has.sessions as f64;
        match self.said.and_then(|said| said.weight) {
            None => Ok(sessions),
            Some(weight) if weight.is_finite() && weight > 0.0 && self.has.sessions > 0 => {
                Ok(weight)
            }
            Some(weight) if weight.is_finite() && weight > 0.0 => Ok(0.0),
            Some(weight) => Err(self.fault(&format!(
                "a weight is a number above 0, not {weight}; users = 0 leaves a profile out"
            ))),
        }
    }

    /// Its users; `None` when there are none.
    fn closed(&self, users: u32) -> Result<Option<Load>, ReplayError> {
        let sessions = u32::try_from(self.has.sessions).unwrap_or(u32::MAX);
        let users = if self.asked.once {
            users.min(sessions)
        } else {
            users
        };
        if users == 0 {
            return Ok(None);
        }
        Ok(Some(Load::Closed {
            users,
            think: self.think()?,
            enter: Enter::Thinking,
            stay: if self.asked.once {
                Stay::Once
            } else {
                Stay::Always
            },
        }))
    }

    /// Its arrivals, at this rate where it has one.
    fn open(&self, rate: Option<f64>) -> Result<Load, ReplayError> {
        let said = self.said.and_then(|said| said.arrivals.as_ref());
        let said = said.or_else(|| for_profile(&self.asked.arrivals, &self.has.name));
        let process = said.map(|spec| self.resolve(spec)).transpose()?;
        let arrivals = match (process, rate) {
            (Some(process), None) => process,
            (process, Some(rate)) => {
                // Bursts of starts are for those who ask for them.
                let law = process.unwrap_or(Process::Exponential { mean_s: 1.0 });
                self.at_rate(&law, rate)?
            }
            (None, None) => return Err(self.fault("bug: an open loop without a law")),
        };
        let think = self.think()?;
        Ok(Load::Open { arrivals, think })
    }

    fn think(&self) -> Result<Process, ReplayError> {
        let said = self
            .said
            .and_then(|said| said.think.as_ref())
            .or_else(|| for_profile(&self.asked.think, &self.has.name));
        Ok(match said {
            Some(spec) => match self.resolve(spec)? {
                Process::Recorded if self.has.with_pauses < self.has.later => {
                    return Err(self.fault(&format!(
                        "{} of its {} later requests have no recorded pause: name a law for --think",
                        self.has.later - self.has.with_pauses,
                        self.has.later
                    )));
                }
                process => process,
            },
            None if self.asked.once => Process::Constant { mean_s: 0.0 },
            None if self.has.later > 0 && self.has.with_pauses == self.has.later => {
                Process::Recorded
            }
            None => suggested(&self.has.name),
        })
    }

    fn resolve(&self, spec: &Spec) -> Result<Process, ReplayError> {
        spec.resolve(|file| crate::files::read(&self.base.join(file)).map_err(ReplayError::Input))
    }

    /// The same law with another mean.
    fn at_rate(&self, process: &Process, rate: f64) -> Result<Process, ReplayError> {
        let mean_s = rate.recip();
        Ok(match process {
            Process::Constant { .. } => Process::Constant { mean_s },
            Process::Exponential { .. } => Process::Exponential { mean_s },
            Process::Gamma { cv, .. } => Process::Gamma { mean_s, cv: *cv },
            Process::Mmpp(mmpp) => {
                let factor = mmpp.high() / mmpp.rate();
                let scaled = Mmpp::with_factor(mean_s, factor, mmpp.on_s(), mmpp.off_s());
                Process::Mmpp(scaled.map_err(|error| self.fault(&error.to_string()))?)
            }
            Process::Trace(_) => {
                return Err(self.fault("a trace has its own rate: leave --rate out"));
            }
            Process::Recorded => {
                return Err(
                    self.fault("sessions record the pauses inside them, not when they start")
                );
            }
        })
    }

    fn fault(&self, says: &str) -> ReplayError {
        ReplayError::Usage(format!("profile {}: {says}", self.has.name))
    }
}

/// What is said of this profile, or else of all.
fn for_profile<'a>(said: &'a [(Option<String>, Spec)], name: &str) -> Option<&'a Spec> {
    let of = |wanted: Option<&str>| {
        let found = said.iter().rev().find(|(of, _)| of.as_deref() == wanted);
        found.map(|(_, spec)| spec)
    };
    of(Some(name)).or_else(|| of(None))
}

/// The white paper's law for a profile of this name: bursts for the orchestration of APIs, gamma for terminals, and
/// exponential pauses for people.
fn suggested(name: &str) -> Process {
    if name.contains("api") || name.contains("tool") {
        let bursts =
            Mmpp::on_off(THINK_S, 6.0, 24.0).expect("a mean of seconds, and sojourns of seconds");
        Process::Mmpp(bursts)
    } else if name.contains("terminal") {
        Process::Gamma {
            mean_s: THINK_S,
            cv: 1.5,
        }
    } else {
        Process::Exponential { mean_s: THINK_S }
    }
}

/// The head of requests that are of no corpus's run: with these headers, for this workload.
pub(crate) fn head_with(headers: &[(String, String)], workload: &str) -> Result<Head, ReplayError> {
    let headers = headers.iter();
    let headers = headers.map(|(name, value)| Ok((name.clone(), Value::read(name, value)?)));
    let asked = TrafficRequest {
        headers: headers.collect::<Result<_, ReplayError>>()?,
        path: super::target::PATH.into(),
        ..TrafficRequest::default()
    };
    head(&asked, None, workload)
}

fn head(
    asked: &TrafficRequest,
    said: Option<&FileProfile>,
    name: &str,
) -> Result<Head, ReplayError> {
    let usage = |error: HeadError| ReplayError::Usage(error.to_string());
    let mut lines: Vec<(String, Value)> = vec![
        (
            "content-type".into(),
            Value::Plain("application/json".into()),
        ),
        (WORKLOAD_HEADER.into(), Value::Plain(name.into())),
    ];
    let of_file = said.map(|said| &said.headers).into_iter().flatten();
    let of_file = of_file.map(|(name, value)| Ok((name.clone(), Value::read(name, value)?)));
    let of_file = of_file.collect::<Result<Vec<_>, ReplayError>>()?;
    for (name, value) in asked.headers.iter().cloned().chain(of_file) {
        lines.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        lines.push((name, value));
    }
    let mut head = Head::post(&asked.path).map_err(usage)?;
    for (name, value) in &lines {
        head = match value {
            Value::Plain(value) => head.with(name, value),
            Value::Secret(value) => head.with_secret(name, value),
        }
        .map_err(usage)?;
    }
    Ok(head)
}

impl Value {
    /// A value in which `${NAME}` stands for a variable of the environment; one that has any is secret.
    pub(super) fn read(header: &str, text: &str) -> Result<Self, ReplayError> {
        let (mut value, mut rest, mut is_secret) = (String::new(), text, false);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or_else(|| {
                ReplayError::Usage(format!("header {header}: there is a ${{ without its }}"))
            })?;
            let set = std::env::var(name).map_err(|_| {
                ReplayError::Usage(format!(
                    "the environment has no {name}, which a header asks for"
                ))
            })?;
            value.push_str(before);
            value.push_str(&set);
            (rest, is_secret) = (after, true);
        }
        value.push_str(rest);
        Ok(if is_secret {
            Self::Secret(value.into())
        } else {
            Self::Plain(value)
        })
    }
}

impl From<TraceError> for ReplayError {
    fn from(error: TraceError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// `PROFILE=PROCESS` or `PROCESS`: a process holds `=` too, but never before its colon.
pub(super) fn named_process(text: &str) -> Result<(Option<String>, Spec), String> {
    let (name, process) = split_name(text);
    let spec: Spec = process.parse().map_err(|error| format!("{error}"))?;
    Ok((name.map(str::to_owned), spec))
}

fn split_name(text: &str) -> (Option<&str>, &str) {
    let is_named = |name: &str| !name.contains(':');
    match text.split_once('=') {
        Some((name, process)) if is_named(name) => (Some(name), process),
        _ => (None, text),
    }
}

/// A law of session starts, which may leave its mean to a rate.
#[derive(Debug, Clone)]
pub(super) struct NamedArrivals {
    pub(super) profile: Option<String>,
    pub(super) law: Spec,
    /// Why it cannot stand by itself.
    pub(super) needs_a_rate: Option<String>,
}

/// As [`named_process`], the mean perhaps left out.
pub(super) fn named_arrivals(text: &str) -> Result<NamedArrivals, String> {
    let (profile, process) = split_name(text);
    let (law, is_mean_unsaid) = Spec::without_mean(process).map_err(|error| format!("{error}"))?;
    let needs_a_rate = || {
        format!(
            "--arrivals {text}: says no mean: a time such as 7.5s, a rate such as 8/s, or --rate for all of them"
        )
    };
    Ok(NamedArrivals {
        profile: profile.map(str::to_owned),
        law,
        needs_a_rate: is_mean_unsaid.then(needs_a_rate),
    })
}

/// `NAME: VALUE`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "write NAME: VALUE".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Where traces of a file of traffic are looked for.
pub(super) fn base_of(file: Option<&PathBuf>) -> PathBuf {
    let folder = file.and_then(|file| file.parent());
    folder.unwrap_or(Path::new("")).to_owned()
}
