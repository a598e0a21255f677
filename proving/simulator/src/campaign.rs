//! A whole campaign in virtual time: users come and go as the controller wishes, on what it reads of the engines.
//!
//! The clock stops every second. What a scrape of engines, GPUs and client would have shown is heard, the controller
//! decides, and users are brought to the number that it wants.
//! Invariant: the controller, its gates and the names of what they read are those of real time. The same campaign and
//! preset give the same outcome to the last digit. Memory grows by one [`Exchange`] for each answer, [`MOST_EXCHANGES`]
//! at most, and by a few numbers for each second.
//! Not here: what is decided (`experiment::campaign`), who asks (`crowd`), what is told of it (`prove`).

mod meters;

pub use crate::crowd::{Affinity, Balancer, Exchange, Traffic};

use std::time::Duration;

use experiment::campaign::{Controller, Course, Ending, Phase, Plan, PlanFault};
use experiment::telemetry::{Query, Sample, Telemetry};
use experiment::workload::{Load, MOST_USERS, Workload, apportion};

use crate::crowd::{Crowd, CrowdError, MOST_REPLICAS};
use crate::kv::MOST_BLOCKS;
use crate::preset::Preset;
use meters::Meters;

/// Answers at most, of one campaign.
pub const MOST_EXCHANGES: usize = 10_000_000;
/// KV blocks at most, of all engines together.
const MOST_BLOCKS_OF_ALL: u64 = 4 * MOST_BLOCKS as u64;
/// Between two scrapes.
const SCRAPE: Duration = Duration::from_secs(1);

/// Who asks, and what is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Users by weight, and sessions of open loops, which come in full from the start.
    pub traffic: Traffic,
    /// Users, gates and phases.
    pub plan: Plan,
    /// Of everything that is drawn at random.
    pub seed: u64,
    /// Engines, each with the preset's machine and a cache of its own; at most 64.
    pub replicas: u32,
    /// Which of them is asked.
    pub balancer: Balancer,
    /// What is to be answered beside the gates.
    pub queries: Vec<Query>,
}

/// One second of it, after the controller decided.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    /// Since the start.
    pub at: Duration,
    /// What it wants, and why.
    pub controller: &'a Controller,
    /// Everything heard so far.
    pub telemetry: &'a Telemetry,
    /// What was heard in this second: `engine`, `gpu` and `client`.
    pub samples: &'a [Sample],
    /// Question to first token, seconds, of each first token since the tick before.
    pub first_tokens_s: &'a [f64],
    /// Answers since the tick before.
    pub exchanges: &'a [Exchange],
    /// Users at work, those included who still wait for their last answer.
    pub users: u32,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What was decided, and why.
    pub course: Course,
    /// How long it was.
    pub length: Duration,
    /// Every answer, in the order of their ends.
    pub exchanges: Vec<Exchange>,
    /// What gates and queries can be answered from.
    pub telemetry: Telemetry,
    /// Steps that ran.
    pub steps: u64,
    /// Share of them of a kind that the recording behind the preset had not: their times are guessed.
    pub beyond_bounds: f64,
    /// What ended it before its end, where it could not go on: everything above is of the time until then.
    pub fault: Option<CampaignError>,
}

/// A campaign that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The plan makes no sense.
    #[error("the plan makes no sense: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Plan(Vec<PlanFault>),
    /// There cannot be so many engines.
    #[error(
        "{0} replicas: there can be 1 to {MOST_REPLICAS}, of {MOST_BLOCKS_OF_ALL} KV blocks together"
    )]
    Replicas(u32),
    /// Nobody can be let at the engines.
    #[error(transparent)]
    Crowd(#[from] CrowdError),
    /// There is no room for more answers.
    #[error("more than {MOST_EXCHANGES} answers: let the soak be shorter, or have fewer users")]
    TooMany,
}

impl Campaign {
    /// Carries it out. `on_tick` sees every second, and says whether it goes on: where not, it is interrupted.
    ///
    /// # Errors
    /// Plan, traffic or replicas make no sense. What comes up later, such as a request that could never run, is the
    /// outcome's fault.
    pub fn run(
        &self,
        preset: &Preset,
        mut on_tick: impl FnMut(&Tick<'_>) -> bool,
    ) -> Result<Outcome, CampaignError> {
        let mut controller = Controller::new(self.plan.clone()).map_err(CampaignError::Plan)?;
        self.traffic.check(self.plan.max_users, preset)?;
        self.check_replicas(preset)?;
        let gates = self.plan.gates.iter().map(|gate| &gate.query);
        let mut telemetry = Telemetry::new(gates.chain(&self.queries));
        let weights = self.traffic.weights();
        let workload = self.workload(&weights);
        let mut crowd = Crowd::new(
            &self.traffic,
            workload,
            preset,
            self.replicas,
            self.balancer,
        );
        let mut meters = Meters::new(preset, self.replicas);
        let mut exchanges = Vec::new();
        let mut fault = None;
        let mut at = Duration::ZERO;
        crowd.wish(&apportion(controller.users(), &weights), at);
        while controller.phase() != Phase::Over {
            let (answered, mut first_tokens_s) = (exchanges.len(), Vec::new());
            loop {
                match crowd.go_on(at) {
                    Ok(Some(ran)) => {
                        meters.record(&ran, crowd.groups());
                        first_tokens_s.extend_from_slice(&ran.delivered.first_after_s);
                        exchanges.extend_from_slice(&ran.delivered.answers);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        fault = Some(CampaignError::Crowd(error));
                        break;
                    }
                }
            }
            if exchanges.len() > MOST_EXCHANGES {
                fault = fault.or(Some(CampaignError::TooMany));
            }
            if let Some(fault) = &fault {
                // What was seen until now is told: it may be hours.
                controller.stop(at, Ending::Broken(fault.to_string()));
            }
            let samples = meters.sample(at, &crowd);
            samples.iter().for_each(|sample| telemetry.hear(sample));
            controller.tick(at, &telemetry);
            crowd.wish(&apportion(controller.users(), &weights), at);
            let goes_on = on_tick(&Tick {
                at,
                controller: &controller,
                telemetry: &telemetry,
                samples,
                first_tokens_s: &first_tokens_s,
                exchanges: exchanges.get(answered..).unwrap_or_default(),
                users: crowd.at_work(),
            });
            if !goes_on {
                controller.stop(at, Ending::Interrupted);
            }
            at += SCRAPE;
        }
        Ok(Outcome {
            course: controller.course().clone(),
            length: at - SCRAPE,
            exchanges,
            telemetry,
            steps: meters.steps(),
            beyond_bounds: meters.beyond_bounds(),
            fault,
        })
    }

    /// The traffic's, with as many users of each profile as any number up to the most may have of it: largest
    /// remainders may give a profile one more at fewer users.
    fn workload(&self, weights: &[f64]) -> Workload {
        let most = apportion(self.plan.max_users, weights);
        let mut workload = self.traffic.workload(self.plan.max_users, self.seed);
        for (profile, most) in workload.profiles.iter_mut().zip(most) {
            if let Load::Closed { users, .. } = &mut profile.load {
                *users = (most + 1).min(MOST_USERS);
            }
        }
        workload
    }

    fn check_replicas(&self, preset: &Preset) -> Result<(), CampaignError> {
        let blocks = u64::from(preset.parallelism.data) * u64::from(preset.scheduler.kv.blocks);
        let is_fine = (1..=MOST_REPLICAS).contains(&self.replicas)
            && u64::from(self.replicas) * blocks <= MOST_BLOCKS_OF_ALL;
        is_fine
            .then_some(())
            .ok_or(CampaignError::Replicas(self.replicas))
    }
}
