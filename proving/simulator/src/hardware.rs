//! What models and GPUs are by their own numbers: bytes to read, operations to do, and how fast.
//!
//! A forward pass reads all weights that it uses, and of every token attended to its keys and values; it does two
//! operations for each weight used and token, and `4 * layers * heads * head size` for each pair of a token and one it
//! attends to. From that follows about what steps must cost, which a recording alone often cannot tell apart.
//! Invariant: figures are of one copy of a model as its makers publish it, and of one GPU without sparsity. A model that
//! others made smaller (quantised) is not known.
//! Not here: what is made of them (`fit`).

use crate::cost::Experts;

/// A model's size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// All weights, in billions.
    pub weights_b: f64,
    /// Those that one token uses, in billions: fewer where there are experts.
    pub active_b: f64,
    /// Layers.
    pub layers: f64,
    /// Those that look back over the whole context; others keep a short window of it.
    pub kv_layers: f64,
    /// Heads of keys and values.
    pub kv_heads: f64,
    /// Heads of queries.
    pub heads: f64,
    /// Values in a head.
    pub head_size: f64,
    /// Values between layers for each token.
    pub hidden: f64,
    /// Bytes of one weight as it is published.
    pub bytes_per_weight: f64,
    /// Share of the experts that a token uses; 1 where there are none.
    pub experts_used: f64,
}

/// A GPU's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Memory bandwidth, GB/s.
    pub bandwidth_gb_s: f64,
    /// Dense operations with 16-bit inputs, 10^12 a second.
    pub tflops: f64,
}

/// A trained gate likes some experts better: of as many tokens as use two thirds of the experts of a gate without taste,
/// its tokens use 13 % fewer (LLMServingSim's `bench/core/runner.py`), as if each used this share of its experts.
const GATE: f64 = 0.8;

/// By what a model's name contains, in lower case; the first that fits. Sizes: the models' `config.json`.
const MODELS: &[(&str, Model)] = &[
    ("llama-3.1-8b", dense(8.03, 32.0, 8.0, 32.0, 128.0, 4096.0)),
    ("llama-3-8b", dense(8.03, 32.0, 8.0, 32.0, 128.0, 4096.0)),
    ("llama-3.2-1b", dense(1.24, 16.0, 8.0, 32.0, 64.0, 2048.0)),
    ("llama-3.2-3b", dense(3.21, 28.0, 8.0, 24.0, 128.0, 3072.0)),
    ("llama-3.1-70b", dense(70.6, 80.0, 8.0, 64.0, 128.0, 8192.0)),
    ("llama-3.3-70b", dense(70.6, 80.0, 8.0, 64.0, 128.0, 8192.0)),
    ("llama-2-7b", dense(6.74, 32.0, 32.0, 32.0, 128.0, 4096.0)),
    ("llama-2-13b", dense(13.0, 40.0, 40.0, 40.0, 128.0, 5120.0)),
    ("llama-2-70b", dense(69.0, 80.0, 8.0, 64.0, 128.0, 8192.0)),
    ("mistral-7b", dense(7.25, 32.0, 8.0, 32.0, 128.0, 4096.0)),
    ("qwen2.5-7b", dense(7.62, 28.0, 4.0, 28.0, 128.0, 3584.0)),
    ("qwen2.5-14b", dense(14.8, 48.0, 8.0, 40.0, 128.0, 5120.0)),
    ("qwen2.5-32b", dense(32.8, 64.0, 8.0, 40.0, 128.0, 5120.0)),
    ("qwen2.5-72b", dense(72.7, 80.0, 8.0, 64.0, 128.0, 8192.0)),
    ("qwen3-4b", dense(4.02, 36.0, 8.0, 32.0, 128.0, 2560.0)),
    ("qwen3-8b", dense(8.19, 36.0, 8.0, 32.0, 128.0, 4096.0)),
    ("qwen3-14b", dense(14.8, 40.0, 8.0, 40.0, 128.0, 5120.0)),
    ("qwen3-32b", dense(32.8, 64.0, 8.0, 64.0, 128.0, 5120.0)),
    (
        "qwen3-30b-a3b",
        experts(30.5, 3.3, 48.0, 4.0, 32.0, 8.0 / 128.0, 2048.0),
    ),
    (
        "qwen3-235b-a22b",
        experts(235.0, 22.0, 94.0, 4.0, 64.0, 8.0 / 128.0, 4096.0),
    ),
    (
        "mixtral-8x7b",
        experts(46.7, 12.9, 32.0, 8.0, 32.0, 2.0 / 8.0, 4096.0),
    ),
    (
        "gpt-oss-120b",
        Model {
            head_size: 64.0,
            kv_layers: 18.0,
            bytes_per_weight: 0.56,
            ..experts(116.8, 5.1, 36.0, 8.0, 64.0, 4.0 / 128.0, 2880.0)
        },
    ),
    (
        "gpt-oss-20b",
        Model {
            head_size: 64.0,
            kv_layers: 12.0,
            bytes_per_weight: 0.66,
            ..experts(20.9, 3.6, 24.0, 8.0, 64.0, 4.0 / 32.0, 2880.0)
        },
    ),
];

/// Parts of names of models that others made smaller.
const QUANTISED: &[&str] = &[
    "awq", "gptq", "fp8", "fp4", "nvfp4", "int8", "int4", "w8a8", "w4a16", "bnb", "gguf", "4bit",
    "8bit",
];

/// By what a GPU's name contains, in lower case; the first that fits. Figures: the makers' data sheets.
const GPUS: &[(&str, Gpu)] = &[
    ("rtx pro 6000 blackwell server", gpu(1597.0, 500.0)),
    ("rtx pro 6000", gpu(1792.0, 500.0)),
    ("rtx 5090", gpu(1792.0, 210.0)),
    ("rtx 4090", gpu(1008.0, 165.0)),
    ("rtx 3090", gpu(936.0, 71.0)),
    ("rtx 6000 ada", gpu(960.0, 364.0)),
    ("b200", gpu(8000.0, 2250.0)),
    ("gh200", gpu(4000.0, 989.0)),
    ("h200", gpu(4800.0, 989.0)),
    ("h100 pcie", gpu(2000.0, 756.0)),
    ("h100 nvl", gpu(3900.0, 835.0)),
    ("h100", gpu(3350.0, 989.0)),
    ("a100-sxm4-40gb", gpu(1555.0, 312.0)),
    ("a100-pcie-40gb", gpu(1555.0, 312.0)),
    ("a100", gpu(2039.0, 312.0)),
    ("l40s", gpu(864.0, 362.0)),
    ("l40", gpu(864.0, 181.0)),
    ("l4", gpu(300.0, 121.0)),
    ("a10g", gpu(600.0, 70.0)),
    ("a10", gpu(600.0, 125.0)),
    ("t4", gpu(320.0, 65.0)),
];

const fn dense(
    weights_b: f64,
    layers: f64,
    kv_heads: f64,
    heads: f64,
    head_size: f64,
    hidden: f64,
) -> Model {
    Model {
        weights_b,
        active_b: weights_b,
        layers,
        kv_layers: layers,
        kv_heads,
        heads,
        head_size,
        hidden,
        bytes_per_weight: 2.0,
        experts_used: 1.0,
    }
}

const fn experts(
    weights_b: f64,
    active_b: f64,
    layers: f64,
    kv_heads: f64,
    heads: f64,
    experts_used: f64,
    hidden: f64,
) -> Model {
    Model {
        active_b,
        experts_used,
        ..dense(weights_b, layers, kv_heads, heads, 128.0, hidden)
    }
}

const fn gpu(bandwidth_gb_s: f64, tflops: f64) -> Gpu {
    Gpu {
        bandwidth_gb_s,
        tflops,
    }
}

impl Model {
    /// The model of that name, if it is known.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let quantised = QUANTISED
            .iter()
            .any(|mark| contains(&name.to_lowercase(), mark));
        find(MODELS, name).filter(|_| !quantised)
    }

    /// Bytes of its weights on each of so many GPUs.
    #[must_use]
    pub fn weights_on_each(&self, gpus: f64) -> f64 {
        self.weights_b * 1e9 * self.bytes_per_weight / gpus
    }

    /// Bytes that each of so many GPUs sends for a token, to add up what each has: twice in each layer, by a ring, in
    /// 16 bits.
    #[must_use]
    pub fn sums_bytes_per_token(&self, gpus: f64) -> f64 {
        2.0 * self.layers * self.hidden * 2.0 * 2.0 * (gpus - 1.0) / gpus
    }

    /// Bytes of keys and values for each token, in 16 bits.
    #[must_use]
    pub fn kv_bytes_per_token(&self) -> f64 {
        2.0 * self.kv_layers * self.kv_heads * self.head_size * 2.0
    }

    /// Operations for each pair of a token and a token it attends to.
    #[must_use]
    pub fn operations_per_pair(&self) -> f64 {
        4.0 * self.layers * self.heads * self.head_size
    }

    /// Whether a token uses only some of the weights.
    #[must_use]
    pub fn has_experts(&self) -> bool {
        self.active_b < self.weights_b
    }

    /// Which part of its weights a step reads; `None` where every token uses all of them. A token uses `used` of the
    /// experts' weights and all others: `active = others + used * experts`.
    #[must_use]
    pub fn experts(&self) -> Option<Experts> {
        let experts_b = (self.weights_b - self.active_b) / (1.0 - self.experts_used);
        self.has_experts().then(|| Experts {
            share: (experts_b / self.weights_b).min(1.0),
            chance: self.experts_used * GATE,
        })
    }
}

impl Gpu {
    /// The GPU of that name, if it is known.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        find(GPUS, name)
    }

    /// Of those that are known.
    pub fn names() -> impl Iterator<Item = &'static str> {
        GPUS.iter().map(|&(name, _)| name)
    }
}

fn find<T: Copy>(known: &[(&str, T)], name: &str) -> Option<T> {
    let name = name.to_lowercase();
    let found = known.iter().find(|(part, _)| contains(&name, part));
    found.map(|&(_, figures)| figures)
}

/// Whether a name has a part that neither a letter nor a digit continues.
fn contains(name: &str, part: &str) -> bool {
    name.match_indices(part).any(|(at, _)| {
        let before = name.get(..at).and_then(|text| text.chars().next_back());
        let after = name
            .get(at + part.len()..)
            .and_then(|text| text.chars().next());
        [before, after]
            .into_iter()
            .flatten()
            .all(|c| !c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests;
