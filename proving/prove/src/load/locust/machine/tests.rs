//! The machine alone, in time that passes only when told. Not here: sockets (`worker`).

use std::time::UNIX_EPOCH;

use experiment::random::Rng;

use super::super::stats::{Of, Seen};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

struct Scene {
    machine: Machine,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        let now = Instant::now();
        let classes = vec!["Agent".to_owned(), "Chat".to_owned()];
        let machine = Machine::new("w".into(), classes, Pace::default(), now, UNIX_EPOCH);
        Self { machine, now }
    }

    /// Connected and known to the master.
    fn joined() -> Self {
        let mut scene = Self::new();
        scene.up();
        scene.hear(FromMaster::Ack { index: Some(0) });
        scene.hear(FromMaster::Heartbeat);
        scene
    }

    /// With users, as the master wanted them.
    fn running() -> Self {
        let mut scene = Self::joined();
        scene.spawn(1.0, 2);
        scene.users_are(2);
        scene
    }

    fn up(&mut self) -> Vec<String> {
        self.machine.up(self.now);
        self.act()
    }

    fn down(&mut self, how: Ending, written: u64) -> Vec<String> {
        self.machine.down(how, written);
        self.act()
    }

    fn hear(&mut self, message: FromMaster) -> Vec<String> {
        self.machine.hear(message, self.now, UNIX_EPOCH);
        self.act()
    }

    fn spawn(&mut self, timestamp: f64, chats: u32) -> Vec<String> {
        self.hear(FromMaster::Spawn(job(timestamp, "Chat", chats)))
    }

    fn users_are(&mut self, chats: u32) -> Vec<String> {
        self.machine.users_are([("Chat".to_owned(), chats)].into());
        self.act()
    }

    fn stopped(&mut self) -> Vec<String> {
        self.machine.stopped(self.now, UNIX_EPOCH);
        self.act()
    }

    fn count(&mut self, requests: u64) {
        let mut tally = LocustStats::new(UNIX_EPOCH);
        for _ in 0..requests {
            let of = Of {
                method: "GET",
                name: "/",
            };
            let seen = Seen {
                at: UNIX_EPOCH,
                time: None,
                bytes: 0,
                error: None,
            };
            tally.request(of, &seen);
        }
        self.machine.add(tally);
    }

    /// Lets time pass to `seconds` from now, with every wake-up in between; what was done.
    fn pass(&mut self, seconds: f64) -> Vec<String> {
        let until = self.now + Duration::from_secs_f64(seconds);
        let mut all = Vec::new();
        for _ in 0..10_000 {
            let wakes_at = self.machine.wakes_at().unwrap_or(until);
            self.now = wakes_at.max(self.now).min(until);
            all.extend(self.act());
            if self.now == until || self.machine.is_over() {
                self.now = until;
                return all;
            }
        }
        panic!("it wakes without end: {all:?}");
    }

    /// The same, with a master that answers heartbeats.
    fn pass_answered(&mut self, seconds: u64) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            let done = self.pass(1.0);
            let beats = done.iter().filter(|done| done.starts_with("heartbeat"));
            for _ in 0..beats.count() {
                all.extend(self.hear(FromMaster::Heartbeat));
            }
            all.extend(done);
        }
        all
    }

    fn act(&mut self) -> Vec<String> {
        self.machine.tick(self.now, UNIX_EPOCH, Health::default());
        let actions = self.machine.take_actions();
        actions.into_iter().map(|action| told(&action)).collect()
    }
}

fn job(timestamp: f64, class: &str, users: u32) -> Job {
    Job {
        timestamp,
        users: [(class.to_owned(), users)].into(),
        host: Some("http://h".into()),
        stop_timeout: Some(7.0),
    }
}

/// An action in a few words.
fn told(action: &Action) -> String {
    let count = |users: &Users| users.values().sum::<u32>();
    match action {
        Action::Send(ToMaster::Ready) => "client_ready".into(),
        Action::Send(ToMaster::Spawning) => "spawning".into(),
        Action::Send(ToMaster::SpawningComplete { users }) => {
            format!("spawning_complete {}", count(users))
        }
        Action::Send(ToMaster::Heartbeat { doing, .. }) => format!("heartbeat {doing:?}"),
        Action::Send(ToMaster::Stats { tally, users }) => {
            format!("stats {} by {}", tally.total().requests, count(users))
        }
        Action::Send(ToMaster::Stopped) => "client_stopped".into(),
        Action::Send(ToMaster::Exception { .. }) => "exception".into(),
        Action::Send(ToMaster::Quit) => "quit".into(),
        Action::Tell(Event::Spawn { users, new_run, .. }) => {
            format!("Spawn {users:?}{}", if *new_run { " anew" } else { "" })
        }
        Action::Tell(Event::Warning(says)) => format!("Warning {says}"),
        Action::Tell(event) => format!("{event:?}"),
        Action::Reconnect => "Reconnect".into(),
        Action::End => "End".into(),
    }
}

#[test]
fn a_worker_asks_until_the_master_answers_and_then_reports_and_beats() {
    let mut scene = Scene::new();
    assert!(scene.pass(3.0).is_empty(), "nothing is said to nobody");
    assert_eq!(scene.up(), ["client_ready"]);
    assert_eq!(scene.pass(11.0), ["client_ready", "client_ready"]);
    assert_eq!(
        scene.hear(FromMaster::Ack { index: Some(4) }),
        [
            "Joined { index: Some(4) }",
            "stats 0 by 0",
            "heartbeat Ready"
        ]
    );
    let done = scene.pass_answered(9);
    let of = |what: &str| done.iter().filter(|done| done.starts_with(what)).count();
    assert_eq!((of("heartbeat"), of("stats")), (9, 3), "{done:?}");
}

#[test]
fn a_master_that_never_answers_is_given_up() {
    let mut scene = Scene::new();
    scene.up();
    let done = scene.pass(299.0);
    assert!(done.iter().all(|done| done == "client_ready"), "{done:?}");
    assert_eq!(done.len(), 59);
    let done = scene.pass(2.0);
    assert!(
        done[0].contains("no answer from the master within 300s"),
        "{done:?}"
    );
    assert_eq!(done[1], "End");
    let mut nobody = Scene::new();
    assert_eq!(nobody.pass(301.0).len(), 2, "nor one that is not there");
}

#[test]
fn jobs_are_absolute_and_a_stale_one_is_ignored() {
    let mut scene = Scene::joined();
    assert_eq!(
        scene.spawn(10.0, 2),
        ["spawning", "Spawn {\"Agent\": 0, \"Chat\": 2} anew"]
    );
    assert_eq!(scene.users_are(2), ["spawning_complete 2"]);
    assert_eq!(
        scene.spawn(11.5, 5),
        ["spawning", "Spawn {\"Agent\": 0, \"Chat\": 5}"]
    );
    assert!(scene.spawn(11.5, 7).is_empty(), "the same time");
    assert!(scene.spawn(10.5, 7).is_empty(), "an older one");
    assert_eq!(scene.users_are(5), ["spawning_complete 5"]);
    assert!(scene.pass(1.0).contains(&"heartbeat Running".to_owned()));
}

#[test]
fn users_of_a_class_that_is_not_ours_are_told_to_the_master_and_not_spawned() {
    let mut scene = Scene::joined();
    let done = scene.hear(FromMaster::Spawn(job(1.0, "Stranger", 3)));
    assert_eq!(done[0], "exception");
    assert!(
        done[1].contains("no users of the class \"Stranger\", only of Agent, Chat"),
        "{done:?}"
    );
    assert_eq!(done[3], "Spawn {\"Agent\": 0, \"Chat\": 0} anew");
    let none = scene.hear(FromMaster::Spawn(job(2.0, "Stranger", 0)));
    assert_eq!(none.len(), 2, "none of them is none too many: {none:?}");
}

#[test]
fn a_stop_is_answered_when_the_users_are_gone_and_all_that_they_saw_is_reported_first() {
    let mut scene = Scene::running();
    assert_eq!(scene.hear(FromMaster::Stop), ["Stop { within: 7s }"]);
    scene.count(3);
    assert_eq!(scene.hear(FromMaster::Stop).len(), 0, "told once");
    assert_eq!(
        scene.stopped(),
        ["stats 3 by 0", "client_stopped", "client_ready"]
    );
    assert!(scene.hear(FromMaster::Ack { index: Some(0) }).is_empty());
    assert!(scene.pass(1.0).contains(&"heartbeat Ready".to_owned()));
    assert_eq!(scene.machine.delivery.delivered().confirmed, 3);
    assert_eq!(
        scene.hear(FromMaster::Stop),
        ["client_stopped", "client_ready"],
        "one without users has them gone"
    );
}

#[test]
fn a_job_that_comes_while_users_stop_waits_for_them_and_begins_a_new_run() {
    let mut scene = Scene::running();
    scene.hear(FromMaster::Stop);
    assert!(scene.spawn(2.0, 4).is_empty());
    scene.count(9);
    assert_eq!(
        scene.stopped(),
        ["spawning", "Spawn {\"Agent\": 0, \"Chat\": 4} anew"]
    );
    scene.users_are(4);
    let done = scene.pass(3.0);
    assert!(
        done.contains(&"stats 0 by 4".to_owned()),
        "nothing of the run before: {done:?}"
    );
}

#[test]
fn a_master_that_quits_gets_the_last_report_at_once() {
    let mut scene = Scene::running();
    scene.count(5);
    assert_eq!(scene.hear(FromMaster::Quit), ["stats 5 by 2", "Quit"]);
    scene.count(1);
    scene.machine.leave(scene.now, UNIX_EPOCH);
    assert_eq!(scene.act(), ["stats 1 by 0", "quit", "End"]);
    let mut gone = Scene::running();
    gone.hear(FromMaster::Quit);
    assert_eq!(
        gone.down(Ending::Closed, 100),
        ["End"],
        "it may be faster than the run"
    );
}

#[test]
fn a_master_that_says_nothing_for_a_minute_is_lost_connected_or_not() {
    for connected in [true, false] {
        let mut scene = Scene::running();
        if !connected {
            scene.down(Ending::Broken, 0);
        }
        let done = scene.pass(59.0);
        assert!(
            !done.iter().any(|done| done.starts_with("Lost")),
            "{done:?}"
        );
        let done = scene.pass(2.0);
        assert!(
            done.iter()
                .any(|done| done.contains("no word from the master for 60s")),
            "{done:?}"
        );
        assert_eq!(done.last().map(String::as_str), Some("End"));
    }
}

#[test]
fn a_connection_that_breaks_is_taken_up_again_with_all_that_was_counted() {
    let mut scene = Scene::running();
    scene.count(4);
    let done = scene.pass_answered(3);
    assert!(done.contains(&"stats 4 by 2".to_owned()), "{done:?}");
    scene.count(5);
    let done = scene.pass(3.0);
    assert!(done.contains(&"stats 5 by 2".to_owned()), "{done:?}");
    // Nobody answered since, and nothing was written.
    assert!(scene.down(Ending::Broken, 0).is_empty());
    scene.count(30);
    assert!(scene.users_are(1).is_empty());
    assert!(scene.pass(4.0).is_empty());
    assert_eq!(
        scene.up(),
        ["heartbeat Running"],
        "first whether it is the same master"
    );
    assert!(scene.hear(FromMaster::Heartbeat).is_empty());
    assert_eq!(
        scene.pass_answered(1),
        ["stats 35 by 1", "heartbeat Running"]
    );
    assert!(!scene.pass_answered(30).contains(&"Reconnect".to_owned()));
    assert_eq!(scene.machine.delivery.delivered().confirmed, 39);
}

#[test]
fn a_master_that_has_forgotten_us_is_joined_anew_once_the_users_have_stopped() {
    let mut scene = Scene::running();
    scene.count(5);
    scene.down(Ending::Broken, 0);
    scene.up();
    let done = scene.pass(9.5);
    assert!(
        done.iter().all(|done| done == "heartbeat Running"),
        "a report would be counted, and then counted again: {done:?}"
    );
    assert_eq!(
        scene.pass(1.0).last().map(String::as_str),
        Some("Stop { within: 7s }")
    );
    assert!(scene.pass(1.0).is_empty(), "a stranger is not told of");
    assert_eq!(scene.machine.id(), "w");
    assert_eq!(scene.stopped(), ["Reconnect"]);
    assert_eq!(
        scene.machine.id(),
        "w-2",
        "the old id may still be held by a connection"
    );
    scene.down(Ending::Broken, 0);
    assert_eq!(scene.up(), ["client_ready"]);
    scene.hear(FromMaster::Ack { index: Some(1) });
    assert_eq!(
        scene.spawn(0.5, 1)[0],
        "spawning",
        "another master has another clock"
    );
}

#[test]
fn a_quit_on_a_new_connection_means_a_worker_that_the_master_does_not_know() {
    let mut scene = Scene::running();
    scene.down(Ending::Broken, 0);
    scene.up();
    assert_eq!(scene.hear(FromMaster::Quit), ["Stop { within: 7s }"]);
    let mut idle = Scene::joined();
    idle.down(Ending::Broken, 0);
    idle.up();
    assert_eq!(idle.hear(FromMaster::Quit), ["Reconnect"]);
}

#[test]
fn users_that_stop_while_there_is_no_connection_are_told_by_joining_again() {
    let mut scene = Scene::running();
    scene.hear(FromMaster::Stop);
    scene.count(2);
    scene.down(Ending::Broken, 0);
    assert!(scene.stopped().is_empty());
    assert_eq!(scene.up(), ["client_ready"]);
    assert_eq!(scene.machine.id(), "w", "to this master the same one");
    let done = scene.hear(FromMaster::Ack { index: Some(0) });
    assert_eq!(done[1], "stats 2 by 0", "{done:?}");
}

#[test]
fn a_reconnect_is_obeyed_and_an_unknown_word_changes_nothing() {
    let mut scene = Scene::running();
    assert_eq!(scene.hear(FromMaster::Reconnect), ["Reconnect"]);
    let done = scene.hear(FromMaster::Other("update_user_class".into()));
    assert!(
        done[0].starts_with("Warning the master sent a message of the type \"update_user_class\"")
    );
    scene.machine.damaged("odd bytes".into());
    assert_eq!(scene.act(), ["exception", "Warning odd bytes"]);
    assert!(scene.hear(FromMaster::Ramped).is_empty());
}

#[test]
fn whatever_comes_in_whatever_order_the_machine_goes_on_and_loses_nothing() {
    for seed in 1..500_u64 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut draw = move |below: u64| rng.below(below);
        let mut scene = Scene::new();
        let mut added = 0;
        for step in 0..80_u32 {
            match draw(15) {
                0 if scene.machine.up => drop(scene.down(Ending::Broken, draw(9))),
                0 | 1 if !scene.machine.up => drop(scene.up()),
                2 => drop(scene.hear(FromMaster::Ack { index: None })),
                3 | 4 => drop(scene.spawn(f64::from(step), 3)),
                5 => drop(scene.hear(FromMaster::Stop)),
                6 => drop(scene.stopped()),
                7 => drop(scene.users_are(2)),
                8 | 9 => drop(scene.hear(FromMaster::Heartbeat)),
                10 if draw(8) == 0 => drop(scene.hear(FromMaster::Quit)),
                11 => drop(scene.hear(FromMaster::Reconnect)),
                _ => drop(scene.pass(draw(40) as f64 / 10.0)),
            }
            let requests = draw(4);
            added += requests;
            scene.count(requests);
        }
        scene.machine.leave(scene.now + SECOND, UNIX_EPOCH);
        scene.act();
        scene.machine.down(Ending::Finished, u64::MAX);
        let told = scene.machine.finish(UNIX_EPOCH);
        assert_eq!(told.confirmed + told.taken_for_read + told.dropped, added);
    }
}
