//! A gateway that runs already: asked a plain GET with the tokens of a file in turn.
//!
//! Invariant: nothing is measured before a token was let in and a call without one was refused; no token is printed.
//! Not here: a gate of our own (`rig`), the load (`measure`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use load::client::{Client, Listener, Reach, Said, Target, Trust};
use load::source::{Fixed, Head, Payload, Secret};

use super::measure::{self, Asked};
use super::result::Run;
use super::rig::Check;
use super::scenario::Scenario;
use crate::runtime;

const PATIENCE: Duration = Duration::from_secs(10);
const MOST_TOKENS: usize = 200_000;

/// Whom to ask in place of a gate of our own.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// GET this of a gateway that runs already, in place of starting ours.
    #[arg(long, value_name = "URL", requires = "tokens", conflicts_with_all = ["variants", "limits", "gate", "cgroup"])]
    pub(super) target: Option<String>,
    /// Bearer tokens for it, one a line; each request brings the next.
    #[arg(long, value_name = "FILE", requires = "target")]
    tokens: Option<PathBuf>,
    /// Authorities to trust, PEM [default: the system's].
    #[arg(long, value_name = "FILE", requires = "target")]
    ca: Option<PathBuf>,
}

/// Where to, and with what.
pub(super) struct Elsewhere {
    url: String,
    target: Target,
    trust: Trust,
    bare: Head,
    /// At least one.
    heads: Vec<Head>,
}

/// Hears nothing but why there was no answer.
#[derive(Default)]
struct Heard(Option<String>);

impl Listener for Heard {
    fn on_send(&mut self, _now: Instant) {}

    fn on_fault(&mut self, says: &str) {
        self.0 = Some(says.to_owned());
    }

    fn on_first_byte(&mut self, _now: Instant) {}

    fn on_body(&mut self, _now: Instant, _said: Said, _bytes: &[u8]) {}
}

impl Elsewhere {
    /// Reads the URL, resolves its name, and reads the tokens; `None` where no target was given.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn of(options: &Options) -> Result<Option<Self>, String> {
        let (Some(url), Some(file)) = (&options.target, &options.tokens) else {
            return Ok(None);
        };
        let (base, path) = split(url);
        let target = Target::parse(base).map_err(|error| error.to_string())?;
        let bare = Head::get(path).map_err(|error| error.to_string())?;
        let heads = tokens(file)?.into_iter().map(|token| {
            let bearer = Secret::from(format!("Bearer {token}"));
            let head = bare.clone().with_secret("authorization", &bearer);
            head.map_err(|error| format!("{}: {error}", file.display()))
        });
        let heads = heads.collect::<Result<_, _>>()?;
        let trust = options.ca.clone().map_or(Trust::System, Trust::File);
        Ok(Some(Self {
            url: url.clone(),
            target,
            trust,
            bare,
            heads,
        }))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The iterations; what went wrong is in the run.
    pub(super) fn run(&self, scenario: &Scenario) -> Run {
        let mut run = Run::elsewhere(&self.url);
        if let Err(says) = self.fill(&mut run, scenario) {
            run.problem = Some(says);
        }
        run
    }

    fn fill(&self, run: &mut Run, scenario: &Scenario) -> Result<(), String> {
        let first = self.heads.first().ok_or("bug: no tokens")?;
        let (with, without) = (self.status(first)?, self.status(&self.bare)?);
        let refused = if without == 403 { 403 } else { 401 };
        run.checks = [
            ("a token of the file", with, 200),
            ("no token", without, refused),
        ]
        .map(|(what, status, expected)| Check {
            what,
            status,
            expected,
        })
        .into();
        if let Some(wrong) = run.wrong() {
            return Err(wrong.to_string());
        }
        let requests = Fixed::in_turn(self.heads.clone(), Payload::default(), Arc::default());
        let asked = Asked {
            target: self.target.clone(),
            trust: self.trust.clone(),
            requests: requests.map_err(|error| error.to_string())?,
            expects: None,
        };
        let progress =
            |number| eprintln!("{}: iteration {number}/{}", self.url, scenario.iterations);
        (run.iterations, _) = measure::run(scenario, &asked, &[], progress)?;
        run.average = Some(measure::average(&run.iterations));
        Ok(())
    }

    /// What one request is told.
    fn status(&self, head: &Head) -> Result<u16, String> {
        let said = |says: &dyn std::fmt::Display| format!("before the first iteration: {says}");
        let reach = Reach {
            trust: self.trust.clone(),
            ..Reach::plain(self.target.clone(), PATIENCE)
        };
        let client = Client::new(reach).map_err(|error| said(&error))?;
        let runtime = runtime::make_local().map_err(|error| said(&error))?;
        let (mut line, mut heard) = (client.line(0), Heard::default());
        let nothing = Payload::default();
        let exchange = client.exchange(&mut line, (head, None), &nothing, &mut heard);
        match runtime.block_on(exchange) {
            Ok(answer) => Ok(answer.said.status),
            Err(failure) => Err(match heard.0 {
                Some(why) => said(&format_args!("{failure}: {why}")),
                None => said(&failure),
            }),
        }
    }
}

/// The base of a URL, and its path with the query; without a path it is `/`.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url.get(host..).and_then(|rest| rest.find('/'));
    match path.and_then(|at| url.split_at_checked(host + at)) {
        Some(parts) => parts,
        None => (url, "/"),
    }
}

fn tokens(file: &Path) -> Result<Vec<String>, String> {
    let said = |says: &dyn std::fmt::Display| format!("{}: {says}", file.display());
    let text = fs::read_to_string(file).map_err(|error| said(&error))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tokens: Vec<String> = lines.map(ToOwned::to_owned).collect();
    if !(1..=MOST_TOKENS).contains(&tokens.len()) {
        return Err(said(&"tokens, one a line, from 1 to 200000 of them"));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_url_is_asked_for_its_path_and_query_as_they_stand() {
        for (url, parts) in [
            ("http://a:1", ("http://a:1", "/")),
            ("https://a/", ("https://a", "/")),
            ("https://a/echo?x=1/2", ("https://a", "/echo?x=1/2")),
        ] {
            assert_eq!(split(url), parts, "{url}");
        }
    }
}
