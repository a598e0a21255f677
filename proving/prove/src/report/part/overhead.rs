//! What the gateway adds: the same requests seen from both of its sides.
//!
//! Invariant: the gap has an axis of its own, for two lines that overlap prove nothing by themselves.
//! Not here: what the engine needs (`soak`).

use crate::report::chart::{Chart, Side, TIME};
use crate::report::content::{Section, Table};
use crate::report::document::{Document, Overhead, Throttling};
use crate::report::figure::{count, maybe, percent, plain, time};

pub(super) fn overhead(document: &Document) -> Section {
    let mut section = Section::new("overhead", "What the gateway adds");
    let Some(overhead) = &document.overhead else {
        section.absent("not measured: no requests were timed on both sides of the gateway");
        return section;
    };
    section.text(format!(
        "{} requests. Method: {}.",
        count(overhead.requests),
        match overhead.method.as_str() {
            PAIRED => "paired, each request's own stamps at the client and at the upstream",
            "interleaved" => "interleaved, requests with and without the gateway in turn",
            "record" => "record, the gateway's own record of each exchange",
            other => other,
        }
    ));
    section.table(table_3(overhead), "");
    if let Some(says) = agreement(overhead) {
        section.text(says);
    }
    figure_6(&mut section, document);
    distribution(&mut section, overhead);
    parts(&mut section, overhead);
    throttling(&mut section, overhead);
    section
}

/// The method by which each request is timed on both sides.
const PAIRED: &str = "paired";

fn table_3(overhead: &Overhead) -> Table {
    let absolute = overhead.downstream_s - overhead.upstream_s;
    let share = (overhead.upstream_s > 0.0).then(|| absolute / overhead.upstream_s);
    let is_paired = overhead.method == PAIRED;
    let isolated = overhead.isolated;
    let rows = [
        (
            "Upstream latency (gateway to engine and back), mean",
            time(overhead.upstream_s),
        ),
        (
            "Downstream latency (client to gateway and back), mean",
            time(overhead.downstream_s),
        ),
        (
            "Absolute gateway overhead (downstream less upstream), mean",
            time(absolute),
        ),
        (
            "Gateway overhead in percent of the upstream's",
            maybe(share, percent),
        ),
        (
            match is_paired {
                true => {
                    "Request there and first byte back, with two hops of loopback each way, mean"
                }
                false => "The difference of means, loopback's hop each way among it",
            },
            time(overhead.gate.mean),
        ),
        (
            "Request there and first byte back, median",
            time(overhead.gate.p50),
        ),
        (
            "Last byte later at the client than it left the engine, mean",
            maybe(overhead.last_byte, |last| time(last.mean)),
        ),
        (
            "Last byte later at the client than it left the engine, p99",
            maybe(overhead.last_byte, |last| time(last.p99)),
        ),
        (
            "How much later the last byte was than the first, mean",
            maybe(overhead.drawn_out, |drawn| time(drawn.mean)),
        ),
        (
            "How much later the last byte was than the first, p99",
            maybe(overhead.drawn_out, |drawn| time(drawn.p99)),
        ),
        (
            "Less one hop each way (what a client would save), median",
            maybe(isolated, |net| time(net.net_of_one_hop_s)),
        ),
        (
            "Isolated: less the two hops each way, median",
            maybe(isolated, |net| time(net.own_s)),
        ),
        (
            "By the gateway's own histogram, mean",
            maybe(overhead.own_histogram_s, time),
        ),
        (
            "By the gateway's own records of these requests, mean",
            maybe(overhead.own_record_s, time),
        ),
    ];
    Table::figures("Table 3. Gateway impact", ["Measure", "#Value"], rows)
}

/// The isolated time beside the gateway's own word.
fn agreement(overhead: &Overhead) -> Option<String> {
    let isolated = overhead.isolated?.own_s;
    let histogram = overhead.own_histogram_s.filter(|mean| *mean > 0.0)?;
    Some(format!(
        "Isolated over the gateway's own histogram: {} ({} against {}). The one is a median and the other a mean, which a \
         few slow requests raise.",
        plain(isolated / histogram),
        time(isolated),
        time(histogram)
    ))
}

fn figure_6(section: &mut Section, document: &Document) {
    let time_axis = TIME;
    let mut both = Chart::new(
        "Figure 6. Upstream and downstream latency over time",
        time_axis,
        "latency, s",
    );
    super::left(&mut both, document, ("upstream_s", "upstream"), 1.0);
    super::left(&mut both, document, ("downstream_s", "downstream"), 1.0);
    both.caption = "Where the lines cannot be told apart, the gateway adds nothing that one sees at this scale.".into();
    section.chart(both, "not measured: no latencies of both sides over time");
    let most = document
        .series
        .get("gate_s")
        .into_iter()
        .flat_map(|series| &series.points);
    let most = most.filter_map(|(_, y)| *y).fold(0.0, f64::max);
    let (unit, factor) = if most < 1e-3 {
        ("µs", 1e6)
    } else {
        ("ms", 1e3)
    };
    let mut gap = Chart::new(
        "Figure 6, the gap on its own axis",
        time_axis,
        &format!("gateway and loopback, {unit}"),
    );
    super::left(&mut gap, document, ("gate_s", "gap"), factor);
    gap.caption = format!(
        "The same gap, enlarged: the gateway and the loopback to it and from it, mean.{}",
        super::source(document, "gate_s")
    );
    section.chart(gap, "not measured: the gap over time");
}

fn distribution(section: &mut Section, overhead: &Overhead) {
    let gate = &overhead.gate;
    let table = Table::each(
        match overhead.method.as_str() {
            PAIRED => {
                "There and first byte back, of each request: the gateway and two hops of loopback each way"
            }
            _ => {
                "Differences of mean and quantiles with and without the gateway, one hop of loopback each way among them"
            }
        },
        (gate.count > 0).then_some(gate),
        &[
            ("#Mean", |g| time(g.mean).into()),
            ("#p50", |g| time(g.p50).into()),
            ("#p90", |g| time(g.p90).into()),
            ("#p95", |g| time(g.p95).into()),
            ("#p99", |g| time(g.p99).into()),
            ("#p99.9", |g| time(g.p999).into()),
            ("#Max", |g| time(g.max).into()),
            ("#n", |g| count(g.count).into()),
        ],
    );
    section.table(table, "not measured: no distribution of these times");
    let (unit, factor) = if gate.p50 < 1e-3 {
        ("µs", 1e6)
    } else {
        ("ms", 1e3)
    };
    let mut chart = Chart::new(
        "Distribution of the time there and first byte back",
        &format!("{unit}, logarithmic"),
        "% of requests at or below",
    );
    chart.log_x = true;
    let points = overhead.cdf.iter().filter(|(t, _)| *t > 0.0);
    let _ = chart.line(
        "requests",
        Side::Left,
        points.map(|(t, share)| (t * factor, Some(share * 100.0))),
    );
    chart.caption = "How many of the requests spent at most this time in the gateway and on the loopback to it and from it.".into();
    section.chart(chart, "not measured: no distribution to draw");
}

fn parts(section: &mut Section, overhead: &Overhead) {
    let is_paired = overhead.method == PAIRED;
    let mut table = Table::new(
        if is_paired {
            "Where that time went, means; what comes after the first byte is beside it"
        } else {
            "The differences, and the intervals that hold them in 95 of 100 cases"
        },
        &["Part", "#Time", "#Share"],
    );
    for (name, seconds) in &overhead.parts {
        let is_part = is_paired && name != LAST_BACK && overhead.gate.mean > 0.0;
        let share = is_part.then(|| seconds / overhead.gate.mean);
        table.row([
            name.as_str().into(),
            time(*seconds).into(),
            maybe(share, percent).into(),
        ]);
    }
    section.table(table, "not measured: that time in parts");
}

/// The part that is no part of the time to the first byte.
const LAST_BACK: &str = "last byte back";

fn throttling(section: &mut Section, overhead: &Overhead) {
    let Some(throttling) = &overhead.throttling else {
        section.absent("not measured: throttling by the kernel's scheduler (the gateway's cgroup could not be read)");
        return;
    };
    let table = Table::each(
        "What the kernel's scheduler (CFS) withheld from the gateway",
        [throttling],
        &[
            ("#Quota, cores", |r| {
                r.quota_cores.map_or_else(|| "none".into(), plain).into()
            }),
            ("#Periods", |r| count(r.periods).into()),
            ("#Throttled", |r| count(r.throttled_periods).into()),
            ("#Share", |r| throttled(r).into()),
            ("#Time withheld", |r| time(r.throttled_s).into()),
        ],
    );
    section.table(table, "");
}

/// The share of periods.
#[expect(clippy::cast_precision_loss, reason = "shares of periods")]
fn throttled(of: &Throttling) -> String {
    let share = of.throttled_periods as f64 / of.periods as f64;
    maybe((of.periods > 0).then_some(share), percent)
}
