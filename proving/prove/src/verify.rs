//! `prove verify`: functional invariants against a live gateway, any gateway.
//!
//! A suite is data (`suite`); the upstreams behind the gateway are ours and write down what arrives (`upstream`).
//! Invariant: no mocking: who cannot be reached, is too slow or shows a web page is an error with an exit code of its own,
//! never a pass and never a skip; every case is reported.
//! Not here: load (`load`), what a campaign makes of it (`campaign`).

mod check;
mod client;
mod gateway;
mod junit;
mod metric;
mod page;
mod result;
mod run;
mod suite;
mod upstream;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::files;
use crate::host::{descriptors, ports, process};
use crate::report::document::Verified;
use crate::subject::NotStarted;
use crate::text;
pub(crate) use client::Target;
pub(crate) use gateway::Running;
pub(crate) use metric::Scrape;
pub(crate) use result::{Report, Unreachable};
pub(crate) use run::{Rig, run};
pub(crate) use suite::{Suite, SuiteError};
pub(crate) use upstream::Recorder;

/// Checks functional invariants of a live gateway: limits, credentials, routes,
/// streams, usage.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all passed, 1 a case failed, 2 nothing could be done, 5 the gateway, a metrics page or an upstream could not be reached or was too slow."
)]
pub(crate) struct Options {
    /// The suite.
    #[arg(long, value_name = "FILE")]
    suite: PathBuf,
    /// A gateway that runs already: http://HOST[:PORT][/PATH].
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "gateway",
        conflicts_with = "gateway"
    )]
    target: Option<String>,
    /// A gateway to be started: a directory with `subject.toml`.
    #[arg(long, value_name = "DIR")]
    gateway: Option<PathBuf>,
    /// First fetch that gateway, where a registry carries it.
    #[arg(long, requires = "gateway")]
    install: bool,
    /// Where an upstream of the suite listens; with --gateway, on a free port.
    #[arg(long = "upstream", value_name = "NAME=HOST:PORT", value_parser = upstream)]
    upstreams: Vec<(String, SocketAddr)>,
    /// Where a metric of the suite is: a page, and a series such as
    /// `refused_total{workload="a"}` where it is not the suite's.
    #[arg(long = "metrics", value_name = "NAME=URL[#SERIES]", value_parser = named)]
    metrics: Vec<(String, String)>,
    /// Write the outcome as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print the outcome as JSON; the page then goes to standard error.
    #[arg(long)]
    json: bool,
    /// Write the outcome as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Why nothing could be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error(transparent)]
    Suite(#[from] SuiteError),
    #[error("{0}")]
    Usage(String),
    #[error(
        "upstream {name} cannot listen at {address}: {source}; choose another by --upstream {name}=HOST:PORT"
    )]
    Listen {
        name: String,
        address: String,
        source: io::Error,
    },
    #[error(transparent)]
    Gateway(NotStarted),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs a suite; gives the exit code.
pub(crate) fn verify(options: &Options) -> Result<u8, VerifyError> {
    let suite = Suite::read(&options.suite)?;
    let given = metrics_of(&suite, &options.metrics)?;
    let target = options.target.as_deref().map(Target::parse).transpose();
    let target = target.map_err(VerifyError::Usage)?;
    for file in options.junit.iter().chain(&options.out) {
        files::check_writable(file)?;
    }
    process::end_all_on_signal()?;
    descriptors::raise();
    let upstreams = listen(&suite, &options.upstreams, options.gateway.is_some())?;
    let report = match (target, &options.gateway) {
        (Some(target), _) => run(
            &suite,
            &Rig {
                target,
                upstreams,
                metrics: given,
            },
        )?,
        (None, Some(dir)) => started(&suite, dir, options.install, upstreams, given)?,
        (None, None) => return Err(VerifyError::Usage("give --target or --gateway".into())),
    };
    tell(options, &report)?;
    Ok(report.exit_code())
}

/// Starts a gateway, runs the suite against it, and ends it.
fn started(
    suite: &Suite,
    dir: &Path,
    install: bool,
    upstreams: Vec<Recorder>,
    given: BTreeMap<String, Scrape>,
) -> Result<Report, VerifyError> {
    let mut running = match Running::start(dir, suite, &upstreams, install) {
        Ok(running) => running,
        Err(NotStarted::Unreachable(says)) => {
            return Ok(Report::unreached(suite, &dir.display().to_string(), says));
        }
        Err(error @ NotStarted::Unusable(_)) => return Err(VerifyError::Gateway(error)),
    };
    let mut metrics = given;
    for (name, scrape) in std::mem::take(&mut running.metrics) {
        metrics.entry(name).or_insert(scrape);
    }
    let rig = Rig {
        target: running.target.clone(),
        upstreams,
        metrics,
    };
    let mut report = run(suite, &rig)?;
    report.target = format!("{}, {}", running.started.name, report.target);
    if let (Some(says), Some(ended)) = (&mut report.unreachable, running.started.ended()) {
        *says = format!("{says}; {ended}");
    }
    Ok(report)
}

/// Runs a suite against a gateway's directory, as a campaign does before its load.
///
/// # Errors
/// The outer one: nothing could be done. The inner one: somebody did not answer.
pub(crate) fn of_gateway(
    suite: &Suite,
    dir: &Path,
) -> Result<Result<Verified, Unreachable>, VerifyError> {
    let upstreams = listen(suite, &[], true)?;
    let report = started(suite, dir, false, upstreams, BTreeMap::new())?;
    Ok(report.settled())
}

/// Runs a suite against a gateway that runs, whose calls arrive at these upstreams.
///
/// # Errors
/// As of [`of_gateway`].
pub(crate) fn of_target(
    suite: &Suite,
    target: &str,
    upstreams: &[(String, SocketAddr)],
    metrics: &[(String, String)],
) -> Result<Result<Verified, Unreachable>, VerifyError> {
    let rig = Rig {
        target: Target::parse(target).map_err(VerifyError::Usage)?,
        metrics: metrics_of(suite, metrics)?,
        upstreams: listen(suite, upstreams, false)?,
    };
    Ok(run(suite, &rig)?.settled())
}

/// The suite's upstreams, where they were asked for; on free ports where that is possible.
pub(crate) fn listen(
    suite: &Suite,
    given: &[(String, SocketAddr)],
    may_choose: bool,
) -> Result<Vec<Recorder>, VerifyError> {
    for (name, _) in given {
        if !suite
            .upstreams
            .iter()
            .any(|upstream| upstream.name == *name)
        {
            let says = format!("--upstream {name}: {} has no such upstream", suite.name);
            return Err(VerifyError::Usage(says));
        }
    }
    let mut recorders = Vec::new();
    for upstream in &suite.upstreams {
        let name = upstream.name.clone();
        let address = given
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, address)| *address);
        let address = match address {
            Some(address) => address,
            None if may_choose => ports::loopback(ports::free()?),
            None => {
                let says = format!(
                    "{} needs its upstream: give --upstream {name}=HOST:PORT, where the gateway sends calls",
                    suite.name
                );
                return Err(VerifyError::Usage(says));
            }
        };
        recorders.push(Recorder::start(upstream, address).map_err(|source| {
            let address = address.to_string();
            VerifyError::Listen {
                name,
                address,
                source,
            }
        })?);
    }
    Ok(recorders)
}

/// Metrics that the suite itself or the command line knows the place of.
fn metrics_of(
    suite: &Suite,
    given: &[(String, String)],
) -> Result<BTreeMap<String, Scrape>, VerifyError> {
    let mut metrics = BTreeMap::new();
    for (name, text) in given {
        let of = |says: String| VerifyError::Usage(format!("--metrics {name}: {says}"));
        let known = suite.metrics.get(name);
        let known = known.ok_or_else(|| of(format!("{} has no such metric", suite.name)))?;
        let (url, series) = match text.split_once('#') {
            Some((url, series)) => (url, Some(suite::selector(series).map_err(of)?)),
            None => (text.as_str(), None),
        };
        let selector = series.or_else(|| known.selector.clone());
        let selector = selector.ok_or_else(|| of("which series? write URL#SERIES".into()))?;
        let page = Target::parse(url).map_err(of)?;
        metrics.insert(name.clone(), Scrape { page, selector });
    }
    for (name, metric) in &suite.metrics {
        let of = |says: String| VerifyError::Usage(format!("metric.{name}.url: {says}"));
        if let (Some(url), Some(selector)) = (&metric.url, &metric.selector)
            && !metrics.contains_key(name)
        {
            let page = Target::parse(url).map_err(of)?;
            let selector = selector.clone();
            metrics.insert(name.clone(), Scrape { page, selector });
        }
    }
    Ok(metrics)
}

fn tell(options: &Options, report: &Report) -> io::Result<()> {
    let json = format!("{:#}\n", report.json());
    if let Some(file) = &options.junit {
        files::write(file, &junit::xml(report))?;
    }
    if let Some(file) = &options.out {
        files::write(file, &json)?;
    }
    if options.json {
        eprint!("{}", page::page(report, text::is_coloured(&io::stderr())));
        text::say(&json)
    } else {
        text::say(&page::page(report, text::is_coloured(&io::stdout())))
    }
}

pub(crate) fn named(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn upstream(text: &str) -> Result<(String, SocketAddr), String> {
    use std::net::ToSocketAddrs;
    let (name, place) = named(text)?;
    let mut addresses = place
        .to_socket_addrs()
        .map_err(|error| format!("{place}: {error}"))?;
    let address = addresses
        .next()
        .ok_or_else(|| format!("{place}: no address"))?;
    Ok((name, address))
}
