//! An admitted call's way through the engine to its answer.
//!
//! Invariant: every choice is one sequence with one generation, whether a machine is shared or the call goes alone.
//! Not here: admission (the parent), pace (`pace`), the machine (`real_time`).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use simulator::kv::Chain;
use simulator::scheduler::{Request, RequestId};

use super::{Answer, JSON, full, typed_answer};
use crate::config::Hardware;
use crate::error::Refusal;
use crate::faults::Fault;
use crate::faults::body::Faulty;
use crate::generation::Generation;
use crate::metrics::{Siblings, Subject};
use crate::pace::{self, AnswerWriter, Paced, Source};
use crate::plan::{Choice, Finish, Plan};
use crate::real_time::{Command, Job, JobHandle, Progress};
use crate::state::State;

const SSE: &str = "text/event-stream; charset=utf-8";

pub(super) struct Call<'a> {
    pub(super) state: &'a Arc<State>,
    pub(super) model: usize,
    pub(super) seen: Option<u64>,
    pub(super) client_request_id: Option<Box<str>>,
    pub(super) id: String,
    pub(super) fault: Fault,
}

impl Call<'_> {
    fn start(
        &self,
        prompt_tokens: u64,
        cached: Arc<AtomicU64>,
        request: Arc<Siblings>,
    ) -> Generation {
        Generation::start(
            &self.state.recorder,
            Subject {
                model: self.model,
                seen: self.seen,
                client_request_id: self.client_request_id.clone(),
                id: self.id.clone(),
                prompt_tokens,
                cached,
                request,
            },
        )
    }

    /// A generation for each choice; those of one prompt are one request.
    fn generations(&self, plan: &Plan) -> Vec<Generation> {
        let each = plan.choices_each();
        let start = |choices: &[Choice], prompt_tokens: u64| -> Vec<Generation> {
            let limit = choices.first().map(|choice| choice.limit as u64);
            let request = Siblings::new(choices.len() as u64, limit);
            let one = |choice: &Choice| {
                let cached = Arc::clone(&choice.cached);
                self.start(prompt_tokens, cached, Arc::clone(&request))
            };
            choices.iter().map(one).collect()
        };
        let prompts = plan.choices.chunks(each).enumerate();
        prompts
            .flat_map(|(i, choices)| start(choices, plan.prompt_of(i * each).len() as u64))
            .collect()
    }

    pub(super) async fn generate(
        self,
        writer: Box<dyn AnswerWriter>,
        streams: bool,
    ) -> Result<Answer, Refusal> {
        let plan = writer.plan();
        let hardware = self.state.config.hardware.as_ref();
        // What is refused is no request of the engine and counts as none.
        hardware.map_or(Ok(()), |hardware| fits(hardware, plan))?;
        let generations = self.generations(plan);
        let source = match hardware {
            None => Source::Alone(generations),
            Some(hardware) => {
                if !hardware.frontend.before_queue.is_zero() {
                    tokio::time::sleep(hardware.frontend.before_queue).await;
                }
                Source::Engine(self.submit(hardware, plan, generations))
            }
        };
        if streams {
            let body = Paced::new(writer, source, self.state.config.stream_interval);
            if self.fault.leaves_body() {
                return Ok(typed_answer(
                    SSE,
                    body.map_err(|never| match never {}).boxed_unsync(),
                ));
            }
            return Ok(typed_answer(
                SSE,
                Faulty::new(body, self.fault).boxed_unsync(),
            ));
        }
        let answer = pace::whole(writer, source)
            .await
            .ok_or_else(|| Refusal::internal("the engine gave up"))?;
        Ok(self.hand_over(answer))
    }

    /// An answer in one piece, with its fault.
    fn hand_over(self, answer: Bytes) -> Answer {
        if self.fault.leaves_body() {
            return full(JSON, answer);
        }
        typed_answer(
            JSON,
            Faulty::new(Full::new(answer), self.fault).boxed_unsync(),
        )
    }

    /// Gives every choice to the machine. Dropping what comes back takes them away again.
    fn submit(&self, hardware: &Hardware, plan: &Plan, generations: Vec<Generation>) -> JobHandle {
        let progress = Progress::new(plan.choices.len());
        let ids: Vec<RequestId> = generations
            .iter()
            .map(|_| self.state.request_id())
            .collect();
        let handle = JobHandle::new(
            Arc::clone(&progress),
            ids.clone(),
            self.state.engine.clone(),
        );
        for (choice, (generation, id)) in generations.into_iter().zip(ids).enumerate() {
            let prompt = plan.prompt_of(choice);
            let chain = if plan.reads_cache {
                Chain::of_tokens(prompt, hardware.scheduler.kv.block_size, id.0)
            } else {
                Chain::unshared(id.0)
            };
            let request = Request {
                id,
                prompt_tokens: length(prompt.len()),
                output_tokens: length(plan.choices[choice].turn.tokens()),
                chain,
            };
            let finish = plan.choices[choice].finish;
            let job = Job {
                request,
                generation,
                finish,
                progress: Arc::clone(&progress),
                choice,
            };
            // The machine ends with the server, and the answer with it.
            let _ = self.state.engine.send(Command::Submit(Box::new(job)));
        }
        handle
    }

    /// An answer that no token is generated for, and the tokens that it took.
    pub(super) fn at_once(self, (answer, tokens): (Value, u64)) -> Answer {
        self.start(tokens, Arc::default(), Siblings::new(1, None))
            .finish(Finish::Stop);
        self.hand_over(Bytes::from(answer.to_string()))
    }
}

/// Refuses what could never have its blocks all at once.
fn fits(hardware: &Hardware, plan: &Plan) -> Result<(), Refusal> {
    let kv = &hardware.scheduler.kv;
    for (i, choice) in plan.choices.iter().enumerate() {
        let (prompt, output) = (plan.prompt_of(i).len(), choice.turn.tokens());
        let tokens = (prompt + output) as u64;
        let most = u64::from(kv.blocks.saturating_sub(1)) * u64::from(kv.block_size);
        let context = u64::from(hardware.scheduler.max_model_len);
        if prompt == 0 || tokens > most.min(context) {
            return Err(Refusal::bad_request(format!(
                "The request needs {tokens} tokens of KV cache and there are {}.",
                most.min(context)
            )));
        }
    }
    Ok(())
}

fn length(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
