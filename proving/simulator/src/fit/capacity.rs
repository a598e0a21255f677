//! How many KV blocks an engine had that does not say so.
//!
//! Too few blocks make requests wait for room; from some number on none waits, and more make no difference. So numbers
//! from the least that runs at all up to what the run needs without a limit are tried, each with the costs that suit
//! it, coarsely and then near the best. Often a share of a recording does not say: then the memory that is left beside
//! the weights is counted, where it is known, and else the fit says that it does not know.
//! Invariant: only the times of the share count; where no number is clearly better than ample, it stays ample.
//! Not here: counts that are reported (`replay::blocks`).

use super::{FARTHEST, Line, Problem};
use crate::replay::{BlockSource, Blocks, ReplayError, Replayed, Setup, replay};
use crate::trace::{Meta, Trace};

/// A number of blocks is only believed where it is nearer than ample blocks by this factor, and by this much.
const CLEARLY: f64 = 0.5;
const MUCH: f64 = 0.1;
/// From one number tried to the next.
const COARSE: f64 = 1.15;
/// Factors by which the best is moved, and rounds of regression for each number.
const FINE: [f64; 3] = [1.07, 1.03, 1.012];
const COARSE_ROUNDS: usize = 5;
const FINE_ROUNDS: usize = 4;
/// Moves for each factor at most.
const MOVES: usize = 6;
/// When costs are found: factors by which blocks are moved with the costs as they are.
const NARROW: [f64; 5] = [1.06, 1.03, 1.015, 1.007, 1.003];
/// How often that and the search for costs follow each other at most.
const NARROWINGS: usize = 3;
/// So many numbers, apart by this factor, are tried with their best costs.
const CANDIDATES: usize = 2;
const APART: f64 = 1.05;
/// What vLLM keeps free beside weights and KV cache for activations and captured graphs, about.
const ACTIVATIONS_BYTES: f64 = 1.3e9;
/// `gpu_memory_utilization` of a server that does not say.
const UTILIZATION: f64 = 0.9;

/// Numbers of KV blocks that explain the share alike, though the rest of the recording would be another with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsure {
    /// The fewest.
    pub least: u32,
    /// The most; `None` where any number from the least on would do.
    pub most: Option<u32>,
}

/// What was found.
pub(super) struct Capacity {
    pub(super) setup: Setup,
    /// Costs that suit it.
    pub(super) line: Line,
    pub(super) unsure: Option<Unsure>,
}

/// A number, its distance and the costs that suit it.
type Tried = (f64, Setup, Line);

/// Tries numbers, from costs to start with.
pub(super) fn find(
    problem: &mut Problem<'_>,
    ample: &Setup,
    line: Line,
) -> Result<Capacity, ReplayError> {
    let (ample_far, line) = problem.regress(ample, line, COARSE_ROUNDS)?;
    let unlimited = replay(problem.trace, ample, problem.cost(&line), |_| {})?;
    let engines = f64::from(ample.parallelism.data);
    let most = f64::from(unlimited.most_blocks) / engines * COARSE;
    let least = f64::from(least(problem.trace, ample));
    let mut tried = vec![(ample_far, *ample, line)];
    let mut count = least;
    while count < most {
        tried.push(attempt(problem, ample, line, count, COARSE_ROUNDS)?);
        count *= COARSE;
    }
    for factor in FINE {
        for _ in 0..MOVES {
            let (before, at, line) = nearest(&tried);
            if at.blocks.source == BlockSource::Ample {
                break;
            }
            for factor in [factor, factor.recip()] {
                let count = (f64::from(at.blocks.count) * factor).max(least);
                tried.push(attempt(problem, ample, line, count, FINE_ROUNDS)?);
            }
            if nearest(&tried).0 >= before {
                break;
            }
        }
    }
    settle(problem, ample, line, &tried)
}

/// Chooses, each with its best costs: bad costs alone make few blocks look better than they are.
fn settle(
    problem: &mut Problem<'_>,
    ample: &Setup,
    line: Line,
    tried: &[Tried],
) -> Result<Capacity, ReplayError> {
    let mut best = nearest(tried);
    for (_, limited, line) in candidates(tried) {
        let (limited, line) = narrow(problem, limited, line)?;
        let far = problem.far(&limited, &line)?;
        if best.1.blocks.source == BlockSource::Ample || far < best.0 {
            best = (far, limited, line);
        }
    }
    let (far, limited, limited_line) = best;
    let mut unlimited = (f64::INFINITY, *ample, line);
    for line in [problem.search(ample, line)?, limited_line] {
        let far = problem.far(ample, &line)?;
        if far < unlimited.0 {
            unlimited = (far, *ample, line);
        }
    }
    let is_limited = limited.blocks.source == BlockSource::Fitted
        && far < CLEARLY * unlimited.0
        && far + MUCH < unlimited.0;
    let (setup, line) = if is_limited {
        (limited, limited_line)
    } else {
        (*ample, unlimited.2)
    };
    let unsure = unsure(problem, tried, &setup, &line)?;
    let by_memory = arithmetic(&problem.trace.meta, setup.scheduler.kv.block_size)
        .filter(|&count| unsure.is_some() && count >= least(problem.trace, ample));
    let Some(count) = by_memory else {
        return Ok(Capacity {
            setup,
            line,
            unsure,
        });
    };
    let source = BlockSource::Memory;
    let setup = setup.with_blocks(Blocks { count, source });
    Ok(Capacity {
        setup,
        line: problem.search(&setup, line)?,
        unsure: None,
    })
}

/// The numbers that are about as near as the nearest, if it matters which of them it is.
fn unsure(
    problem: &Problem<'_>,
    tried: &[Tried],
    setup: &Setup,
    line: &Line,
) -> Result<Option<Unsure>, ReplayError> {
    let far = nearest(tried).0;
    let alike = |apart: f64| apart < far.max(CLEARLY * apart) + MUCH;
    let alike = tried.iter().filter(|(apart, ..)| alike(*apart));
    let count = |(_, setup, _): &&Tried| match setup.blocks.source {
        BlockSource::Ample => u32::MAX,
        _ => setup.blocks.count,
    };
    let counts = || alike.clone().map(|tried| count(&tried));
    let (least, most) = (counts().min(), counts().max());
    let (Some(least), Some(most)) = (least, most) else {
        return Ok(None);
    };
    let run = |count: u32| {
        let setup = if count == u32::MAX {
            tried.first().map_or(*setup, |(_, ample, _)| *ample)
        } else {
            with(setup, f64::from(count))
        };
        replay(problem.trace, &setup, problem.cost(line), |_| {})
    };
    let means = [mean_times(&run(least)?), mean_times(&run(most)?)];
    let [few, many] = means;
    let matters = few
        .iter()
        .zip(many)
        .any(|(few, many)| (few / many - 1.0).abs() > FARTHEST);
    Ok(matters.then_some(Unsure {
        least,
        most: (most != u32::MAX).then_some(most),
    }))
}

/// Mean seconds to the first and to the last token.
fn mean_times(run: &Replayed) -> [f64; 2] {
    let sum = |measure: fn(&crate::trace::Times) -> f64| run.requests.iter().map(measure).sum();
    let (ttft, e2e): (f64, f64) = (sum(|times| times.ttft()), sum(|times| times.e2e()));
    let n = run.requests.len().max(1) as f64;
    [ttft / n, e2e / n]
}

/// Blocks that fit into the memory beside the weights, where model and memory are known.
fn arithmetic(meta: &Meta, block_size: u32) -> Option<u32> {
    let model = meta.known_model()?;
    let usable = meta.memory_bytes? as f64 * meta.memory_utilization.unwrap_or(UTILIZATION);
    let weights = model.weights_on_each(meta.gpus_of_a_copy());
    let block = meta.kv_bytes_per_token(&model) * f64::from(block_size);
    let blocks = (usable - weights - ACTIVATIONS_BYTES) / block;
    (blocks >= 2.0).then_some(blocks as u32)
}

/// Moves the number that was found to its best and the costs to theirs, in turn.
fn narrow(
    problem: &mut Problem<'_>,
    mut setup: Setup,
    line: Line,
) -> Result<(Setup, Line), ReplayError> {
    let mut line = problem.search(&setup, line)?;
    if setup.blocks.source == BlockSource::Ample {
        return Ok((setup, line));
    }
    let least = f64::from(least(problem.trace, &setup));
    for _ in 0..NARROWINGS {
        let before = setup;
        let mut far = problem.far(&setup, &line)?;
        for factor in NARROW {
            for factor in [factor, factor.recip()] {
                for _ in 0..MOVES {
                    let count = (f64::from(setup.blocks.count) * factor).max(least);
                    let tried = with(&setup, count);
                    let apart = problem.far(&tried, &line)?;
                    if apart >= far {
                        break;
                    }
                    (far, setup) = (apart, tried);
                }
            }
        }
        if setup == before {
            break;
        }
        line = problem.search(&setup, line)?;
    }
    Ok((setup, line))
}

fn attempt(
    problem: &mut Problem<'_>,
    ample: &Setup,
    line: Line,
    count: f64,
    rounds: usize,
) -> Result<Tried, ReplayError> {
    let setup = with(ample, count);
    let (far, line) = problem.regress(&setup, line, rounds)?;
    Ok((far, setup, line))
}

/// The nearest limited numbers that are not next to each other.
fn candidates(tried: &[Tried]) -> Vec<Tried> {
    let mut sorted: Vec<Tried> = tried.to_vec();
    sorted.retain(|(_, setup, _)| setup.blocks.source != BlockSource::Ample);
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut chosen: Vec<Tried> = Vec::new();
    for one in sorted {
        let apart = |other: &Tried| {
            let ratio = f64::from(one.1.blocks.count) / f64::from(other.1.blocks.count);
            ratio.max(ratio.recip()) > APART
        };
        if chosen.len() < CANDIDATES && chosen.iter().all(apart) {
            chosen.push(one);
        }
    }
    chosen
}

/// The nearest of at least one.
fn nearest(tried: &[Tried]) -> Tried {
    let mut nearest = tried[0];
    for tried in tried {
        if tried.0 < nearest.0 {
            nearest = *tried;
        }
    }
    nearest
}

fn with(setup: &Setup, count: f64) -> Setup {
    setup.with_blocks(Blocks {
        count: count.round() as u32,
        source: BlockSource::Fitted,
    })
}

/// The fewest blocks on which every request of the recording could run alone.
fn least(trace: &Trace, setup: &Setup) -> u32 {
    let size = setup.scheduler.kv.block_size;
    let of_each = trace.requests.iter();
    let longest = of_each.map(|r| (r.prompt_tokens + r.output_tokens).div_ceil(size));
    longest.max().unwrap_or(1) + 1
}
