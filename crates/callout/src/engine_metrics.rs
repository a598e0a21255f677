//! What an engine has to do, by its own page of metrics, asked again and again.
//!
//! Invariant: one question to an engine runs at a time, and has its end; an engine that does not answer is asked ever less often, and
//! what it said before is worth nothing soon.
//! Not here: what a page says and what follows from it (`policy::balancing`).

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::StatusCode;
use policy::balancing::{PAGE_BYTES_MAX, Report, Shared};
use policy::clock::Mono;
use tokio::time::{Instant, sleep_until};

use crate::client::{Call, Client};
use crate::fault::Fault;
use crate::questions::Questions;
use crate::url::Url;

/// The longest time between two questions to an engine that does not answer.
const SELDOM: Duration = Duration::from_secs(10);
/// For how many questions an answer is good, and for how long at least.
const GOOD_FOR: u32 = 4;
const GOOD_AT_LEAST: Duration = Duration::from_secs(1);

/// One engine that is asked for its metrics.
pub struct EngineMetrics {
    /// Asks.
    pub client: Client,
    /// Where.
    pub url: Url,
    /// How often.
    pub every: Duration,
    /// Who is told.
    pub shared: Arc<Shared>,
    /// Where questions are counted.
    pub questions: Arc<Questions>,
    /// The clock of whoever chooses by the answers.
    pub now: fn() -> Mono,
    /// Told of what changes.
    pub tell: fn(&str, &EngineNews),
}

/// What is new of an engine that is asked.
#[derive(Debug)]
pub enum EngineNews {
    /// It does not say what it has to do.
    Silent(Fault),
    /// It says that again.
    Heard,
    /// Its process is another one: it has seen no prompt.
    Anew,
}

impl EngineMetrics {
    /// Asks for ever.
    pub async fn run(self) {
        let good_for = (self.every * GOOD_FOR).max(GOOD_AT_LEAST);
        let mut silent = 0_u32;
        let mut due = Instant::now();
        loop {
            sleep_until(due).await;
            let asked = self.ask().await;
            self.questions.note(asked.is_ok());
            match asked {
                Ok(report) => {
                    if silent > 0 {
                        self.tell(&EngineNews::Heard);
                    }
                    silent = 0;
                    self.take(&report, good_for);
                }
                Err(fault) => {
                    if silent == 0 {
                        self.tell(&EngineNews::Silent(fault));
                    }
                    silent = silent.saturating_add(1);
                    self.shared.load.silent();
                }
            }
            let doubled = self.every.saturating_mul(1 << silent.min(10));
            let pause = match silent {
                0 => self.every,
                _ => doubled.min(SELDOM).max(self.every),
            };
            // From the moment it was due: the time that a question takes moves none of the others.
            due = (due + pause).max(Instant::now());
        }
    }

    fn take(&self, report: &Report, good_for: Duration) {
        let Shared { load, prefixes, .. } = &*self.shared;
        if let Some(bytes) = report.cache_bytes {
            prefixes.reaches(bytes);
        }
        if load.report(report, good_for, (self.now)()) {
            prefixes.forget();
            self.tell(&EngineNews::Anew);
        }
    }

    fn tell(&self, news: &EngineNews) {
        (self.tell)(&self.url.authority(), news);
    }

    async fn ask(&self) -> Result<Report, Fault> {
        let call = Call::new(Method::GET, &self.url, PAGE_BYTES_MAX);
        let reply = self.client.send(&call).await?;
        if reply.status != StatusCode::OK {
            return Err(reply.refusal());
        }
        if !reply.is_whole() {
            return Err(Fault::Large(PAGE_BYTES_MAX));
        }
        let page =
            str::from_utf8(&reply.body).map_err(|_| Fault::Garbage("it is not UTF-8 text"))?;
        Report::of(page).ok_or(Fault::Garbage("it has no metric of calls that wait or run"))
    }
}

#[cfg(test)]
mod tests;
