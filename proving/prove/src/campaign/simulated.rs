//! A campaign in virtual time: the same controller and the same document, with a simulated engine and simulated users.
//!
//! Invariant: nothing is started and no socket is opened; the same scenario and seed give the same figures.
//! Not here: the simulation (`simulator::campaign`).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use experiment::campaign::{Course, Ending};
use experiment::telemetry::Query;
use simulator::campaign::{Balancer, Campaign, Exchange, Traffic};
use simulator::preset::Preset;

use super::follow::Follower;
use super::live::clock;
use super::note::NoteKind;
use super::observed::{Ended, Observed};
use super::output::Output;
use super::queries;
use super::rig::preset_of;
use super::scenario::{Scenario, balancer};
use super::summary::{self, Parts, ProfilePart};
use super::{Options, RunError, WhatIf, hint, not_whole};
use crate::host::{descriptors, machine::Machine};
use crate::interrupt::Interrupt;
use crate::progress::Line;
use crate::report::document::{self, Document, Event, PrefixCache, Reproduce};
use crate::scrape::store::Store;

/// What was sampled.
const SAMPLES: &str = "samples.parquet";

/// Runs a scenario.
pub(super) fn run(
    options: &Options,
    mut scenario: Scenario,
    output: &Output,
) -> Result<Document, RunError> {
    let interrupt = Interrupt::heed().map_err(RunError::of("signals"))?;
    let started = SystemTime::now();
    let what_if = &options.what_if;
    if let Some(users) = what_if.max_users {
        scenario.plan.max_users = users;
    }
    let preset = preset(&scenario, what_if)?;
    let traffic = traffic(&scenario, what_if)?;
    let replicas = what_if.replicas.or(scenario.engine.replicas).unwrap_or(1);
    let word = what_if
        .balancer
        .as_deref()
        .or(scenario.engine.balancer.as_deref());
    let balancer = word.map(balancer).transpose().map_err(RunError::Usage)?;
    let balancer = balancer.unwrap_or(Balancer::LeastLoaded);
    let mut queries: Vec<Query> = queries::queries();
    queries.extend(scenario.queries().cloned());
    let profiles: Vec<ProfilePart> = traffic
        .profiles
        .iter()
        .map(|profile| ProfilePart {
            name: profile.name.clone(),
            law: profile.think.to_string(),
            weight: match profile.comes {
                simulator::crowd::Comes::Users { weight } => weight,
                simulator::crowd::Comes::Sessions { .. } => 0.0,
            },
        })
        .collect();
    let campaign = Campaign {
        traffic,
        plan: scenario.plan.clone(),
        seed: scenario.seed,
        replicas,
        balancer,
        queries,
    };
    let mut observed = Observed::new(profiles.len());
    let mut follower = Follower::default();
    let mut line = Line::new();
    let store = Store::create(&output.path(SAMPLES));
    let mut store = store.map_err(|error| RunError::Usage(error.to_string()))?;
    store.prefer(&campaign.queries);
    let outcome = campaign.run(&preset, |tick| {
        follower.tell(tick.controller, &mut observed);
        for exchange in tick.exchanges {
            observed.ended(&ended(exchange));
        }
        for sample in tick.samples {
            // A fault of the file is told at its end.
            drop(store.add(sample));
        }
        line.show(|| {
            let (phase, at) = (tick.controller.phase().word(), tick.at.as_secs_f64());
            format!(
                "{} of virtual time: {phase}, {} users",
                clock(at),
                tick.users
            )
        });
        !interrupt.was_heard()
    });
    line.end();
    let outcome = outcome.map_err(|error| RunError::Usage(error.to_string()))?;
    let guessed = (outcome.beyond_bounds > 0.0).then(|| guessed(outcome.beyond_bounds));
    let left_out = store.left_out();
    let written = store.finish().map(drop).map_err(|error| error.to_string());
    let noted = written.as_ref().err().map(|says| (NoteKind::File, says));
    let noted = noted
        .into_iter()
        .chain(left_out.as_ref().map(|says| (NoteKind::File, says)))
        .chain(guessed.as_ref().map(|says| (NoteKind::Warning, says)));
    let notes: Vec<Event> = noted.map(|(kind, says)| note(kind, says)).collect();
    let started_unix_ms = started.duration_since(UNIX_EPOCH).map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    let about = document::Scenario {
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        is_virtual: true,
        is_engine_simulated: true,
        started_unix_ms,
        seconds: outcome.length.as_secs_f64(),
        under_test: under_test(&preset, &campaign),
    };
    let mut reproduce = reproduce(options, &scenario);
    if written.is_err() {
        reproduce.files.retain(|file| file != SAMPLES);
    }
    let course = finished(outcome.course);
    let telemetry = &outcome.telemetry;
    let prefix_cache = PrefixCache {
        unique_sessions: observed.unique_sessions(),
        begun_sessions: observed.begun_sessions(),
        ..PrefixCache::default()
    };
    Ok(summary::document(Parts {
        prefix_cache,
        strict: options.strict,
        profiles,
        notes,
        remarks: guessed.into_iter().collect(),
        generator_fit: written.map_err(|says| not_whole(&says)),
        ..Parts::new(&scenario, about, &course, telemetry, &observed, reproduce)
    }))
}

/// What a figure rests on that nobody measured.
fn guessed(share: f64) -> String {
    format!(
        "the times of {:.1} % of the engine's steps are guessed: the recording behind the preset had none like them",
        share * 100.0
    )
}

fn note(kind: NoteKind, says: &str) -> Event {
    hint(&format!("warning: {says}"));
    kind.outside(says.to_owned())
}

/// A course that was ended from outside says so.
fn finished(mut course: Course) -> Course {
    course.ending.get_or_insert(Ending::Interrupted);
    course
}

pub(super) fn preset(scenario: &Scenario, what_if: &WhatIf) -> Result<Preset, RunError> {
    let says = "a campaign in virtual time needs engine.preset";
    let named = scenario.engine.preset.as_deref();
    let named = named.ok_or_else(|| RunError::Usage(says.into()))?;
    let mut preset = crate::files::preset(&preset_of(scenario, named)).map_err(RunError::File)?;
    let usage = |error: simulator::preset::PresetError| RunError::Usage(error.to_string());
    if let Some(blocks) = what_if.kv_blocks {
        preset = preset.with_kv_blocks(blocks).map_err(usage)?;
    }
    if let Some(most) = what_if.max_num_seqs {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        preset = preset.with_max_num_seqs(most).map_err(usage)?;
    }
    Ok(preset)
}

pub(super) fn traffic(scenario: &Scenario, what_if: &WhatIf) -> Result<Traffic, RunError> {
    let says =
        "a campaign in virtual time needs engine.workload: paper, or a file beside the scenario";
    let named = scenario.engine.workload.as_deref();
    let named = named.ok_or_else(|| RunError::Usage(says.into()))?;
    let file = scenario.beside(named);
    let traffic = match Traffic::named(named) {
        Some(traffic) if !file.is_file() => traffic,
        _ => {
            let text = crate::files::read(&file).map_err(RunError::File)?;
            let base = file.parent().unwrap_or(Path::new(""));
            let read = |name: &str| {
                crate::files::read(&base.join(name)).map_err(|error| error.to_string())
            };
            let parsed = Traffic::parse(&text, &file.display().to_string(), read);
            parsed.map_err(|error| RunError::Usage(error.to_string()))?
        }
    };
    match what_if.think {
        None => Ok(traffic),
        Some(factor) => {
            let slowed = traffic.with_think_factor(factor);
            slowed.map_err(|error| RunError::Usage(error.to_string()))
        }
    }
}

fn under_test(preset: &Preset, campaign: &Campaign) -> BTreeMap<String, String> {
    let gpus = format!("{} x {}", preset.gpus.count, preset.gpus.name);
    let balancer = match campaign.balancer {
        Balancer::RoundRobin => "round robin",
        Balancer::LeastLoaded => "least loaded",
        Balancer::PrefixAware(_) => "prefix-aware",
    };
    let mut told = BTreeMap::from([
        (
            "gateway".to_owned(),
            "none: users ask the engine".to_owned(),
        ),
        (
            "engine".to_owned(),
            format!("simulated in virtual time, preset {}", preset.name),
        ),
        ("model".to_owned(), preset.model.clone()),
        ("GPUs".to_owned(), gpus),
        (
            "limits".to_owned(),
            format!(
                "{} sequences, {} KV blocks",
                preset.scheduler.max_num_seqs, preset.scheduler.kv.blocks
            ),
        ),
    ]);
    if campaign.replicas > 1 {
        told.insert(
            "replicas".into(),
            format!("{}, {balancer}", campaign.replicas),
        );
    }
    told
}

fn reproduce(options: &Options, scenario: &Scenario) -> Reproduce {
    let machine = Machine::read(descriptors::raise());
    Reproduce {
        command: super::command(options),
        tool: format!("prove {}", env!("CARGO_PKG_VERSION")),
        seed: scenario.seed,
        hashes: BTreeMap::from([("scenario.toml".to_owned(), scenario.hash())]),
        versions: BTreeMap::new(),
        machine: super::told(&machine),
        files: vec![SAMPLES.into()],
        scenario: scenario.text.clone(),
    }
}

fn ended(exchange: &Exchange) -> Ended {
    let after = exchange.output_tokens.checked_sub(1).filter(|n| *n > 0);
    let decoding = exchange.last.saturating_sub(exchange.first);
    Ended {
        profile: exchange.profile as usize,
        user: exchange.user.map(u64::from),
        due: exchange.asked,
        sent: Some(exchange.asked),
        first_token: Some(exchange.first),
        ended: exchange.last,
        per_token: after.map(|tokens| decoding / tokens),
        longest_gap: None,
        prompt_tokens: Some(u64::from(exchange.prompt_tokens)),
        output_tokens: Some(u64::from(exchange.output_tokens)),
        cached_tokens: Some(u64::from(exchange.cached_tokens)),
        session: Some(exchange.session),
        turn: Some(exchange.turn),
        failure: None,
    }
}
