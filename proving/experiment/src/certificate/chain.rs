//! The checks of a hidden chain: its sojourns, its states, and what was due in each.
//!
//! Invariant: the trajectory is made again from the seed, and is that which senders had.
//! Not here: gaps (`checks`).

use super::checks::LEAST_CYCLES;
use super::gaps::Gaps;
use super::{Check, LEAST_GAPS, Of};
use crate::arrivals::{Chain, Mmpp, Process, Scope};
use crate::statistics::special::{gamma_pq, normal_outside, two_sided};

/// Chains that are looked at where every user has one.
const MOST_CHAINS: usize = 200;
/// Share of arrivals that an ON/OFF source may have while it is off: moments are rounded to nanoseconds.
const LEAK: f64 = 1e-3;

pub(super) fn checks(gaps: &mut Gaps<'_>) -> Vec<Check> {
    let Process::Mmpp(mmpp) = *gaps.process else {
        return Vec::new();
    };
    let own = gaps.scope == Scope::User;
    let chains: Vec<Chain> = gaps
        .actors
        .iter()
        .take(if own { MOST_CHAINS } else { 1 })
        .filter_map(|&actor| gaps.law(actor).chain().cloned())
        .collect();
    if chains.is_empty() || gaps.end_s <= 0.0 {
        return Vec::new();
    }
    let mut checks = stays(&mmpp, &chains, gaps.end_s);
    checks.push(occupancy(&mmpp, &chains, gaps.end_s));
    if let (true, [chain]) = (gaps.open, chains.as_slice()) {
        checks.extend(in_states(&mmpp, chain, gaps));
    }
    checks
}

/// The first stays of each chain, as many as a run has in the mean: their sum in a state is gamma, exactly. Those in
/// the first state begin before the run, and have no memory.
fn stays(mmpp: &Mmpp, chains: &[Chain], end_s: f64) -> Vec<Check> {
    let cycles = (end_s / (mmpp.on_s() + mmpp.off_s())).ceil().max(1.0) as u64;
    let mut sums = [0.0; 2];
    for chain in chains {
        let mut chain = chain.clone();
        let mut stay = chain.seek(0.0);
        for _ in 0..2 * cycles {
            sums[usize::from(stay.on)] += stay.to_s - stay.from_s;
            stay = chain.advance();
        }
    }
    let n = (cycles * chains.len() as u64) as f64;
    [
        ("sojourn_on_s", sums[1], mmpp.on_s()),
        ("sojourn_off_s", sums[0], mmpp.off_s()),
    ]
    .map(|(name, sum, mean)| {
        let p = two_sided(gamma_pq(n, sum / mean));
        Check::new(name, Of::Chain, sum / n, Some(mean)).p(p)
    })
    .into()
}

/// The share of time in the high state.
fn occupancy(mmpp: &Mmpp, chains: &[Chain], end_s: f64) -> Check {
    let n = chains.len() as f64;
    let shares = chains.iter().map(|chain| chain.clone().occupancy(end_s));
    let share = shares.sum::<f64>() / n;
    let error = (mmpp.occupancy_variance(end_s) / n).sqrt();
    let enough = n * end_s / (mmpp.on_s() + mmpp.off_s()) >= LEAST_CYCLES;
    let p = normal_outside((share - mmpp.occupancy()) / error);
    Check::new("occupancy", Of::Chain, share, Some(mmpp.occupancy())).p_if(enough, p)
}

/// Arrivals intended in each state, up to the last: Poisson, given the chain.
fn in_states(mmpp: &Mmpp, chain: &Chain, gaps: &Gaps<'_>) -> Vec<Check> {
    let mut chain = chain.clone();
    let span_s = gaps.intended.last_s();
    let mut counts = [0_u32; 2];
    for at in gaps.intended.times_s() {
        counts[usize::from(at < span_s && chain.seek(at).on)] += u32::from(at < span_s);
    }
    let total = gaps.intended.pairs.len();
    if total < LEAST_GAPS {
        return Vec::new();
    }
    let on_s = chain.occupancy(span_s) * span_s;
    let rate = |name, count: u32, rate: f64, time_s: f64| {
        let found = f64::from(count) / time_s.max(f64::MIN_POSITIVE);
        let (expected, count) = (rate * time_s, f64::from(count));
        let check = Check::new(name, Of::Intended, found, Some(rate));
        let at_least = if count > 0.0 {
            gamma_pq(count, expected).0
        } else {
            1.0
        };
        check.p_if(
            time_s > 0.0,
            two_sided((gamma_pq(count + 1.0, expected).1, at_least)),
        )
    };
    let high = rate("rate_on", counts[1], mmpp.high(), on_s);
    let low = if mmpp.low() > 0.0 {
        rate("rate_off", counts[0], mmpp.low(), span_s - on_s)
    } else {
        let share = f64::from(counts[0]) / total as f64;
        Check::new("share_off", Of::Intended, share, Some(0.0)).limit(LEAK)
    };
    vec![high, low]
}
