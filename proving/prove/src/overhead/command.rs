//! `prove overhead`: a gateway's own time by itself, without a campaign.
//!
//! With `--upstream` a relay is put between gateway and upstream and requests are paired; with `--direct` two ways are asked
//! in turn. `--delay-us` puts a delay on the way on purpose, and says how much of it the instrument saw.
//! Standard output has every figure as JSON, standard error the few that one asks for in words.
//! Invariant: bounded by count and by time; a figure that holds loopback is named so.
//! Not here: what the figures are (`overhead`), relaying (`tap`).

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use load::client::{self, Protocol};
use load::run::Shape;
use load::source::{Head, IdHeader, RequestId};
use serde_json::{Value, json};

use super::ask::{ID_HEADER, NullGateway, TIMEOUT, ask};
use super::interleaved::{Probe, interleaved};
use super::own::{HISTOGRAM, Recorded, histogram};
use super::{OwnMeans, Pair, Unpaired, paired, quantile};
use crate::report::document::{Isolated, Overhead};
use crate::scrape::targets::{Target, values};
use crate::tap::{LONGEST_DELAY, Stamp, Tap, TapConfig};
use crate::text;

/// Requests of one run at most: no more than stamps may wait.
const MOST_REQUESTS: u32 = 50_000;
/// How long a gate may take to write its log.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Measures a gateway's own time, without a campaign.
///
/// With --upstream and --tap a relay stands between the gateway and its
/// upstream, and each request is timed on both sides; with --direct the same
/// request goes to the upstream and through the gateway in turn.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit codes: 0 measured, 1 no request could be timed on both sides, 2 nothing could be done."
)]
pub(crate) struct Isolate {
    /// The gateway, such as `http://127.0.0.1:1975`.
    #[arg(long)]
    target: String,
    /// Its upstream, to which the relay goes on.
    #[arg(long, requires = "tap")]
    upstream: Option<SocketAddr>,
    /// Where the relay listens: what the gateway takes for its upstream.
    #[arg(long, requires = "upstream")]
    tap: Option<SocketAddr>,
    /// The upstream as a URL, to be asked in turn with the gateway, where no relay can be put.
    #[arg(
        long,
        conflicts_with = "upstream",
        required_unless_present = "upstream"
    )]
    direct: Option<String>,
    #[arg(long, default_value = "/v1/chat/completions")]
    path: String,
    /// Headers of every request.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// File with the body of every request.
    #[arg(long)]
    body: PathBuf,
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REQUESTS)))]
    requests: u32,
    /// Users at once, each after its answer.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    users: u32,
    /// Speak HTTP/2 to the gateway, by prior knowledge, on one connection;
    /// the relay passes on what the gateway speaks.
    #[arg(long, conflicts_with = "direct")]
    http2: bool,
    /// Pause of each user after an answer, milliseconds.
    #[arg(long, default_value_t = 0)]
    think_ms: u64,
    /// The gateway's page of metrics, where it has our histogram.
    #[arg(long)]
    metrics: Option<String>,
    /// Our gate's access log.
    #[arg(long)]
    access_log: Option<PathBuf>,
    /// A delay on purpose, microseconds: what the instrument resolves.
    #[arg(long, requires = "upstream", value_parser = clap::value_parser!(u64).range(1..=LONGEST_DELAY.as_micros() as u64))]
    delay_us: Option<u64>,
    /// Where the delay is.
    #[arg(long, value_enum, default_value_t = Side::Front)]
    delay_at: Side,
    /// Rounds: through the gateway, through a relay in its place and without
    /// either in turn; or with and without the delay.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

impl Isolate {
    const fn protocol(&self) -> Protocol {
        if self.http2 {
            Protocol::Http2 { connections: 1 }
        } else {
            Protocol::Http1
        }
    }
}

/// A side of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// Between client and gateway.
    Front,
    /// Between gateway and upstream.
    Behind,
}

/// What kept it from its end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct IsolateError(String);

fn fault(error: impl std::fmt::Display) -> IsolateError {
    IsolateError(error.to_string())
}

/// Prints what it came to; false where nothing was paired.
pub(crate) fn isolate(options: &Isolate) -> Result<bool, IsolateError> {
    let target = client::Target::parse(&options.target).map_err(fault)?;
    let mut head = Head::post(&options.path).map_err(fault)?;
    for header in &options.headers {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| fault(format_args!("{header:?} is no NAME: VALUE")))?;
        head = head.with(name.trim(), value.trim()).map_err(fault)?;
    }
    head = head
        .with("content-type", "application/json")
        .map_err(fault)?;
    let body = std::fs::read(&options.body)
        .map_err(|error| fault(format_args!("{}: {error}", options.body.display())))?;
    let body = Bytes::from(body);
    if let Some(direct) = &options.direct {
        let probe = Probe {
            direct: client::Target::parse(direct).map_err(fault)?,
            through: target,
            head,
            payload: body.into(),
            requests: options.requests,
            block: 10,
            timeout: TIMEOUT,
            seed: 1,
        };
        let overhead = interleaved(&probe).map_err(fault)?;
        eprintln!(
            "{} requests of each way: {:.1} µs more through the gateway at the median, a hop of loopback each way among it.",
            overhead.requests,
            overhead.gate.p50 * 1e6
        );
        say(&json!({ "overhead": in_turn(&overhead)? }))?;
        return Ok(true);
    }
    let (Some(listen), Some(upstream)) = (options.tap, options.upstream) else {
        return Err(fault("name --upstream and --tap, or --direct"));
    };
    let address = *target
        .addresses()
        .first()
        .ok_or_else(|| fault("no address"))?;
    let config = |listen, upstream| -> Result<TapConfig, IsolateError> {
        let id = IdHeader::new(ID_HEADER).map_err(fault)?;
        Ok(TapConfig {
            listen,
            upstream,
            id,
        })
    };
    let (tap, stamps) = Tap::start(config(listen, upstream)?).map_err(fault)?;
    let bench = Bench {
        options,
        head,
        body,
        stamps,
    };
    // Opens what is kept open, and warms what is warm later.
    bench.run(address, options.requests.div_ceil(10))?;
    let said = match options.delay_us {
        Some(delay_us) => {
            let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
            let (front, passed) = Tap::start(config(loopback, address)?).map_err(fault)?;
            bench.resolution((&front, &passed), &tap, delay_us)?
        }
        None => bench.isolated(address, &tap)?,
    };
    let is_paired = !said.is_null();
    say(&json!({ "result": said, "unstamped": format!("{:?}", tap.unstamped()) }))?;
    Ok(is_paired)
}

struct Bench<'a> {
    options: &'a Isolate,
    head: Head,
    body: Bytes,
    stamps: Receiver<Stamp>,
}

impl Bench<'_> {
    /// So many requests to an address, and their pairs.
    fn run(
        &self,
        address: SocketAddr,
        requests: u32,
    ) -> Result<(Vec<Pair>, Unpaired), IsolateError> {
        let what = (self.head.clone(), self.body.clone());
        ask(
            (address, self.options.protocol()),
            what,
            self.shape(),
            requests,
            &self.stamps,
        )
        .map_err(fault)
    }

    fn shape(&self) -> Shape {
        Shape::Closed {
            users: self.options.users as usize,
            think: Duration::from_millis(self.options.think_ms),
        }
    }

    /// The gateway's time, and what it says of itself over the same requests.
    fn isolated(&self, address: SocketAddr, tap: &Tap) -> Result<Value, IsolateError> {
        let page = |url: &Option<String>| {
            let target = url.as_deref().map(|url| Target::parse("gate", url));
            let target = target.transpose().map_err(fault)?;
            let page = target.map(|target| values(&target, Duration::from_secs(5)));
            page.transpose().map_err(fault)
        };
        let log = self.log()?;
        let before = page(&self.options.metrics)?;
        // What changes with time changes for all ways: they are gone in turn.
        let (mut pairs, mut hops, mut unpaired) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rounds, mut ways) = (Vec::new(), Vec::new());
        let null = NullGateway::before(tap.address, self.options.protocol()).map_err(fault)?;
        let all = self.options.rounds.min(self.options.requests);
        let until = |round: u32| {
            let share = u64::from(self.options.requests) * u64::from(round) / u64::from(all);
            u32::try_from(share).unwrap_or(self.options.requests)
        };
        for round in 0..all {
            let requests = until(round + 1) - until(round);
            let (through, without) = self.run(address, requests)?;
            let what = (self.head.clone(), self.body.clone());
            let price = null.price(what, self.shape(), requests, &self.stamps);
            let (loopback, direct) = price.map_err(fault)?;
            if let Some(way) = loopback {
                rounds.push(way.isolate(median_us(&through, Pair::gate_ns) / 1e6));
                ways.push(way);
            }
            pairs.extend(through);
            hops.extend(direct);
            unpaired.push(without);
        }
        let net = |of: fn(&Isolated) -> f64| spread(rounds.iter().map(|net| of(net) * 1e6));
        let after = page(&self.options.metrics)?;
        let own = before
            .zip(after)
            .and_then(|(before, after)| histogram(&before, &after, HISTOGRAM));
        let ids: HashSet<_> = pairs.iter().map(|pair| pair.id).collect();
        let recorded = log
            .map(|log| {
                // A gate writes its log behind the answer.
                std::thread::sleep(LAST_LINES);
                Recorded::read(BufReader::new(log), &ids).map_err(fault)
            })
            .transpose()?;
        let word = OwnMeans {
            histogram_s: own.map(|(mean, _)| mean),
            record_s: recorded.as_ref().and_then(Recorded::mean_s),
        };
        let mut overhead = paired(&pairs, None, word);
        let isolated = middle(&rounds);
        if let Some(overhead) = &mut overhead {
            overhead.isolated = isolated;
        }
        let ratio = isolated
            .zip(word.histogram_s)
            .map(|(net, own)| net.own_s / own);
        if let Some(overhead) = &overhead {
            eprint!("{}", summary(overhead));
        }
        let medians = |pairs: &[Pair]| {
            let of = |read: fn(&Pair) -> i64| median_us(pairs, read);
            json!({ "there": of(|pair| pair.to_upstream_ns), "first_back": of(|pair| pair.first_back_ns),
                "last_back": of(|pair| pair.last_back_ns), "gate": of(Pair::gate_ns) })
        };
        Ok(json!({
            "overhead": overhead, "median_us": medians(&pairs), "median_us_of_one_hop": medians(&hops),
            "unpaired": format!("{unpaired:?}"), "histogram_count": own.map(|(_, count)| count),
            "recorded": recorded.as_ref().map(|recorded| recorded.own_us.len()),
            "recorded_median_us": recorded.and_then(|recorded| recorded.median_us()),
            "net_of_one_hop_us_by_medians": net(|net| net.net_of_one_hop_s),
            "two_hops_us_by_medians": spread(ways.iter().map(|way| way.two_hops_s * 1e6)),
            "isolated_us_by_medians": net(|net| net.own_s),
            "isolated_over_histogram": ratio,
        }))
    }

    /// The access log from where it ends now: runs before gave the same ids.
    fn log(&self) -> Result<Option<File>, IsolateError> {
        let Some(path) = &self.options.access_log else {
            return Ok(None);
        };
        let of_file = |error: std::io::Error| fault(format_args!("{}: {error}", path.display()));
        // What is of the requests before is written by then.
        std::thread::sleep(LAST_LINES);
        let mut file = File::open(path).map_err(of_file)?;
        file.seek(SeekFrom::End(0)).map_err(of_file)?;
        Ok(Some(file))
    }

    /// Rounds in which every other request is delayed on its way: what else happens on the machine happens to both kinds.
    fn resolution(
        &self,
        (front, passed): (&Tap, &Receiver<Stamp>),
        behind: &Tap,
        delay_us: u64,
    ) -> Result<Value, IsolateError> {
        let side = self.options.delay_at;
        let delayed = match side {
            Side::Front => front,
            Side::Behind => behind,
        };
        delayed.delay(Duration::from_micros(delay_us), 2);
        let mut rounds = Vec::new();
        for _ in 0..self.options.rounds {
            passed.try_iter().for_each(drop);
            let (pairs, unpaired) = self.run(front.address, self.options.requests)?;
            let in_front: HashSet<RequestId> = passed
                .try_iter()
                .filter(|stamp| stamp.delay_ns > 0)
                .map(|stamp| stamp.id)
                .collect();
            let is_delayed = |pair: &Pair| match side {
                Side::Front => in_front.contains(&pair.id),
                Side::Behind => pair.delay_ns > 0,
            };
            let (with, without): (Vec<Pair>, Vec<Pair>) = pairs.into_iter().partition(is_delayed);
            if with.is_empty() || without.is_empty() {
                return Err(fault(format_args!("nothing was paired: {unpaired:?}")));
            }
            let medians = [&without, &with].map(|pairs| median_us(pairs, Pair::gate_ns));
            // The way there alone: what a gateway still does after it sent is done while the request is held.
            let there = |pairs: &[Pair]| median_us(pairs, |pair| pair.to_upstream_ns);
            let seen = [medians[1] - medians[0], there(&with) - there(&without)];
            rounds.push((medians, seen));
        }
        delayed.delay(Duration::ZERO, 1);
        let seen = |which: usize| spread(rounds.iter().map(|(_, seen)| seen[which]));
        let (seen_us, seen_there_us) = (seen(0), seen(1));
        let rounds: Vec<Value> = rounds
            .iter()
.map(|([without, with], [gate, there])| {
                json!({ "without_us": without, "with_us": with, "seen_us": gate, "seen_there_us": there })
            })
            .collect();
        Ok(json!({
            "delay_us": delay_us, "rounds": rounds, "seen_us": seen_us, "seen_there_us": seen_there_us,
        }))
    }
}

/// Ways that took turns have no time of the gateway's of any one request: its quantiles are differences of theirs, which
/// need not rise, and are called so.
fn in_turn(overhead: &Overhead) -> Result<Value, IsolateError> {
    let mut told = serde_json::to_value(overhead).map_err(fault)?;
    let gate = &overhead.gate;
    let differences = json!({
        "of_means": gate.mean, "of_p50": gate.p50, "of_p90": gate.p90, "of_p95": gate.p95,
        "of_p99": gate.p99, "of_p999": gate.p999, "of_max": gate.max,
    });
    if let Some(members) = told.as_object_mut() {
        members.remove("gate");
        members.insert("differences".into(), differences);
    }
    Ok(told)
}

/// The figures that one asks for, in words.
fn summary(overhead: &Overhead) -> String {
    let us = |seconds: f64| format!("{:.1} µs", seconds * 1e6);
    let mut out = format!(
        "{} requests. Gateway and loopback: {} at the median, {} on average.\n",
        overhead.requests,
        us(overhead.gate.p50),
        us(overhead.gate.mean)
    );
    if let (Some(last), Some(drawn)) = (overhead.last_byte, overhead.drawn_out) {
        out += &format!(
            "The last byte was late by {} on average, {} at p99: answers were drawn out by {}, {} at p99.\n",
            us(last.mean),
            us(last.p99),
            us(drawn.mean),
            us(drawn.p99)
        );
    }
    if let Some(net) = overhead.isolated {
        out += &format!(
            "Isolated (less two hops of loopback each way): {}. A client would save {}.\n",
            us(net.own_s),
            us(net.net_of_one_hop_s)
        );
    }
    if let (Some(net), Some(mean)) = (overhead.isolated, overhead.own_histogram_s) {
        out += &format!(
            "The gateway's own histogram: {} on average, of which isolated is {:.3}.\n",
            us(mean),
            net.own_s / mean
        );
    }
    out
}

/// The mean over rounds of what is between their quartiles: a round in which the threads lay oddly on the cores moves it
/// little, and of two ways in which they often lie it is between.
fn middle(rounds: &[Isolated]) -> Option<Isolated> {
    let of = |read: fn(&Isolated) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(read).collect();
        all.sort_by(f64::total_cmp);
        let cut = all.len() / 4;
        let kept = all
            .get(cut..all.len() - cut)
            .filter(|kept| !kept.is_empty())?;
        Some(kept.iter().sum::<f64>() / kept.len() as f64)
    };
    Some(Isolated {
        net_of_one_hop_s: of(|net| net.net_of_one_hop_s)?,
        own_s: of(|net| net.own_s)?,
    })
}

/// Over rounds.
fn spread(values: impl Iterator<Item = f64>) -> Value {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    json!({ "median": quantile(&all, 0.5), "least": all.first(), "most": all.last() })
}

fn median_us(pairs: &[Pair], read: impl Fn(&Pair) -> i64) -> f64 {
    let mut all: Vec<f64> = pairs.iter().map(|pair| read(pair) as f64 / 1e3).collect();
    all.sort_by(f64::total_cmp);
    quantile(&all, 0.5)
}

fn say(line: &Value) -> Result<(), IsolateError> {
    text::say(&format!("{line:#}\n")).map_err(fault)
}
