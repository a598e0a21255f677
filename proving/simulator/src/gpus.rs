//! The GPUs that an engine pretends to run on, and what they did.
//!
//! GPU and SM activity are the share of time in which a step ran; power lies between idle and busy by it. NVLink
//! traffic is that of tensor parallelism's all-reduces: after attention and after the MLP of each layer every GPU
//! holds a partial sum of `hidden` values, and a ring sends and receives `2 (n - 1) / n` times their size from each
//! of n GPUs. So each GPU sends, for each token,
//! `2 * layers * hidden * bytes_per_activation * 2 (n - 1) / n` bytes, and receives as much.
//! Invariant: figures follow from the steps recorded; all GPUs do the same, and one alone sends nothing.
//! Not here: the exporter's page (`engine`); what real GPUs do beyond this (clocks, temperature, throttling).

pub mod dcgm;

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Figures of one GPU, and how many there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpus {
    /// As the driver calls it.
    pub name: String,
    /// GPUs that share the model.
    pub count: u32,
    /// Framebuffer, MiB.
    pub memory_mib: u64,
    /// Of it, the model's weights.
    pub weights_mib: u64,
    /// Of it, the KV cache, which vLLM takes whole at its start.
    pub kv_mib: u64,
    /// Power with nothing to do.
    pub idle_watts: f64,
    /// Power while a step runs.
    pub busy_watts: f64,
    /// Layers of the model.
    pub layers: u32,
    /// Width of the model.
    pub hidden: u32,
    /// Bytes of one value between layers.
    pub bytes_per_activation: u32,
}

impl Default for Gpus {
    /// One GPU of no particular kind.
    fn default() -> Self {
        Self {
            name: "simulated".to_owned(),
            count: 1,
            memory_mib: 24_564,
            weights_mib: 0,
            kv_mib: 0,
            idle_watts: 20.0,
            busy_watts: 400.0,
            layers: 32,
            hidden: 4096,
            bytes_per_activation: 2,
        }
    }
}

impl Gpus {
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        let fault = |member: &str, says: &str| Err((member.to_owned(), says.to_owned()));
        if self.count == 0 || self.count > 64 {
            return fault("count", "is not between 1 and 64");
        }
        if self.layers > 10_000 || self.hidden > 1_000_000 || self.bytes_per_activation > 16 {
            return fault(
                "layers",
                "layers, hidden or bytes_per_activation are of no model",
            );
        }
        if self.weights_mib.saturating_add(self.kv_mib) > self.memory_mib {
            return fault("memory_mib", "is less than weights_mib and kv_mib together");
        }
        if !(0.0..=1e5).contains(&self.idle_watts)
            || !(self.idle_watts..=1e5).contains(&self.busy_watts)
        {
            return fault("busy_watts", "is less than idle_watts, or not a power");
        }
        Ok(())
    }

    /// Bytes that one GPU sends for each token computed; see the formula above.
    #[must_use]
    pub fn nvlink_bytes_per_token(&self) -> f64 {
        let n = f64::from(self.count);
        let sums = 2.0 * f64::from(self.layers) * f64::from(self.hidden);
        sums * f64::from(self.bytes_per_activation) * 2.0 * (n - 1.0) / n
    }

    /// Power at this share of the time in which a step runs.
    #[must_use]
    pub fn watts(&self, share: f64) -> f64 {
        self.idle_watts + (self.busy_watts - self.idle_watts) * share
    }
}

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
}

#[cfg(test)]
mod tests;
