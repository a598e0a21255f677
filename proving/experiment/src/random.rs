//! Random numbers from a seed: a small generator, and the distributions that workloads are made of.
//!
//! Invariant: the same seed gives the same numbers on every machine and at every version. What an actor draws depends
//! on the seed and on its own name alone: no actor draws from another's generator.
//! Not here: secrets (this is no cryptography), when somebody acts (`arrivals`).

/// SplitMix64 (Steele, Lea and Flood, 2014): fast, and every seed is as good as any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

/// The increment of SplitMix64: the golden ratio's fraction in 64 bits, made odd.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// A generator of its own for each `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of whoever has this `name` under this seed, such as kind, profile and number.
    ///
    /// Each part of the name is hashed into the state with its place, so that neither near names nor names of
    /// different lengths give related generators.
    #[must_use]
    pub fn stream(seed: u64, name: &[u64]) -> Self {
        let start = mix(seed ^ mix(name.len() as u64));
        let state = name.iter().fold(start, |state, &part| {
            mix(state ^ mix(part)).wrapping_add(GOLDEN)
        });
        Self(mix(state))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        let bits = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        bits
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

    /// Gamma with this shape and scale; its mean is their product.
    ///
    /// Marsaglia and Tsang, 2000: "A simple method for generating gamma variables"; for a shape below 1 with the
    /// boost of their section 6, `gamma(shape) = gamma(shape + 1) * u^(1 / shape)`.
    pub fn gamma(&mut self, shape: f64, scale: f64) -> f64 {
        if shape < 1.0 {
            let boost = (1.0 - self.unit()).powf(shape.recip());
            return self.gamma(shape + 1.0, scale) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = (9.0 * d).sqrt().recip();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.unit()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v * scale;
            }
        }
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

/// SplitMix64's output for a state: a permutation of 64 bits that leaves no pattern.
#[must_use]
#[inline]
pub const fn mix(state: u64) -> u64 {
    let x = state.wrapping_add(GOLDEN);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests;
