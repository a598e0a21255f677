//! The GPUs an engine pretends to run on.
//!
//! Invariant: figures are those of one GPU, but for their number; all of them do the same.
//! Not here: what they did (`Activity`).

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

    pub(super) fn watts(&self, share: f64) -> f64 {
        self.idle_watts + (self.busy_watts - self.idle_watts) * share
    }
}
