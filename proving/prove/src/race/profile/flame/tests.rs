//! Graphs by example.

use super::super::fold::{Frame, Stacks};
use super::{draw, fitting};

fn stack(names: &[&str]) -> Vec<Frame> {
    let frame = |name: &&str| Frame {
        name: (*name).to_owned(),
        kernel: name.starts_with("sys"),
    };
    names.iter().map(frame).collect()
}

#[test]
fn boxes_are_as_wide_as_their_share_and_stand_beside_each_other() {
    let stacks = Stacks::from([
        (stack(&["gate", "parse<'_>"]), 30),
        (stack(&["gate", "write", "sys_write"]), 70),
    ]);
    let svg = draw("a & b", &stacks);
    assert!(svg.contains("a &amp; b") && svg.contains("100 samples"));
    assert!(svg.contains("<title>parse&lt;'_&gt; — 30 samples, 30.00 %</title>"));
    assert!(
        svg.contains(r#"<rect class="u" x="0.00" y="61.0" width="420.00""#),
        "{svg}"
    );
    assert!(
        svg.contains(r#"<rect class="u" x="420.00" y="61.0" width="980.00""#),
        "{svg}"
    );
    assert!(
        svg.contains(r#"<rect class="k" x="420.00" y="44.0" width="980.00""#),
        "{svg}"
    );
    assert_eq!(svg.matches("<rect").count(), 4);
}

#[test]
fn what_cannot_be_seen_is_left_out() {
    let stacks = Stacks::from([
        (stack(&["gate", "rare"]), 1),
        (stack(&["gate", "often"]), 99_999),
    ]);
    let svg = draw("t", &stacks);
    assert!(svg.contains("often") && !svg.contains("rare"));
    assert_eq!(draw("t", &Stacks::new()).matches("<rect").count(), 0);
}

#[test]
fn a_name_is_cut_to_its_box() {
    assert_eq!(fitting("poll_response", 200.0), "poll_response");
    assert_eq!(fitting("poll_response", 50.0), "poll_..");
    assert_eq!(fitting("poll_response", 20.0), "");
}
