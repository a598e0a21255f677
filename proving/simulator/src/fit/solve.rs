//! From windows to costs: least squares without negative answers, then the nearest run by trying: each cost a little
//! more, a little less, then all of them at random.
//!
//! Invariant: every cost found is at least 0; what trying returns is never farther than its start; the number of
//! tries is bounded, and chance has one seed.
//! Not here: where windows come from (`window`), what near means (`fit`).

use experiment::random::Rng;

use super::prior::Prior;
use super::window::Window;
use super::{Line, PARAMETERS};

/// Passes over the parameters; each pass lessens the error.
const PASSES: usize = 20_000;

/// A window tells as much as if it were off by this share of its length: what the simulation leaves out is the same for
/// many of them, so that many together tell little more than a few. Only beside a prior does it matter.
const WINDOW_SIGMA: f64 = 0.6;

/// The costs that explain the windows best, and what is known beforehand. Each window counts by its relative error and
/// its weight.
pub(super) fn least_squares(
    windows: &[Window],
    relative_error: f64,
    prior: Option<&Prior>,
) -> Line {
    let mut scale = [0.0_f64; PARAMETERS];
    for window in windows {
        for (scale, feature) in scale.iter_mut().zip(window.features) {
            *scale += (feature / window.seconds * window.weight(relative_error)).powi(2);
        }
    }
    let mut scale = scale.map(f64::sqrt);
    let mut normal = [[0.0; PARAMETERS]; PARAMETERS];
    let mut right = [0.0; PARAMETERS];
    for window in windows {
        let row: [f64; PARAMETERS] = std::array::from_fn(|i| match scale[i] {
            0.0 => 0.0,
            scale => window.features[i] / window.seconds * window.weight(relative_error) / scale,
        });
        for i in 0..PARAMETERS {
            right[i] += row[i] * window.weight(relative_error);
            for j in 0..PARAMETERS {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    for (i, prior) in prior
        .iter()
        .flat_map(|prior| (0..PARAMETERS).map(move |i| (i, prior)))
    {
        // What no window tells of is as it is known to be.
        if scale[i] == 0.0 {
            scale[i] = 1.0 / prior.line[i];
        }
        let known = prior.line[i] * scale[i];
        let weight = (WINDOW_SIGMA / prior.sigma[i] / known).powi(2);
        normal[i][i] += weight;
        right[i] += weight * known;
    }
    let scaled = coordinate_descent(&normal, &right);
    std::array::from_fn(|i| {
        if scale[i] > 0.0 {
            scaled[i] / scale[i]
        } else {
            0.0
        }
    })
}

/// One parameter after the other, each to its best value at least 0.
fn coordinate_descent(normal: &[[f64; PARAMETERS]; PARAMETERS], right: &Line) -> Line {
    let mut answer = [0.0; PARAMETERS];
    for _ in 0..PASSES {
        let mut moved = 0.0_f64;
        for i in 0..PARAMETERS {
            if normal[i][i] <= 0.0 {
                continue;
            }
            let sum = product(&normal[i], &answer);
            let next = (answer[i] + (right[i] - sum) / normal[i][i]).max(0.0);
            moved = moved.max((next - answer[i]).abs());
            answer[i] = next;
        }
        if moved < 1e-12 {
            break;
        }
    }
    answer
}

/// What a fit does most: written out, so that it is quick in a build that is hardly optimised.
fn product([a, b, c, d, e, f]: &Line, [u, v, w, x, y, z]: &Line) -> f64 {
    a * u + b * v + c * w + d * x + e * y + f * z
}

/// Factors by which costs are moved, coarse to fine.
const FACTORS: [f64; 5] = [1.2, 1.08, 1.03, 1.01, 1.004];
/// Passes over all costs for each factor.
const REFINING_PASSES: usize = 3;

/// Moves each cost as long as that brings the run nearer.
pub(super) fn refine<E>(
    start: Line,
    mut distance: impl FnMut(&Line) -> Result<f64, E>,
) -> Result<Line, E> {
    let (mut line, mut least) = (start, distance(&start)?);
    for factor in FACTORS {
        for _ in 0..REFINING_PASSES {
            let before = least;
            for moved in moves() {
                for factor in [factor, factor.recip()] {
                    let mut tried = line;
                    tried
                        .iter_mut()
                        .zip(moved)
                        .for_each(|(cost, power)| *cost *= factor.powf(power));
                    if tried == line {
                        continue;
                    }
                    let apart = distance(&tried)?;
                    if apart < least {
                        (line, least) = (tried, apart);
                        break;
                    }
                }
            }
            if least >= before {
                break;
            }
        }
    }
    Ok(line)
}

/// Random moves that are tried.
const MOVES: usize = 240;
/// The first of them are about this long, as a logarithm: where one succeeds the next are longer, else shorter, so that
/// about one in five succeeds (Rechenberg's rule for an evolution strategy of one parent and one child).
const FIRST_LENGTH: f64 = 0.1;
const LONGER: f64 = 1.35;
const SHORTER: f64 = 0.928;
/// A move shorter than this changes nothing that matters.
const SHORTEST: f64 = 3e-4;
/// A cost that is a small part of all is moved farther, up to so many times.
const FARTHEST_MOVE: f64 = 8.0;
const SEED: u64 = 15;

/// Moves all costs at random as long as that brings the run nearer; `parts` are the shares of the time that they make.
/// What a small cost explains another may explain as well, so only moves of many together find the way.
pub(super) fn wander<E>(
    start: Line,
    parts: Line,
    mut distance: impl FnMut(&Line) -> Result<f64, E>,
) -> Result<Line, E> {
    let mut rng = Rng::new(SEED);
    let (mut line, mut least, mut length) = (start, distance(&start)?, FIRST_LENGTH);
    for _ in 0..MOVES {
        if length < SHORTEST {
            break;
        }
        let mut tried = line;
        for (cost, part) in tried.iter_mut().zip(parts) {
            let far = (1.0 / part.max(1e-9) / PARAMETERS as f64).clamp(0.5, FARTHEST_MOVE);
            *cost *= (rng.normal() * length * far).exp();
        }
        let apart = distance(&tried)?;
        if apart < least {
            (line, least) = (tried, apart);
            length *= LONGER;
        } else {
            length *= SHORTER;
        }
    }
    Ok(line)
}

/// All at once, each alone, and a step's own cost against what runs in it.
fn moves() -> Vec<Line> {
    let mut moves = vec![[1.0; PARAMETERS]];
    for i in 0..PARAMETERS {
        let mut alone = [0.0; PARAMETERS];
        alone[i] = 1.0;
        moves.push(alone);
    }
    moves.push([1.0, 1.0, -1.0, -1.0, 0.0, 0.0]);
    moves.push([1.0, 1.0, 0.0, 0.0, -1.0, -1.0]);
    moves.push([0.0, 0.0, 1.0, 1.0, -1.0, -1.0]);
    moves
}
