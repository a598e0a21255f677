//! The nearest run by trying: each cost a little more, a little less.
//!
//! Invariant: what is returned is never farther than the start; the number of tries is bounded.
//! Not here: what near means (`fit`).

use super::Line;

/// Factors by which costs are moved, coarse to fine.
const FACTORS: [f64; 5] = [1.2, 1.08, 1.03, 1.01, 1.004];
/// Passes over all costs for each factor.
const PASSES: usize = 3;

/// Moves each cost as long as that brings the run nearer. Gives the costs, their distance and the tries.
pub(super) fn descend<E>(
    start: Line,
    mut distance: impl FnMut(&Line) -> Result<f64, E>,
) -> Result<(Line, f64, usize), E> {
    let (mut line, mut least, mut tries) = (start, distance(&start)?, 1);
    for factor in FACTORS {
        for _ in 0..PASSES {
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
    let mut moves = vec![[1.0; super::PARAMETERS]];
    for i in 0..super::PARAMETERS {
        let mut alone = [0.0; super::PARAMETERS];
        alone[i] = 1.0;
        moves.push(alone);
    }
    moves.push([1.0, 1.0, -1.0, -1.0, 0.0, 0.0]);
    moves.push([1.0, 1.0, 0.0, 0.0, -1.0, -1.0]);
    moves.push([0.0, 0.0, 1.0, 1.0, -1.0, -1.0]);
    moves
}
