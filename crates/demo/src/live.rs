//! What is shown while the demo runs: a picture on a terminal, elsewhere a line for each call.
//!
//! Invariant: the terminal is as it was once [`Shown::show`] is dropped, however that comes; what was logged meanwhile
//! is written then.
//! Not here: the picture (`draw`), the terminal (`terminal`).

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use telemetry::AccessLog;
use tollgate::demo::Demo;
use tollgate::embedded::EmbeddedGate;
use tollgate::logging;
use tollgate::words::counted;

use super::draw::draw;
use super::drive::Plan;
use super::feed::Feed;
use super::plain;
use super::terminal::{self, Screen};
use super::view::{Event, View};

/// Between two looks.
const REFRESH: Duration = Duration::from_millis(100);
/// Lines of the log that may wait.
const NOTES: usize = 100;

/// What was seen, and how it is shown.
pub(crate) struct Shown {
    view: View,
    feed: Feed,
    is_live: bool,
    has_heading: bool,
    notes: SyncSender<String>,
}

impl Shown {
    /// Starts an access log for the gate, which appends to this file if one is named, and what is shown of it.
    pub(crate) fn start(
        options: &Demo,
        plan: Option<&Plan>,
        ledger: PathBuf,
    ) -> Result<(AccessLog, Self), String> {
        let (notes, noted) = sync_channel(NOTES);
        let (log, feed) = Feed::start(options.access_log.as_deref(), ledger, noted)?;
        let shown = Self {
            view: View::of(plan.map(|plan| (plan.workload.as_str(), plan.calls))),
            feed,
            is_live: !options.plain && can_draw(),
            has_heading: false,
            notes,
        };
        Ok((log, shown))
    }

    /// Whether there is a picture.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Calls that were open at the last look.
    pub(crate) fn open(&self) -> u64 {
        self.view.open
    }

    /// Shows what happens, until the terminal with the picture is gone, or whoever reads the lines: a demo whose window
    /// was closed ends.
    pub(crate) async fn show(&mut self, gate: &EmbeddedGate, made: &Cell<u32>) -> io::Result<()> {
        self.view.data = gate.data().to_string();
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
            let open = gate.open_calls().await;
            for event in self.feed.look(gate, open) {
                self.view.apply(event);
            }
            self.view.apply(Event::Now(began.elapsed(), made.get()));
            match &mut screen {
                Some(screen) => screen.draw(|on| draw(&self.view, on))?,
                None => self.tell(false)?,
            }
        }
    }

    /// Shows what came after the last look.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        for event in self.feed.rest() {
            self.view.apply(event);
        }
        for note in std::mem::take(&mut self.view.notes) {
            drop(io::stderr().write_all(note.as_bytes()));
        }
        if self.is_live {
            return Ok(());
        }
        self.tell(true)
    }

    /// A line for each call that has ended.
    fn tell(&mut self, is_last: bool) -> io::Result<()> {
        let mut out = io::stdout();
        let due = self.view.due(is_last);
        if !due.is_empty() && !self.has_heading {
            self.has_heading = true;
            writeln!(out, "{}", plain::heading())?;
        }
        for call in due {
            writeln!(out, "{}", plain::line(&call))?;
        }
        if is_last && self.view.lost() > 0 {
            writeln!(out, "{} not shown", counted(self.view.lost(), "more call"))?;
        }
        out.flush()
    }
}

/// The log is handed to the picture.
struct Quiet;

impl Quiet {
    /// A log that goes elsewhere tears nothing.
    fn begin(notes: &SyncSender<String>) -> Self {
        if io::stderr().is_terminal() {
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
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    io::stdout().is_terminal() && !logging::forbids_colour() && !is_dumb && terminal::is_ours()
}
