//! The sums of a build, from what was noted of each record.
//!
//! Invariant: what is summed are the notes alone, in the order of the corpus, so that an interrupted build sums the
//! same.
//! Not here: the notes (`journal`).

use std::collections::BTreeMap;

use super::journal::{Fact, Journal, SessionFact};
use super::{BuildError, Plan, Prepared};
use crate::geometry::{Distribution, Geometry};
use crate::manifest::{Manifest, Prefix, Profile, Skipped};
use crate::prefix::{Hits, Known, TurnBlocks};

/// Records without a session that are listed.
const MOST_LISTED: usize = 1_000;
/// Names that a table has at most; what is past it is counted under `other`.
const MOST_NAMES: usize = 1_000;

pub(super) fn manifest(
    plan: &Plan<'_>,
    prepared: &[Prepared<'_>],
    (tokenizer, repair): (String, String),
    journal: &mut Journal,
) -> Result<Manifest, BuildError> {
    let mut sums = Sums {
        plan,
        known: Known::new(),
        profiles: prepared.iter().map(profile).collect(),
        lengths: prepared.iter().map(|_| Lengths::new()).collect(),
        hits: Hits::default(),
        cut: 0,
        listed: Vec::new(),
    };
    journal.facts(|fact, blocks| sums.add(fact, blocks))?;
    for (profile, lengths) in sums.profiles.iter_mut().zip(&sums.lengths) {
        profile.geometry = lengths.geometry();
    }
    let state = &journal.state;
    let mut repairs = BTreeMap::new();
    for profile in &sums.profiles {
        merge(&mut repairs, &profile.repairs);
    }
    let duplicates = sums.profiles.iter().map(|p| p.duplicates).sum();
    let header = crate::store::HEADER_LENGTH;
    Ok(Manifest {
        tool: plan.tool.clone(),
        model: plan.model.clone(),
        tokenizer,
        seed: plan.seed,
        repair,
        output: plan.output,
        ignore_eos: plan.ignore_eos,
        stream: plan.stream,
        max_context: plan.max_context,
        sessions: state.sessions,
        requests: state.requests,
        skipped: state.skipped,
        duplicates,
        duplicates_kept: plan.keep_duplicates,
        unique_sessions: state.sessions - if plan.keep_duplicates { duplicates } else { 0 },
        sessions_cut: sums.cut,
        bytes_stored: header + state.lengths.bodies + state.lengths.sessions + state.lengths.turns,
        bytes_unrolled: state.bytes_unrolled,
        repairs,
        prefix: Prefix {
            block_tokens: plan.block_tokens,
            hits: sums.hits,
            hit_rate: sums.hits.rate(),
            unique_first_blocks: sums.known.first_blocks(),
            stride: sums.known.stride(),
            blocks_not_kept: sums.known.not_kept(),
        },
        profiles: sums.profiles,
        skipped_list: sums.listed,
    })
}

fn profile(prepared: &Prepared<'_>) -> Profile {
    Profile {
        name: prepared.plan.name.clone(),
        reader: prepared.plan.reader.name().to_owned(),
        options: prepared.plan.options.clone(),
        asked: prepared.plan.sessions,
        candidates: prepared.sample.as_ref().map(|sample| sample.candidates),
        sources: prepared.sources.clone(),
        ..Profile::default()
    }
}

struct Sums<'a> {
    plan: &'a Plan<'a>,
    known: Known,
    profiles: Vec<Profile>,
    lengths: Vec<Lengths>,
    hits: Hits,
    cut: u64,
    listed: Vec<Skipped>,
}

/// Reads the names of the next blocks.
type Blocks<'a> = &'a mut dyn FnMut(u32) -> std::io::Result<Vec<u64>>;

impl Sums<'_> {
    fn add(&mut self, fact: Fact, blocks: Blocks<'_>) -> std::io::Result<()> {
        match fact {
            Fact::Session(session) => self.session(&session, blocks)?,
            Fact::Skipped {
                profile,
                place,
                reason,
                says,
            } => {
                let profile = &mut self.profiles[profile];
                count(&mut profile.skipped, &reason, 1);
                if self.listed.len() < MOST_LISTED {
                    self.listed.push(Skipped {
                        profile: profile.name.clone(),
                        place,
                        reason,
                        says,
                    });
                }
            }
            Fact::Unit {
                profile,
                unknown,
                notes,
                oddities,
            } => {
                let profile = &mut self.profiles[profile];
                merge(&mut profile.unknown_keys, &unknown);
                merge(&mut profile.notes, &notes);
                merge(&mut profile.oddities, &oddities);
            }
        }
        Ok(())
    }

    fn session(&mut self, session: &SessionFact, blocks: Blocks<'_>) -> std::io::Result<()> {
        let profile = &mut self.profiles[session.profile];
        profile.duplicates += u64::from(session.duplicate);
        if !session.kept {
            return Ok(());
        }
        profile.sessions += 1;
        profile.requests += session.turns.len() as u64;
        profile.bytes_unrolled += session.bytes_unrolled;
        self.cut += u64::from(session.cut);
        merge(&mut profile.repairs, &session.repairs);
        let of_profile = self.plan.profiles[session.profile].licence.as_deref();
        let licence = session.licence.as_deref().or(of_profile);
        count(&mut profile.licences, licence.unwrap_or("unknown"), 1);
        let lengths = &mut self.lengths[session.profile];
        lengths.turns.add(session.turns.len() as u64);
        for (i, turn) in session.turns.iter().enumerate() {
            let block_tokens = self.plan.block_tokens;
            let added = TurnBlocks {
                tokens: turn.prompt_tokens,
                new_tokens: turn.new_tokens,
                own: turn.own,
                fresh: blocks(turn.fresh)?,
            };
            let hits = self.known.request(&added, block_tokens);
            profile.hits.add(hits);
            self.hits.add(hits);
            lengths.prompt.add(u64::from(turn.prompt_tokens));
            lengths.bytes.add(turn.bytes);
            if i == 0 {
                lengths.first.add(u64::from(turn.prompt_tokens));
                lengths.shared.add(hits.hit_tokens);
            } else {
                lengths.new.add(u64::from(turn.new_tokens));
            }
            if turn.answer_tokens > 0 {
                lengths.answer.add(u64::from(turn.answer_tokens));
            }
            if let Some(think) = turn.think_ms {
                lengths.think.add(think);
            }
        }
        Ok(())
    }
}

/// The lengths of one profile.
struct Lengths {
    turns: Distribution,
    first: Distribution,
    prompt: Distribution,
    new: Distribution,
    answer: Distribution,
    think: Distribution,
    shared: Distribution,
    bytes: Distribution,
}

impl Lengths {
    fn new() -> Self {
        Self {
            turns: Distribution::new(),
            first: Distribution::new(),
            prompt: Distribution::new(),
            new: Distribution::new(),
            answer: Distribution::new(),
            think: Distribution::new(),
            shared: Distribution::new(),
            bytes: Distribution::new(),
        }
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            turns: self.turns.quantiles(),
            first_prompt_tokens: self.first.quantiles(),
            prompt_tokens: self.prompt.quantiles(),
            new_tokens: self.new.quantiles(),
            answer_tokens: self.answer.quantiles(),
            think_ms: self.think.quantiles(),
            shared_first_tokens: self.shared.quantiles(),
            request_bytes: self.bytes.quantiles(),
        }
    }
}

fn merge(table: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, times) in more {
        count(table, name, *times);
    }
}

fn count(table: &mut BTreeMap<String, u64>, name: &str, times: u64) {
    if let Some(so_far) = table.get_mut(name) {
        *so_far += times;
    } else if table.len() < MOST_NAMES {
        table.insert(name.to_owned(), times);
    } else {
        *table.entry("other".to_owned()).or_default() += times;
    }
}
