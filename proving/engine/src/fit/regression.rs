//! Least squares without negative answers.
//!
//! Invariant: every cost found is at least 0; the answer depends on nothing but the windows.
//! Not here: where windows come from (`window`).

use super::window::Window;
use super::{Line, PARAMETERS};

/// Passes over the parameters; each pass lessens the error.
const PASSES: usize = 20_000;

/// The costs that explain the windows best. Each window counts by its relative error, long or short.
pub(super) fn solve(windows: &[Window]) -> Line {
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
    let scaled = descend(&normal, &right);
    std::array::from_fn(|i| {
        if scale[i] > 0.0 {
            scaled[i] / scale[i]
        } else {
            0.0
        }
    })
}

/// One parameter after the other, each to its best value at least 0.
fn descend(normal: &[[f64; PARAMETERS]; PARAMETERS], right: &Line) -> Line {
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
