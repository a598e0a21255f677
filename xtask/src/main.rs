//! `cargo xtask`: the project's own chores, in Rust, so that one command does the same on every machine.
//!
//! Invariant: what CI runs is `cargo xtask test` and nothing else; whatever a stage finds is counted
//! in the last line of its output, and a stage that could not run counts as failed.
//! Not here: what is tested (each crate's tests) and what is measured (`proving/`).

mod agents;
mod binaries;
mod book;
mod cargo;
mod cast;
mod charts;
mod command;
mod compiler;
mod conformance;
mod cpu_time;
mod dist;
mod free_address;
mod fuzz;
mod git;
mod go;
mod instructions;
mod kubernetes;
mod lane;
mod markdown;
mod parts;
mod pgo;
mod renderings;
mod setup;
mod stages;
mod strain;
mod tally;
mod tidy;

use std::process::ExitCode;

use crate::instructions::Build;

const HELP: &str = "\
cargo xtask <verb>

  check          formatting, lints, tidy, unit tests and vectors: the quick lane
  test           everything CI runs: installs what the tests need, then check, the gate's
                 instruction counts and the end-to-end tests
  ci             the same as test
  unit [FILTER]  only the unit tests and vectors (those whose name contains FILTER)
  e2e [FILTER]   only the end-to-end tests, likewise
  timing         the tests that measure time, with nothing beside them: a lane of its own, for a quiet machine
  random [FILTER]
                 the unit tests with fresh seeds: a lane of its own. A failure prints its seed
  strained KIND [TIMES]
                 unit and end-to-end tests on a machine that does something else as well: a lane of its own. KIND is
                 `loops` (four busy loops beside them), `one-core`, `stops` (one of their processes stands still for a
                 second, again and again) or `slow-sync` (each sync of a file takes 50 ms longer)
  instructions [BUILD [SCENARIO]]
                 count the gate's instructions, scenario by scenario, and compare with xtask/instructions.json: of both
                 builds, `tests` (what `test` builds) and `dist` (what is shipped: minutes), or of one; --write keeps the
                 new counts, `instructions BINARY BUILD [SCENARIO]` counts what is there beside those of a build
  kubernetes     the tests that need a real kube-apiserver, which is built first (Go; ten minutes once):
                 a lane of its own; a path runs them against that binary instead of a release build
  agents         Claude Code and Codex themselves in front of the gate, with a provider that is faked (npm; 650 MB once):
                 a lane of its own; a path runs them against that binary instead of a release build
  conformance [BINARY] [--test NAME] [--suite PROGRAM --crds DIRECTORY --program WORD=PATH]
                 the Gateway API's conformance suite against the gate, in a cluster without containers (Go; twenty minutes
                 once, and the right to make network namespaces): a lane of its own; its report is
                 target/conformance/report.yaml
  conformance mcp [BINARY]
                 the Model Context Protocol's conformance suite, as a client and as a server, straight and through the gate,
                 check by check, and clients of the SDKs and of the Inspector (npm, Go and cargo; minutes): a lane of its own
  charts         the charts of deploy/helm, linted and rendered by Helm, which is built first (Go; five minutes once): a lane
                 of its own
  portable       the gate built as for any Unix but Linux, with the twin of what is Linux's alone, and the
                 data plane's tests with it: a lane of its own
  pgo            a `dist` build laid out by a profile, in target/pgo/tollgate
  cast           docs/demo.svg anew: the demo in a terminal of eighty columns, captured by tmux; a path captures
                 that binary instead of a release build
  dist           packages in target/packages: an archive, its symbols, a .deb, an OCI image, lists of what
                 they are made of, sums; built with the profile `dist` for an old glibc, and tried in bare roots;
                 a path packages that binary instead. --twice builds in two directories and compares; with --all-tried
                 it fails where something was left untried that this machine permits;
                 --untried leaves the trial out, `dist try [OLDER.deb]` tries what is there, `dist setup` installs what is
                 needed for it, and `dist tag NAME` says whether a tag is that of this version;
                 `dist sign` signs the sums by the key that TOLLGATE_SIGNING_KEY holds or names a file of, and nothing
                 else of this runs where that is set
  fuzz [--seconds N] [TARGET]
                 every fuzz target, or one, for N seconds each (600 unless said): a lane of its own
  renderings [--seed N] [--cases N]
                 chat templates rendered by us and by Python's Jinja2, over made-up conversations
                 (20000 unless said): a lane of its own
  book           the pages as a book with search, in target/book/html: no warning of mdBook, no link or anchor
                 that leads nowhere
  book blocks [DIR [PAGE]]
                 the commands of every page, run as they are printed, in a directory of the page's own: a lane
                 of its own; DIR holds the programs in place of a release build, PAGE is part of a page's path
  tidy           the house rules: arrows and circles between crates and modules, purity, licences and bans, least versions of
                 crates, sources and their sizes, links, blocks and troubleshooting of the pages, vectors, fuzz targets,
                 profiles
  setup          install what the end-to-end tests need, under target/e2e

The last line of check, test, unit, e2e, timing, random, strained, kubernetes, agents, conformance, portable, instructions and book blocks is `total: N passed, N failed, N skipped`;
above it stands a line for each skipped test, with what it lacked. A stage that failed ends with the command that repeats it.
";

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    compiler::run_as_compiler(&words).unwrap_or_else(verb)
}

fn verb() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => stages::check(),
        ["test" | "ci"] => stages::test(),
        ["unit"] => stages::unit(None),
        ["unit", filter] => stages::unit(Some(filter)),
        ["timing"] => stages::timing(),
        ["random"] => stages::random(None),
        ["random", filter] => stages::random(Some(filter)),
        ["strained", kind] => strained(kind, "1"),
        ["strained", kind, times] => strained(kind, times),
        ["e2e"] => stages::e2e(None),
        ["e2e", filter] => stages::e2e(Some(filter)),
        ["instructions", rest @ ..] => count_instructions(rest),
        ["kubernetes"] => kubernetes::lane(None),
        ["kubernetes", binary] => kubernetes::lane(Some(binary.as_ref())),
        ["conformance", "mcp", rest @ ..] => match conformance::mcp::Plan::of(rest) {
            Some(plan) => conformance::mcp::lane(&plan),
            None => misused(),
        },
        [
            "conformance",
            conformance::mcp::scenarios::THROUGH,
            rest @ ..,
        ] => conformance::mcp::scenarios::through(rest),
        ["agents"] => agents::lane(None),
        ["agents", binary] => agents::lane(Some(binary.as_ref())),
        ["conformance", rest @ ..] => match conformance::Plan::of(rest) {
            Some(plan) => conformance::lane(&plan),
            None => misused(),
        },
        ["charts"] => charts::lane(),
        ["portable"] => stages::portable(),
        ["pgo"] => report(pgo::run().map(|binary| println!("{}", binary.display()))),
        ["cast"] => report(cast::run(None)),
        ["cast", binary] => report(cast::run(Some(binary.as_ref()))),
        ["dist", rest @ ..] => planned(dist::Plan::of(rest), dist::run),
        ["fuzz", rest @ ..] => planned(fuzz::Plan::of(rest), fuzz::run),
        ["renderings", rest @ ..] => planned(renderings::Plan::of(rest), renderings::run),
        ["book"] => report(book::build()),
        ["book", "blocks"] => book::blocks::lane(None, None),
        ["book", "blocks", binaries] => book::blocks::lane(Some(binaries.as_ref()), None),
        ["book", "blocks", binaries, page] => {
            book::blocks::lane(Some(binaries.as_ref()), Some(page))
        }
        ["tidy"] => report(tidy::run_and_print()),
        ["setup"] => report(setup::run().map(drop)),
        ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => misused(),
    }
}

fn strained(kind: &str, times: &str) -> ExitCode {
    match (strain::Strain::of(kind), times.parse()) {
        (Some(strain), Ok(times)) => stages::strained(strain, times),
        _ => misused(),
    }
}

fn count_instructions(words: &[&str]) -> ExitCode {
    let filter = |rest: &[&str]| rest.first().copied().unwrap_or_default().to_owned();
    match words {
        [] => stages::instructions(&Build::ALL, false, ""),
        ["--write"] => stages::instructions(&Build::ALL, true, ""),
        [build, "--write"] if Build::of(build).is_some() => {
            stages::instructions(Build::of(build).as_slice(), true, "")
        }
        [build, rest @ ..] if Build::of(build).is_some() && rest.len() < 2 => {
            stages::instructions(Build::of(build).as_slice(), false, &filter(rest))
        }
        [binary, build, rest @ ..] if rest.len() < 2 => match Build::of(build) {
            Some(build) => stages::instructions_of(binary.as_ref(), build, &filter(rest)),
            None => misused(),
        },
        _ => misused(),
    }
}

/// Runs what words were understood as.
fn planned<P>(plan: Option<P>, run: impl FnOnce(&P) -> Result<(), String>) -> ExitCode {
    plan.map_or_else(misused, |plan| report(run(&plan)))
}

fn misused() -> ExitCode {
    eprint!("{HELP}");
    ExitCode::from(2)
}

fn report(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(says) => {
            eprintln!("error: {says}");
            ExitCode::FAILURE
        }
    }
}
