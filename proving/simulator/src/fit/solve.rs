//! From windows to costs: least squares without negative answers, then the nearest run by trying, each cost a little
//! more, a little less.
//!
//! Invariant: every cost found is at least 0; what trying returns is never farther than its start; the number of
//! tries is bounded.
//! Not here: where windows come from (`window`), what near means (`fit`).

use super::window::Window;
use super::{Line, PARAMETERS};

/// Passes over the parameters; each pass lessens the error.
const PASSES: usize = 20_000;

/// The costs that explain the windows best. Each window counts by its relative error, long or short.
pub(super) fn least_squares(windows: &[Window]) -> Line {
    let mut scale = [0.0_f64; PARAMETERS];
    for window in windows {
        for (scale, feature) in scale.iter_mut().zip(window.features) {
            *scale += (feature / window.seconds).powi(2);
        }
    }
    let scale = scale.map(f64::sqrt);
    let mut normal = [[0.0; PARAMETERS]; PARAMETERS];
    let mut right = [0.0; PARAMETERS];
    for window in windows {
        let row: [f64; PARAMETERS] = std::array::from_fn(|i| match scale[i] {
            0.0 => 0.0,
            scale => window.features[i] / window.seconds / scale,
        });
        for i in 0..PARAMETERS {
            right[i] += row[i];
            for j in 0..PARAMETERS {
                normal[i][j] += row[i] * row[j];
            }
        }
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
            let sum: f64 = (0..PARAMETERS).map(|j| normal[i][j] * answer[j]).sum();
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

/// Factors by which costs are moved, coarse to fine.
const FACTORS: [f64; 5] = [1.2, 1.08, 1.03, 1.01, 1.004];
/// Passes over all costs for each factor.
const REFINING_PASSES: usize = 3;

/// Moves each cost as long as that brings the run nearer. Gives the costs, their distance and the tries.
pub(super) fn refine<E>(
    start: Line,
    mut distance: impl FnMut(&Line) -> Result<f64, E>,
) -> Result<(Line, f64, usize), E> {
    let (mut line, mut least, mut tries) = (start, distance(&start)?, 1);
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
                    tries += 1;
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
    Ok((line, least, tries))
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
