//! The task on a paused clock: what the machine does there is what it does alone, step by step and token by token.
//!
//! Such a clock goes on when nothing is left to do, to the whole millisecond at which something is due; no machine decides how long that takes.
//! Not here: how far a real clock is off (`tests/http/timing_clocks.rs`), what the machine should do (`simulator::virtual_time`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use simulator::cost::{DecodeCost, PrefillCost, StepCost};
use simulator::kv::Chain;
use simulator::preset::Preset;
use simulator::scheduler::SchedulerStats;
use simulator::soak::{Plan, Question, soak};
use simulator::virtual_time::Parallelism;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::LocalSet;

use super::*;
use crate::config::EngineConfig;
use crate::metrics::{Siblings, Subject};

/// By request: at which millisecond it had how many tokens.
type Heard = BTreeMap<u64, Vec<(u64, usize)>>;

/// What there is to ask, and what came of it.
struct World {
    preset: Preset,
    plan: Plan,
    recorder: Arc<Recorder>,
    engine: UnboundedSender<Command>,
    epoch: Instant,
    /// What was asked, in order.
    posted: RefCell<Vec<(Duration, Request)>>,
    heard: RefCell<Heard>,
    /// Waits for the first token and for the whole answer, of those that ended after the warm-up, in seconds.
    waits: RefCell<Vec<[f64; 2]>>,
}

fn preset() -> Preset {
    Preset::named("gpt-oss-120b.h100x4").unwrap()
}

fn plan() -> Plan {
    Plan {
        users: 12,
        think: Duration::from_millis(500),
        prompt_tokens: 2000,
        cached_tokens: 704,
        output_tokens: 60,
        variation: 0.3,
        length: Duration::from_secs(20),
        warm_up: Duration::from_secs(4),
        seed: 1,
    }
}

fn config(preset: &Preset, parallelism: Parallelism) -> EngineConfig {
    EngineConfig {
        models: vec![preset.model.clone()],
        hardware: Some(Hardware {
            parallelism,
            ..Hardware::from(preset)
        }),
        ..EngineConfig::default()
    }
}

/// Runs the task of this configuration, and `ask` beside it, on a paused clock.
fn on_a_paused_clock<T>(
    config: &EngineConfig,
    ask: impl AsyncFnOnce(UnboundedSender<Command>, Arc<Recorder>) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let recorder = Arc::new(Recorder::new(config));
    let (engine, inbox) = mpsc::unbounded_channel();
    let hardware = config.hardware.clone().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let task = tokio::task::spawn_local(run(hardware, Arc::clone(&recorder), inbox));
        // Its time 0 is now.
        tokio::task::yield_now().await;
        let said = ask(engine, recorder).await;
        task.await.unwrap();
        said
    })
}

fn job(recorder: &Arc<Recorder>, request: Request, progress: &Arc<Progress>) -> Box<Job> {
    let subject = Subject {
        model: 0,
        seen: None,
        client_request_id: None,
        id: String::new(),
        prompt_tokens: u64::from(request.prompt_tokens),
        cached: Arc::new(AtomicU64::new(0)),
        request: Siblings::new(1, None),
    };
    Box::new(Job {
        request,
        generation: Generation::start(recorder, subject),
        finish: Finish::Length,
        progress: Arc::clone(progress),
        choice: 0,
    })
}

/// Posts a request; its tokens are counted by what comes back, and it is aborted by dropping that.
fn submit(
    engine: &UnboundedSender<Command>,
    recorder: &Arc<Recorder>,
    request: Request,
) -> JobHandle {
    let progress = Progress::new(1);
    let ids = vec![request.id];
    let job = job(recorder, request, &progress);
    engine.send(Command::Submit(job)).unwrap();
    JobHandle::new(progress, ids, engine.clone())
}

/// Waits for news of a request, and gives how many tokens it has.
async fn news(handle: &mut JobHandle, seen: &mut [usize; 1]) -> usize {
    assert!(std::future::poll_fn(|cx| handle.poll_news(cx, seen)).await);
    seen[0]
}

/// Whose own blocks nobody shares.
fn request(id: u64, prompt: &[u32], output_tokens: u32) -> Request {
    Request {
        id: RequestId(id),
        prompt_tokens: u32::try_from(prompt.len()).unwrap(),
        output_tokens,
        chain: Chain::of_tokens(prompt, 16, id),
    }
}

impl World {
    async fn ask(&self, id: u64, question: Question) -> [f64; 2] {
        let token = |i: u32| match i < self.plan.cached_tokens {
            true => i,
            false => u32::try_from((u64::from(i) + id * 31) % 50_000).unwrap(),
        };
        let prompt: Vec<u32> = (0..question.prompt_tokens).map(token).collect();
        let request = request(id, &prompt, question.output_tokens);
        let at = self.epoch.elapsed();
        self.posted.borrow_mut().push((at, request.clone()));
        let mut handle = submit(&self.engine, &self.recorder, request);
        let (mut seen, mut first) = ([0], None);
        while seen[0] < question.output_tokens as usize {
            let tokens = news(&mut handle, &mut seen).await;
            let now = self.epoch.elapsed();
            first = first.or(Some(now));
            note(&mut self.heard.borrow_mut(), id, now, tokens);
        }
        [first.unwrap(), self.epoch.elapsed()].map(|then| (then - question.at).as_secs_f64())
    }

    async fn live(self: Rc<Self>, user: u32) {
        let longest = self.preset.scheduler.max_model_len;
        let mut questions = self.plan.questions(user, longest);
        let mut from = Duration::ZERO;
        for number in 0.. {
            let question = questions.ask(from);
            if question.at >= self.plan.length {
                return;
            }
            sleep_until(self.epoch + question.at).await;
            let waits = self.ask(u64::from(user * 1000 + number), question).await;
            from = self.epoch.elapsed();
            if from >= self.plan.warm_up && from <= self.plan.length {
                self.waits.borrow_mut().push(waits);
            }
        }
    }
}

/// Notes how many tokens there are, once for each millisecond.
fn note(heard: &mut Heard, id: u64, at: Duration, tokens: usize) {
    let ms = u64::try_from(at.as_nanos().div_ceil(1_000_000)).unwrap();
    let of_it = heard.entry(id).or_default();
    match of_it.last_mut() {
        Some((last, so_far)) if *last == ms => *so_far = tokens,
        _ => of_it.push((ms, tokens)),
    }
}

/// What a machine alone makes of the same requests: what is heard, by rank how many steps and tokens in them, and what it did.
fn alone(
    hardware: &Hardware,
    posted: &[(Duration, Request)],
) -> (Heard, Vec<(u64, u64)>, SchedulerStats) {
    let (scheduler, cost) = (hardware.scheduler, hardware.cost.clone());
    let mut machine = VirtualEngine::parallel(scheduler, cost, hardware.parallelism);
    for (at, request) in posted {
        machine.post(*at, request.clone());
    }
    let (mut heard, mut last) = (Heard::new(), Duration::ZERO);
    let mut steps = vec![(0, 0); hardware.ranks()];
    while let Some(iteration) = machine.iterate(Duration::MAX).unwrap() {
        for (rank, step) in (iteration.rank..).zip(&iteration.steps) {
            if let Some(step) = step {
                steps[rank].0 += 1;
                steps[rank].1 += step.tokens();
            }
        }
        last = last.max(iteration.at);
        for emitted in &iteration.emitted {
            last += hardware.frontend.per_token;
            note(&mut heard, emitted.id.0, last, emitted.index as usize + 1);
        }
    }
    (heard, steps, machine.stats())
}

/// A sample of the page of metrics.
fn sample(page: &str, name: &str, rank: usize) -> f64 {
    let starts = format!("vllm:{name}{{engine=\"{rank}\"");
    let line = page.lines().find(|line| line.starts_with(&starts)).unwrap();
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// Lets all users of the plan ask, and holds what they heard against the machine alone; gives the mean waits.
fn same_as_alone(parallelism: Parallelism) -> [f64; 2] {
    let preset = preset();
    let config = config(&preset, parallelism);
    let world = on_a_paused_clock(&config, async |engine, recorder| {
        let world = Rc::new(World {
            preset,
            plan: plan(),
            recorder,
            engine,
            epoch: Instant::now(),
            posted: RefCell::default(),
            heard: RefCell::default(),
            waits: RefCell::default(),
        });
        let users: Vec<_> = (0..world.plan.users)
            .map(|user| tokio::task::spawn_local(Rc::clone(&world).live(user)))
            .collect();
        for user in users {
            user.await.unwrap();
        }
        // With the last sender the task ends.
        Rc::into_inner(world).map(|world| (world.recorder, world.posted, world.heard, world.waits))
    });
    let (recorder, posted, heard, waits) = world.expect("no user is left");
    let hardware = config.hardware.unwrap();
    let (expected, steps, stats) = alone(&hardware, &posted.borrow());
    println!(
        "{} requests, steps and tokens {steps:?}, {stats:?}",
        expected.len()
    );
    assert!(expected.len() > 100, "{}", expected.len());
    assert_eq!(*heard.borrow(), expected);
    let metrics = recorder.metrics();
    let page = metrics.exposition();
    for (rank, (count, tokens)) in steps.into_iter().enumerate() {
        let shown = ["count", "sum"].map(|part| {
            let name = format!("iteration_tokens_total_{part}");
            sample(&page, &name, rank)
        });
        assert_eq!(shown, [count as f64, tokens as f64], "rank {rank}");
    }
    let shown = metrics.stats();
    assert_eq!(shown.preemptions, stats.totals.preemptions);
    assert_eq!(
        (shown.running, shown.kv_blocks_used),
        (0, stats.kv_blocks_used.into())
    );
    let waits = waits.into_inner();
    [0, 1].map(|i| waits.iter().map(|of_one| of_one[i]).sum::<f64>() / waits.len() as f64)
}

#[test]
fn steps_tokens_and_their_order_are_those_of_the_machine_alone() {
    let [ttft, e2e] = same_as_alone(Parallelism::default());
    // Nor do users notice another machine than in a soak: here they hear and ask at whole milliseconds.
    let report = soak(&preset(), &plan()).unwrap();
    println!(
        "TTFT {ttft} s and {:?}, E2E {e2e} s and {:?}",
        report.ttft.mean, report.e2e.mean
    );
    for (here, there) in [(ttft, report.ttft.mean), (e2e, report.e2e.mean)] {
        assert!((here - there).abs() < there * 0.05, "{here} s, {there} s");
    }
}

#[test]
fn engines_in_parallel_do_what_they_do_alone() {
    for lockstep in [false, true] {
        same_as_alone(Parallelism { data: 2, lockstep });
    }
}

/// A machine whose every step takes 30 ms, and requests of forty tokens.
fn by_thirty() -> (EngineConfig, impl Fn(u64) -> Request) {
    let mut config = config(&preset(), Parallelism::default());
    config.hardware = Some(Hardware::from(&Preset::named("instant").unwrap()));
    if let Some(hardware) = &mut config.hardware {
        hardware.cost = StepCost {
            experts: None,
            overhead_ms: 30.0,
            prefill: PrefillCost {
                base_ms: 0.0,
                per_token_us: 0.0,
                per_pair_ns: 0.0,
            },
            decode: DecodeCost::Line {
                base_ms: 0.0,
                per_sequence_us: 0.0,
                per_context_token_ns: 0.0,
            },
        };
        hardware.frontend.per_token = Duration::ZERO;
    }
    (config, |id| request(id, &[5; 64], 40))
}

#[test]
fn a_request_at_an_idle_engine_waits_for_nothing_in_its_queue() {
    let (config, request) = by_thirty();
    let page = on_a_paused_clock(&config, async |engine, recorder| {
        for id in 0..3 {
            // Long idle, and at no step's end.
            tokio::time::sleep(Duration::from_millis(1_007)).await;
            let mut handle = submit(&engine, &recorder, request(id));
            let mut seen = [0];
            while news(&mut handle, &mut seen).await < 40 {}
        }
        recorder.metrics().exposition()
    });
    let sums = ["request_queue", "request_prefill", "request_decode"]
        .map(|name| sample(&page, &format!("{name}_time_seconds_sum"), 0));
    let expected = [0.0, 3.0 * 0.030, 3.0 * 39.0 * 0.030];
    for (sum, expected) in sums.into_iter().zip(expected) {
        assert!((sum - expected).abs() < 1e-6, "{sums:?} {expected}");
    }
}

#[test]
fn what_a_machine_lacks_that_stood_still_is_no_time_for_it() {
    let (config, request) = by_thirty();
    on_a_paused_clock(&config, async |engine, recorder| {
        let mut seen = [0];
        let mut handle = submit(&engine, &recorder, request(1));
        assert_eq!(news(&mut handle, &mut seen).await, 1);
        // Ten seconds in which nobody came to his turn: time for three hundred tokens, of which one was due.
        tokio::time::advance(Duration::from_secs(10)).await;
        let woken = Instant::now();
        assert!(news(&mut handle, &mut seen).await <= 3, "{seen:?}");
        while news(&mut handle, &mut seen).await < 40 {}
        assert!(
            woken.elapsed() >= Duration::from_millis(36 * 30),
            "{:?}",
            woken.elapsed()
        );
    });
}
