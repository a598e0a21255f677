//! What the demo tells in lines: how to call it, and what happened.
//!
//! Not here: what is shown meanwhile (`live`), what is counted (`telemetry`).

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ledger::report::{self, By};
use ledger::{Period, ReadError, Reader};
use telemetry::WorkloadTotals;
use tollgate::output::say;
use tollgate::words::counted;
use tollgate::{logging, width};

use super::drive::Plan;
use super::words::{NAME_WIDTH, named};

/// Where everything listens.
pub(crate) struct Addresses {
    pub(crate) data: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) on_prem: SocketAddr,
    pub(crate) frontier: SocketAddr,
}

/// Somebody who may call.
pub(crate) struct Caller {
    pub(crate) name: &'static str,
    /// Under what its calls are counted.
    pub(crate) counted_as: &'static str,
    /// Of its tier.
    pub(crate) model: &'static str,
    /// What comes of its calls.
    what: &'static str,
}

pub(crate) const CALLERS: [Caller; 3] = [
    Caller {
        name: "swe-rebench-ide",
        counted_as: "swe-rebench-ide",
        model: "gpt-oss-120b",
        what: "own engines, at most 2 requests a minute: the third is 429",
    },
    Caller {
        name: "toolbench-agent",
        counted_as: "toolbench-agent",
        model: "gemini-2.5-flash",
        what: "a frontier model, whatever credential the client sends",
    },
    Caller {
        name: "unknown-guest",
        counted_as: "",
        model: "gpt-oss-120b",
        what: "not registered: 404, and no engine hears of it",
    },
];

/// Addresses; and, unless a picture follows that has its own, a call for each identity.
pub(crate) fn introduce(at: &Addresses, is_live: bool) {
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
  tools     http://{data}/mcp  three tools, for any MCP client
  admin     http://{admin}     /metrics  /readyz  /config
  on-prem   http://{on_prem}/v1  tier 2, own engines: gpt-oss-120b
  frontier  http://{frontier}/v1  tier 1, bought: gemini-2.5-flash
",
        bold("Tollgate demo: two tiers of simulated models behind one gate"),
    ));
    if is_live {
        return;
    }
    say(&bold("Three identities"));
    for caller in CALLERS {
        let Caller {
            name: workload,
            model,
            what,
            ..
        } = caller;
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
pub(crate) fn plan(plan: &Plan) {
    say(&format!(
        "{} of the workload {}, one every {} ms: --seed {}\n",
        counted(plan.calls, "call"),
        plan.workload.as_str(),
        plan.every.as_millis(),
        plan.seed
    ));
}

/// What ended the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Somebody, by a signal.
    Signal,
    /// Its last call, or an output that takes no more.
    Itself,
}

/// Says what is waited for before there is a summary.
pub(crate) fn draining(open: u64, end: End) {
    if let Some(line) = open_calls(open, end) {
        say(&line);
    }
}

/// The calls that are waited for, and what ends them; nothing where none is open.
pub(crate) fn open_calls(open: u64, end: End) -> Option<String> {
    let them = match open {
        0 => return None,
        1 => "it",
        _ => "them",
    };
    let again = match end {
        End::Signal => " again",
        End::Itself => "",
    };
    let open = counted(open, "call");
    Some(format!(
        "Draining: {open} open. Ctrl-C{again} cuts {them} off."
    ))
}

/// A table by workload.
pub(crate) fn summary(workloads: &[WorkloadTotals], elapsed: Duration) {
    say(&format!("\nServed for {:.0} s.\n", elapsed.as_secs_f64()));
    say(&format!(
        "{:<NAME_WIDTH$} {:>8} {:>9} {:>7} {:>6} {:>7} {:>9} {:>10}",
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
        let name = named(&w.name);
        say(&format!(
            "{name:<NAME_WIDTH$} {:>8} {:>9} {:>7} {:>6} {:>7} {:>9} {:>10}",
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
pub(crate) fn report(reader: &Reader) -> Result<(), ReadError> {
    let width = width::of(std::io::stdout());
    let by = [By::Workload];
    let lines = report::report(reader, Period::ALL, &by)?;
    if lines.is_empty() {
        say("\nThe ledger has no call, so nobody spent anything.");
        return Ok(());
    }
    say("\nWho spent what: tollgate usage report\n");
    say(report::table(&lines, &by, width).trim_end());
    let by = [By::Model];
    let lines = report::report(reader, Period::ALL, &by)?;
    say("\nThe engines' count beside the gate's own: tollgate usage drift\n");
    say(report::drift_table(&lines, &by, width).trim_end());
    say("");
    say(&report::wrapped(WHY_DRIFT, width, 0));
    Ok(())
}

/// Under the table of drift: why there is some, and where there is none.
const WHY_DRIFT: &str = "Drift is what an engine reports beyond what the gate counts. gpt-oss-120b is counted by its own tokenizer and template, so \
                         it has none. The template of gemini-2.5-flash is not public: the gate counts its prompts by one that is like it, and the token \
                         that ends each answer the engine alone counts.";

/// Where the ledger is.
pub(crate) fn kept(ledger: &Path) {
    say(&format!("\nThe ledger is kept: {}", ledger.display()));
}

fn colour() -> bool {
    std::io::stdout().is_terminal() && !logging::forbids_colour()
}

#[cfg(test)]
mod tests;
