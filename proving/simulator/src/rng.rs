//! Random numbers from a seed: a small generator, and the distributions that workloads are made of.
//!
//! Invariant: the same seed gives the same numbers on every machine and at every version.
//! Not here: secrets (this is no cryptography).

/// SplitMix64 (Steele, Lea and Flood, 2014): fast, and every seed is as good as any other.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator of its own for each `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// At least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number less than `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with this mean: gaps of a Poisson process, or pauses without memory.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Log-normal with this mean and coefficient of variation; the mean itself when that is 0.
    pub fn lognormal(&mut self, mean: f64, variation: f64) -> f64 {
        if variation <= 0.0 {
            return mean;
        }
        let variance = (1.0 + variation * variation).ln();
        mean * (variance.sqrt() * self.normal() - variance / 2.0).exp()
    }
}

#[cfg(test)]
mod tests;
