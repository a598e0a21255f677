//! One page of one target, by one GET on a connection that is kept.
//!
//! Invariant: an answer is waited for no longer than its time; no redirect is followed, and no more than
//! [`MOST_BYTES`] are kept.
//! Not here: when to ask (`scraper`), what a page says (`exposition`).

use std::time::{Duration, Instant};

use load::client::{Client, ConnectionSlot, Failure, Listener, Reach, Said};
use load::source::Payload;

use super::exposition::{MOST_BYTES, Page};
use super::targets::Target;

/// Characters of a page that is none which are told.
const TOLD_CHARS: usize = 80;

/// Which of several pages of a target a series is from.
const REPLICA: &str = "replica";

/// Why there is no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// No connection.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// No whole answer in time.
    #[error("no whole answer within {0:?}")]
    TimedOut(Duration),
    /// The connection ended before the answer was whole, or what came was no HTTP.
    #[error("the answer broke off or was no HTTP ({0})")]
    Broken(String),
    /// Another status than 200.
    #[error("status {0}, and redirects are not followed")]
    Status(u16),
    /// A page of something else.
    #[error("{kind}, not metrics; it begins {begins:?}")]
    NotMetrics {
        /// Such as `HTML`.
        kind: &'static str,
        /// With its first characters.
        begins: String,
    },
    /// More than is read.
    #[error("the page has more than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
}

impl Fault {
    /// Faults of one kind are one silence, whatever their words are.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// One target's connection.
pub(super) struct Pages {
    target: Target,
    client: Client,
    line: ConnectionSlot,
    patience: Duration,
    others: Vec<Pages>,
}

/// The answer so far.
#[derive(Default)]
struct Heard {
    fault: Option<String>,
    body: Vec<u8>,
    is_too_large: bool,
}

impl Listener for Heard {
    fn on_send(&mut self, _now: Instant) {}

    fn on_fault(&mut self, says: &str) {
        self.fault = Some(says.to_owned());
    }

    fn on_first_byte(&mut self, _now: Instant) {}

    fn on_body(&mut self, _now: Instant, _said: Said, bytes: &[u8]) {
        if self.body.len() + bytes.len() > MOST_BYTES {
            self.is_too_large = true;
        } else {
            self.body.extend_from_slice(bytes);
        }
    }
}

impl Pages {
    /// An answer may take `patience` in all, connecting included.
    pub(super) fn new(mut target: Target, patience: Duration) -> Result<Self, String> {
        let others = std::mem::take(&mut target.others).into_iter();
        let others = others.map(|other| Self::new(other, patience));
        let others = others.collect::<Result<_, _>>()?;
        let client = Client::new(Reach::plain(target.base.clone(), patience));
        let client = client.map_err(|error| format!("{}: {error}", target.url))?;
        let line = client.line(0);
        Ok(Self {
            target,
            client,
            line,
            patience,
            others,
        })
    }

    /// The page as it is now: where several are of one target, of all of them, or none. What tells the series of one from those of another
    /// is the label [`REPLICA`].
    pub(super) async fn get(&mut self) -> Result<Page, Fault> {
        let mut all = self.one().await?;
        if !self.others.is_empty() {
            all.label(REPLICA, "1");
        }
        for (other, nth) in self.others.iter_mut().zip(2..) {
            let mut page = other.one().await?;
            page.label(REPLICA, &format!("{nth}"));
            all.absorb(page);
        }
        Ok(all)
    }

    async fn one(&mut self) -> Result<Page, Fault> {
        let (mut heard, nothing) = (Heard::default(), Payload::default());
        let asked = self.client.exchange(
            &mut self.line,
            (&self.target.head, None),
            &nothing,
            &mut heard,
        );
        let answer = match tokio::time::timeout(self.patience, asked).await {
            Err(_) | Ok(Err(Failure::Timeout)) => return Err(Fault::TimedOut(self.patience)),
            Ok(Err(failure)) => return Err(classed(failure, heard.fault)),
            Ok(Ok(answer)) => answer,
        };
        if answer.said.status != 200 {
            return Err(Fault::Status(answer.said.status));
        }
        if heard.is_too_large {
            return Err(Fault::TooLarge);
        }
        let page = Page::read(&heard.body);
        let begins = String::from_utf8_lossy(heard.body.get(..400).unwrap_or(&heard.body));
        let kind = match begins.trim_start().bytes().next() {
            Some(b'<') => "HTML",
            Some(b'{' | b'[') => "JSON",
            None => "an empty page",
            _ if !page.is_metrics() => "something else",
            _ => return Ok(page),
        };
        let begins = begins.trim_start().chars().take(TOLD_CHARS).collect();
        Err(Fault::NotMetrics { kind, begins })
    }
}

fn classed(failure: Failure, says: Option<String>) -> Fault {
    match failure {
        Failure::Connect | Failure::Tls => {
            Fault::Unreachable(says.unwrap_or_else(|| failure.to_string()))
        }
        other => Fault::Broken(other.to_string()),
    }
}
