//! The choice itself: running requests, then waiting ones, within a step's budget.
//!
//! Invariant: a step that preempts admits nobody; the victim is the request admitted last.
//! Not here: what happens when the step has run (`Scheduler::complete`).

use super::{Admission, Scheduler, Step, Work};

impl Scheduler {
    /// The next step, or `None` when there is nothing that could run now.
    pub fn step(&mut self) -> Option<Step> {
        let mut step = Step {
            number: self.next_step,
            ..Step::default()
        };
        let mut budget = self.config.max_num_batched_tokens;
        self.run_on(&mut step, &mut budget);
        if step.preempted.is_empty() {
            self.admit(&mut step, &mut budget);
        }
        if step.work.is_empty() && step.preempted.is_empty() {
            return None;
        }
        self.next_step += 1;
        Some(step)
    }

    fn run_on(&mut self, step: &mut Step, budget: &mut u32) {
        let mut at = 0;
        while *budget > 0 {
            let Some(&slot) = self.running.get(at) else {
                return;
            };
            at += 1;
            let pending = self.sequences.get(slot).map_or(0, |(s, _)| s.pending());
            let tokens = pending.min(*budget);
            if tokens == 0 {
                continue;
            }
            if !self.make_room(slot, tokens, step) {
                return;
            }
            *budget -= tokens;
            self.advance(slot, tokens, step);
        }
    }

    /// Finds blocks for a running request, at the expense of those admitted after it. False when it was itself
    /// the last.
    fn make_room(&mut self, slot: u32, tokens: u32, step: &mut Step) -> bool {
        loop {
            let Some((sequence, _)) = self.sequences.get(slot) else {
                return false;
            };
            let computed = sequence.computed;
            if self
                .kv
                .grow(&mut sequence.table, &sequence.chain, computed, tokens)
            {
                return true;
            }
            let Some(victim) = self.running.pop() else {
                return false;
            };
            self.preempt(victim, step);
            if victim == slot {
                return false;
            }
        }
    }

    fn preempt(&mut self, victim: u32, step: &mut Step) {
        if let Some((sequence, _)) = self.sequences.get(victim) {
            let computed = sequence.computed;
            self.kv
                .suspend(&mut sequence.table, &sequence.chain, computed);
            sequence.computed = 0;
            step.preempted.push(sequence.id);
        }
        self.waiting.push_front(victim);
        self.totals.preemptions += 1;
    }

    fn admit(&mut self, step: &mut Step, budget: &mut u32) {
        while *budget > 0 && self.running.len() < self.config.max_num_seqs {
            let Some(&slot) = self.waiting.front() else {
                return;
            };
            let Some((sequence, _)) = self.sequences.get(slot) else {
                self.waiting.pop_front();
                continue;
            };
            if sequence.sampled == sequence.output_tokens {
                return; // preempted while its last token was under way, with which it leaves
            }
            let all = sequence.tokens();
            let hit = self.kv.look_up(&sequence.chain, all);
            let tokens = (all - hit.tokens).min(*budget);
            let whole = self.config.reserve_full_prompt.then_some(all);
            let (table, chain) = (&mut sequence.table, &sequence.chain);
            if !self.kv.admit(table, chain, hit, tokens, whole) {
                return;
            }
            sequence.computed = hit.tokens;
            let first = !std::mem::replace(&mut sequence.was_admitted, true);
            if first {
                sequence.first_hit = hit.tokens;
                self.totals.prefix_queries += u64::from(all);
                self.totals.prefix_hits += u64::from(hit.tokens);
            }
            step.admitted.push(Admission {
                id: sequence.id,
                cached_tokens: hit.tokens,
                first,
            });
            self.waiting.pop_front();
            self.running.push(slot);
            *budget -= tokens;
            self.advance(slot, tokens, step);
        }
    }

    fn advance(&mut self, slot: u32, tokens: u32, step: &mut Step) {
        let Some((sequence, epoch)) = self.sequences.get(slot) else {
            return;
        };
        let context = sequence.computed;
        sequence.computed += tokens;
        let samples = sequence.computed == sequence.tokens();
        let prefill = tokens > 1 || context < sequence.prompt_tokens;
        if samples {
            sequence.sampled += 1;
        }
        step.work.push(Work {
            id: sequence.id,
            slot,
            epoch,
            context,
            tokens,
            prefill,
            samples,
        });
    }
}
