//! What a corpus is, in words and numbers: the file `corpus.json`.
//!
//! Invariant: the same sources and options give the same text, whatever machine, thread count or interruptions.
//! Names of files are names alone: no path of the machine that built it.
//! Not here: the bytes (`store`), the counting (`build`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::geometry::Geometry;
use crate::prefix::Hits;
use crate::unroll::Output;

/// What a corpus is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name and version of the program that built it.
    pub tool: String,
    /// The model that its requests name.
    pub model: String,
    /// What counted its tokens.
    pub tokenizer: String,
    /// Seed of the sample.
    pub seed: u64,
    /// How records were repaired.
    pub repair: String,
    /// How long answers may be.
    pub output: Output,
    /// Whether answers must be that long.
    pub ignore_eos: bool,
    /// Whether answers are streams, which end with their usage.
    pub stream: bool,
    /// A session ends before the first request whose prompt and answer have more tokens than this.
    pub max_context: u32,
    /// Sessions.
    pub sessions: u64,
    /// Requests.
    pub requests: u64,
    /// Records that gave no session, whatever the reason.
    pub skipped: u64,
    /// Sessions that say the same as one before; left out unless they are kept.
    pub duplicates: u64,
    /// Whether duplicates are kept.
    pub duplicates_kept: bool,
    /// Sessions that say what none before says.
    pub unique_sessions: u64,
    /// Sessions that end early because of `max_context`.
    pub sessions_cut: u64,
    /// Bytes of `bodies` and `index`.
    pub bytes_stored: u64,
    /// Bytes of all requests, each counted whole.
    pub bytes_unrolled: u64,
    /// Repairs by kind.
    pub repairs: BTreeMap<String, u64>,
    /// Prefixes that requests share.
    pub prefix: Prefix,
    /// The profiles in order.
    pub profiles: Vec<Profile>,
    /// The first records that gave no session, 1,000 at most.
    pub skipped_list: Vec<Skipped>,
}

/// One profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What read it.
    pub reader: String,
    /// What the reader was told.
    pub options: BTreeMap<String, String>,
    /// Sessions that were asked for; all, if none.
    pub asked: Option<u64>,
    /// Sessions from which they were drawn, where they were drawn.
    pub candidates: Option<u64>,
    /// Its files.
    pub sources: Vec<Source>,
    /// Licences by how many sessions have them; `unknown` where neither reader nor record says.
    pub licences: BTreeMap<String, u64>,
    /// Sessions.
    pub sessions: u64,
    /// Requests.
    pub requests: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Records that gave no session, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Repairs by kind.
    pub repairs: BTreeMap<String, u64>,
    /// Members of records that the reader does not know, by name.
    pub unknown_keys: BTreeMap<String, u64>,
    /// What the reader noted besides.
    pub notes: BTreeMap<String, u64>,
    /// What was odd about text that was read all the same ([`crate::json::Oddities`]), by kind.
    #[serde(default)]
    pub oddities: BTreeMap<String, u64>,
    /// Bytes of its requests, each counted whole.
    pub bytes_unrolled: u64,
    /// Lengths.
    pub geometry: Geometry,
    /// Predicted prefix-cache hits.
    pub hits: Hits,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its name, with the directories below the path that was given.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// Prefixes that requests share, for sessions one after the other and a cache that never evicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Prefix {
    /// Tokens in a block.
    pub block_tokens: u32,
    /// What is asked for and found.
    pub hits: Hits,
    /// Share of tokens that are found, 0 to 1.
    pub hit_rate: f64,
    /// Different first blocks: how many groups of sessions begin alike.
    pub unique_first_blocks: u64,
    /// Of every how many blocks one was remembered, beyond the first 256 of a prompt: 1 is exact; with more, a hit
    /// across sessions may be counted too small by less than this number of blocks.
    pub stride: u32,
    /// Blocks for which there was no room; their hits are not counted.
    pub blocks_not_kept: u64,
}

/// A record that gave no session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its profile.
    pub profile: String,
    /// Its file, and where in it.
    pub place: String,
    /// A stable name.
    pub reason: String,
    /// What is wrong with this one.
    pub says: String,
}

impl Manifest {
    /// The share of prompt tokens that a cache which evicts nothing would have, where this share of the sessions that are
    /// begun is no repetition: of a repetition all but what of each prompt is no full block, which has half a block in the
    /// mean. Sessions count alike.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "tokens below 2^53")]
    pub fn expected_hits(&self, unique_share: f64) -> f64 {
        let computed = self.requests as f64 * (f64::from(self.prefix.block_tokens) + 1.0) / 2.0;
        let tokens = self.prefix.hits.queries_tokens.max(1) as f64;
        let first = self.prefix.hit_rate;
        let again = (1.0 - computed / tokens).clamp(first, 1.0);
        let unique = unique_share.clamp(0.0, 1.0);
        unique * first + (1.0 - unique) * again
    }

    /// Its text.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        // Maps of strings and finite numbers always serialise.
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

#[cfg(test)]
mod tests {
    //! Hits of what is sent again.

    use super::*;

    #[test]
    fn of_a_session_that_comes_again_only_what_is_no_full_block_is_computed() {
        let manifest = Manifest {
            requests: 1_000,
            prefix: Prefix {
                block_tokens: 16,
                hits: Hits {
                    queries_tokens: 4_000_000,
                    ..Hits::default()
                },
                hit_rate: 0.3,
                ..Prefix::default()
            },
            ..Manifest::default()
        };
        // Prompts of 4,000 tokens, of which 8.5 are in no full block in the mean.
        let near = |share, expected: f64| {
            let hits = manifest.expected_hits(share);
            assert!((hits - expected).abs() < 1e-6, "{share}: {hits}");
        };
        near(1.0, 0.3);
        near(0.0, 0.997_875);
        near(0.5, 0.648_937_5);
    }
}
