//! What DCGM's exporter would say of the GPUs on which the simulated steps run.
//!
//! GPU and SM activity are the share of time in which a step ran; power lies between idle and busy by it. NVLink
//! traffic is that of tensor parallelism's all-reduces: after attention and after the MLP of each layer every GPU
//! holds a partial sum of `hidden` values, and a ring sends and receives `2 (n - 1) / n` times their size from each
//! of n GPUs. So each GPU sends, for each token,
//! `2 * layers * hidden * bytes_per_activation * 2 (n - 1) / n` bytes, and receives as much.
//! Invariant: pure: figures follow from the steps recorded; one GPU sends nothing.
//! Not here: serving them over HTTP; what real GPUs do beyond this (clocks, temperature, throttling).

mod gpus;
mod page;

pub use gpus::Gpus;

use std::time::Duration;

/// What the GPUs did over a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// How long the while was.
    pub span: Duration,
    /// For how much of it a step ran.
    pub busy: Duration,
    /// Tokens that were computed.
    pub tokens: u64,
    /// Energy since the start, millijoules for each GPU.
    pub energy_mj: u64,
}

impl Activity {
    /// Adds a step.
    pub fn record(&mut self, took: Duration, tokens: u64) {
        self.busy += took;
        self.tokens += tokens;
    }

    /// Ends the while that began `span` ago, and begins the next; energy goes on counting.
    pub fn close(&mut self, span: Duration, gpus: &Gpus) -> Self {
        let mut closed = Self { span, ..*self };
        closed.energy_mj += (gpus.watts(closed.share()) * span.as_secs_f64() * 1e3) as u64;
        *self = Self {
            energy_mj: closed.energy_mj,
            ..Self::default()
        };
        closed
    }

    /// Share of the time in which a step ran, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.span.is_zero() {
            return 0.0;
        }
        (self.busy.as_secs_f64() / self.span.as_secs_f64()).min(1.0)
    }

    /// Bytes that one GPU sends over NVLink in a second, and that it receives.
    #[must_use]
    pub fn nvlink_bytes_per_s(&self, gpus: &Gpus) -> f64 {
        if self.span.is_zero() {
            return 0.0;
        }
        gpus.nvlink_bytes_per_token() * self.tokens as f64 / self.span.as_secs_f64()
    }

    /// The exporter's page.
    #[must_use]
    pub fn page(&self, gpus: &Gpus, hostname: &str) -> String {
        page::render(self, gpus, hostname)
    }
}

#[cfg(test)]
mod tests;
