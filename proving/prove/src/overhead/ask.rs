//! The same request again and again, each with an id, and its pairs with what a relay stamped.
//!
//! What the way takes by itself is asked the same way: without a gateway, and through a relay in its place.
//! Invariant: bounded by the number of requests and by time.
//! Not here: what pairs come to (`overhead`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use load::client::Protocol;
use load::observer::{Answers, Record};
use load::run::{Plan, Shape, start};
use load::source::{Fixed, Head, IdHeader};

use super::{Loopback, Pair, Pairs, Unpaired};
use crate::host::ports;
use crate::interrupt;
use crate::tap::{Stamp, Tap, TapConfig, monotonic_ns_of};

/// The header of ids.
pub(crate) const ID_HEADER: &str = "x-request-id";
/// An answer may take so long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// All answers may.
const LONGEST: Duration = Duration::from_secs(600);
/// Between two looks at whether it is over.
const LOOK: Duration = Duration::from_millis(10);
/// How long stamps may come after the last answer.
const LAST_STAMPS: Duration = Duration::from_millis(300);

/// So many requests to an address, by this protocol.
///
/// # Errors
/// The client could not be started, or lost rows.
pub(crate) fn ask(
    (address, protocol): (SocketAddr, Protocol),
    (head, body): (Head, Bytes),
    shape: Shape,
    requests: u32,
    stamps: &Receiver<Stamp>,
) -> Result<(Vec<Pair>, Unpaired), String> {
    let fault = |error: &dyn std::fmt::Display| error.to_string();
    let source = Arc::new(Fixed::one(head.clone(), body));
    let mut plan = Plan::plain(
        address,
        (head, source as _),
        shape,
        Duration::ZERO,
        LONGEST,
        TIMEOUT,
    );
    plan.reach.protocol = protocol;
    let (to, rows) = sync_channel::<Vec<Record>>(64);
    plan.most = Some(requests.into());
    plan.records = Some(to);
    for traffic in &mut plan.traffic {
        traffic.answers = Answers::Any;
        traffic.request_id = Some(IdHeader::new(ID_HEADER).map_err(|error| fault(&error))?);
    }
    // What was left of runs before is none of this one.
    stamps.try_iter().for_each(drop);
    let running = start(plan).map_err(|error| fault(&error))?;
    let mut pairs = Pairs::new(monotonic_ns_of(running.start));
    while !running.is_over() && !interrupt::was_heard() {
        thread::sleep(LOOK);
    }
    running.control().stop();
    let outcome = running.finish().map_err(|error| fault(&error))?;
    let mut asked = 0;
    for row in rows.try_iter().flatten() {
        asked += 1;
        pairs.row(&row);
    }
    let until = Instant::now() + LAST_STAMPS;
    while pairs.settled() < asked
        && let Ok(stamp) = stamps.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        pairs.stamp(stamp);
    }
    if outcome.records_lost > 0 {
        return Err("bug: rows of exchanges found no room".into());
    }
    Ok(pairs.finish())
}

/// A relay of ours where a gateway would be, before the relay that stamps for pairs.
pub(crate) struct NullGateway {
    tap: Tap,
    passed: Receiver<Stamp>,
    relay: SocketAddr,
    protocol: Protocol,
}

impl NullGateway {
    /// Relays to `relay`, which is spoken to by this protocol.
    ///
    /// # Errors
    /// There is no port or no thread for it.
    pub(crate) fn before(relay: SocketAddr, protocol: Protocol) -> Result<Self, String> {
        let id = IdHeader::new(ID_HEADER).map_err(|error| error.to_string())?;
        let (tap, passed) = Tap::start(TapConfig {
            listen: ports::loopback(0),
            upstream: relay,
            id,
        })?;
        Ok(Self {
            tap,
            passed,
            relay,
            protocol,
        })
    }

    /// What the way takes by itself, by so many requests of each kind; and the pairs of those without a gateway.
    ///
    /// # Errors
    /// As of [`ask`].
    pub(crate) fn price(
        &self,
        (head, body): (Head, Bytes),
        shape: Shape,
        requests: u32,
        stamps: &Receiver<Stamp>,
    ) -> Result<(Option<Loopback>, Vec<Pair>), String> {
        let what = || (head.clone(), body.clone());
        self.passed.try_iter().for_each(drop);
        let (relayed, _) = ask(
            (self.tap.address, self.protocol),
            what(),
            shape,
            requests,
            stamps,
        )?;
        let own: Vec<Stamp> = self.passed.try_iter().collect();
        let (direct, _) = ask((self.relay, self.protocol), what(), shape, requests, stamps)?;
        Ok((Loopback::of(&direct, &relayed, &own), direct))
    }
}
