//! What the ledger knows of a snapshot's prices, for whoever reads it later.

use std::path::Path;

use ledger::report::{Statement, focus};
use ledger::{Admission, Named, Period, Price, Progress, Reader, RecordId, Settlement, State};
use policy::record::{Count, Outcome};
use policy::revision::Revision;
use policy::snapshot::Snapshot;

use crate::world::World;

const CONFIG: &str = "
backends: { own: { url: http://127.0.0.1:1/v1, credential: { inline: canary } } }
routes:
  - { workload: nightly, backend: own, unread: [ { call: POST /v1/files, money: 0.05 } ] }
ledger: { path: usage.db }
";

/// A row of an answered call that the first route lists first.
fn listed(snapshot: &Snapshot) -> Settlement {
    let price = snapshot.routes[0].unread[0].price;
    let price = price.and_then(|id| snapshot.prices.get(id));
    let price = price.expect("it is charged money");
    let id = RecordId([7; 16]);
    let open = Admission {
        id,
        started_unix_ms: 1_700_000_000_000,
        request_id: "request".into(),
        named: Named {
            tool: None,
            workload: Some("nightly".into()),
            route: Some("own".into()),
            backend: Some("own".into()),
            ..Named::default()
        },
        model_asked: None,
        model_sent: None,
        reserved: 0,
        at_most: Some(0),
    };
    let begun = Progress {
        id,
        tokens: 0,
        bytes_out: 0,
    };
    let mut row = Settlement::indeterminate(open, begun, 1_700_000_000_000);
    row.state = State::Settled;
    let record = &mut row.record;
    (record.outcome, record.status) = (Outcome::Completed, 200);
    record.tokens.prompt = Count::Reported(0);
    record.tokens.completion = Count::Reported(0);
    row.price = Some(Price {
        id: (*price.id).into(),
        currency: (*price.currency).into(),
        cost: Some(price.request),
    });
    row
}

#[test]
fn a_call_that_is_not_read_has_its_price_on_bills_and_statements() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("tollgate.yaml");
    let loaded = config::parse_document(Path::new(&file), CONFIG.as_bytes(), &World);
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let settings = loaded.host.ledger.as_ref().expect("there is one");
    let service = super::open(settings).expect("opens");
    let revision = Revision::first(loaded.snapshot);
    super::begin(&service, &revision, None).expect("begins");
    let intake = service.ledger().intake();
    intake.settle(listed(&revision.snapshot));
    super::close(service);

    let reader = Reader::open(&dir.path().join("usage.db")).expect("a ledger");
    let statement = Statement::of(&reader, Period::ALL, "Usage", 0).expect("is read");
    for text in [statement.html(), statement.csv()] {
        assert!(text.contains("0.05 USD per call"), "{text}");
        assert!(!text.contains("which the ledger does not have"), "{text}");
    }
    let mut charges = Vec::new();
    focus(&reader, Period::ALL, "Tollgate", &mut charges).expect("is written");
    let charges = String::from_utf8(charges).expect("text");
    let mut lines = charges.lines().map(|line| line.split(','));
    let heads: Vec<&str> = lines.next().expect("a head").collect();
    let charge: Vec<&str> = lines.next().expect("a charge").collect();
    assert!(lines.next().is_none(), "one charge: {charges}");
    let of = |name: &str| charge[heads.iter().position(|head| *head == name).expect(name)];
    let told = [
        "SkuMeter",
        "ConsumedQuantity",
        "ListUnitPrice",
        "BilledCost",
    ]
    .map(of);
    assert_eq!(told, ["Requests", "1", "0.05", "0.05"], "{charges}");
}
