//! What is recorded of the calls: metrics, the ground truth, what the inspector keeps, and what the GPUs did.
//!
//! Invariant: a sequence that ended is in all of them, or, where one is not kept, in the others.
//! Not here: when sequences begin and end (`generation`), serving what was recorded (`route`, `dcgm`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use simulator::virtual_time::Iteration;

use crate::config::EngineConfig;
use crate::dcgm::ActivityMeter;
use crate::ground_truth::{Entry, GroundTruth};
use crate::inspect::Inspector;
use crate::metrics::{Ended, Metrics, Subject, Times};

/// Shared by everything that handles calls.
#[derive(Debug)]
pub(crate) struct Recorder {
    metrics: Mutex<Metrics>,
    inspector: Option<Mutex<Inspector>>,
    ground_truth: Option<Arc<GroundTruth>>,
    /// Of the simulated machine, if there is one.
    pub(crate) gpus: Option<Arc<Mutex<ActivityMeter>>>,
}

impl Recorder {
    pub(crate) fn new(config: &EngineConfig) -> Self {
        Self {
            metrics: Mutex::new(Metrics::new(config)),
            inspector: config.inspect.then(Mutex::default),
            ground_truth: config.ground_truth.clone(),
            gpus: config.hardware.as_ref().map(|hardware| {
                let meter = ActivityMeter::new(hardware.gpus.clone(), hardware.ranks());
                Arc::new(Mutex::new(meter))
            }),
        }
    }

    pub(crate) fn metrics(&self) -> MutexGuard<'_, Metrics> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn inspector(&self) -> Option<MutexGuard<'_, Inspector>> {
        self.inspector
            .as_ref()
            .map(|i| i.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A step of the simulated machine, in which one engine or all in lock-step computed; `groups` engines run steps of
    /// their own, and every GPU's figures are the mean of all.
    pub(crate) fn step(&self, iteration: &Iteration, groups: usize) {
        let mut metrics = self.metrics();
        for (rank, step) in (iteration.rank..).zip(&iteration.steps) {
            if let Some(step) = step {
                metrics.step(rank, step.tokens());
            }
        }
        drop(metrics);
        if let Some(gpus) = &self.gpus {
            let (took, tokens) = iteration.on_each_rank(groups);
            let mut meter = gpus.lock().unwrap_or_else(PoisonError::into_inner);
            meter.record(took, tokens);
        }
    }

    /// A sequence that ended with so many tokens generated; `reason` is the inspector's.
    pub(crate) fn ended(
        &self,
        how: Ended,
        reason: &'static str,
        times: &Times,
        subject: &Subject,
        tokens: u64,
    ) {
        self.metrics()
            .model(subject.model, times.rank)
            .ended(how, times, subject, tokens);
        if let (Some(ground_truth), Some(id)) = (&self.ground_truth, &subject.client_request_id) {
            ground_truth.record(Entry {
                id: id.clone(),
                prompt_tokens: subject.prompt_tokens,
                completion_tokens: tokens,
                whole: how != Ended::Abort,
                began: times.arrived,
                ended: Instant::now(),
            });
        }
        if let (Some(mut inspector), Some(seen)) = (self.inspector(), subject.seen) {
            inspector.ended(seen, &subject.id, subject.prompt_tokens, tokens, reason);
        }
    }
}
