//! What is said of a drain.

use super::{End, open_calls};

#[test]
fn a_drain_says_ctrl_c_again_only_where_a_signal_ended_the_demo() {
    let said = |open, end| open_calls(open, end).unwrap_or_default();
    assert_eq!(
        said(2, End::Signal),
        "Draining: 2 calls open. Ctrl-C again cuts them off."
    );
    assert_eq!(
        said(1, End::Itself),
        "Draining: 1 call open. Ctrl-C cuts it off."
    );
    assert_eq!(said(0, End::Signal), "");
}
