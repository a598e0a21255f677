//! The metrics page: Prometheus text format 0.0.4.
//!
//! Invariant: the same counts give the same bytes; every family has HELP and TYPE, once, before
//! its samples. The names are a contract: docs/metrics.md lists them and a test compares.
//! Not here: what is counted (`series`).

mod cost;
mod page;

use std::collections::BTreeMap;

use policy::disconnect::DisconnectOutcome;
use policy::limit::Kind;
use policy::record::{Closed, Outcome, Wait};

use crate::extras::Extra;
use crate::histogram::{
    ASKED, FIRST_TOKEN, Histogram, OWN, PER_TOKEN, REQUEST, Scale, TOKENS, WAIT,
};
use crate::merge::Merged;
use crate::series::{
    Cell, CellKey, RESULTS, SOURCES, Times, endpoint_parts, limited_parts, operation_label,
    provider_label,
};
use page::Page;

/// Types of tokens that are parts of input and output, in the order of `Cell::further`.
const FURTHER: [&str; 4] = [
    "cache_write_5m",
    "cache_write_1h",
    "audio_input",
    "audio_output",
];

impl Merged {
    /// The page, with `extras` at its end.
    #[must_use]
    pub fn render(&self, extras: &[Extra]) -> String {
        let mut page = Page::default();
        self.exchanges(&mut page);
        self.refusals(&mut page);
        self.limited(&mut page);
        self.usage(&mut page);
        self.durations(&mut page);
        self.tokens(&mut page);
        self.costs(&mut page);
        self.own_times(&mut page);
        self.attempts(&mut page);
        self.retries(&mut page);
        self.abandoned(&mut page);
        self.closed(&mut page);
        self.gauges_now(&mut page);
        extra(&mut page, extras);
        page.finish()
    }

    fn exchanges(&self, page: &mut Page) {
        let mut by: BTreeMap<[&str; 4], BTreeMap<_, u64>> = BTreeMap::new();
        for (key, cell) in self.cells() {
            let labels = [
                self.text(key.workload),
                self.text(key.route),
                self.text(key.backend),
                operation_label(key.operation),
            ];
            for (ending, n) in &cell.endings {
                *by.entry(labels).or_default().entry(*ending).or_default() += n;
            }
        }
        let name = "tollgate_exchanges_total";
        page.family(name, "counter", "Exchanges that ended.");
        for ([workload, route, backend, operation], endings) in by {
            for (ending, n) in endings {
                let labels = [
                    ("workload", workload),
                    ("route", route),
                    ("backend", backend),
                    ("operation", operation),
                    ("outcome", ending.outcome.as_str()),
                    ("status", &ending.status.label()),
                ];
                page.sample(name, &labels, n);
            }
        }
    }

    fn refusals(&self, page: &mut Page) {
        let mut refused: BTreeMap<[&str; 2], u64> = BTreeMap::new();
        let mut failed: BTreeMap<[&str; 3], u64> = BTreeMap::new();
        for (key, cell) in self.cells() {
            let (workload, backend) = (self.text(key.workload), self.text(key.backend));
            for ((outcome, code), n) in &cell.codes {
                match outcome {
                    Outcome::Refused => *refused.entry([workload, code]).or_default() += n,
                    Outcome::Completed | Outcome::Failed | Outcome::Aborted => {
                        *failed.entry([workload, backend, code]).or_default() += n;
                    }
                }
            }
        }
        let name = "tollgate_refusals_total";
        page.family(name, "counter", "Exchanges that the gate refused, by code.");
        for ([workload, code], n) in refused {
            page.sample(name, &[("workload", workload), ("code", code)], n);
        }
        let name = "tollgate_failures_total";
        page.family(
            name,
            "counter",
            "Exchanges not refused that ended with an error code.",
        );
        for ([workload, backend, code], n) in failed {
            let labels = [("workload", workload), ("backend", backend), ("code", code)];
            page.sample(name, &labels, n);
        }
    }

    fn limited(&self, page: &mut Page) {
        let mut by: BTreeMap<(&str, &str, Kind), u64> = BTreeMap::new();
        for (key, n) in self.series.limited.rows() {
            let (workload, route, kind) = limited_parts(key);
            let labels = (self.text(workload), self.text(route), kind);
            *by.entry(labels).or_default() += n;
        }
        let name = "http_local_rate_limit_rate_limited";
        page.family(
            name,
            "counter",
            "Exchanges refused by a request or token limit.",
        );
        for ((workload, route, kind), n) in by {
            let labels = [
                ("workload", workload),
                ("route", route),
                ("kind", kind.as_str()),
            ];
            page.sample(name, &labels, n);
        }
    }

    fn usage(&self, page: &mut Page) {
        let mut by: BTreeMap<[&str; 7], Histogram<14>> = BTreeMap::new();
        for (key, cell) in self.cells() {
            for (usage, kind) in cell.usage.iter().zip(["input", "output"]) {
                if usage.count() == 0 {
                    continue;
                }
                let [operation, provider, model, workload, route, backend] = self.gen_ai(key);
                let labels = [operation, provider, model, kind, workload, route, backend];
                by.entry(labels).or_default().absorb(usage);
            }
        }
        let name = "gen_ai_client_token_usage";
        page.family(
            name,
            "histogram",
            "Tokens of an exchange, by type, whatever their witness.",
        );
        let names = [
            "gen_ai_operation_name",
            "gen_ai_provider_name",
            "gen_ai_request_model",
            "gen_ai_token_type",
            "workload",
            "route",
            "backend",
        ];
        histograms(page, name, names, &by, &TOKENS);
        let name = "gen_ai_client_token_usage_token_sum";
        page.family(name, "counter", "Tokens since the start, by type.");
        for (values, usage) in &by {
            let labels: Vec<(&str, &str)> = names.into_iter().zip(values.iter().copied()).collect();
            page.sample(name, &labels, usage.sum());
        }
    }

    fn durations(&self, page: &mut Page) {
        let name = "gen_ai_server_request_duration_seconds";
        let help = "Exchanges that reached a backend: first byte of the request to last byte of \
                    the response.";
        self.by_model(page, name, help, &REQUEST, |cell| &cell.duration);
        let name = "gen_ai_server_time_to_first_token_seconds";
        let help = "Streams: first byte of the request to first body byte of the response.";
        self.by_model(page, name, help, &FIRST_TOKEN, |cell| &cell.first_token);
        let name = "gen_ai_server_time_per_output_token_seconds";
        let help = "Completed streams: mean time for each output token after the first byte.";
        self.by_model(page, name, help, &PER_TOKEN, |cell| &cell.per_token);
    }

    fn by_model<const B: usize>(
        &self,
        page: &mut Page,
        name: &str,
        help: &str,
        scale: &Scale<B>,
        of: impl Fn(&Cell) -> &Histogram<B>,
    ) {
        let mut by: BTreeMap<[&str; 6], Histogram<B>> = BTreeMap::new();
        for (key, cell) in self.cells() {
            if of(cell).count() > 0 {
                by.entry(self.gen_ai(key)).or_default().absorb(of(cell));
            }
        }
        page.family(name, "histogram", help);
        let names = [
            "gen_ai_operation_name",
            "gen_ai_provider_name",
            "gen_ai_request_model",
            "workload",
            "route",
            "backend",
        ];
        histograms(page, name, names, &by, scale);
    }

    fn tokens(&self, page: &mut Page) {
        let mut by: BTreeMap<[&str; 5], u64> = BTreeMap::new();
        let mut invalid: BTreeMap<[&str; 3], u64> = BTreeMap::new();
        let mut doubtful: BTreeMap<[&str; 3], u64> = BTreeMap::new();
        let mut dropped: BTreeMap<[&str; 3], u64> = BTreeMap::new();
        for (key, cell) in self.cells() {
            let who = [
                self.text(key.workload),
                self.text(key.backend),
                self.text(key.model),
            ];
            let mut count = |kind, source, n: u64| {
                let [workload, backend, model] = who;
                if n > 0 {
                    let total = by
                        .entry([workload, backend, model, kind, source])
                        .or_default();
                    *total = total.saturating_add(n);
                }
            };
            for (kind, by_source) in ["input", "output"].into_iter().zip(cell.tokens) {
                for (source, n) in SOURCES.into_iter().zip(by_source) {
                    count(kind, source, n);
                }
            }
            count("cached_input", "reported", cell.cached);
            count("reasoning", "reported", cell.reasoning);
            for (kind, n) in FURTHER.into_iter().zip(cell.further) {
                count(kind, "reported", n);
            }
            if cell.invalid > 0 {
                *invalid.entry(who).or_default() += cell.invalid;
            }
            if cell.doubtful > 0 {
                *doubtful.entry(who).or_default() += cell.doubtful;
            }
            if cell.dropped > 0 {
                *dropped.entry(who).or_default() += cell.dropped;
            }
        }
        let name = "tollgate_tokens_total";
        let help = "Tokens by type and witness; all types but input and output are parts of those.";
        page.family(name, "counter", help);
        for ([workload, backend, model, kind, source], n) in by {
            let labels = [
                ("workload", workload),
                ("backend", backend),
                ("model", model),
                ("type", kind),
                ("source", source),
            ];
            page.sample(name, &labels, n);
        }
        let faults = [
            (
                "tollgate_usage_invalid_total",
                "Exchanges of whose reported usage neither prompt nor completion can be true.",
                invalid,
            ),
            (
                "tollgate_usage_doubtful_total",
                "Exchanges whose engine reported counts that do not add up, or one that cannot be true.",
                doubtful,
            ),
            (
                "tollgate_translation_dropped_total",
                "Exchanges whose backend speaks an API without some members of their body, or some of their betas, which were left out.",
                dropped,
            ),
        ];
        for (name, help, exchanges) in faults {
            page.family(name, "counter", help);
            for ([workload, backend, model], n) in exchanges {
                let labels = [
                    ("workload", workload),
                    ("backend", backend),
                    ("model", model),
                ];
                page.sample(name, &labels, n);
            }
        }
    }

    fn own_times(&self, page: &mut Page) {
        let name = "tollgate_overhead_seconds";
        let help =
            "Time that the gate adds to an exchange; waiting for client or upstream left out.";
        self.by_operation(page, name, help, &OWN, |times| &times.own);
        let name = "tollgate_own_seconds";
        let help = "The former name of tollgate_overhead_seconds, for one release.";
        self.by_operation(page, name, help, &OWN, |times| &times.own);
        let name = "tollgate_first_byte_seconds";
        let help = "First byte of the request to first body byte of the response.";
        self.by_operation(page, name, help, &WAIT, |times| &times.first_byte);
        let name = "tollgate_upstream_seconds";
        let help = "Waiting for upstream response heads, all attempts of an exchange together.";
        self.by_operation(page, name, help, &WAIT, |times| &times.upstream);
        self.stages(page);
    }

    /// Where the time of an exchange goes, all operations together: the gate's own, who was asked, and the upstream.
    fn stages(&self, page: &mut Page) {
        let name = "tollgate_stage_seconds";
        let help = "Where the time of exchanges goes: the gate's own, waiting for each that is asked, waiting for response heads.";
        page.family(name, "histogram", help);
        fn all<const B: usize>(times: &[Times], of: fn(&Times) -> &Histogram<B>) -> Histogram<B> {
            let mut all = Histogram::default();
            times.iter().for_each(|times| all.absorb(of(times)));
            all
        }
        let times = &self.series.by_operation;
        let own = all(times, |times| &times.own);
        page.histogram(name, &[("stage", "own")], &own, &OWN);
        for (wait, times) in Wait::ALL.iter().zip(&self.series.waits) {
            if times.count() > 0 {
                page.histogram(name, &[("stage", wait.as_str())], times, &ASKED);
            }
        }
        let upstream = all(times, |times| &times.upstream);
        page.histogram(name, &[("stage", "upstream")], &upstream, &WAIT);
    }

    fn by_operation<const B: usize>(
        &self,
        page: &mut Page,
        name: &str,
        help: &str,
        scale: &Scale<B>,
        of: impl Fn(&Times) -> &Histogram<B>,
    ) {
        page.family(name, "histogram", help);
        for (i, times) in self.series.by_operation.iter().enumerate() {
            if of(times).count() > 0 {
                let labels = [("operation", operation_label(i))];
                page.histogram(name, &labels, of(times), scale);
            }
        }
    }

    fn attempts(&self, page: &mut Page) {
        let mut tries: BTreeMap<[&str; 3], u64> = BTreeMap::new();
        for (key, cell) in self.series.attempts.rows() {
            let (backend, endpoint) = endpoint_parts(key);
            let (backend, endpoint) = (self.text(backend), self.text(endpoint));
            for (result, n) in RESULTS.into_iter().zip(cell.by_result) {
                if n > 0 {
                    *tries.entry([backend, endpoint, result]).or_default() += n;
                }
            }
        }
        let name = "tollgate_attempts_total";
        page.family(
            name,
            "counter",
            "Tries at an endpoint, by status class or failure.",
        );
        for ([backend, endpoint, result], n) in tries {
            let labels = [
                ("backend", backend),
                ("endpoint", endpoint),
                ("result", result),
            ];
            page.sample(name, &labels, n);
        }
    }

    fn retries(&self, page: &mut Page) {
        let mut retried: BTreeMap<&str, u64> = BTreeMap::new();
        let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
        for (key, cell) in self.series.attempts.rows() {
            let (backend, _) = endpoint_parts(key);
            let backend = self.text(backend);
            *retried.entry(backend).or_default() += cell.retried;
            *refused.entry(backend).or_default() += cell.refused;
        }
        let retries = [
            (
                "tollgate_retries_total",
                "Tries that were followed by another one.",
                retried,
            ),
            (
                "tollgate_retries_refused_total",
                "Tries that no other one followed because the retry budget was spent.",
                refused,
            ),
        ];
        for (name, help, tries) in retries {
            page.family(name, "counter", help);
            for (backend, n) in tries {
                page.sample(name, &[("backend", backend)], n);
            }
        }
    }

    fn abandoned(&self, page: &mut Page) {
        let name = "tollgate_abandoned_total";
        let help = "Answers whose client left, by what became of the rest.";
        page.family(name, "counter", help);
        for (rest, n) in DisconnectOutcome::ALL.iter().zip(self.series.abandoned) {
            page.sample(name, &[("rest", rest.as_str())], n);
        }
    }

    fn closed(&self, page: &mut Page) {
        let name = "tollgate_connections_closed_total";
        let help = "Connections that the gate refused or closed at a bound, by bound.";
        page.family(name, "counter", help);
        for (bound, n) in Closed::ALL.iter().zip(self.series.closed) {
            page.sample(name, &[("bound", bound.as_str())], n);
        }
        let name = "tollgate_upstream_connections_moved_total";
        let help =
            "Connections to upstreams that were closed as a name has their address no longer.";
        page.family(name, "counter", help);
        page.sample(name, &[], self.series.moved);
    }

    fn gauges_now(&self, page: &mut Page) {
        let now = self.gauges();
        let gauges = [
            (
                "tollgate_open_connections",
                "Downstream connections open.",
                now.connections,
            ),
            (
                "tollgate_open_exchanges",
                "Exchanges begun and not ended.",
                now.exchanges,
            ),
            (
                "tollgate_open_streams",
                "Event streams being forwarded.",
                now.streams,
            ),
            (
                "tollgate_upstream_connections",
                "Upstream connections open, idle or busy.",
                now.upstream_connections,
            ),
            (
                "tollgate_open_reads_to_end",
                "Responses being read to their end without a client.",
                now.reads_to_end,
            ),
            (
                "tollgate_open_drains",
                "The former name of tollgate_open_reads_to_end, for one release.",
                now.reads_to_end,
            ),
            (
                "tollgate_body_bytes",
                "Bytes of request bodies kept until they are sent.",
                now.body_bytes,
            ),
            (
                "tollgate_series",
                "Label sets held by the worker that holds most.",
                i64::try_from(self.series.held).unwrap_or(i64::MAX),
            ),
        ];
        for (name, help, value) in gauges {
            page.family(name, "gauge", help);
            page.sample(name, &[], value);
        }
        let name = "tollgate_series_folded_total";
        let help = "Observations counted under other because too many series exist.";
        page.family(name, "counter", help);
        page.sample(name, &[], self.series.folded);
    }

    /// Operation, provider, model, workload, route and backend.
    fn gen_ai(&self, key: CellKey) -> [&str; 6] {
        [
            operation_label(key.operation),
            provider_label(key.operation),
            self.text(key.model),
            self.text(key.workload),
            self.text(key.route),
            self.text(key.backend),
        ]
    }

    fn cells(&self) -> impl Iterator<Item = (CellKey, &Cell)> {
        let rows = self.series.cells.rows();
        rows.map(|(key, cell)| (CellKey::unpack(key), cell))
    }

    fn text(&self, id: crate::names::NameId) -> &str {
        self.series.names.text(id)
    }
}

fn histograms<const N: usize, const B: usize>(
    page: &mut Page,
    name: &str,
    names: [&str; N],
    by: &BTreeMap<[&str; N], Histogram<B>>,
    scale: &Scale<B>,
) {
    for (values, histogram) in by {
        let labels: Vec<(&str, &str)> = names.into_iter().zip(values.iter().copied()).collect();
        page.histogram(name, &labels, histogram, scale);
    }
}

/// Samples of one name must stand together, whatever order the caller gave them in.
fn extra(page: &mut Page, extras: &[Extra]) {
    let mut by_name: BTreeMap<&str, Vec<&Extra>> = BTreeMap::new();
    for extra in extras {
        by_name.entry(&extra.name).or_default().push(extra);
    }
    for (name, samples) in by_name {
        if let Some(first) = samples.first() {
            page.family(name, first.kind.as_str(), &first.help);
        }
        for extra in samples {
            let labels = extra.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let labels: Vec<(&str, &str)> = labels.collect();
            page.sample(name, &labels, extra.value);
        }
    }
}

#[cfg(test)]
mod tests;
