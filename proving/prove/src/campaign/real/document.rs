//! The document of a campaign in real time, whether it was loaded or ended before.
//!
//! Not here: what the figures are made of (`summary`), pages (`report`).

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use experiment::campaign::{Course, Ending};
use experiment::telemetry::Telemetry;

use super::{Campaign, UNVERIFIED, lock, preparation};
use crate::campaign::observed::Observed;
use crate::campaign::scenario::Scenario;
use crate::campaign::summary::{self, Parts, ProfilePart};
use crate::campaign::{Options, not_whole};
use crate::report::document::{self, Document, PrefixCache, Reproduce, Verified};

/// The document of a campaign that ended before its load.
pub(super) fn unloaded(
    options: &Options,
    scenario: &Scenario,
    started: SystemTime,
    verified: Option<Verified>,
    ending: Ending,
) -> Document {
    let under_test = preparation::named(options, scenario);
    let is_simulated = preparation::would_simulate(options, scenario);
    let about = about(scenario, started, (0.0, is_simulated), under_test);
    let course = Course {
        ending: Some(ending),
        ..Course::default()
    };
    let reproduce = preparation::reproduce(options, scenario, None, None);
    let (heard, seen) = (Telemetry::default(), Observed::new(0));
    summary::document(Parts {
        verify: verified,
        ..Parts::new(scenario, about, &course, &heard, &seen, reproduce)
    })
}

fn about(
    scenario: &Scenario,
    started: SystemTime,
    (seconds, is_engine_simulated): (f64, bool),
    under_test: BTreeMap<String, String>,
) -> document::Scenario {
    let started = started.duration_since(UNIX_EPOCH);
    document::Scenario {
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        is_virtual: false,
        is_engine_simulated,
        started_unix_ms: started.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        }),
        seconds,
        under_test,
    }
}

impl Campaign {
    pub(super) fn document(mut self, options: &Options) -> Document {
        let observed = lock(&self.observed);
        let after = self.after.take();
        let profiles = self.prepared.steered.profiles.iter();
        let profiles = profiles.map(|profile| ProfilePart {
            name: profile.name.clone(),
            law: profile.law.clone(),
            weight: profile.weight,
        });
        let mut course = self.controller.course().clone();
        if after.is_none() {
            // A suite that failed let nothing begin.
            course = Course::default();
        } else if self.is_cut {
            course.ending = Some(Ending::Interrupted);
        }
        let under_test = self.prepared.under_test();
        let about = about(
            &self.prepared.scenario,
            self.started,
            (self.now.seconds, self.prepared.is_simulated()),
            under_test,
        );
        let mut reproduce: Reproduce = self.prepared.reproduce(options);
        reproduce
            .files
            .retain(|file| !self.broken.contains_key(&**file));
        let after = after.unwrap_or_default();
        let evidence = self.broken.values().next().map(|says| not_whole(says));
        let fit = after.void.or(evidence).map_or(Ok(()), Err);
        let is_verified = self.verified.is_some();
        let remarks = (!is_verified).then(|| UNVERIFIED.to_owned());
        summary::document(Parts {
            profiles: profiles.collect(),
            certificate: after.certificate,
            generator: after.generator,
            overhead: after.overhead,
            series: after.series,
            tokens: self.gateway_pages.tokens(),
            prefix_cache: PrefixCache {
                unique_sessions: observed.unique_sessions(),
                begun_sessions: observed.begun_sessions(),
                ..self.prepared.steered.corpus.prefix_cache()
            }
            .expecting(|share| self.prepared.steered.corpus.expected_hits(share)),
            strict: options.strict,
            verify: self.verified.clone(),
            said: after.said,
            notes: self.notes.clone(),
            remarks: remarks.into_iter().collect(),
            generator_fit: fit,
            ..Parts::new(
                &self.prepared.scenario,
                about,
                &course,
                &self.telemetry,
                &observed,
                reproduce,
            )
        })
    }
}
