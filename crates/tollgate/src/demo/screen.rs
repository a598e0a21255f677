//! What the demo shows a person: how to call it, what is happening, what happened.
//!
//! Invariant: a live line is drawn only on a terminal; `NO_COLOR` is respected.
//! Not here: what is counted (`telemetry`).

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ledger::report::{self, By};
use ledger::{Period, ReadError, Reader};
use telemetry::{Gauges, WorkloadTotals};

use super::Addresses;
use super::drive::Plan;
use crate::metrics::merged;
use crate::running::Running;
use crate::{say, width};

const REFRESH: Duration = Duration::from_millis(500);

/// Who calls, for which model of its tier, and what comes of it.
const CALLERS: [(&str, &str, &str); 3] = [
    (
        "swe-rebench-ide",
        "gpt-oss-120b",
        "tier 2, at most 2 requests a minute: the third is 429",
    ),
    (
        "toolbench-agent",
        "gemini-2.5-flash",
        "tier 1, whatever credential the client sends",
    ),
    (
        "unknown-guest",
        "gpt-oss-120b",
        "not registered: 404, and no engine hears of it",
    ),
];

/// Totals by workload and what is open.
struct Totals {
    workloads: Vec<WorkloadTotals>,
    gauges: Gauges,
}

/// Addresses, and a call for each identity.
pub(super) fn introduce(at: &Addresses) {
    let Addresses {
        data,
        admin,
        on_prem,
        frontier,
    } = at;
    let bold = |text: &str| {
        if colour() {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    };
    say(&format!(
        "{}

  data      http://{data}/v1  what clients talk to
  admin     http://{admin}     /metrics  /readyz  /config
  on-prem   http://{on_prem}/v1  tier 2, simulated: gpt-oss-120b
  frontier  http://{frontier}/v1  tier 1, simulated: gemini-2.5-flash

{}",
        bold("Tollgate demo: two tiers behind one gate"),
        bold("Three identities")
    ));
    for (workload, model, what) in CALLERS {
        say(&format!(
            "  {workload}: {what}
    curl -i http://{data}/v1/chat/completions \\
      -H 'content-type: application/json' \\
      -H 'x-workload-app: {workload}' \\
      -H 'authorization: Bearer malicious-token' \\
      -d '{{\"model\":\"{model}\",
           \"messages\":[{{\"role\":\"user\",\"content\":\"Hi\"}}]}}'
    OpenAI(base_url=\"http://{data}/v1\", api_key=\"any\",
           default_headers={{\"x-workload-app\": \"{workload}\"}})"
        ));
    }
    say(&format!(
        "
{}
  from openai import OpenAI
  client = OpenAI(base_url=\"http://{data}/v1\", api_key=\"any\",
                  default_headers={{\"x-workload-app\": \"toolbench-agent\"}})
  for chunk in client.chat.completions.create(model=\"gemini-2.5-flash\",
          stream=True, messages=[{{\"role\": \"user\", \"content\": \"Hello\"}}]):
      print(chunk.choices[0].delta.content or \"\", end=\"\")

Ctrl-C drains, and prints who spent what.
",
        bold("With the OpenAI SDK")
    ));
}

/// The calls that are about to be made.
pub(super) fn plan(plan: &Plan) {
    say(&format!(
        "{} calls of the workload {}, one each {} ms: --seed {}\n",
        plan.calls,
        plan.workload.as_str(),
        plan.every.as_millis(),
        plan.seed
    ));
}

/// To the start of the line, and nothing on it.
const CLEAR: &str = "\r\x1b[2K";

/// Leaves an empty line for whoever writes next.
struct Cleared;

impl Drop for Cleared {
    fn drop(&mut self) {
        let mut out = std::io::stdout();
        drop(write!(out, "{CLEAR}"));
        drop(out.flush());
    }
}

/// Keeps the live line until dropped. Never ends.
pub(super) async fn live(running: Arc<Running>) {
    if !std::io::stdout().is_terminal() {
        return std::future::pending().await;
    }
    let _cleared = Cleared;
    let mut every = tokio::time::interval(REFRESH);
    loop {
        every.tick().await;
        let merged = merged(&running).await;
        let totals = Totals {
            workloads: merged.by_workload(),
            gauges: merged.gauges(),
        };
        // Clipped: a line that wraps cannot be drawn over.
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let clipped: String = line(&totals)
            .chars()
            .take(width.saturating_sub(1))
            .collect();
        let mut out = std::io::stdout();
        drop(write!(out, "{CLEAR}{clipped}"));
        drop(out.flush());
    }
}

/// Requests, streams, tokens and refusals in one line.
fn line(totals: &Totals) -> String {
    let sum = |of: fn(&WorkloadTotals) -> u64| totals.workloads.iter().map(of).sum::<u64>();
    let mut line = format!(
        "requests {}  streams {}  tokens {} in {} out  refused {}",
        sum(|w| w.exchanges),
        totals.gauges.streams,
        sum(|w| w.prompt_tokens),
        sum(|w| w.completion_tokens),
        sum(|w| w.refused),
    );
    for workload in totals.workloads.iter().filter(|w| w.exchanges > 0) {
        let name = if workload.name.is_empty() {
            "unregistered"
        } else {
            &workload.name
        };
        line += &format!("  | {name} {}", workload.exchanges);
        if workload.refused > 0 {
            line += &format!(" ({} refused)", workload.refused);
        }
    }
    line
}

/// Letters of a workload's name in the summary, so that a line has at most eighty.
const NAME_MAX: usize = 17;

/// A table by workload.
pub(super) fn summary(workloads: &[WorkloadTotals], elapsed: Duration) {
    say(&format!("\nServed for {:.0} s.\n", elapsed.as_secs_f64()));
    say(&format!(
        "{:<NAME_MAX$} {:>8} {:>9} {:>7} {:>6} {:>7} {:>9} {:>10}",
        "workload",
        "requests",
        "completed",
        "refused",
        "failed",
        "aborted",
        "tokens in",
        "tokens out"
    ));
    for w in workloads {
        let name: String = match w.name.chars().count() {
            0 => "(unregistered)".to_owned(),
            1..=NAME_MAX => w.name.to_string(),
            _ => w.name.chars().take(NAME_MAX - 1).chain(['…']).collect(),
        };
        say(&format!(
            "{name:<NAME_MAX$} {:>8} {:>9} {:>7} {:>6} {:>7} {:>9} {:>10}",
            w.exchanges,
            w.completed,
            w.refused,
            w.failed,
            w.aborted,
            w.prompt_tokens,
            w.completion_tokens
        ));
    }
}

/// What `usage report` and `usage drift` say of the ledger.
pub(super) fn report(reader: &Reader) -> Result<(), ReadError> {
    let width = width::of(std::io::stdout());
    let by = [By::Workload];
    let lines = report::report(reader, Period::ALL, &by)?;
    if lines.is_empty() {
        say("\nNo call was let in, so nobody spent anything.");
        return Ok(());
    }
    say("\nWho spent what: tollgate usage report\n");
    say(report::table(&lines, &by, width).trim_end());
    let by = [By::Model];
    let lines = report::report(reader, Period::ALL, &by)?;
    say("\nThe engines' count beside the gate's own: tollgate usage drift\n");
    say(report::drift_table(&lines, &by, width).trim_end());
    Ok(())
}

/// Where the ledger is.
pub(super) fn kept(ledger: &Path) {
    say(&format!("\nThe ledger is kept: {}", ledger.display()));
}

fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
