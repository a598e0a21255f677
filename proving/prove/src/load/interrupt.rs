//! Ctrl-C: the first ends a run in order, so that what was measured is told; the second ends the program at once.
//!
//! Not here: ending a run (`load::run::Control`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// 128 + SIGINT, as shells report it.
const EXIT_CODE: i32 = 130;

/// Whether there was one.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM are heard.
    pub(crate) fn heed() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let signals = {
            let _within = runtime.enter();
            (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            )
        };
        let heard = Arc::new(AtomicBool::new(false));
        let ours = Arc::clone(&heard);
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(listen(signals, &ours)))?;
        Ok(Self(heard))
    }

    pub(crate) fn was_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

async fn listen((mut int, mut term): (Signal, Signal), heard: &AtomicBool) {
    loop {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
        if heard.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE);
        }
        eprintln!("interrupted: the run ends; once more ends the program at once");
    }
}
