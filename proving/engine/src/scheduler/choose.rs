//! The choice itself: running requests, then waiting ones, within a step's budget.
//!
//! Invariant: a step that preempts admits nobody; the victim is the request admitted last.
//! Not here: what happens when the step has run (`Scheduler::complete`).

use super::{Admission, RequestId, Scheduler, Step, Work};

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
        while at < self.running.len() && *budget > 0 {
            let id = self.running[at];
            let Some(tokens) = self.sequences.get(&id).map(|s| s.pending().min(*budget)) else {
                at += 1;
                continue;
            };
            if tokens == 0 {
                at += 1;
                continue;
            }
            if !self.make_room(id, tokens, step) {
                return;
            }
            *budget -= tokens;
            self.advance(id, tokens, step);
            at += 1;
        }
    }

    /// Finds blocks for a running request, at the expense of those admitted after it. False when it was itself
    /// the last.
    fn make_room(&mut self, id: RequestId, tokens: u32, step: &mut Step) -> bool {
        loop {
            let Some(sequence) = self.sequences.get_mut(&id) else {
                return false;
            };
            if self.kv.grow(
                &mut sequence.table,
                &sequence.chain,
                sequence.computed,
                tokens,
            ) {
                return true;
            }
            let Some(victim) = self.running.pop() else {
                return false;
            };
            self.preempt(victim, step);
            if victim == id {
                return false;
            }
        }
    }

    fn preempt(&mut self, victim: RequestId, step: &mut Step) {
        if let Some(sequence) = self.sequences.get_mut(&victim) {
            self.kv.release(&mut sequence.table);
            sequence.computed = 0;
        }
        self.waiting.push_front(victim);
        self.totals.preemptions += 1;
        step.preempted.push(victim);
    }

    fn admit(&mut self, step: &mut Step, budget: &mut u32) {
        while *budget > 0 && self.running.len() < self.config.max_num_seqs {
            let Some(&id) = self.waiting.front() else {
                return;
            };
            let Some(sequence) = self.sequences.get_mut(&id) else {
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
            if !self
                .kv
                .admit(&mut sequence.table, &sequence.chain, hit, tokens, whole)
            {
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
                id,
                cached_tokens: hit.tokens,
                first,
            });
            self.waiting.pop_front();
            self.running.push(id);
            *budget -= tokens;
            self.advance(id, tokens, step);
        }
    }

    fn advance(&mut self, id: RequestId, tokens: u32, step: &mut Step) {
        let Some(sequence) = self.sequences.get_mut(&id) else {
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
            id,
            epoch: sequence.epoch,
            context,
            tokens,
            prefill,
            samples,
        });
    }
}
