//! `verify.toml` as a person writes it, and what becomes of it.
//!
//! Invariant: every fault is told with its path, all at once; each table is read by itself, so that a member that is
//! unknown in one hides nothing in another.
//! Not here: what is run (`suite`), calls and their answers (`call`).

mod call;

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use toml::Value;

use super::{AtUpstream, Behaviour, By, Case, Growth, Metric, Suite, Upstream, selector};
use crate::toml_document::{Fault, Faults, Time};

/// What a suite may hold at most.
const CASES_MAX: usize = 1_000;
const CALLS_MAX: usize = 10_000;
const UPSTREAMS_MAX: usize = 16;
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteForm {
    name: String,
    #[serde(default)]
    timeout: Option<Time>,
    #[serde(default = "model")]
    model: String,
    #[serde(default)]
    never_upstream: Vec<String>,
    #[serde(default)]
    never_downstream: Vec<String>,
    #[serde(default)]
    upstream: Vec<Value>,
    #[serde(default)]
    metric: BTreeMap<String, Value>,
    #[serde(default)]
    case: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamForm {
    name: String,
    credential: String,
    #[serde(default)]
    refuses: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MetricForm {
    url: Option<String>,
    series: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseForm {
    name: String,
    says: String,
    #[serde(default)]
    wait: Option<Time>,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    call: Vec<Value>,
    #[serde(default)]
    upstream: BTreeMap<String, Value>,
    #[serde(default)]
    metric: Vec<Value>,
    #[serde(default)]
    never_upstream: Vec<String>,
    #[serde(default)]
    never_downstream: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AtUpstreamForm {
    breaks_after: Option<u32>,
    fails: Option<u16>,
    hangs: bool,
    down: bool,
    calls: Option<u64>,
    headers: BTreeMap<String, String>,
    no_headers: Vec<String>,
    same_body: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrowthForm {
    name: String,
    grows_by: GrowsBy,
    #[serde(default)]
    optional: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum GrowsBy {
    Count(u64),
    Word(String),
}

fn model() -> String {
    "gpt-oss-120b".into()
}

/// What the whole suite says, for its cases.
struct Within<'a> {
    model: &'a str,
    upstreams: &'a [Upstream],
    metrics: &'a BTreeMap<String, Metric>,
    never_upstream: &'a [String],
    never_downstream: &'a [String],
}

/// Reads a suite.
pub(super) fn parse(text: &str) -> Result<Suite, Vec<Fault>> {
    let mut faults = Faults::default();
    let Some(form) = faults.document::<SuiteForm>(text) else {
        return Err(faults.0);
    };
    let timeout = duration(&mut faults, "timeout", form.timeout);
    let upstreams = upstreams(&mut faults, form.upstream);
    let metrics = metrics(&mut faults, form.metric);
    not_empty(&mut faults, "never_upstream", &form.never_upstream);
    not_empty(&mut faults, "never_downstream", &form.never_downstream);
    if form.case.is_empty() || form.case.len() > CASES_MAX {
        faults.add("case", format!("a suite has from 1 to {CASES_MAX} cases"));
    }
    let within = Within {
        model: &form.model,
        upstreams: &upstreams,
        metrics: &metrics,
        never_upstream: &form.never_upstream,
        never_downstream: &form.never_downstream,
    };
    let mut cases: Vec<Case> = Vec::new();
    for (path, form) in faults.tables("case", form.case) {
        let since = since(&mut faults, &path, &form, &cases);
        let case = case(&mut faults, &path, form, (&within, since));
        if cases.iter().any(|other| other.name == case.name) {
            faults.add(
                format!("{path}.name"),
                format!("{:?} is the name of another case", case.name),
            );
        }
        cases.push(case);
    }
    if !faults.0.is_empty() {
        return Err(faults.0);
    }
    Ok(Suite {
        name: form.name,
        timeout: timeout.unwrap_or(Duration::from_secs(10)),
        upstreams,
        metrics,
        cases,
    })
}

fn upstreams(faults: &mut Faults, values: Vec<Value>) -> Vec<Upstream> {
    if values.len() > UPSTREAMS_MAX {
        faults.add("upstream", format!("at most {UPSTREAMS_MAX} upstreams"));
    }
    let mut upstreams: Vec<Upstream> = Vec::new();
    for (path, form) in faults.tables::<UpstreamForm>("upstream", values) {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if form.name.is_empty() || !form.name.chars().all(plain) {
            faults.add(format!("{path}.name"), "letters, digits and hyphens");
        }
        if upstreams.iter().any(|other| other.name == form.name) {
            faults.add(
                format!("{path}.name"),
                format!("{:?} is the name of another", form.name),
            );
        }
        if HeaderValue::from_str(&form.credential).is_err() || form.credential.is_empty() {
            faults.add(format!("{path}.credential"), "is no value of a header");
        }
        let refuses = form.refuses.unwrap_or(401);
        let refuses = StatusCode::from_u16(refuses)
            .ok()
            .filter(StatusCode::is_client_error);
        if refuses.is_none() {
            faults.add(format!("{path}.refuses"), "a status from 400 to 499");
        }
        upstreams.push(Upstream {
            name: form.name,
            credential: form.credential,
            refuses: refuses.unwrap_or(StatusCode::UNAUTHORIZED),
        });
    }
    upstreams
}

fn metrics(faults: &mut Faults, values: BTreeMap<String, Value>) -> BTreeMap<String, Metric> {
    let mut metrics = BTreeMap::new();
    for (name, value) in values {
        let path = format!("metric.{name}");
        // One that is faulty is still known, so that nothing else is said of those who ask for it.
        let form: MetricForm = faults.table(&path, value).unwrap_or_default();
        let series = form.series.as_deref().map(selector).transpose();
        let selector = faults.of(&format!("{path}.series"), series).flatten();
        metrics.insert(
            name,
            Metric {
                url: form.url,
                selector,
            },
        );
    }
    metrics
}

/// The case that a wait counts from.
fn since(faults: &mut Faults, path: &str, form: &CaseForm, cases: &[Case]) -> Option<usize> {
    let name = form.since.as_ref()?;
    let at = cases.iter().position(|case| case.name == *name);
    if at.is_none() {
        let known: Vec<&str> = cases.iter().map(|case| &*case.name).collect();
        let says = format!("no earlier case {name:?}; there are {known:?}");
        faults.add(format!("{path}.since"), says);
    }
    if form.wait.is_none() {
        faults.add(
            path,
            "`since` says from when `wait` counts, which is not there",
        );
    }
    at
}

fn case(
    faults: &mut Faults,
    path: &str,
    form: CaseForm,
    (within, since): (&Within<'_>, Option<usize>),
) -> Case {
    let wait = duration(faults, &format!("{path}.wait"), form.wait);
    not_empty(
        faults,
        &format!("{path}.never_upstream"),
        &form.never_upstream,
    );
    not_empty(
        faults,
        &format!("{path}.never_downstream"),
        &form.never_downstream,
    );
    if form.call.is_empty() {
        faults.add(format!("{path}.call"), "a case makes at least one call");
    }
    let forms = faults
        .tables(&format!("{path}.call"), form.call)
        .into_iter();
    let calls = forms.filter_map(|(path, form)| call::call(faults, &path, form, within));
    let calls: Vec<_> = calls.collect();
    if calls.iter().map(|call| call.count).sum::<usize>() > CALLS_MAX {
        faults.add(
            format!("{path}.call"),
            format!("at most {CALLS_MAX} calls in a case"),
        );
    }
    let mut upstreams = vec![AtUpstream::default(); within.upstreams.len()];
    for (name, value) in form.upstream {
        let path = format!("{path}.upstream.{name}");
        let at = faults.of(&path, number_of(&name, within.upstreams));
        if let (Some(asked), Some(at)) = (at_upstream(faults, &path, value), at)
            && let Some(place) = upstreams.get_mut(at)
        {
            *place = asked;
        }
    }
    let forms = faults
        .tables(&format!("{path}.metric"), form.metric)
        .into_iter();
    let metrics = forms.filter_map(|(path, form)| growth(faults, &path, form, within));
    let metrics = metrics.collect();
    Case {
        name: form.name,
        says: form.says,
        wait: wait.unwrap_or_default(),
        since,
        calls,
        upstreams,
        metrics,
        never_upstream: [within.never_upstream, &form.never_upstream].concat(),
        never_downstream: [within.never_downstream, &form.never_downstream].concat(),
    }
}

fn number_of(name: &str, upstreams: &[Upstream]) -> Result<usize, String> {
    let at = upstreams.iter().position(|upstream| upstream.name == name);
    at.ok_or_else(|| {
        let names: Vec<&str> = upstreams
            .iter()
            .map(|upstream| upstream.name.as_str())
            .collect();
        format!("no upstream {name:?}; there are {names:?}")
    })
}

fn at_upstream(faults: &mut Faults, path: &str, value: Value) -> Option<AtUpstream> {
    let form: AtUpstreamForm = faults.table(path, value)?;
    let failure = form.fails.map(|status| {
        let status = StatusCode::from_u16(status)
            .ok()
            .filter(|status| status.as_u16() >= 400);
        status
            .map(Behaviour::Fail)
            .ok_or("a status from 400 to 999")
    });
    let failure = faults.of(&format!("{path}.fails"), failure.transpose())?;
    let all = [
        form.breaks_after.map(Behaviour::Break),
        failure,
        form.hangs.then_some(Behaviour::Hang),
        form.down.then_some(Behaviour::Down),
    ];
    let mut chosen = all.into_iter().flatten();
    let does = chosen.next().unwrap_or_default();
    if chosen.next().is_some() {
        faults.add(path, "one of breaks_after, fails, hangs and down");
    }
    Some(AtUpstream {
        does,
        calls: form.calls,
        headers: form
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_lowercase(), value))
            .collect(),
        no_headers: form.no_headers,
        same_body: form.same_body,
    })
}

fn growth(
    faults: &mut Faults,
    path: &str,
    form: GrowthForm,
    within: &Within<'_>,
) -> Option<Growth> {
    if !within.metrics.contains_key(&form.name) {
        let known: Vec<&String> = within.metrics.keys().collect();
        faults.add(
            format!("{path}.name"),
            format!("no metric {:?}; there are {known:?}", form.name),
        );
    }
    let by = match form.grows_by {
        GrowsBy::Count(count) => Ok(By::Count(count)),
        GrowsBy::Word(word) if word == "total_tokens" => Ok(By::TotalTokens),
        GrowsBy::Word(word) => Err(format!("{word:?} is neither a number nor \"total_tokens\"")),
    };
    Some(Growth {
        metric: form.name,
        by: faults.of(&format!("{path}.grows_by"), by)?,
        optional: form.optional,
    })
}

/// An empty text is in everything.
fn not_empty(faults: &mut Faults, path: &str, texts: &[String]) {
    if texts.iter().any(|text| text.len() < 4) {
        faults.add(
            path,
            "each text has at least 4 bytes: a shorter one is found anywhere",
        );
    }
}

/// `500ms`, `10s` or `2m`; nothing where it is out of bounds.
fn duration(faults: &mut Faults, path: &str, time: Option<Time>) -> Option<Duration> {
    let Time(time) = time?;
    if time.is_zero() || time > TIMEOUT_MAX {
        let most = TIMEOUT_MAX.as_secs();
        faults.add(path, format!("more than 0 and at most {most} s"));
        return None;
    }
    Some(time)
}
