//! What is shown while the demo runs: a picture on a terminal, elsewhere a line for each call.
//!
//! Invariant: the terminal is as it was once [`Shown::show`] is dropped, however that comes; what was logged meanwhile
//! is written then.
//! Not here: the picture (`draw`), the terminal (`terminal`).

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use telemetry::AccessLog;

use super::draw::draw;
use super::drive::Plan;
use super::feed::Feed;
use super::plain;
use super::terminal::{self, Screen};
use super::view::{Event, View};
use crate::running::Running;
use crate::{logging, say};

/// Between two looks.
const REFRESH: Duration = Duration::from_millis(100);
/// Lines of the log that may wait.
const NOTES: usize = 100;

/// What was seen, and how it is shown.
pub(super) struct Shown {
    view: View,
    feed: Option<Feed>,
    is_live: bool,
    has_heading: bool,
    notes: SyncSender<String>,
    noted: Option<Receiver<String>>,
}

impl Shown {
    pub(super) fn new(wants_plain: bool, plan: Option<&Plan>) -> Self {
        let (notes, noted) = sync_channel(NOTES);
        let view = View::of(plan.map(|plan| (plan.workload.as_str(), plan.calls)));
        Self {
            view,
            feed: None,
            is_live: !wants_plain && can_draw(),
            has_heading: false,
            notes,
            noted: Some(noted),
        }
    }

    /// Whether there is a picture.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// An access log to start the gate with.
    pub(super) fn feed_from(
        &mut self,
        file: Option<&Path>,
        ledger: PathBuf,
    ) -> Result<AccessLog, String> {
        let noted = self.noted.take().unwrap_or_else(|| sync_channel(0).1);
        let (log, feed) = Feed::start(file, ledger, noted)?;
        self.feed = Some(feed);
        Ok(log)
    }

    /// Shows what happens, until the terminal with the picture is gone: a demo whose window was closed ends.
    pub(super) async fn show(&mut self, running: &Running, data: SocketAddr, made: &Cell<u32>) {
        let Some(feed) = &mut self.feed else {
            return std::future::pending().await;
        };
        self.view.data = data.to_string();
        let mut screen = None;
        let _quiet = if self.is_live {
            screen = Screen::take().ok();
            Some(Quiet::begin(&self.notes))
        } else {
            None
        };
        let began = Instant::now();
        let mut every = tokio::time::interval(REFRESH);
        loop {
            every.tick().await;
            for event in feed.look(running).await {
                self.view.apply(event);
            }
            self.view.apply(Event::Now(began.elapsed(), made.get()));
            match &mut screen {
                Some(screen) => {
                    if screen.draw(|on| draw(&self.view, on)).is_err() {
                        return;
                    }
                }
                None => tell(&mut self.view, &mut self.has_heading, false),
            }
        }
    }

    /// Shows what came after the last look.
    pub(super) fn end(&mut self) {
        let rest = self.feed.as_mut().map(Feed::rest);
        for event in rest.into_iter().flatten() {
            self.view.apply(event);
        }
        if !self.is_live {
            tell(&mut self.view, &mut self.has_heading, true);
        }
        for note in std::mem::take(&mut self.view.notes) {
            drop(std::io::stderr().write_all(note.as_bytes()));
        }
    }
}

/// A line for each call that has ended.
fn tell(view: &mut View, has_heading: &mut bool, is_last: bool) {
    let due = view.due(is_last);
    if !due.is_empty() && !*has_heading {
        *has_heading = true;
        say(&plain::heading());
    }
    for call in due {
        say(&plain::line(&call));
    }
    if is_last && view.lost() > 0 {
        say(&format!("{} more calls are not shown", view.lost()));
    }
}

/// The log is handed to the picture.
struct Quiet;

impl Quiet {
    /// A log that goes elsewhere tears nothing.
    fn begin(notes: &SyncSender<String>) -> Self {
        if std::io::stderr().is_terminal() {
            logging::aside(Some(notes.clone()));
        }
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        logging::aside(None);
    }
}

/// Whether a picture can be drawn here, and is not unwanted.
fn can_draw() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb && terminal::is_ours()
}
