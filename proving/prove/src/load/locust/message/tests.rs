//! The golden bytes were written by Locust 2.47.0's own `Message.serialize`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::stats::{Of, Part, Seen};
use super::*;

const SPAWN: &[u8] = b"\x93\xa5spawn\x85\xa9timestamp\xcbA\xd9T\xfc@\x10\x00\x00\xb2user_classes_count\x82\xa4Chat\x03\
    \xa5Agent\x00\xa4host\xa8http://h\xacstop_timeout\xcb\x00\x00\x00\x00\x00\x00\x00\x00\xaeparsed_options\x82\xa1a\
    \x93\x01\xc0\x81\xa1b\xc3\xa1c\xcb\xbf\xf8\x00\x00\x00\x00\x00\x00\xa3w_1";

fn users(of: &[(&str, u32)]) -> Users {
    of.iter()
        .map(|(class, count)| ((*class).to_owned(), *count))
        .collect()
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> T {
    rmp_serde::from_slice(bytes).expect("what we wrote")
}

#[test]
fn the_words_of_a_master_are_read() {
    let of = |bytes: &[u8]| decode(bytes).expect("Locust's own bytes");
    assert_eq!(
        of(b"\x93\xa3ack\x81\xa5index\x03\xa3w_1"),
        FromMaster::Ack { index: Some(3) }
    );
    assert_eq!(
        of(b"\x93\xa3ack\xc0\xa3w_1"),
        FromMaster::Ack { index: None }
    );
    assert_eq!(
        of(SPAWN),
        FromMaster::Spawn(Job {
            timestamp: 1_700_000_000.25,
            users: users(&[("Chat", 3), ("Agent", 0)]),
            host: Some("http://h".into()),
            stop_timeout: Some(0.0),
        })
    );
    let bare = b"\x93\xa5spawn\x85\xa9timestamp\xceeS\xf1\x00\xb2user_classes_count\x81\xa4Chat\xcd\x01,\xa4host\xc0\
        \xacstop_timeout\xc0\xaeparsed_options\x80\xa3w_1";
    assert_eq!(
        of(bare),
        FromMaster::Spawn(Job {
            timestamp: 1_700_000_000.0,
            users: users(&[("Chat", 300)]),
            host: None,
            stop_timeout: None,
        })
    );
    assert_eq!(of(b"\x93\xa9heartbeat\xc0\xa3w_1"), FromMaster::Heartbeat);
    assert_eq!(of(b"\x93\xa4stop\xc0\xa3w_1"), FromMaster::Stop);
    assert_eq!(
        of(b"\x93\xb1spawning_complete\x81\xaauser_count\xce\x00\x01\x11p\xa3w_1"),
        FromMaster::Ramped
    );
    let custom = b"\x93\xb1update_user_class\x81\xa1t\x82\xac__datetime__\xc3\xa6as_str\xb820260102T00:00:00.000000\
        \xa3w_1";
    assert_eq!(of(custom), FromMaster::Other("update_user_class".into()));
}

#[test]
fn the_words_of_a_worker_are_these_bytes() {
    let of = |message| encode(&message, "w_1");
    assert_eq!(of(ToMaster::Ready), b"\x93\xacclient_ready\xff\xa3w_1");
    assert_eq!(of(ToMaster::Spawning), b"\x93\xa8spawning\xc0\xa3w_1");
    assert_eq!(of(ToMaster::Stopped), b"\x93\xaeclient_stopped\xc0\xa3w_1");
    assert_eq!(of(ToMaster::Quit), b"\x93\xa4quit\xc0\xa3w_1");
    let users = users(&[("Chat", 3), ("Agent", 0)]);
    assert_eq!(
        of(ToMaster::SpawningComplete { users }),
        b"\x93\xb1spawning_complete\x82\xb2user_classes_count\x82\xa5Agent\x00\xa4Chat\x03\xaauser_count\x03\xa3w_1"
    );
    let health = Health {
        cpu_percent: 12.5,
        memory_bytes: 65536,
    };
    let doing = Doing::Running;
    assert_eq!(
        of(ToMaster::Heartbeat { doing, health }),
        b"\x93\xa9heartbeat\x83\xa5state\xa7running\xb1current_cpu_usage\xcb@)\x00\x00\x00\x00\x00\x00\
          \xb4current_memory_usage\xce\x00\x01\x00\x00\xa3w_1"
    );
    let says = "odd".to_owned();
    assert_eq!(
        of(ToMaster::Exception { says }),
        b"\x93\xa9exception\x82\xa3msg\xa3odd\xa9traceback\xa0\xa3w_1"
    );
}

#[test]
fn a_report_holds_all_that_a_master_adds_up() {
    let at = UNIX_EPOCH + Duration::from_millis(1_700_000_000_500);
    let mut tally = LocustStats::new(UNIX_EPOCH + Duration::from_secs(1_699_999_999));
    let of = Of {
        method: "POST",
        name: "/v1",
    };
    let mut seen = Seen {
        at,
        time: Some(Duration::from_micros(1500)),
        bytes: 10,
        error: None,
    };
    tally.request(of, &seen);
    seen.error = Some("timeout");
    seen.time = None;
    tally.request(of, &seen);
    tally.part(of, Part::Ttft, at, Duration::from_millis(1), 1);
    let users = users(&[("Chat", 2)]);
    let tally = Box::new(tally);
    let (kind, data, id): (String, as_read::Report, String) =
        read(&encode(&ToMaster::Stats { tally, users }, "w_1"));
    assert_eq!((kind.as_str(), id.as_str()), ("stats", "w_1"));
    let whole = json!({
        "name": "/v1", "method": "POST", "last_request_timestamp": 1_700_000_000.5, "start_time": 1_699_999_999.0,
        "num_requests": 2, "num_none_requests": 1, "num_failures": 1, "total_response_time": 1.5,
        "max_response_time": 1.5, "min_response_time": 1.5, "total_content_length": 20,
        "response_times": [[2, 1]], "num_reqs_per_sec": [[1_700_000_000, 2]],
        "num_fail_per_sec": [[1_700_000_000, 1]],
    });
    let mut total = whole.clone();
    total["name"] = "Aggregated".into();
    total["method"] = "".into();
    let ttft = json!({
        "name": "/v1 TTFT", "method": "POST", "last_request_timestamp": 1_700_000_000.5,
        "start_time": 1_699_999_999.0, "num_requests": 1, "num_none_requests": 0, "num_failures": 0,
        "total_response_time": 1.0, "max_response_time": 1.0, "min_response_time": 1.0, "total_content_length": 0,
        "response_times": [[1, 1]], "num_reqs_per_sec": [[1_700_000_000, 1]], "num_fail_per_sec": [],
    });
    let error = json!({
        "name": "/v1", "method": "POST", "error": "timeout", "occurrences": 1,
        "first_seen": 1_700_000_000.5, "last_seen": 1_700_000_000.5,
    });
    let stats: Vec<Value> = data.stats.iter().map(as_read::Entry::json).collect();
    assert_eq!(stats, [whole, ttft]);
    assert_eq!(data.stats_total.json(), total, "a part is no request");
    assert_eq!(data.errors, [("POST./v1.timeout".to_owned(), error)].into());
    assert_eq!(data.user_classes_count, [("Chat".to_owned(), 2)].into());
    assert_eq!(data.user_count, 2);
}

/// A report as a master reads it: maps whose keys are numbers are no JSON.
mod as_read {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Value, json};

    type Numbers = BTreeMap<u64, u64>;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Report {
        pub(super) stats: Vec<Entry>,
        pub(super) stats_total: Entry,
        pub(super) errors: BTreeMap<String, Value>,
        pub(super) user_classes_count: BTreeMap<String, u64>,
        pub(super) user_count: u64,
    }

    #[derive(Deserialize)]
    pub(super) struct Entry {
        response_times: Numbers,
        num_reqs_per_sec: Numbers,
        num_fail_per_sec: Numbers,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    impl Entry {
        pub(super) fn json(&self) -> Value {
            let pairs = |of: &Numbers| json!(of.iter().collect::<Vec<_>>());
            let mut all = json!(self.rest);
            all["response_times"] = pairs(&self.response_times);
            all["num_reqs_per_sec"] = pairs(&self.num_reqs_per_sec);
            all["num_fail_per_sec"] = pairs(&self.num_fail_per_sec);
            all
        }
    }
}

#[test]
fn an_empty_report_has_no_time_of_a_request() {
    let tally = Box::new(LocustStats::new(SystemTime::now()));
    let bytes = encode(
        &ToMaster::Stats {
            tally,
            users: Users::new(),
        },
        "w",
    );
    let (_, data, _): (String, as_read::Report, String) = read(&bytes);
    assert!(data.stats.is_empty() && data.errors.is_empty());
    let total = data.stats_total.json();
    assert_eq!(total["last_request_timestamp"], Value::Null);
    assert_eq!(total["min_response_time"], Value::Null);
    assert!(
        total["start_time"].as_f64() > Some(1e9),
        "the master keeps the least: {total}"
    );
}

#[test]
fn what_is_no_message_is_refused_with_a_reason() {
    let says = |bytes: &[u8]| decode(bytes).expect_err("an error").to_string();
    assert!(says(b"").contains("of 0 bytes"));
    assert!(says(b"\x93\xa4stop\xc0").contains("of 7 bytes"));
    assert!(says(b"\x92\xa4stop\xc0").contains("fewer than three"));
    assert!(says(b"\x94\xa4stop\xc0\xc0\xc0").contains("more than three"));
    assert!(says(b"\x93\xa5spawn\xc0\xa3w_1").contains("cannot be read"));
    let job = |timestamp: f64, users: Users| {
        let data =
            json!({ "timestamp": 0, "user_classes_count": users, "host": null, "stop_timeout": 0 });
        let mut data: BTreeMap<String, Value> = serde_json::from_value(data).expect("an object");
        data.remove("timestamp");
        #[derive(Serialize)]
        struct Job {
            timestamp: f64,
            #[serde(rename = "user_classes_count")]
            users: Users,
        }
        rmp_serde::to_vec_named(&("spawn", Job { timestamp, users }, "w")).expect("bytes")
    };
    assert!(decode(&job(1.0, users(&[("Chat", 1)]))).is_ok());
    for timestamp in [f64::NAN, f64::INFINITY, -1.0] {
        assert!(says(&job(timestamp, Users::new())).contains("a time that is none"));
    }
    let many = users(&[("Chat", u32::MAX)]);
    assert!(says(&job(1.0, many)).contains("at most 1000000"));
    let classes = (0..=MOST_CLASSES).map(|class| (class.to_string(), 0));
    assert!(says(&job(1.0, classes.collect())).contains("257 classes"));
    let deep = [b"\x93\xa1x".as_slice(), &[0x91; 100_000], b"\xc0\xc0"].concat();
    assert!(says(&deep).contains("depth"), "{}", says(&deep));
}

#[test]
fn no_damage_of_any_byte_is_more_than_an_error() {
    for at in 0..SPAWN.len() {
        for value in 0..=255 {
            let mut damaged = SPAWN.to_vec();
            damaged[at] = value;
            // Sound where only a name or a number is another.
            drop(decode(&damaged));
        }
        assert!(decode(&SPAWN[..at]).is_err(), "cut at {at}");
    }
}
