//! Ctrl-C: the first ends a run in order, so that what was measured is told; the second ends the program at once.
//!
//! Signals are the process's, and so is whether one was heard: whoever waits for something may ask, wherever it stands.
//! Invariant: before [`Interrupt::heed`] nothing is heard, and signals do what they do to any program.
//! Not here: ending a run (`load::run::Control`).

use std::fs;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// 128 + SIGINT, as shells report it.
const EXIT_CODE: i32 = 130;
/// Between two looks of whoever waits.
const LOOK: Duration = Duration::from_millis(50);

static HEARD: AtomicBool = AtomicBool::new(false);

/// Signals are heeded.
pub(crate) struct Interrupt(());

impl Interrupt {
    /// From now on SIGINT and SIGTERM are heard, and SIGHUP unless it is ignored, as under `nohup`.
    pub(crate) fn heed() -> io::Result<Self> {
        let runtime = crate::runtime::make()?;
        let signals = {
            let _within = runtime.enter();
            let hangup = SignalKind::hangup();
            let hup = (!is_ignored(hangup)).then(|| signal(hangup)).transpose()?;
            let int = signal(SignalKind::interrupt())?;
            (int, signal(SignalKind::terminate())?, hup)
        };
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(listen(signals)))?;
        Ok(Self(()))
    }

    pub(crate) fn was_heard(&self) -> bool {
        let Self(()) = self;
        was_heard()
    }
}

/// Whether there was one.
pub(crate) fn was_heard() -> bool {
    HEARD.load(Ordering::Relaxed)
}

/// Waits so long, or until there is one.
pub(crate) fn sleep(time: Duration) {
    let until = Instant::now() + time;
    while !was_heard() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Ends when there is one.
pub(crate) async fn heard() {
    while !was_heard() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Ends when a signal asks for the end of a program that has nothing to sum up: SIGINT or SIGTERM, from now on. To be
/// called within a runtime.
pub(crate) fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! { _ = int.recv() => {}, _ = term.recv() => {} }
    })
}

/// Whether whoever started us wants a signal to be ignored.
fn is_ignored(signal: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw_value() - 1) & 1 == 1)
}

async fn listen((mut int, mut term, mut hup): (Signal, Signal, Option<Signal>)) {
    let mut hung_up = async || match &mut hup {
        Some(hup) => hup.recv().await,
        None => std::future::pending().await,
    };
    loop {
        // A terminal that closes may tell so twice, itself and by its shell: nobody is in haste.
        let is_haste = tokio::select! {
            _ = int.recv() => true,
            _ = term.recv() => true,
            _ = hung_up() => false,
        };
        if HEARD.swap(true, Ordering::Relaxed) {
            if is_haste {
                std::process::exit(EXIT_CODE);
            }
            continue;
        }
        // A terminal that is gone takes no line.
        let says = "interrupted: the run ends; once more ends the program at once\n";
        drop(io::stderr().write_all(says.as_bytes()));
    }
}
