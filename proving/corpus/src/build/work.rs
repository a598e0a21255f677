//! One record to one session that is ready to be stored: what the threads do.
//!
//! Invariant: the outcome follows from the record and the plan alone.
//! Not here: the order of records (`pipeline`), files (`store`).

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::journal::{SessionFact, TurnFact};
use super::{Plan, Repair};
use crate::conversation::Conversation;
use crate::geometry::PromptCounter;
use crate::prefix::SessionBlocks;
use crate::reader::Fault;
use crate::store::{StoredSession, StoredTurn};
use crate::unroll::{Output, UnrollError, Unrolled, tail};

/// A session, and what is to be noted of it.
pub(super) struct Made {
    pub(super) session: StoredSession,
    pub(super) fact: SessionFact,
    pub(super) digest: [u8; 16],
    /// The names of the blocks that its requests add.
    pub(super) blocks: Vec<u64>,
}

/// Repairs, unrolls and counts.
pub(super) fn make(
    plan: &Plan<'_>,
    profile: usize,
    conversation: Conversation,
    repair: &dyn Repair,
    counter: &mut dyn PromptCounter,
) -> Result<Made, Fault> {
    let (conversation, repairs) = repair.repair(conversation)?;
    let not_unrolled = |error: UnrollError| match error {
        UnrollError::Empty => Fault::skipped("no_decision", error.to_string()),
        _ => Fault::broken("not_unrolled", error.to_string()),
    };
    let mut unrolled = Unrolled::new(&conversation).map_err(not_unrolled)?;
    drop(conversation);
    let counted = count(plan, &unrolled, counter)?;
    let cut = counted.turns.len() < unrolled.turns.len();
    unrolled.turns.truncate(counted.turns.len());
    let bodies = unrolled.bodies().map_err(not_unrolled)?;
    let mut turns = counted.turns;
    let parts = unrolled.turns.iter().zip(bodies.turns);
    let stored = parts
        .zip(&mut turns)
        .map(|((turn, (body, goes_on)), fact)| {
            let tail = tail_of(plan, fact.answer_tokens);
            fact.bytes = (body.len() + tail.len()) as u64;
            StoredTurn {
                body,
                tail,
                prompt_tokens: fact.prompt_tokens,
                new_tokens: fact.new_tokens,
                answer_tokens: fact.answer_tokens,
                think: turn.think,
                goes_on,
            }
        });
    let session = StoredSession {
        profile: profile as u32,
        id: unrolled.id.clone(),
        turns: stored.collect(),
        head: unrolled.head(&plan.model, plan.stream),
        bodies: bodies.bytes,
    };
    for turn in &mut turns {
        turn.bytes += session.head.len() as u64;
    }
    let digest = digest(&session);
    Ok(Made {
        fact: SessionFact {
            profile,
            digest: super::files::hex(&digest),
            licence: unrolled.licence,
            repairs,
            cut,
            turns,
            ..SessionFact::default()
        },
        session,
        digest,
        blocks: counted.blocks,
    })
}

#[derive(Default)]
struct Counted {
    turns: Vec<TurnFact>,
    blocks: Vec<u64>,
}

/// Counts the requests until one is beyond the context.
fn count(
    plan: &Plan<'_>,
    unrolled: &Unrolled,
    counter: &mut dyn PromptCounter,
) -> Result<Counted, Fault> {
    let refused = |why: String| Fault::broken("refused_by_target", why);
    counter
        .start(unrolled.tools.as_deref(), &unrolled.messages)
        .map_err(refused)?;
    let mut counted = Counted::default();
    let mut blocks = SessionBlocks::new(plan.block_tokens);
    // An answer that several requests have, or that the next prompt shows, is counted once.
    let mut answers = BTreeMap::<usize, u32>::new();
    for turn in &unrolled.turns {
        let ids = counter.prompt(&turn.prompt).map_err(refused)?;
        let answer_tokens = match (turn.answer_tokens, turn.answer) {
            (Some(tokens), _) => tokens,
            (None, None) => 0,
            (None, Some(place)) => match answers.get(&place) {
                Some(tokens) => *tokens,
                None => {
                    let tokens = counter.answer(place).map_err(refused)?;
                    answers.insert(place, tokens);
                    tokens
                }
            },
        };
        let asked = match plan.output {
            Output::Recorded => u64::from(answer_tokens),
            Output::Tokens(tokens) => u64::from(tokens),
            Output::Free => 0,
        };
        if ids.len() as u64 + asked.max(1) > u64::from(plan.max_context) {
            break;
        }
        let added = blocks.prompt(ids);
        counted.turns.push(TurnFact {
            prompt_tokens: added.tokens,
            new_tokens: added.new_tokens,
            answer_tokens,
            own: added.own,
            fresh: added.fresh.len() as u32,
            think_ms: turn
                .think
                .map(|think| u64::try_from(think.as_millis()).unwrap_or(u64::MAX)),
            bytes: 0,
        });
        counted.blocks.extend(added.fresh);
    }
    if counted.turns.is_empty() {
        let says = format!("its first request is beyond {} tokens", plan.max_context);
        return Err(Fault::skipped("beyond_context", says));
    }
    Ok(counted)
}

fn tail_of(plan: &Plan<'_>, answer_tokens: u32) -> Vec<u8> {
    let tokens = match plan.output {
        Output::Recorded => Some(answer_tokens).filter(|n| *n > 0),
        Output::Free => None,
        Output::Tokens(tokens) => Some(tokens),
    };
    tail(tokens, plan.ignore_eos)
}

/// Of all that a session sends.
fn digest(session: &StoredSession) -> [u8; 16] {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(&session.head);
    part(&session.bodies);
    for turn in &session.turns {
        part(&(turn.body.start as u64).to_le_bytes());
        part(&(turn.body.end as u64).to_le_bytes());
        part(&turn.tail);
    }
    let whole = hash.finalize();
    std::array::from_fn(|i| whole[i])
}
