//! Genuine files, where a machine has them: `CORPUS_TOOLBENCH` names a directory of ToolBench's raw answers.
//!
//! `CORPUS_TOOLBENCH=… cargo test -p corpus genuine -- --nocapture` prints the counts.

use std::path::PathBuf;

use corpus::reader::{Format, Settings};
use corpus::repair::{Mode, Options, Repairs, repair};

use crate::fixture::read;
use testing::skip;

#[test]
fn genuine_answers_are_read_and_repaired_in_both_modes() {
    let Some(dir) = std::env::var_os("CORPUS_TOOLBENCH") else {
        skip("CORPUS_TOOLBENCH names no directory of genuine answers");
        return;
    };
    let read = read(
        Format::ToolBench,
        &Settings::default(),
        &[PathBuf::from(dir)],
    );
    assert!(read.errors.is_empty(), "{:?}", read.errors);
    let (sessions, decisions) = (read.tally.sessions, read.tally.decisions);
    println!("sessions {sessions}, decisions {decisions}");
    println!(
        "skipped {:?}, broken {:?}",
        read.tally.skipped, read.tally.broken
    );
    println!(
        "notes {:?}, unknown {:?}",
        read.tally.notes, read.tally.unknown.counts
    );
    for mode in [Mode::Strict, Mode::Paper] {
        let options = Options {
            mode,
            ..Options::default()
        };
        let mut all = Repairs::default();
        let mut kept = 0;
        for session in read
            .records
            .iter()
            .filter_map(|(_, session)| session.as_ref().ok())
        {
            let (repaired, made) = repair(session.clone(), &options);
            let (again, none) = repair(repaired.clone(), &options);
            assert_eq!(again, repaired);
            assert!(none.is_empty(), "{none:?}");
            kept += repaired.decisions.len();
            all.absorb(&made);
        }
        println!("{mode:?}: decisions {kept}, repairs {all:?}");
    }
    assert!(sessions > 0);
}
