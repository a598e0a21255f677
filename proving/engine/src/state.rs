//! What all calls share.
//!
//! Invariant: a number is given out once; the configuration never changes.
//! Not here: what is recorded of calls (`recorder`), connections (`server`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use simulator::scheduler::RequestId;
use tokio::sync::mpsc;

use crate::config::EngineConfig;
use crate::faults::FaultInjector;
use crate::generation::{Identity, fresh_id};
use crate::model::Model;
use crate::real_time::Command;
use crate::recorder::Recorder;

/// What all requests share.
pub(crate) struct State {
    pub(crate) config: EngineConfig,
    pub(crate) models: Vec<Model>,
    pub(crate) started_s: u64,
    /// To the simulated machine; nobody reads it where there is none.
    pub(crate) engine: mpsc::UnboundedSender<Command>,
    pub(crate) recorder: Arc<Recorder>,
    injector: Mutex<FaultInjector>,
    id_seed: u64,
    numbers: AtomicU64,
}

impl State {
    pub(crate) fn new(
        config: EngineConfig,
        engine: mpsc::UnboundedSender<Command>,
    ) -> Result<Self, String> {
        let date = config.date.clone().unwrap_or_else(|| date_utc(now_s()));
        Ok(Self {
            models: Model::all(&config, &date)?,
            started_s: now_s(),
            engine,
            recorder: Arc::new(Recorder::new(&config)),
            injector: Mutex::default(),
            id_seed: config.seed ^ since_1970().as_nanos() as u64,
            numbers: AtomicU64::new(0),
            config,
        })
    }

    pub(crate) fn injector(&self) -> MutexGuard<'_, FaultInjector> {
        self.injector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fresh name for a sequence in the simulated machine.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId(self.numbers.fetch_add(1, Ordering::Relaxed))
    }

    /// A fresh identity for an answer of `model`.
    pub(crate) fn identity(&self, prefix: &str, model: &str) -> Identity {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        Identity {
            id: fresh_id(prefix, self.id_seed, number),
            created: now_s(),
            model: model.to_owned(),
        }
    }
}

fn now_s() -> u64 {
    since_1970().as_secs()
}

/// The day of a moment, seconds since 1970: `YYYY-MM-DD` in UTC, by the proleptic Gregorian calendar (days to civil: Howard Hinnant, 2013).
pub fn date_utc(unix_s: u64) -> String {
    let days = (unix_s / 86_400) as i64 + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next)
}

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
