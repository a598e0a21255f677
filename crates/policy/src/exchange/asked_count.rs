//! A call that asks what a prompt comes to, where no backend of its route can be asked: the gate's own count answers it, where that is
//! exact.
//!
//! Not here: who counts ([`crate::prompt_counter`]), which prompt it is (`wire::filter`).

use std::sync::Arc;

use super::{ANSWER_WITHIN, Ask, Env, OUT_OF_ORDER, Phase, Question, Running, Unsaid, Verdict};
use crate::counting::{label, tokenizer};
use crate::id::WorkloadId;
use crate::prompt_counter::AskedPrompt;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;

impl Running<'_> {
    /// Has the prompt counted that the call asks about, or refuses the call.
    #[cold]
    pub(super) fn count_or_refuse(&mut self, mut unsaid: Box<Unsaid>, env: &Env<'_>) -> Verdict {
        let question = self.prompt_question(&mut unsaid, env.snapshot);
        match question {
            None => self.refuse(unsaid.refusal()),
            Some(question) => {
                self.call.unfit = Some(unsaid);
                self.call.phase = Phase::Counting;
                Verdict::Ask(Ask {
                    question,
                    within: ANSWER_WITHIN,
                })
            }
        }
    }

    fn prompt_question(&self, unsaid: &mut Unsaid, s: &Snapshot) -> Option<Question> {
        let ((operation, body), backend) = unsaid.prompt.take()?;
        let counter = s.prompt_counter.as_ref()?;
        let model = self.record.model_sent.as_deref()?;
        let tokenizer = tokenizer(s, model)?;
        let prompt = AskedPrompt {
            key: tokenizer.key,
            model: label(s, tokenizer, model),
            backend: Arc::clone(&s.backend(backend)?.name),
            workload: self.record.workload.map_or(0, WorkloadId::index),
            operation,
            body,
            clock_s: i64::try_from(self.record.started_unix_ms / 1000).unwrap_or(0),
        };
        Some(Question::Count(Arc::clone(counter), Box::new(prompt)))
    }

    /// It was counted, or cannot be.
    #[cold]
    pub(super) fn counted(&mut self, tokens: Option<u64>) -> Result<Verdict, Refusal> {
        match (self.call.phase, tokens, self.record.operation) {
            (Phase::Counting, Some(tokens), Some(asked)) => {
                self.record.status = 200;
                Ok(Verdict::Counted(asked, tokens))
            }
            (Phase::Counting, ..) => Ok(self.uncounted()),
            _ => Err(OUT_OF_ORDER),
        }
    }

    /// The call is refused as it would have been.
    #[cold]
    pub(super) fn uncounted(&mut self) -> Verdict {
        let unsaid = self.call.unfit.take().unwrap_or_default();
        self.refuse(unsaid.refusal())
    }
}
