//! A connection for one request: one that is kept, or a new one.
//!
//! Not here: what is kept (`pool`), dialling (`connect`), whose request it is (`exchange`, `mcp`).

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use policy::attempt::Failure;
use tokio::time::Instant;

use super::connect::{Connected, connect};
use super::h2;
use super::pool::{Connection, Pool};
use crate::timers::Timers;

/// A usable connection.
pub(crate) enum Line {
    H1(Connection),
    H2(h2::Handle),
}

/// A connection that is open and has room, to that address, or else to any that the name has.
pub(crate) fn reuse(pool: &Pool, to: Option<IpAddr>) -> Option<Line> {
    match pool.take(to) {
        Some(connection) => Some(Line::H1(connection)),
        None => h2::take(pool, to).map(Line::H2),
    }
}

/// A new connection of HTTP/1.1, which alone can become a WebSocket's.
///
/// # Errors
/// There is none, after so long at most.
pub(crate) async fn dial_to_switch(
    (pool, to): (&Rc<Pool>, Option<IpAddr>),
    timers: &Timers,
    limit: Duration,
) -> Result<Line, Failure> {
    let Some(room) = pool.admit() else {
        crate::why::tell("as many connections to it are open as may be");
        return Err(Failure::LocalCapacity);
    };
    let Connected { stream, is_h2 } = connect(pool, to, timers, limit, true).await?;
    if is_h2 {
        crate::why::tell("a WebSocket needs HTTP/1.1, and `protocol` says http2");
        return Err(Failure::Malformed);
    }
    Ok(Line::H1(Connection::new(stream, room)))
}

/// A new connection, or one that was opened meanwhile and has room.
///
/// # Errors
/// There is none, after so long at most.
pub(crate) async fn dial(
    (pool, to): (&Rc<Pool>, Option<IpAddr>),
    may_share: bool,
    timers: &Timers,
    limit: Duration,
) -> Result<Line, Failure> {
    let mut limit = limit;
    let mut _opening = None;
    if may_share && pool.is_shared.get() {
        let began = Instant::now();
        let turn = timers.timeout(limit, pool.opening.acquire()).await;
        _opening = Some(turn.map_err(|_| Failure::ConnectTimeout)?);
        if let Some(shared) = h2::take(pool, to) {
            return Ok(Line::H2(shared));
        }
        limit = limit.saturating_sub(began.elapsed());
    }
    let Some(room) = pool.admit() else {
        // Another address of the name may have one to spare.
        if let Some(kept) = may_share.then(|| reuse(pool, None)).flatten() {
            return Ok(kept);
        }
        crate::why::tell("as many connections to it are open as may be");
        return Err(Failure::LocalCapacity);
    };
    let only_h1 = false;
    let Connected { stream, is_h2 } = connect(pool, to, timers, limit, only_h1).await?;
    pool.is_shared.set(is_h2);
    if is_h2 {
        let handle = h2::begin(pool, timers, stream, room).await?;
        return Ok(Line::H2(handle));
    }
    Ok(Line::H1(Connection::new(stream, room)))
}
