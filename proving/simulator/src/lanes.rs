//! Lanes of recorded agents before a simulated engine, in virtual time.
//!
//! Prompts share blocks where the traces' names of blocks are the same, and two plays of a trace share none.
//! Invariant: who sends what, and when, is `experiment::lanes`' to say; the same traces, rules and preset give the same to the last digit.
//! Not here: what is told of it (`prove`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use experiment::lanes::{Ask, Kind, Lanes, Phase, Sent, Trace};
use experiment::random::mix;

use crate::kv::{BlockHash, Chain};
use crate::preset::Preset;
use crate::scheduler::{NeverFits, Request, RequestId, SchedulerStats};
use crate::virtual_time::VirtualEngine;

/// A request that was sent, and what came of it; moments are since the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answered {
    /// Which.
    pub sent: Sent,
    /// It was sent.
    pub at: Duration,
    /// Its client had the first token.
    pub first: Option<Duration>,
    /// And the last; `None` of what was cancelled.
    pub last: Option<Duration>,
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens that came.
    pub output: u32,
    /// Tokens of the prompt that the prefix cache spared.
    pub cached: u32,
}

/// What came of all.
#[derive(Debug)]
pub struct Played {
    /// In the order in which they were sent.
    pub requests: Vec<Answered>,
    /// The lanes at their end.
    pub lanes: Lanes,
    /// When that was.
    pub ended: Duration,
    /// What the engine did.
    pub stats: SchedulerStats,
}

/// A trace that this engine cannot play.
#[derive(Debug, thiserror::Error)]
#[error("request {request} of {stream} never fits: {reason}")]
pub struct PlayError {
    /// The stream's name.
    pub stream: String,
    /// Which of its requests, from 0.
    pub request: usize,
    /// Why.
    pub reason: NeverFits,
}

/// Plays all lanes to their end. `watch` sees the time go by, and says whether it goes on.
///
/// # Errors
/// A request could never run.
pub fn play(
    mut lanes: Lanes,
    preset: &Preset,
    mut watch: impl FnMut(Duration, Phase) -> bool,
) -> Result<Played, PlayError> {
    let mut engine =
        VirtualEngine::parallel(preset.scheduler, preset.step.clone(), preset.parallelism);
    let traces = Arc::clone(lanes.traces());
    let mut requests: Vec<Answered> = Vec::new();
    let mut leaving: BinaryHeap<Reverse<(Duration, u64)>> = BinaryHeap::new();
    let mut of_number: HashMap<u64, usize> = HashMap::new();
    let (mut now, mut sent_until) = (Duration::ZERO, Duration::ZERO);
    let block_size = preset.scheduler.kv.block_size.max(1);
    while lanes.phase() != Phase::Over && watch(now, lanes.phase()) {
        while let Some(sent) = lanes.take(now) {
            let Some(ask) = ask_of(&traces, &sent) else {
                continue;
            };
            let output = if sent.kind == Kind::Primer {
                1
            } else {
                ask.output.max(1)
            };
            of_number.insert(sent.number, requests.len());
            requests.push(Answered {
                sent,
                at: now,
                first: None,
                last: None,
                prompt: ask.prompt.max(1),
                output: 0,
                cached: 0,
            });
            let request = Request {
                id: RequestId(sent.number),
                prompt_tokens: ask.prompt.max(1),
                output_tokens: output,
                chain: chain(&traces, &sent, ask, block_size),
            };
            engine.post(now + preset.frontend.before_queue, request);
        }
        let left = leaving.peek().map(|Reverse((at, _))| *at);
        let next = [left, lanes.next_at(), engine.next_due()];
        let Some(next) = next.into_iter().flatten().min() else {
            break;
        };
        now = now.max(next);
        while let Some(&Reverse((at, number))) =
            leaving.peek().filter(|Reverse((at, _))| *at <= now)
        {
            leaving.pop();
            lanes.ended(number, at);
        }
        let ran = engine.iterate(now).map_err(|(id, reason)| {
            let sent = of_number
                .get(&id.0)
                .and_then(|at| requests.get(*at))
                .map(|answered| answered.sent);
            let stream = sent.and_then(|sent| traces.get(sent.trace)?.streams.get(sent.stream));
            PlayError {
                stream: stream.map(|stream| stream.id.clone()).unwrap_or_default(),
                request: sent.map_or(0, |sent| sent.request),
                reason,
            }
        })?;
        let Some(iteration) = ran else {
            continue;
        };
        for admitted in &iteration.admitted {
            let at = of_number.get(&admitted.id.0);
            if let Some(answered) = at.and_then(|at| requests.get_mut(*at)) {
                answered.cached = admitted.cached_tokens;
            }
        }
        sent_until = sent_until.max(iteration.at);
        for token in &iteration.emitted {
            sent_until += preset.frontend.per_token;
            let at = of_number.get(&token.id.0);
            let Some(answered) = at.and_then(|at| requests.get_mut(*at)) else {
                continue;
            };
            answered.first.get_or_insert(sent_until);
            answered.output = token.index + 1;
            if token.last {
                answered.last = Some(sent_until);
                leaving.push(Reverse((sent_until, token.id.0)));
            }
        }
    }
    // What had its last token when all was over has an answer that nobody waited for.
    for sent in lanes.under_way() {
        let at = of_number.get(&sent.number);
        if let Some(answered) = at.and_then(|at| requests.get_mut(*at)) {
            answered.last = None;
        }
    }
    Ok(Played {
        requests,
        lanes,
        ended: now,
        stats: engine.stats(),
    })
}

fn ask_of<'a>(traces: &'a [Trace], sent: &Sent) -> Option<&'a Ask> {
    let stream = traces.get(sent.trace)?.streams.get(sent.stream)?;
    stream.requests.get(sent.request)
}

/// The names of a prompt's blocks at the engine, whose size is another than the trace's: each stands for all that was before it.
fn chain(traces: &[Trace], sent: &Sent, ask: &Ask, block_size: u32) -> Chain {
    let trace = traces.get(sent.trace);
    let of_trace = trace.map_or(1, |trace| trace.block.max(1));
    // Names mean the same in one trace, or in all; plays share nothing, since each begins with words of its own.
    let play = mix(sent.play ^ 0x5eed_1a9e);
    let named = u64::try_from(ask.blocks.len()).unwrap_or(0) * u64::from(of_trace);
    let whole = u64::from(ask.prompt).min(named) / u64::from(block_size);
    let mut before = play;
    let mut done = 0;
    let names = (0..whole).map(|block| {
        // All of the trace's blocks that have begun by its end.
        let until = ((block + 1) * u64::from(block_size)).div_ceil(u64::from(of_trace));
        while done < until {
            let name = usize::try_from(done).ok().and_then(|at| ask.blocks.get(at));
            before = mix(before ^ mix(name.copied().unwrap_or(0)));
            done += 1;
        }
        BlockHash(mix(before ^ mix(block)))
    });
    Chain::of_blocks(names.collect(), mix(sent.number ^ 0x0a11_0e5e))
}

#[cfg(test)]
mod tests {
    //! Hits are what traces share, and never what two plays share.

    use experiment::lanes::Rules;

    use super::*;

    fn ask(at_s: u64, prompt: u32, output: u32, blocks: &[u64]) -> Ask {
        Ask {
            at: Duration::from_secs(at_s),
            took: Duration::from_secs(1),
            prompt,
            output,
            blocks: blocks.to_vec(),
            ..Ask::default()
        }
    }

    fn one() -> Arc<[Trace]> {
        let requests = vec![
            ask(0, 128, 4, &[1, 2]),
            ask(10, 200, 6, &[1, 2, 3, 4]),
            ask(20, 256, 5, &[1, 2, 3, 9]),
        ];
        let streams = vec![("one".to_owned(), None, requests)];
        Arc::new([Trace::new("one".into(), 64, streams, |_, _| None).expect("a trace")])
    }

    #[test]
    fn primers_bring_the_history_into_the_cache_and_a_trace_that_comes_again_shares_nothing() {
        let preset = Preset::named("instant").expect("a preset");
        let rules = Rules {
            begins: (0.5, 0.5),
            warm_ups: 1,
            measure: Duration::from_secs(60),
            ..Rules::agentx(1, 1)
        };
        let lanes = Lanes::new(rules, one()).expect("rules");
        let played = play(lanes, &preset, |_, _| true).expect("it fits");
        let told: Vec<_> = played
            .requests
            .iter()
            .take(6)
            .map(|one| {
                (
                    one.sent.kind,
                    one.sent.play,
                    one.sent.request,
                    one.cached,
                    one.output,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                // Of the request before the middle, one token.
                (Kind::Primer, 0, 0, 0, 1),
                // Two blocks of 64 of the same names.
                (Kind::WarmUp, 0, 1, 128, 6),
                // Of 256 tokens, 192 are named as before.
                (Kind::Measured, 0, 2, 192, 5),
                (Kind::Measured, 1, 0, 0, 4),
                (Kind::Measured, 1, 1, 128, 6),
                (Kind::Measured, 1, 2, 192, 5),
            ]
        );
        assert!(
            played.ended >= Duration::from_secs(60),
            "{:?}",
            played.ended
        );
    }

    #[test]
    fn what_never_fits_is_named() {
        let preset = Preset::named("instant").expect("a preset");
        let most = preset.scheduler.max_model_len;
        let streams = vec![("long/0".to_owned(), None, vec![ask(0, most, 9, &[])])];
        let trace = Trace::new("long".into(), 64, streams, |_, _| None).expect("a trace");
        let lanes = Lanes::new(Rules::agentx(1, 1), Arc::new([trace])).expect("rules");
        let error = play(lanes, &preset, |_, _| true).expect_err("too long");
        assert!(
            error
                .to_string()
                .starts_with("request 0 of long/0 never fits"),
            "{error}"
        );
    }
}
