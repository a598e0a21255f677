//! What a gate takes of memory is what the page on sizes says.
//!
//! Not here: what bodies and streams take (`bodies`, `prove race`), whether reloads leak (`reload`).

use testing::nothing_happens_for;

use crate::harness::{Gate, Upstream};

const SIZES: &str = include_str!("../../../../docs/sizing.md");
/// What stands before the figure, in MiB.
const IDLE: &str = "| an idle gate, two workers | ";

/// Within a half of it: other builds of the same gate differ by a tenth, and the page asks its readers to allow for a factor of two.
#[test]
fn an_idle_gate_takes_what_the_page_on_sizes_says() {
    let row = SIZES.lines().find_map(|line| line.strip_prefix(IDLE));
    let said = row.and_then(|row| row.split_once(" MiB of its own"));
    let said: i64 = said.expect("the page has a figure").0.parse().expect("MiB");
    let upstream = Upstream::start(|_, _| Vec::new());
    let config = format!(
        "workers: 2\nbackends: {{ up: {{ url: http://{}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    // What its threads do when they begin is done by then.
    nothing_happens_for(std::time::Duration::from_secs(1));
    let own = gate.own_kib() / 1024;
    println!("{own} MiB of its own, {} KiB in all", gate.resident_kib());
    assert!(
        said * 2 / 3 <= own && own <= said * 3 / 2,
        "docs/sizing.md says {said} MiB, and it takes {own}: measure anew, and find out why"
    );
}
