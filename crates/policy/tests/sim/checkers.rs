//! What must hold of a run, told from outside.

use policy::limit::Kind;
use policy::retry::MAX_ATTEMPTS;

use super::fleet::{Call, Promised, Seen};

/// The first thing that does not hold.
pub(super) fn check(seen: &Seen) -> Result<(), String> {
    for (n, call) in seen.calls.iter().enumerate() {
        settles_once(call).map_err(|says| format!("call {n}: {says}"))?;
        tries_well(call).map_err(|says| format!("call {n}: {says}"))?;
    }
    retries_stay_in_budget(seen)?;
    for limit in &seen.promised {
        windows_hold(limit, &seen.calls)?;
    }
    let idle = seen.promised.iter().zip(&seen.left_at_the_end);
    for (limit, left) in idle {
        if *left != limit.rate.burst {
            return Err(format!("{limit:?} leaked: {left} left of an idle bucket"));
        }
    }
    Ok(())
}

fn settles_once(call: &Call) -> Result<(), String> {
    let wanted = usize::from(call.admitted());
    if call.settled.len() == wanted {
        return Ok(());
    }
    Err(format!("settled {} times: {call:?}", call.settled.len()))
}

fn tries_well(call: &Call) -> Result<(), String> {
    let mut tried = call.tries.clone();
    tried.sort_unstable();
    tried.dedup();
    if tried.len() != call.tries.len() || tried.len() > MAX_ATTEMPTS {
        return Err(format!("tried {:?}", call.tries));
    }
    if call.admitted() == call.tries.is_empty() {
        return Err("admitted and not tried, or tried and refused".to_owned());
    }
    match call.refused {
        None | Some("rate_limit_exceeded" | "request_exceeds_limit" | "ledger_unavailable") => {
            Ok(())
        }
        Some(code) => Err(format!("refused for {code}")),
    }
}

fn retries_stay_in_budget(seen: &Seen) -> Result<(), String> {
    for worker in 0..seen.workers {
        let mine = seen
            .calls
            .iter()
            .filter(|c| c.worker == worker && c.admitted());
        let (firsts, tries) = mine.fold((0, 0), |(f, t), c| (f + 1, t + c.tries.len()));
        if tries - firsts > 10 + firsts / 10 {
            return Err(format!("worker {worker}: {tries} tries of {firsts} calls"));
        }
    }
    Ok(())
}

/// Every window that begins with one admission and ends with another.
fn windows_hold(limit: &Promised, calls: &[Call]) -> Result<(), String> {
    let mine: Vec<&Call> = calls
        .iter()
        .filter(|c| c.admitted() && c.workload == limit.workload)
        .collect();
    for first in 0..mine.len() {
        let mut returns = given_back(limit.kind, &mine[..first], mine[first].order);
        returns.sort_unstable();
        let mut returns = returns.into_iter().peekable();
        let (mut used, mut back) = (0_u64, 0_u64);
        for (last, call) in mine.iter().enumerate().skip(first) {
            used += units(limit.kind, call);
            while let Some((_, units)) = returns.next_if(|(order, _)| *order < call.order) {
                back += units;
            }
            // The dearest term last, and only where it can matter.
            let without = allowed(limit, mine[first].at_ns, call.at_ns) + i128::from(back);
            if i128::from(used) <= without {
                continue;
            }
            let overrun = match limit.kind {
                Kind::Requests => 0,
                Kind::Tokens => overrun(&mine[first..=last], call.order),
            };
            if i128::from(used) > without + i128::from(overrun) {
                return Err(format!(
                    "{used} {} in a window of {} ns: {limit:?}, given back {back}, overrun {overrun}",
                    limit.kind.as_str(),
                    call.at_ns - mine[first].at_ns,
                ));
            }
        }
    }
    Ok(())
}

fn units(kind: Kind, call: &Call) -> u64 {
    match kind {
        Kind::Requests => 1,
        Kind::Tokens => call.settled.iter().map(|(_, used)| used).sum(),
    }
}

/// Rate × window + burst, in whole units.
fn allowed(limit: &Promised, from_ns: i64, to_ns: i64) -> i128 {
    let per = i128::try_from(limit.rate.per.as_nanos()).expect("short");
    let refilled = i128::from(to_ns - from_ns) * i128::from(limit.rate.amount);
    (refilled + per / 2) / per + i128::from(limit.rate.burst)
}

/// When, after `order`, calls admitted before gave back how much.
fn given_back(kind: Kind, before: &[&Call], order: usize) -> Vec<(usize, u64)> {
    if kind == Kind::Requests {
        return Vec::new();
    }
    let settled = before.iter().flat_map(|call| {
        let back = |(at, used): &(usize, u64)| (*at, call.reserved.saturating_sub(*used));
        call.settled.iter().map(back)
    });
    settled.filter(|(at, _)| *at > order).collect()
}

/// What these calls overran and had not settled before `order`.
fn overrun(calls: &[&Call], order: usize) -> u64 {
    let late = |call: &&Call| {
        let settled = call.settled.iter().filter(|(at, _)| *at > order);
        settled
            .map(|(_, used)| used.saturating_sub(call.reserved))
            .sum::<u64>()
    };
    calls.iter().map(late).sum()
}
