//! `prove load-worker`: one of the processes that send the load of a race.
//!
//! It reads an order from its standard input, says that it is ready, waits for its start, and says what it saw.
//! Invariant: it ends with whoever started it, since its standard input ends then.
//! Not here: what an order holds (`order`), sending (`load`).

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use load::run::{Ready, prepare};
use serde::de::DeserializeOwned;

use super::order::{Order, Said, Seen, Word};
use crate::host::descriptors;

/// How often it says how many answers are under way.
const SAYS: Duration = Duration::from_millis(100);

/// Nobody is there who would hear what was seen, or whoever started this says what makes no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    #[error("the race that started this is gone: {0}")]
    Said(#[from] rmp_serde::encode::Error),
    #[error("a process of a race, which reads its order from there: {0}")]
    Heard(#[from] rmp_serde::decode::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Sends what it is ordered to.
pub(crate) fn work() -> Result<(), WorkerError> {
    descriptors::raise();
    let order: Order = read()?;
    let made = order.plan().and_then(|(plan, requests)| {
        let ready = prepare(plan).map_err(|error| error.to_string())?;
        Ok((ready, requests))
    });
    let (ready, requests) = match made {
        Ok(made) => made,
        Err(why) => return say(&Said::Failed(why)),
    };
    say(&Said::Ready)?;
    let Word::Start(moment) = read()? else {
        return Ok(());
    };
    let said = match send(ready, moment.instant())? {
        Ok(outcome) => Said::Ended(Box::new(Seen {
            outcome,
            turns: requests.fixed().turns_taken(),
        })),
        Err(error) => Said::Failed(error.to_string()),
    };
    say(&said)
}

fn send(
    ready: Ready,
    start: std::time::Instant,
) -> Result<Result<load::run::Outcome, load::run::LoadError>, WorkerError> {
    let running = ready.start_at(start);
    let control = running.control();
    thread::Builder::new().name("words".into()).spawn(move || {
        while let Ok(word) = read() {
            match word {
                Word::Stop => control.stop(),
                Word::Start(_) => {}
            }
        }
        std::process::exit(2);
    })?;
    while !running.is_over() {
        say(&Said::Open(running.open()))?;
        thread::sleep(SAYS);
    }
    Ok(running.finish())
}

fn read<T: DeserializeOwned>() -> Result<T, rmp_serde::decode::Error> {
    rmp_serde::from_read(io::stdin().lock())
}

fn say(what: &Said) -> Result<(), WorkerError> {
    let mut out = io::stdout().lock();
    rmp_serde::encode::write_named(&mut out, what)?;
    out.flush()?;
    Ok(())
}
