//! What a call will cost in tokens, before it is known.
//!
//! Invariant: an estimate is only ever used to reserve; what is billed says its own witness.
//! Not here: reading usage (`wire::usage`), exact counting.

/// A route's experience, kept by each worker for itself.
#[derive(Debug, Clone, Copy)]
pub struct Estimator {
    /// Tokens for each byte of request body.
    per_byte: f32,
    /// About the 90th percentile of completions.
    completion: f32,
}

impl Default for Estimator {
    /// English text is near four bytes a token; a JSON body has syntax besides.
    fn default() -> Self {
        Self {
            per_byte: 0.25,
            completion: 256.0,
        }
    }
}

/// How much of the newest sample enters the moving average.
const NEWEST: f32 = 0.05;

impl Estimator {
    /// Prompt tokens of a body of `bytes`.
    #[must_use]
    pub fn prompt(&self, bytes: u64) -> u64 {
        whole(float(bytes) * self.per_byte).max(1)
    }

    /// Completion tokens: the most that each answer may have where that is known, else what has been seen.
    #[must_use]
    pub fn completion(&self, most: Option<u64>, answers: u64) -> u64 {
        let each = most.unwrap_or_else(|| whole(self.completion));
        each.saturating_mul(answers.max(1))
    }

    /// Learns from a finished call.
    pub fn learn(&mut self, bytes: u64, prompt: Option<u64>, completion: Option<u64>) {
        if let (Some(prompt), true) = (prompt, bytes > 0) {
            let seen = (float(prompt) / float(bytes)).clamp(0.01, 2.0);
            self.per_byte += (seen - self.per_byte) * NEWEST;
        }
        if let Some(completion) = completion {
            // Stochastic approximation of a quantile (Robbins and Monro, 1951): up by 0.9 of a
            // step when above, down by 0.1 when below, so that it rests where 9 in 10 are below.
            let step = (self.completion * 0.05).max(1.0);
            let up = float(completion) > self.completion;
            self.completion =
                (self.completion + if up { 0.9 * step } else { -0.1 * step }).max(1.0);
        }
    }
}

/// A count as a float. Signed and of 32 bits where it fits, as nearly all are: unsigned numbers and
/// longer ones have no instruction of their own.
fn float(count: u64) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "estimates")]
    match i32::try_from(count) {
        Ok(count) => count as f32,
        Err(_) => count as f32,
    }
}

/// The next whole number up, without a call for it; `estimate` is positive and
/// far below 2^63.
fn whole(estimate: f32) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "what is cut off or rounded is compared"
    )]
    let (below, is_cut) = {
        let below = estimate as i64;
        (below, (below as f32) < estimate)
    };
    below.unsigned_abs() + u64::from(is_cut)
}

#[cfg(test)]
mod tests;
