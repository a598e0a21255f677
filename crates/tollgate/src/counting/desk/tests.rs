//! Rows that wait: with a count, without one, too long.

use std::sync::mpsc::channel;

use ledger::{Ids, Ledger, Options, Reader};
use policy::record::Outcome;
use tokens::{Doubt, drift::Tolerance};

use super::*;
use crate::counting::RESULTS;

const TOLERANCES: Tolerances = Tolerances {
    exact: Tolerance::EXACT,
    overhead: Tolerance::OVERHEAD,
    output: Tolerance::OUTPUT,
};

fn row(ids: &mut Ids, prompt: Billed, completion: Billed) -> Box<Waiting> {
    let admission = ledger::Admission {
        id: ids.next(0),
        started_unix_ms: 0,
        request_id: "r".into(),
        trace_id: None,
        workload: None,
        budget_group: None,
        route: None,
        backend: None,
        model_asked: None,
        model_sent: None,
        reserved: 0,
        at_most: None,
    };
    let progress = ledger::Progress {
        id: admission.id,
        tokens: 0,
        bytes_out: 0,
    };
    let mut row = Settlement::indeterminate(admission, progress, 0);
    row.state = ledger::State::Settled;
    row.outcome = Outcome::Completed;
    row.prompt.billed = prompt;
    row.completion.billed = completion;
    Box::new(Waiting { row, price: None })
}

fn counted(id: u64, prompt: Found, output: Found) -> Note {
    let count = |tokens: u64| Billed::Reported(tokens);
    Note::Counted(Box::new(Counted {
        id,
        model: "m".into(),
        tokens: Tokens {
            prompt: count(10),
            completion: count(20),
            ..Tokens::default()
        },
        is_whole: true,
        prompt,
        output,
        rest: None,
    }))
}

fn exact(tokens: u64) -> Found {
    Some(Ok(Count {
        tokens,
        certainty: Certainty::Exact,
    }))
}

fn near(tokens: u64) -> Found {
    Some(Ok(Count {
        tokens,
        certainty: Certainty::Approximate(Doubt::EncodedAgain),
    }))
}

#[test]
fn a_count_stands_beside_whatever_is_billed() {
    let beside = |billed, found| {
        let mut witnesses = Witnesses {
            billed,
            ..Witnesses::default()
        };
        witness(&mut witnesses, found);
        assert_eq!(witnesses.billed, billed);
        witnesses.counted
    };
    assert_eq!(beside(Billed::Reported(10), exact(11)), Some(11));
    assert_eq!(beside(Billed::Estimated(99), near(12)), Some(12));
    let busy = Some(Err(Missed::Busy));
    assert_eq!(beside(Billed::Estimated(99), busy), None);
    assert_eq!(beside(Billed::Unknown, exact(12)), None);
}

#[test]
fn a_count_that_is_billed_is_charged() {
    let per_token = policy::price::Pico(1_000);
    let price = Price {
        id: "p".into(),
        currency: "USD".into(),
        request: policy::price::Pico(7),
        rates: policy::price::Rates::flat(per_token, per_token),
        tiers: Vec::new(),
    };
    let note = |note| match note {
        Note::Counted(counted) => counted,
        Note::Held(..) => panic!("a count"),
    };
    let billed = Tokens {
        prompt: Billed::Reported(10),
        completion: Billed::Counted(20),
        ..Tokens::default()
    };
    for (billed, cost) in [(Some(&billed), 7 + 10_000 + 20_000), (None, 1)] {
        let estimated = Billed::Estimated(5);
        let mut held = row(&mut Ids::new(1, 1), Billed::Reported(10), estimated);
        held.price = Some(Arc::new(price.clone()));
        held.row.price = Some(ledger::Price {
            id: "p".into(),
            currency: "USD".into(),
            cost: Some(policy::price::Pico(1)),
        });
        complete(&mut held, &note(counted(1, exact(10), near(20))), billed);
        let charged = held.row.price.and_then(|price| price.cost);
        assert_eq!(charged, Some(policy::price::Pico(cost)), "{billed:?}");
    }
}

#[test]
fn every_row_is_settled_once_be_its_count_early_late_or_never() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("usage.db");
    let (ledger, _) = Ledger::open(Options::at(&path)).expect("a ledger");
    let board = Arc::new(Board::default());
    let mut desk = Desk::new(
        Some(ledger.intake()),
        Arc::clone(&board),
        TOLERANCES,
        Arc::default(),
    );
    let mut ids = Ids::new(1, 1);
    let start = Instant::now();
    let row = |ids: &mut Ids| row(ids, Billed::Reported(10), Billed::Estimated(5));
    desk.take(Note::Held(1, row(&mut ids)), start);
    desk.take(counted(1, exact(10), near(20)), start);
    desk.take(Note::Held(2, row(&mut ids)), start);
    desk.let_go(start + PATIENCE - Duration::from_secs(1));
    assert_eq!(desk.held.len(), 1);
    desk.let_go(start + PATIENCE);
    // Too late: it is settled already.
    desk.take(counted(2, exact(10), near(20)), start);
    // Left when all is over.
    let (notes, heard) = channel();
    notes
        .send(Note::Held(3, row(&mut ids)))
        .expect("it is there");
    drop(notes);
    desk.run(&heard, &AtomicBool::new(false));
    assert!(ledger.close(Duration::from_secs(10)));

    let late = RESULTS.iter().position(|r| *r == "late").expect("a result");
    assert_eq!(board.results(Direction::Prompt)[late], 2);
    let mut found = Vec::new();
    let reader = Reader::open(&path).expect("a ledger");
    reader
        .each(ledger::Period::ALL, |row| {
            let completion = row.number("completion_tokens");
            found.push((completion, row.number("completion_counted")));
            Ok::<(), ledger::ReadError>(())
        })
        .expect("a ledger");
    found.sort_unstable();
    assert_eq!(
        found,
        [(Some(5), None), (Some(5), None), (Some(5), Some(20))]
    );
}
